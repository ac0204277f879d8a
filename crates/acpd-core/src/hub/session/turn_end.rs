//! The end of a turn: the agent answers its prompt, or its process is gone.
//! [`crate::session::work`] decides which end it is. In ACP v1 the response to `session/prompt`
//! ends a turn; any protocol version has to call [`Hub::end_turn`].

use acp_wire::{ErrorObject, build, clipped};
use acpd_api::{Outcome, Reason, Tokens, TurnEnded, TurnUsage, method};
use bytes::Bytes;
use serde_json::json;

use crate::event::EngineEvent;
use crate::fault::Fault;
use crate::hub::Hub;
use crate::hub::session::cancel::{cancelled_answer, cancelled_by_user};
use crate::ids::{SessionKey, SlotId};
use crate::input::Effect;
use crate::record::{Canceller, EventKind, PromptKeyRow, Record, Replayable, TurnStage};
use crate::session::work::{TurnEnd, WorkEvent};
use crate::timers::Timer;
use crate::tool_calls::changed_files::changed_files;

impl Hub {
    /// The caller takes the `senders` out before, and answers them after.
    pub(crate) fn end_turn(&mut self, key: SessionKey, outcome: Outcome) {
        let now = self.cx.now;
        let Some(mut running) = self.session_mut(key).running.take() else { return };
        let usage = self.book_turn(key, running.number, running.tokens);
        let session = self.session_mut(key);
        let row = session.row.edit();
        if let Some(last) = running.replayed_as.filter(|_| is_kept(&outcome)) {
            let Replayable { prompts, answered, .. } = row.replayable;
            let answered = answered || running.work.is_touched();
            row.replayable = Replayable { prompts: prompts + 1, last, answered };
        }
        row.last_outcome = Some(outcome.word().to_owned());
        session.why_cut_off = outcome.reason().map(str::to_owned);
        let row = session.row.edit();
        // No update will close the calls that the agent left open, and they must not fail later.
        row.open_tools.clear();
        row.updated = now;
        let calls = std::mem::take(&mut session.calls);
        session.activity.end_turn();
        let files = if running.whole { changed_files(&calls) } else { Vec::new() };
        let ended = TurnEnded {
            cut_short: running.cut_short.take(),
            session_id: session.row.public_id.clone().into(),
            turn: running.number,
            started_at: running.started.0,
            at: now.0,
            outcome,
            tools: running.whole.then_some(calls.len() as u32),
            files: files.into_iter().map(Into::into).collect(),
            usage,
        };
        self.cx.timers.clear(Timer::Cancel(key));
        self.cx.timers.clear(Timer::Stall(key));
        self.close_questions(self.own_questions(key));
        let line = build::notification(method::TURN_ENDED, &ended);
        self.append(key, EventKind::Notice, line, None);
        self.cx.report(EngineEvent::TurnEnded { session: key, ended: Box::new(ended) });
        if self.keeps_history(key) {
            self.cx.send(Effect::Index(key));
        }
        self.lease(self.session(key).slot);
        self.cx.record(Record::Turn(running.row(key, TurnStage::Ended)));
    }

    pub(crate) fn interrupt_turn(&mut self, key: SessionKey, fault: &Fault) {
        let Some(running) = self.session_mut(key).running.as_mut() else { return };
        let chunk = running.chunk;
        let senders = std::mem::take(&mut running.senders);
        let own = running.key.take().map(|key| (key, running.number));
        let mut fault = fault.clone();
        // These reasons say that a turn cannot begin; this one had begun.
        if matches!(fault.data.reason, Reason::AgentStopped | Reason::SessionBlocked) {
            fault.data.reason = Reason::Interrupted;
        }
        let slot = self.session(key).slot;
        let wedged = self.processes[&slot].is_wedged();
        self.log_failure(slot, Some(key), "turn interrupted", None);
        let undecided = self.processes.is_undecided(slot, chunk);
        let Some(running) = self.session_mut(key).running.as_mut() else { return };
        let is_cancelled = running.work.canceller() == Some(Canceller::Client);
        let end = running.end(WorkEvent::Lost { undecided, wedged });
        if end == TurnEnd::Unknown {
            let reason = "acpd ended before it knew that the agent had got the prompt";
            fault = Fault::new(Reason::OutcomeUnknown, reason);
        }
        let reason = fault.message.clone().into();
        let outcome = match end {
            TurnEnd::Unknown => Outcome::OutcomeUnknown { reason },
            TurnEnd::Unwedged => Outcome::Unwedged { reason },
            TurnEnd::Cancelled => cancelled_by_user(),
            TurnEnd::CutOff | TurnEnd::Answered => Outcome::Interrupted { reason },
        };
        self.end_turn(key, outcome);
        // A user who has cancelled the turn gets no error.
        let fault = (!is_cancelled).then(|| self.session(key).interrupted_fault(fault));
        if let Some(own) = own {
            self.keep_outcome(key, own, &cancelled_by_user(), fault.as_ref());
        }
        for to in senders {
            let line = match &fault {
                Some(fault) => build::error(&to.id, &fault.object()),
                None => cancelled_answer(&to.id, b""),
            };
            self.respond(&to, Some(key), line);
        }
    }

    /// Keeps the outcome of a prompt with an idempotency key (`prompt.rs`).
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

    /// The agent was asked to end the turn, and is stopped if it does not.
    pub(crate) fn abandon_turn(&mut self, key: SessionKey, fault: &Fault) {
        let session = self.session(key);
        let (slot, id) = (session.slot, session.row.agent_id.clone());
        if let Some(ask) = self.abandon_prompt(key, id) {
            self.watch_abandoned(ask, slot);
        }
        self.interrupt_turn(key, fault);
    }

    pub(crate) fn watch_abandoned(&mut self, ask: u64, slot: SlotId) {
        let timeout = self.profile_of(slot).cancel_timeout;
        self.cx.timers.set(Timer::Asked(ask), self.cx.now.after(timeout));
    }

    pub(crate) fn book_turn(
        &mut self,
        key: SessionKey,
        turn: u64,
        tokens: Tokens,
    ) -> Option<TurnUsage> {
        let cost = self.session_mut(key).row.edit().usage.turn.take();
        let usage = TurnUsage { tokens, cost };
        self.book(key, Some(turn), usage.clone());
        (!usage.tokens.is_empty() || usage.cost.is_some()).then_some(usage)
    }

    pub(crate) fn book(&mut self, key: SessionKey, turn: Option<u64>, usage: TurnUsage) {
        let row = &self.sessions[&key].row;
        if let Some(text) = self.budget.on_used(&mut self.cx, (row, turn), usage) {
            self.notice(key, "warning", &text);
        }
    }

    pub(crate) fn on_usage_update(&mut self, key: SessionKey, line: &Bytes) {
        for cost in self.session_mut(key).note_usage(line) {
            self.book(key, None, TurnUsage { tokens: Tokens::default(), cost: Some(cost) });
        }
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
