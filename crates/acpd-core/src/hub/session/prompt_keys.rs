//! Idempotency keys of prompts: a prompt that is sent again under its key is the same prompt.
//!
//! ```text
//!  session/prompt ─┬─ its key is in the queue or in the running turn ─▶ joins the requests that wait for it
//!  with a key      ├─ its key has a row: the turn has ended ──────────▶ gets the outcome of that turn
//!                  └─ else ───────────────────────────────────────────▶ a new prompt
//! ```
//!
//! The key of a prompt that has not ended is in its line, which is on disk with the turn. The row is
//! written in the transaction that ends the turn, and goes with the session. A prompt that is taken back
//! or refused before the agent got it leaves none, so its key means nothing any longer.
//!
//! Architecture invariant: a prompt with a key is executed at most once in its session, over any number
//! of clients, daemons and processes.

use acp_wire::{ErrorObject, Id, build, clipped};
use acpd_api::{NAMESPACE, Outcome, PromptRepeated, method};
use acpd_policy::Verdict;
use bytes::Bytes;
use serde_json::{Value, json};

use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{ClientId, Requester, SessionKey};
use crate::prompt::{idempotency_key, without_once};
use crate::record::{PromptKeyRow, Record};

/// Characters of an agent's error that are kept.
const MESSAGE: usize = 4_000;

impl Hub {
    /// Deals with a prompt whose key is known: answers it, or lets it wait with the first one. Returns
    /// whether it is one.
    pub(crate) fn prompt_repeated(
        &mut self,
        to: &Requester,
        session: SessionKey,
        key: &str,
        has_yes: bool,
    ) -> bool {
        if let Some(row) = self.prompt_keys.get(&(session, key.to_owned())) {
            let (line, turn) = (answer_again(&to.id, row), row.turn);
            self.tell_repeated(to.client, session, turn);
            self.respond(to, Some(session), line);
            return true;
        }
        let of = self.session_mut(session);
        // A yes is the first sender's: a client that joins without one does not come into it.
        let joins = |senders: &mut Vec<Requester>| {
            let is_other = senders.first().is_none_or(|first| first.client != to.client);
            senders.push(to.clone());
            is_other && !has_yes
        };
        let mut line = None;
        if let Some(running) = of.running.as_mut().filter(|turn| turn.key.as_deref() == Some(key)) {
            if joins(&mut running.senders) && running.once == Some(Verdict::Allow) {
                running.once = None;
                running.line = running.line.as_ref().map(without_once);
                line.clone_from(&running.line);
            }
            let turn = running.number;
            if let Some(host) = self.session(session).row.host {
                self.save_turn(session, host, line);
            }
            self.tell_repeated(to.client, session, turn);
            return true;
        }
        let is_it =
            |line: &[u8]| idempotency_key(line).is_ok_and(|own| own.as_deref() == Some(key));
        let Some(place) = of.queue.iter().position(|prompt| is_it(&prompt.line)) else {
            return false;
        };
        let queued = &mut of.queue[place];
        if joins(&mut queued.senders) && crate::prompt::has_yes(&queued.line) {
            queued.line = without_once(&queued.line);
        }
        self.save_queued(session, place);
        let ahead = place as u32 + u32::from(self.is_busy(session));
        if ahead > 0 {
            self.tell_ahead(to.client, session, ahead);
        }
        self.go_on_with(session);
        true
    }

    /// Reports the turn that a prompt has become; its answer may wait for lines or for the end of that turn.
    fn tell_repeated(&mut self, client: ClientId, session: SessionKey, turn: u64) {
        let session_id = self.session(session).row.public_id.clone().into();
        let line =
            build::notification(method::PROMPT_REPEATED, &PromptRepeated { session_id, turn });
        self.clients.tell(&mut self.cx, client, &line);
    }

    /// Keeps the outcome of a turn, whose prompt had this key and which had this number.
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

    /// A session is deleted for good, and its keys with it.
    pub(crate) fn forget_keys(&mut self, session: SessionKey) {
        self.prompt_keys.retain(|(of, _), _| *of != session);
    }
}

/// The answer to a prompt that has ended, for a request that sends it again.
fn answer_again(id: &Id, row: &PromptKeyRow) -> Bytes {
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
