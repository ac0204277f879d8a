//! Idempotency keys: a prompt that is sent again under its key is the same prompt.
//!
//! ```text
//!  session/prompt ─┬─ its key is queued, or in the running turn ─▶ joins the requests that wait
//!  with a key      ├─ its key has a row: the turn has ended ─────▶ gets the outcome of that turn
//!                  └─ else ──────────────────────────────────────▶ a new prompt
//! ```
//!
//! The key of an open prompt is in its line, which is on disk with the turn. The row is written in
//! the transaction that ends the turn, and deleted with the session. A prompt that the agent never
//! got leaves no row, so its key is unknown again.
//!
//! Architecture invariant: a prompt with a key is executed at most once in its session, over any
//! number of clients, daemons and processes.

use acp_wire::{ErrorObject, Id, build, clipped};
use acpd_api::{NAMESPACE, Outcome, PromptRepeated, method};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{ClientId, SessionKey};
use crate::record::{PromptKeyRow, Record};

/// Characters kept of an agent's error.
const MESSAGE: usize = 4_000;

impl Hub {
    /// Reports the turn of a repeated prompt now: its answer may have to wait for the turn.
    pub(crate) fn tell_repeated(&mut self, client: ClientId, session: SessionKey, turn: u64) {
        let session_id = self.session(session).row.public_id.clone().into();
        let line =
            build::notification(method::PROMPT_REPEATED, &PromptRepeated { session_id, turn });
        self.clients.tell(&mut self.cx, client, &line);
    }

    pub(crate) fn keep_outcome(
        &mut self,
        session: SessionKey,
        (key, turn): (String, u64),
        outcome: &Outcome,
        fault: Option<&Fault>,
    ) {
        let outcome = match (fault, outcome) {
            (Some(fault), _) => json!({ "error": fault.object() }),
            (None, Outcome::Error { code, message }) => {
                json!({ "error": ErrorObject::new(*code, clipped(message.raw(), MESSAGE)) })
            }
            (None, outcome) => json!({ "result": { "stopReason": outcome.word() } }),
        };
        let row = PromptKeyRow { session, key, turn, outcome: outcome.to_string().into() };
        self.cx.record(Record::PromptKey(row.clone()));
        self.prompt_keys.insert((session, row.key.clone()), row);
    }
}

pub(crate) fn answer_again(id: &Id, row: &PromptKeyRow) -> Bytes {
    let mark = json!({ "repeated": true, "turn": row.turn });
    let mut outcome: Value = serde_json::from_slice(&row.outcome).unwrap_or_default();
    if let Some(result) = outcome.get_mut("result") {
        result["_meta"] = json!({ NAMESPACE: mark });
        return build::response(id, result);
    }
    let error: Option<ErrorObject> = serde_json::from_value(outcome["error"].take()).ok();
    let error = error.unwrap_or_else(|| ErrorObject::new(acp_wire::code::INTERNAL, ""));
    let data = error.data.as_ref().and_then(|data| serde_json::from_str(data.get()).ok());
    let mut data: Value = data.unwrap_or_else(|| json!({}));
    for (name, value) in mark.as_object().into_iter().flatten() {
        data[NAMESPACE][name] = value.clone();
    }
    build::error(id, &error.with_data(&data))
}
