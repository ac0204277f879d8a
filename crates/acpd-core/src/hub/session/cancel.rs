//! Turns and queued prompts that end early: a client cancels, or the agent is stopped.
//!
//! Architecture invariant: a turn that a user has cancelled is `cancelled`, and one whose agent was
//! stopped is `interrupted`, with any answer of the agent.
//! Others than their senders can also change and move queued prompts.

use acp_wire::acp::stop_reason;
use acp_wire::{ErrorObject, Id, Message, Outcome as WireOutcome, build, code, locate, set_member};
use acpd_api::{
    ClientName, NAMESPACE, Outcome, QueueEditParams, QueueInfo, QueueMoveParams, QueueRemoveParams,
    QueueStep, Reason, SessionRef,
};
use bytes::Bytes;
use serde_json::json;

use crate::clients::Asked;
use crate::fault::Fault;
use crate::hub::Hub;
use crate::hub::session::line::{SHOWN, by_whom, quotation};
use crate::ids::{Requester, SessionKey, SlotId, duration};
use crate::process::slot::StopWhy;
use crate::prompt::{has_yes, without_once};
use crate::session::turn::Cancel;
use crate::session::work::{WorkEffect, WorkEvent};
use crate::timers::Timer;

impl Hub {
    /// Ends the running turn, and takes back queued prompts and messages on their way.
    pub(crate) fn cancel(&mut self, key: SessionKey, by: Option<ClientName>, line: Option<Bytes>) {
        self.take_back_steers(key);
        let queued: Vec<_> = self.session_mut(key).queue.drain(..).collect();
        let who = by.as_ref().map(|by| by.title.as_ref().unwrap_or(&by.name).raw().to_owned());
        for prompt in queued {
            self.cx.record(prompt.dropped(key));
            self.tell_taken_back(key, &prompt, who.as_deref());
            for sender in &prompt.senders {
                self.respond(sender, Some(key), cancelled_answer(&sender.id, b""));
            }
        }
        self.cancel_running(key, Cancel::by(by), line);
    }

    pub(crate) fn cancel_running(&mut self, key: SessionKey, cancel: Cancel, line: Option<Bytes>) {
        let session = self.session(key);
        let slot = session.slot;
        // Without a running turn, a cancel could hit the next prompt.
        if session.running.as_ref().is_none_or(|running| running.work.is_cancelled()) {
            return;
        }
        let line = line.unwrap_or_else(|| {
            let params = acp_wire::acp::CancelParams { session_id: &session.row.public_id };
            build::notification("session/cancel", &params)
        });
        let line = self.session(key).to_agent_id(line);
        self.processes.write(&mut self.cx, slot, line);
        self.cancel_questions(self.questions.of_session(key));
        let error = ErrorObject::new(code::CANCELLED, "the turn was cancelled");
        self.services.end_waits(&mut self.cx, key, &error);
        self.react_to_closed();
        if let Some(host) = self.processes[&slot].host().map(|host| host.id)
            && let Some(running) = self.session_mut(key).running.as_mut()
            && running.cancel(cancel)
        {
            self.arm_cancel(key);
            self.save_turn(key, host, None);
        }
    }

    pub(crate) fn arm_cancel(&mut self, key: SessionKey) {
        let timeout = self.profile_of(self.session(key).slot).cancel_timeout;
        self.cx.timers.set(Timer::Cancel(key), self.cx.now.after(timeout));
    }

    pub(crate) fn cancel_turns_of(&mut self, slot: SlotId, because: &str) {
        for key in self.sessions.of_slot(slot) {
            self.cancel_running(key, Cancel::because(because), None);
        }
    }

    pub(crate) fn on_cancel_timeout(&mut self, key: SessionKey) {
        let slot = self.session(key).slot;
        if self.processes[&slot].host().is_none() {
            return;
        }
        let stops = self.processes[&slot].is_stopping();
        let running = self.session_mut(key).running.as_mut();
        let effect = running.and_then(|running| running.step(WorkEvent::Overdue { stops }));
        if effect == Some(WorkEffect::StopProcess) {
            let time = duration(self.profile_of(slot).cancel_timeout);
            let reason = format!("it ignored a cancel for {time} and was stopped");
            self.begin_stop(slot, StopWhy::Wedged, Some(reason));
        }
    }

    pub(crate) fn cancel_prompt(&mut self, to: &Requester, key: SessionKey) {
        let session = self.session_mut(key);
        let place = session.queue.iter().position(|prompt| prompt.senders.contains(to));
        if let Some(prompt) = place.and_then(|at| session.queue.remove(at)) {
            let fault = Fault::new(Reason::Interrupted, "cancelled while it waited in the queue");
            self.drop_prompt(key, &prompt, &fault.with_code(code::CANCELLED));
        } else {
            let by = self.clients.name_of(to.client, None);
            self.cancel_running(key, Cancel::by(by), None);
        }
    }

    pub(crate) fn queue_remove(&mut self, params: QueueRemoveParams) -> Result<QueueInfo, Fault> {
        let QueueRemoveParams { session, ticket, by } = params;
        let (key, place) = self.place_of(&session, ticket)?;
        let prompt = self.session_mut(key).queue.remove(place).expect("a prompt at its place");
        self.tell_taken_back(key, &prompt, by.as_deref());
        let by = by_whom(by.as_deref());
        let text = format!("the prompt was taken back by {by} while it waited");
        let fault = Fault::new(Reason::Interrupted, text).with_code(code::CANCELLED);
        let fault = fault.session(&self.session(key).row.public_id);
        self.drop_prompt(key, &prompt, &fault);
        Ok(self.tell_queue(key))
    }

    pub(crate) fn queue_edit(
        &mut self,
        params: QueueEditParams,
        asked: &Asked<'_>,
    ) -> Result<QueueInfo, Fault> {
        let QueueEditParams { session, ticket, prompt, by } = params;
        let (key, place) = self.place_of(&session, ticket)?;
        let blocks: Vec<serde_json::Map<String, serde_json::Value>> =
            serde_json::from_str(prompt.get()).unwrap_or_default();
        if blocks.is_empty() {
            return Err(Fault::invalid("`prompt` is no list of content blocks"));
        }
        let queued = &self.session(key).queue[place];
        self.has_room(key, prompt.get().len().saturating_sub(queued.line.len()))?;
        let ends_yes = has_yes(&queued.line) && ends_yes(queued.senders.first(), asked)?;
        let queued = &mut self.session_mut(key).queue[place];
        if ends_yes {
            queued.line = without_once(&queued.line);
        }
        queued.line = set_member(&queued.line, &["params", "prompt"], prompt.get().as_bytes());
        let said = quotation(queued, SHOWN);
        self.save_queued(key, place);
        let by = by_whom(by.as_deref());
        self.notice(key, "info", &format!("a prompt that waits was changed by {by}{said}"));
        if ends_yes {
            let text = format!("`--yes` no longer holds for that prompt: {by} changed it");
            self.notice(key, "warning", &text);
        }
        Ok(self.tell_queue(key))
    }

    pub(crate) fn queue_move(&mut self, params: QueueMoveParams) -> Result<QueueInfo, Fault> {
        let QueueMoveParams { session, ticket, to, by } = params;
        let (key, from) = self.place_of(&session, ticket)?;
        let place = match to {
            QueueStep::First => 0,
            QueueStep::Up => from.saturating_sub(1),
            QueueStep::Down => (from + 1).min(self.session(key).queue.len() - 1),
        };
        let queue = &mut self.session_mut(key).queue;
        if place != from
            && let Some(prompt) = queue.remove(from)
        {
            let said = quotation(&prompt, SHOWN);
            queue.insert(place, prompt);
            self.renumber(key, from.min(place));
            let by = by_whom(by.as_deref());
            self.notice(key, "info", &format!("a prompt that waits was moved by {by}{said}"));
        }
        Ok(self.tell_queue(key))
    }

    fn place_of(&self, session: &SessionRef, ticket: u64) -> Result<(SessionKey, usize), Fault> {
        let key = self.resolve(session)?;
        Ok((key, self.session(key).place_of(ticket)?))
    }

    fn tell_queue(&mut self, key: SessionKey) -> QueueInfo {
        self.tell_state(key);
        self.session(key).queue_info()
    }
}

pub(crate) fn cancelled_by_user() -> Outcome {
    Outcome::Stopped { stop_reason: "cancelled".into() }
}

/// Keeps the agent's result, if there is one, except for its stop reason.
pub(crate) fn cancelled_answer(id: &Id, answer: &[u8]) -> Bytes {
    match acp_wire::parse(answer) {
        Ok(Message::Response { outcome: WireOutcome::Result(result), .. })
            if result.get().starts_with('{') =>
        {
            let line = Bytes::copy_from_slice(answer);
            if stop_reason(result).as_deref() == Some("cancelled") {
                return line;
            }
            set_member(&line, &["result", "stopReason"], b"\"cancelled\"")
        }
        _ => build::response(id, &json!({ "stopReason": "cancelled" })),
    }
}

/// Returns whether a request ends the sender's yes, which holds for the sender's own words only.
/// Fails if the request may not answer questions (`_meta._acpd.answers`).
pub(crate) fn ends_yes(sender: Option<&Requester>, asked: &Asked<'_>) -> Result<bool, Fault> {
    if sender.is_some_and(|sender| sender.client == asked.to.client) {
        return Ok(false);
    }
    let params = asked.params.map_or(&[][..], |params| params.get().as_bytes());
    let answers = locate(params, &["_meta", NAMESPACE, "answers"]);
    if answers.is_none_or(|answers| &params[answers] != b"false") {
        return Ok(true);
    }
    let text = "the sender allowed beforehand what this prompt asks for: changing it needs the scope `answer`";
    Err(Fault::new(Reason::OutOfScope, text)
        .with_code(code::INVALID_PARAMS)
        .hint("do it at the terminal, or pair again with more scopes: `acpctl web pair --scope …`"))
}
