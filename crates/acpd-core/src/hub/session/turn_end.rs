//! The end of a turn: the agent answers its prompt, its process is gone, a client cancels it, or
//! the agent is stopped. [`crate::session::work`] decides which end it is. In ACP v1 the response
//! to `session/prompt` ends a turn; any protocol version has to call [`Hub::end_turn`].
//!
//! Architecture invariant: a turn that a user has cancelled is `cancelled`, and one whose agent was
//! stopped is `interrupted`, with any answer of the agent.

use acp_wire::acp::stop_reason;
use acp_wire::{
    ErrorObject, Id, Message, Outcome as WireOutcome, build, clipped, code, locate, set_member,
};
use acpd_api::{ClientName, Outcome, Reason, TurnEnded, TurnState, TurnUsage, method};
use bytes::Bytes;
use serde_json::json;

use crate::event::EngineEvent;
use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{Requester, SessionKey, SlotId, duration};
use crate::process::slot::StopWhy;
use crate::record::{Canceller, EventKind, LineForm, PromptKeyRow, Replayable, Row};
use crate::session::turn::{Cancel, Running};
use crate::session::work::{TurnEnd, WorkEffect, WorkEvent};
use crate::timers::Timer;
use crate::tool_calls::changed_files::changed_files;

const NOT_SAID: &str = "the agent did not say whether it has the prompt";

impl Hub {
    /// Returns the turn, whose senders the caller answers. `tells`: the agent tells clients of version
    /// 2 its states itself.
    pub(crate) fn end_turn(
        &mut self,
        key: SessionKey,
        outcome: Outcome,
        tells: bool,
    ) -> Option<Running> {
        let now = self.cx.now;
        let version = self.processes.version_of(self.session(key).slot);
        let session = self.session_mut(key);
        let mut running = session.running.take()?;
        // The notice of the end says so, unless the agent tells it.
        let is_undone = running.message.is_none() && session.told == TurnState::Idle;
        let form = if tells || is_undone { LineForm::First } else { LineForm::default() };
        if !tells {
            session.told = TurnState::Idle;
        }
        let cost = self.session_mut(key).row.edit().usage.turn.take();
        let usage = TurnUsage { tokens: running.tokens, cost };
        self.book(key, Some(running.number), usage.clone());
        let has_usage = !usage.tokens.is_empty() || usage.cost.is_some();
        let session = self.session_mut(key);
        let row = session.row.edit();
        if !tells {
            row.agent_state = TurnState::Idle;
        }
        if let Some(last) = running.replayed_as.filter(|_| is_kept(&outcome)) {
            let Replayable { prompts, answered, .. } = row.replayable;
            let answered = answered || running.work.is_touched();
            row.replayable = Replayable { prompts: prompts + 1, last, answered };
        }
        row.last_outcome = Some(outcome.word().to_owned());
        session.why_cut_off = outcome.reason().map(str::to_owned);
        let row = session.row.edit();
        if !version.calls_outlive_turns() {
            // No update will close the calls that the agent left open, and they must not fail later.
            row.open_tools.clear();
        }
        row.updated = now;
        let calls = std::mem::take(&mut session.calls);
        session.activity.end_turn();
        let files = if running.whole { changed_files(&calls) } else { Vec::new() };
        let ended = TurnEnded {
            cut_short: running.cut_short.take(),
            session_id: session.row.public_id.clone().into(),
            turn: running.number,
            started_at: running.prompt.at.0,
            at: now.0,
            outcome,
            tools: running.whole.then_some(calls.len() as u32),
            files: files.into_iter().map(Into::into).collect(),
            usage: has_usage.then_some(usage),
        };
        self.cx.timers.clear(Timer::Cancel(key));
        self.cx.timers.clear(Timer::Stall(key));
        if !tells {
            self.close_questions(self.own_questions(key));
        }
        let line = build::notification(method::TURN_ENDED, &ended);
        self.append_as(key, form, (EventKind::Notice, None), line, None);
        self.tell_turn_state(key);
        self.cx.report(EngineEvent::TurnEnded { session: key, ended: Box::new(ended) });
        if self.keeps_history(key) {
            self.cx.index_later(key);
        }
        self.lease(self.session(key).slot);
        self.cx.record(running.prompt.ended(key));
        Some(*running)
    }

    pub(crate) fn interrupt_turn(&mut self, key: SessionKey, fault: &Fault) {
        let Some(running) = self.session_mut(key).running.as_mut() else { return };
        let (chunk, is_inserted) = (running.chunk, running.message.is_some());
        let mut fault = fault.clone();
        // These reasons say that a turn cannot begin; this one had begun.
        if matches!(fault.data.reason, Reason::AgentStopped | Reason::SessionBlocked) {
            fault.data.reason = Reason::Interrupted;
        }
        let slot = self.session(key).slot;
        let wedged = self.processes[&slot].is_wedged();
        self.log_failure(slot, Some(key), "turn interrupted", None);
        let undecided = self.processes.is_undecided(slot, chunk, is_inserted);
        let Some(running) = self.session_mut(key).running.as_mut() else { return };
        let is_cancelled = running.work.canceller() == Some(Canceller::Client);
        let end = running.end(WorkEvent::Lost { undecided, wedged });
        if end == TurnEnd::Unknown {
            let reason = if is_inserted {
                "acpd ended before it knew that the agent had got the prompt"
            } else {
                NOT_SAID
            };
            fault = Fault::new(Reason::OutcomeUnknown, reason);
        }
        let reason = fault.message.clone().into();
        let outcome = match end {
            TurnEnd::Unknown => Outcome::OutcomeUnknown { reason },
            TurnEnd::Unwedged => Outcome::Unwedged { reason },
            TurnEnd::Cancelled => cancelled_by_user(),
            TurnEnd::CutOff | TurnEnd::Answered => Outcome::Interrupted { reason },
        };
        let Some(turn) = self.end_turn(key, outcome, false) else { return };
        // A user who has cancelled the turn gets no error.
        let fault = (!is_cancelled).then(|| self.session(key).interrupted_fault(fault));
        self.keep_outcome(key, &turn, &cancelled_by_user(), fault.as_ref());
        for to in turn.prompt.senders {
            let waits = self.clients.version_of(to.client).answers_insertion();
            let line = match &fault {
                Some(fault) => build::error(&to.id, &fault.object()),
                None if undecided && waits => {
                    build::error(&to.id, &Fault::new(Reason::OutcomeUnknown, NOT_SAID).object())
                }
                None => cancelled_answer(&to.id, b""),
            };
            self.answer_end(&to, key, line);
        }
    }

    /// Answers a sender at the end of the turn. One that waits for the insertion gets an error,
    /// because it does not know ends.
    pub(crate) fn answer_end(&mut self, to: &Requester, key: SessionKey, line: Bytes) {
        let is_end = || locate(&line, &["result", "stopReason"]).is_some();
        let line = if self.clients.version_of(to.client).answers_insertion() && is_end() {
            let error = ErrorObject::new(code::CANCELLED, "cancelled before the agent had it");
            build::error(&to.id, &error)
        } else {
            line
        };
        self.respond(to, Some(key), line);
    }

    /// Keeps the outcome of a prompt with an idempotency key (`prompt.rs`).
    pub(crate) fn keep_outcome(
        &mut self,
        session: SessionKey,
        turn: &Running,
        outcome: &Outcome,
        fault: Option<&Fault>,
    ) {
        let Some(key) = turn.key.clone() else { return };
        let outcome = match (fault, outcome) {
            (Some(fault), _) => json!({ "error": fault.object() }),
            (None, Outcome::Error { code, message }) => {
                json!({ "error": ErrorObject::new(*code, clipped(message.raw(), MESSAGE)) })
            }
            (None, outcome) => json!({ "result": { "stopReason": outcome.word() } }),
        };
        let outcome = outcome.to_string().into();
        let (turn, message) = (turn.number, turn.message.clone());
        let row = PromptKeyRow { session, key: key.clone(), turn, message, outcome };
        self.cx.put(Row::PromptKey(row.clone()));
        self.prompt_keys.insert((session, key), row);
    }

    /// The agent was asked to end the turn, and is stopped if it does not.
    pub(crate) fn abandon_turn(&mut self, key: SessionKey, fault: &Fault) {
        self.abandon_prompt(key);
        self.interrupt_turn(key, fault);
    }

    pub(crate) fn book(&mut self, key: SessionKey, turn: Option<u64>, usage: TurnUsage) {
        let row = &self.sessions[&key].row;
        if let Some(text) = self.budget.on_used(&mut self.cx, (row, turn), usage) {
            self.notice(key, "warning", &text);
        }
    }

    /// Ends the running turn, and takes back queued prompts and messages on their way.
    pub(crate) fn cancel(&mut self, key: SessionKey, by: Option<ClientName>, line: Option<Bytes>) {
        self.take_back_steers(key);
        let queued: Vec<_> = self.session_mut(key).queue.drain(..).collect();
        let who = by.as_ref().map(|by| by.title.as_ref().unwrap_or(&by.name).raw().to_owned());
        for prompt in queued {
            self.cx.record(prompt.ended(key));
            self.tell_taken_back(key, &prompt, who.as_deref());
            for sender in &prompt.senders {
                self.answer_end(sender, key, cancelled_answer(&sender.id, b""));
            }
        }
        self.cancel_running(key, Cancel::by(by), line);
    }

    pub(crate) fn cancel_running(&mut self, key: SessionKey, cancel: Cancel, line: Option<Bytes>) {
        let session = self.session(key);
        let slot = session.slot;
        let works_alone = session.works_alone() && self.keeps_originals(key);
        let is_cancelled = |running: &Running| running.work.is_cancelled();
        // Without work, a cancel could hit the next prompt.
        if !works_alone && session.running.as_deref().is_none_or(is_cancelled) {
            return;
        }
        let line = line.unwrap_or_else(|| {
            let params = json!({ "sessionId": session.row.public_id });
            build::notification("session/cancel", &params)
        });
        let line = self.session(key).to_agent_id(line);
        self.processes.write(&mut self.cx, slot, line);
        if works_alone {
            return;
        }
        self.end_questions(key, self.questions.of_session(key));
        let error = ErrorObject::new(code::CANCELLED, "the turn was cancelled");
        self.services.end_waits(&mut self.cx, key, &error);
        self.react_to_closed();
        if self.processes[&slot].host().is_some()
            && let Some(running) = self.session_mut(key).running.as_mut()
            && running.cancel(cancel)
        {
            self.arm_cancel(key);
            self.save_turn(key, None);
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
            self.begin_stop(slot, StopWhy::Wedged, &reason);
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

/// Characters kept of an agent's error.
const MESSAGE: usize = 4_000;

/// Returns whether an agent keeps the prompt of a turn that ended like this.
fn is_kept(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Stopped { stop_reason } => !matches!(stop_reason.raw(), "cancelled" | "refusal"),
        Outcome::Interrupted { .. } | Outcome::OutcomeUnknown { .. } => true,
        Outcome::Error { .. } | Outcome::Unwedged { .. } => false,
    }
}
