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

use acp_wire::{ErrorObject, Id, build};
use acpd_api::{NAMESPACE, PromptRepeated, method};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::clients::Served;
use crate::hub::Hub;
use crate::ids::{ClientId, Requester, SessionKey};
use crate::process::slot::Asker;
use crate::prompt::{has_yes, idempotency_key, without_continues, without_once};
use crate::record::PromptKeyRow;

impl Hub {
    pub(crate) fn prompt(&mut self, to: Requester, key: SessionKey, line: Bytes) -> Served {
        if let Some(own) = idempotency_key(&line)?
            && self.prompt_repeated(&to, key, &own, has_yes(&line))
        {
            return Ok(());
        }
        let client = to.client;
        let ahead = self.put_in_line(key, Some(to), without_continues(line))?;
        if ahead > 0 {
            self.tell_ahead(client, key, ahead);
        }
        self.on_prompt_queued(key);
        Ok(())
    }

    pub(crate) fn on_prompt_queued(&mut self, key: SessionKey) {
        self.try_without_login(key);
        self.need_session(key, Asker::Person);
    }

    /// Answers a prompt with a known key, or joins it to the first one. Returns whether it did.
    fn prompt_repeated(
        &mut self,
        to: &Requester,
        session: SessionKey,
        key: &str,
        allows: bool,
    ) -> bool {
        let wants_insertion = self.clients.version_of(to.client).answers_insertion();
        if let Some(row) = self.prompt_keys.get(&(session, key.to_owned())) {
            let message = row.message.as_ref().filter(|_| wants_insertion);
            let again = message.map_or_else(|| answer_again(&to.id, row), |of| of.answer(&to.id));
            let turn = row.turn;
            self.tell_repeated(to.client, session, turn);
            self.answer_end(to, session, again);
            return true;
        }
        let of = self.session_mut(session);
        let running = of.running.as_mut().filter(|turn| turn.key.as_deref() == Some(key));
        let turn = running.as_ref().map(|turn| (turn.number, turn.message.clone()));
        let is_it =
            |line: &[u8]| idempotency_key(line).is_ok_and(|own| own.as_deref() == Some(key));
        let place = of.queue.iter().position(|prompt| is_it(&prompt.line));
        let prompt = match (running, place) {
            (Some(turn), _) => {
                turn.is_promised |= wants_insertion && turn.message.is_some();
                &mut turn.prompt
            }
            (None, Some(place)) => &mut of.queue[place],
            (None, None) => return false,
        };
        // Only the first sender consented. A client that joins without consent ends it.
        let is_other = prompt.senders.first().is_none_or(|first| first.client != to.client);
        let message = turn.as_ref().and_then(|(_, message)| message.clone());
        let told = message.filter(|_| wants_insertion);
        if told.is_none() {
            prompt.senders.push(to.clone());
        }
        let ends_yes = is_other && !allows && has_yes(&prompt.line);
        if ends_yes {
            prompt.line = without_once(&prompt.line);
        }
        if let Some((turn, _)) = turn {
            let line = ends_yes.then(|| prompt.line.clone());
            self.save_turn(session, line);
            self.tell_repeated(to.client, session, turn);
            if let Some(message) = told {
                self.respond(to, Some(session), message.answer(&to.id));
            }
            return true;
        }
        let place = place.unwrap_or_default();
        self.save_queued(session, place);
        let ahead = place as u32 + u32::from(self.is_busy(session));
        if ahead > 0 {
            self.tell_ahead(to.client, session, ahead);
        }
        self.on_prompt_queued(session);
        true
    }

    /// Reports the turn of a repeated prompt now: its answer may have to wait for the turn.
    fn tell_repeated(&mut self, client: ClientId, session: SessionKey, turn: u64) {
        let session_id = self.session(session).row.public_id.clone().into();
        let line =
            build::notification(method::PROMPT_REPEATED, &PromptRepeated { session_id, turn });
        self.clients.tell(&mut self.cx, client, &line);
    }
}

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
