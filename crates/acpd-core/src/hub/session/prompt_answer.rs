//! The agent's answer to a prompt, also of a turn that failed at the model's provider although the
//! agent reports a normal end.
//!
//! Usage limits of agents, with `on_limit = "wait"`:
//!
//! ```text
//!  turn refused, with the time ─▶ a prompt of acpd's own is in the queue, held until then
//!                                   ├─ the limit is over ──────────────▶ given to the agent, once
//!                                   └─ the user prompts, or cancels ───▶ taken back
//! ```
//!
//! The held prompt is a queued turn, so it is on disk and in the next daemon. It asks the agent to
//! find out what is done of the last request and to finish it: the user's prompt is never repeated.

use acp_wire::acp::stop_reason;
use acp_wire::bound::NAME;
use acp_wire::{ErrorObject, Outcome as WireOutcome, build, clipped, code};
use acpd_api::{Outcome, Reason};
use bytes::Bytes;

use crate::fault::{Fault, Refusal, renewed_fault};
use crate::hub::Hub;
use crate::hub::session::turn_end::{cancelled_answer, cancelled_by_user};
use crate::ids::{SessionKey, duration};
use crate::process::slot::{Asker, StopWhy};
use crate::profile::OnLimit;
use crate::record::{Canceller, Dormant};
use crate::session::Session;
use crate::session::limit::{Held, over};
use crate::session::turn::GOES_ON;
use crate::session::usage::tokens_of;
use crate::session::work::{TurnEnd, WorkEvent};
use crate::timers::Timer;
use crate::tool_calls::call::update_in;

const MAX_WAITS: u64 = 5;

impl Hub {
    pub(crate) fn prompt_answered(
        &mut self,
        key: SessionKey,
        line: &Bytes,
        answer: WireOutcome<'_>,
    ) {
        // No client will answer open questions. Those of subagents stay: they may outlive the turn.
        self.end_questions(key, self.own_questions(key));
        let Some(running) = self.session_mut(key).running.as_mut() else { return };
        let work = running.work;
        let is_cancelled = work.is_cancelled();
        let is_silent = !work.is_touched() && !is_cancelled;
        let slot = self.session(key).slot;
        let (mut outcome, mut fault, refused) = self.read_prompt_answer(key, answer);
        let stops = self.processes[&slot].is_stopping();
        let running = self.session_mut(key).running.as_mut();
        // The agent does not decide the outcome of a turn that others have ended.
        match running.map(|running| running.end(WorkEvent::Ended { stops })) {
            Some(TurnEnd::Cancelled) => (outcome, fault) = (cancelled_by_user(), None),
            Some(TurnEnd::CutOff) => {
                let agent = &self.processes[&slot];
                let why = agent.reason.as_deref().unwrap_or("it is being stopped");
                let text = format!("agent `{}` was stopped in the turn: {why}", agent.profile());
                let stopped = Fault::new(Reason::Interrupted, text).hint(GOES_ON);
                outcome = Outcome::Interrupted { reason: stopped.message.clone().into() };
                fault = Some(stopped.session(&self.session(key).row.public_id));
            }
            _ => {}
        }
        let tells = self.keeps_originals(key);
        let Some(turn) = self.end_turn(key, outcome.clone(), tells) else { return };
        // Only after the end of the turn may the process restart.
        let refusal =
            refused.as_ref().map(|error| self.note_refusal(slot, "session/prompt", error));
        let is_limit = |error| over(error, self.session(key).limit, self.cx.now).is_some();
        let is_refused =
            refusal == Some(Refusal::Other) && is_silent && !refused.as_ref().is_some_and(is_limit);
        self.note_refused(key, is_refused);
        if refusal == Some(Refusal::Renewed) {
            if is_silent && turn.is_repeatable && !turn.is_inserted() {
                return self.prompt_again(key, turn.prompt);
            }
            if !is_cancelled {
                fault = Some(renewed_fault());
            }
        }
        if let (Some(Refusal::NeedsLogin), Some(failed)) = (refusal, &fault)
            && failed.data.reason == Reason::FailedTurn
        {
            fault = Some(self.processes.login_fault(slot, &failed.message));
        }
        // An agent that only asked for a login has done nothing for the prompt.
        let is_undone = refusal == Some(Refusal::NeedsLogin)
            && !work.is_touched()
            && !turn.is_inserted()
            && !is_cancelled
            && !turn.is_promised;
        // A prompt that an agent of version 2 has refused is in no history.
        let is_outside = refused.is_some() && turn.message.is_none();
        if !is_undone && !is_outside {
            self.keep_outcome(key, &turn, &outcome, fault.as_ref());
        }
        for sender in turn.prompt.senders {
            let line = match &fault {
                Some(fault) => build::error(&sender.id, &fault.object()),
                None if work.canceller() == Some(Canceller::Client) => {
                    cancelled_answer(&sender.id, &self.for_client(slot, &sender, line))
                }
                None => {
                    self.sessions.to_public_id_in_error(key, self.for_client(slot, &sender, line))
                }
            };
            self.answer_end(&sender, key, line);
        }
        match refused {
            Some(error) if says_forgotten(&error) => {
                self.make_dormant(key, Dormant::Parked, Some(error.message));
                // A restore may fail in the same process.
                if !self.sessions.is_at_work(slot) && self.processes[&slot].is_up() {
                    self.begin_stop(slot, StopWhy::Wedged, "it forgot a session that it held");
                }
            }
            Some(error) if refusal == Some(Refusal::NeedsLogin) => {
                // Queued prompts wait for a login.
                let row = self.session_mut(key).row.edit();
                row.rest = Dormant::NeedsLogin;
                row.reason = Some(error.message);
                self.tell_state(key);
            }
            Some(error) if !is_cancelled && !is_outside => {
                self.wait_for_limit(key, &error, turn.waits);
            }
            _ => {}
        }
        self.wake_session(key);
        if !self.has_turns(slot) {
            self.processes.on_turns_ended(&mut self.cx, slot);
        }
        self.check_idle(slot);
    }

    /// Returns also an error to be sent instead of the agent's answer, and the agent's error.
    fn read_prompt_answer(
        &mut self,
        key: SessionKey,
        answer: WireOutcome<'_>,
    ) -> (Outcome, Option<Fault>, Option<ErrorObject>) {
        let result = match answer {
            WireOutcome::Result(result) => result,
            WireOutcome::Error(error) => {
                let error = ErrorObject::from_raw(error);
                let (code, message) = (error.code, error.texts().join(": ").into());
                return (Outcome::Error { code, message }, None, Some(error));
            }
        };
        // A refused prompt was not taken in, nor was the summary before it.
        self.session_mut(key).note_spoken();
        if let Some(running) = self.session_mut(key).running.as_mut() {
            running.tokens = tokens_of(result);
        }
        let stop_reason = stop_reason(result).map_or_else(String::new, |why| clipped(&why, NAME));
        if let Some(fault) = self.hidden_failure(key, &stop_reason, result.get()) {
            let (code, message) = (fault.code, fault.message.clone().into());
            // The error of the model may be about a login.
            let refused = (fault.data.reason == Reason::FailedTurn).then(|| fault.object());
            return (Outcome::Error { code, message }, Some(fault), refused);
        }
        let slot = self.session(key).slot;
        self.processes.on_success(&mut self.cx, slot, "session/prompt");
        (Outcome::Stopped { stop_reason: stop_reason.into() }, None, None)
    }

    /// `waits`: earlier waits in a row.
    fn wait_for_limit(&mut self, key: SessionKey, error: &ErrorObject, waits: u64) {
        let session = self.session(key);
        let is_wanted = self.profile_of(session.slot).on_limit == OnLimit::Wait;
        let is_free = session.queue.is_empty() && session.running.is_none();
        let Some(until) = over(error, session.limit, self.cx.now).filter(|_| is_wanted && is_free)
        else {
            return;
        };
        if waits >= MAX_WAITS {
            let text = format!("acpd has waited for {MAX_WAITS} usage limits in a row and stops");
            return self.notice(key, "warning", &text);
        }
        self.queue_continue(key, Some(Held { until, waits: waits + 1 }));
        self.cx.timers.set(Timer::Limit(key), until);
        let time = duration(until.0.saturating_sub(self.cx.now.0));
        let text = format!(
            "the agent's usage limit is reached; acpd has it continue in {time} (`on_limit = \"wait\"`), \
             unless you cancel or prompt before"
        );
        self.notice(key, "warning", &text);
    }

    pub(crate) fn on_limit_timer(&mut self, key: SessionKey) {
        if self.session(key).held().is_some() {
            self.need_session(key, Asker::Policy);
        }
    }

    pub(crate) fn note_failure(&mut self, key: SessionKey, line: &[u8]) {
        let slot = self.session(key).slot;
        let signs = &self.processes.profile(slot, &self.cx.config).failed_turn;
        if signs.is_empty() {
            return;
        }
        if let Some(running) = self.sessions.session_mut(key).running.as_mut() {
            running.failure.note(signs, update_in(line));
        }
    }

    /// Returns the error of a turn that failed although its agent reports a normal end. Some agents
    /// end a turn without output if their provider refuses it (`empty_turn_fails`).
    fn hidden_failure(&self, key: SessionKey, stop_reason: &str, result: &str) -> Option<Fault> {
        let Session { slot, running, row, .. } = self.session(key);
        let profile = self.profile_of(*slot);
        let running = running.as_ref().filter(|running| !running.work.is_cancelled())?;
        let is_empty = stop_reason == "end_turn" && !running.work.is_touched();
        let fault = if is_empty && profile.empty_turn_fails {
            let text = "the agent ended the turn without a word, as it does when its model fails";
            Fault::new(Reason::EmptyTurn, text)
        } else {
            let reported = running.failure.reported(&profile.failed_turn, result.as_bytes());
            let text = match reported.filter(|_| stop_reason != "cancelled")? {
                "" => "the model failed, and the agent did not say why".to_owned(),
                text => format!("the turn failed: {text}"),
            };
            Fault::new(Reason::FailedTurn, text)
        };
        let hint =
            format!("check its login and its model provider; its output is in `{}`", profile.log);
        Some(fault.session(&row.public_id).hint(hint))
    }
}

/// Copilot forgets a session for good when it loses the connection that made the session.
fn says_forgotten(error: &ErrorObject) -> bool {
    let message = error.message.to_ascii_lowercase();
    error.code == code::NOT_FOUND || message.contains("session not found")
}
