//! Turns and queued prompts that end early: a client cancels, or the agent is stopped.
//!
//! Architecture invariant: a turn that a user has cancelled is `cancelled`, and one whose agent was
//! stopped is `interrupted`, with any answer of the agent.

use acp_wire::acp::stop_reason;
use acp_wire::{ErrorObject, Id, Message, Outcome as WireOutcome, build, code, set_member};
use acpd_api::{ClientName, Outcome, Reason};
use bytes::Bytes;
use serde_json::json;

use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{Requester, SessionKey, SlotId, duration};
use crate::process::slot::StopWhy;
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
        let line = self.sessions.to_agent_id(key, line);
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
            self.cx.record(prompt.dropped(key));
            let fault = Fault::new(Reason::Interrupted, "cancelled while it waited in the queue")
                .with_code(code::CANCELLED);
            for sender in &prompt.senders {
                self.refuse(sender, &fault);
            }
        } else {
            let by = self.clients.name_of(to.client, None);
            self.cancel_running(key, Cancel::by(by), None);
        }
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
