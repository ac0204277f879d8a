//! A prompt in line and the turn that an agent works on; the diagram is in `hub/session/turn.rs`.

use std::collections::BTreeSet;

use acp_wire::bound::NAME;
use acp_wire::{StateKey, UpdateClass, clipped, code, set_member, str_at};
use acpd_api::{ClientName, CutShort, QueueInfo, QueuedPrompt, Reason, Tokens};
use acpd_policy::Verdict;
use bytes::Bytes;
use serde_json::json;

use crate::fault::Fault;
use crate::ids::{Requester, SessionKey, Time};
use crate::params::raw_at;
use crate::profile::FailureSign;
use crate::prompt::in_place_of;
use crate::record::{Canceller, Record, TurnRow, TurnStage};
use crate::session::table::Sessions;
use crate::session::work::{TurnEnd, Work, WorkEffect, WorkEvent, step};

/// Hint after an interrupted turn.
pub(crate) const GOES_ON: &str =
    "send another prompt to continue; the interrupted turn is not repeated";

/// Advice for a session that works on prompts.
pub(crate) fn wait_or_cancel(session: &str) -> String {
    format!("wait until it is done, or cancel it: `acpctl cancel {session}`")
}

/// A prompt in line.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) ticket: u64,
    /// Requests that get the answer, the first one's first; none after a restart of the daemon or of the client.
    pub(crate) senders: Vec<Requester>,
    pub(crate) line: Bytes,
    pub(crate) at: Time,
}

/// The turn that an agent works on.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) ticket: u64,
    /// The client's line, if the agent may refuse it for credentials that have run out, or if it has a yes that may end.
    pub(crate) line: Option<Bytes>,
    pub(crate) number: u64,
    /// Number of its line to the agent.
    pub(crate) chunk: u64,
    /// Requests that get the answer, the first one's first.
    pub(crate) senders: Vec<Requester>,
    pub(crate) key: Option<String>,
    pub(crate) started: Time,
    pub(crate) work: Work,
    /// The reason and the canceller for people, if this daemon has seen the cancel.
    pub(crate) cut_short: Option<CutShort>,
    pub(crate) last_line: Time,
    /// Text of the prompt while the agent may still echo it as `user_message_chunk`.
    pub(crate) echo: Option<String>,
    /// Hash of the prompt as a replay has to show it.
    pub(crate) replayed_as: Option<u64>,
    /// Messages added to it: the agent may echo them at any time.
    pub(crate) added: Vec<String>,
    /// The sender's answer to all permission questions of this turn.
    pub(crate) once: Option<Verdict>,
    /// This daemon has seen all of it.
    pub(crate) whole: bool,
    /// The prompt is acpd's own, to continue an interrupted task.
    pub(crate) continues: bool,
    /// How many usage limits in a row were waited for before it.
    pub(crate) waits: u64,
    /// Usage, as the agent reports it at the end.
    pub(crate) tokens: Tokens,
    /// Signs of a failure in the agent's updates.
    pub(crate) failure: TurnFailure,
}

/// Signs of a failure that an agent does not report as one.
#[derive(Debug, Default)]
pub(crate) struct TurnFailure {
    /// Places in `failed_turn` of the profile.
    signs: BTreeSet<usize>,
    /// The last text of the agent, clipped.
    text: String,
}

impl TurnFailure {
    /// Takes note of an update of the turn. An agent without signs costs nothing.
    pub(crate) fn note(&mut self, signs: &[FailureSign], update: &[u8]) {
        for (place, sign) in signs.iter().enumerate() {
            match sign.is_in(update) {
                Some(true) => drop(self.signs.insert(place)),
                Some(false) => drop(self.signs.remove(&place)),
                None => {}
            }
        }
        let text = (!signs.is_empty()).then(|| str_at(update, &["content", "text"])).flatten();
        if let Some(text) = text.as_deref().map(str::trim).filter(|text| !text.is_empty()) {
            self.text = clipped(text, NAME);
        }
    }

    /// The last text of a turn that failed.
    pub(crate) fn reported(&self, signs: &[FailureSign], result: &[u8]) -> Option<&str> {
        let is_in_result = || signs.iter().any(|sign| sign.is_in(result) == Some(true));
        (!self.signs.is_empty() || is_in_result()).then_some(self.text.as_str())
    }
}

/// Why a running turn is to end.
#[derive(Debug)]
pub(crate) struct Cancel {
    pub(crate) whose: Canceller,
    pub(crate) told: CutShort,
}

impl Cancel {
    /// The prompt is no longer wanted.
    pub(crate) fn by(by: Option<ClientName>) -> Cancel {
        Cancel { whose: Canceller::Client, told: CutShort { why: "cancelled".into(), by } }
    }

    /// The session or the agent is to go.
    pub(crate) fn because(why: &str) -> Cancel {
        Cancel { whose: Canceller::Acpd, told: CutShort { why: why.into(), by: None } }
    }
}

/// The row of a turn without senders and canceller; `line: None` keeps the line that is on disk.
fn row(session: SessionKey, ticket: u64, state: TurnStage, at: Time) -> TurnRow {
    TurnRow { session, ticket, state, at, senders: Vec::new(), cancelling: None, line: None }
}

impl Queued {
    pub(crate) fn row(&self, session: SessionKey, state: TurnStage) -> TurnRow {
        row(session, self.ticket, state, self.at)
    }

    /// The record of a prompt that leaves the queue and is not dispatched.
    pub(crate) fn dropped(&self, session: SessionKey) -> Record {
        Record::Turn(self.row(session, TurnStage::Ended))
    }
}

impl Running {
    pub(crate) fn step(&mut self, event: WorkEvent) -> Option<WorkEffect> {
        let (work, effect) = step(self.work, event);
        self.work = work;
        effect
    }

    /// Ends the turn.
    pub(crate) fn end(&mut self, event: WorkEvent) -> TurnEnd {
        match self.step(event) {
            Some(WorkEffect::End(end)) => end,
            _ => TurnEnd::CutOff,
        }
    }

    /// The agent may work on it. Returns how long that took (ms), the first time and if this daemon has seen all of it.
    pub(crate) fn touch(&mut self, now: Time) -> Option<u64> {
        let is_first = self.step(WorkEvent::Touched) == Some(WorkEffect::Begun);
        (is_first && self.whole).then(|| now.since(self.started))
    }

    /// Cancels the turn. Returns whether it was not cancelled before.
    pub(crate) fn cancel(&mut self, cancel: Cancel) -> bool {
        let is_first = self.step(WorkEvent::Cancel(cancel.whose)) == Some(WorkEffect::AskToEnd);
        if is_first {
            self.cut_short = Some(cancel.told);
        }
        is_first
    }

    pub(crate) fn row(&self, session: SessionKey, state: TurnStage) -> TurnRow {
        row(session, self.ticket, state, self.started)
    }

    /// The prompt, if an agent that refuses it has done nothing with it.
    pub(crate) fn again(&self) -> Option<Queued> {
        let is_undone = !self.work.is_touched() && !self.work.is_cancelled();
        let line = self.line.clone().filter(|_| is_undone)?;
        Some(Queued { ticket: self.ticket, senders: self.senders.clone(), line, at: self.started })
    }
}

/// Returns whether an update is about work. Other facts, such as commands, may come at any time.
pub(crate) fn is_work(class: UpdateClass) -> bool {
    !matches!(class, UpdateClass::State(key) if key != StateKey::Plan)
}

impl Sessions {
    /// Returns the place of a prompt in the queue: that of the prompt it replaces, else the last.
    pub(crate) fn place_in_line(&self, key: SessionKey, line: &[u8]) -> usize {
        let queue = &self.session(key).queue;
        let taken_back = in_place_of(line);
        let came_later = |queued: &Queued| taken_back.is_some_and(|ticket| queued.ticket > ticket);
        queue.iter().position(came_later).unwrap_or(queue.len())
    }

    /// The error for the senders of an interrupted turn.
    pub(crate) fn interrupted_fault(&self, key: SessionKey, fault: Fault) -> Fault {
        let row = &self.session(key).row;
        let fault = match fault.data.reason {
            Reason::OutcomeUnknown => fault.hint(format!(
                "look at what was done (`acpctl session log {}`), then send it again if need be",
                row.word()
            )),
            // The caller that deletes the session knows whether it can be restored.
            Reason::SessionRemoved => fault,
            _ => fault.hint(GOES_ON),
        };
        fault.session(&row.public_id)
    }

    /// The error for a prompt to a session that the agent no longer has.
    pub(crate) fn lost_fault(&self, key: SessionKey) -> Fault {
        let row = &self.session(key).row;
        let reason = row.reason.as_deref().unwrap_or("the agent no longer has it");
        Fault::new(Reason::SessionLost, format!("session `{}` is lost: {reason}", row.public_id))
            .session(&row.public_id)
            .hint(self.session(key).way_out().unwrap_or_default())
    }

    /// A line to the agent, with the id that the agent uses.
    pub(crate) fn to_agent_id(&self, key: SessionKey, line: Bytes) -> Bytes {
        let row = &self.session(key).row;
        if row.agent_id == row.public_id {
            return line;
        }
        set_member(&line, &["params", "sessionId"], json!(row.agent_id).to_string().as_bytes())
    }

    /// Returns the queued prompts of a session.
    pub(crate) fn queue_info(&self, key: SessionKey) -> QueueInfo {
        let session = self.session(key);
        let prompts = session.queue.iter().zip(1..).filter_map(|(queued, place)| {
            let prompt = raw_at(&queued.line, &["params", "prompt"])?.to_owned();
            Some(QueuedPrompt { place, ticket: queued.ticket, at: queued.at.0, prompt })
        });
        QueueInfo { session_id: session.row.public_id.clone().into(), prompts: prompts.collect() }
    }

    pub(crate) fn place_of(&self, key: SessionKey, ticket: u64) -> Result<usize, Fault> {
        let session = self.session(key);
        let place = session.queue.iter().position(|queued| queued.ticket == ticket);
        place.ok_or_else(|| {
            let text = format!("that prompt does not wait in session `{}`", session.row.handle());
            let hint = format!("`acpctl queue {}` lists those that wait", session.row.word());
            Fault::invalid(text).session(&session.row.public_id).hint(hint)
        })
    }

    pub(crate) fn no_turn(&self, key: SessionKey) -> Fault {
        let row = &self.session(key).row;
        let text = format!("no turn runs in session `{}`", row.handle());
        Fault::new(Reason::NoTurn, text)
            .with_code(code::INVALID_REQUEST)
            .session(&row.public_id)
            .hint(format!("send it as a prompt: `acpctl run -s {} …`", row.word()))
    }

    /// The error for a `session/inject` that the agent has answered as a `_session/steering`, and not taken.
    pub(crate) fn not_taken(&self, key: SessionKey, outcome: &str) -> Fault {
        let row = &self.session(key).row;
        let outcome = clipped(outcome, NAME);
        let text = format!("agent `{}` did not take the message: `{outcome}`", row.agent);
        Fault::new(Reason::CannotSteer, text)
            .session(&row.public_id)
            .hint("send it again, or as a prompt, which waits until the turn is over")
    }

    pub(crate) fn cannot_steer(&self, key: SessionKey) -> Fault {
        let row = &self.session(key).row;
        let text = format!("agent `{}` takes no message into a running turn", row.agent);
        let name = row.word();
        Fault::new(Reason::CannotSteer, text)
            .with_code(code::METHOD_NOT_FOUND)
            .session(&row.public_id)
            .hint(format!(
                "send it as a prompt, which waits until the turn is over (`acpctl run -s {name} …`), or \
                 cancel the turn first (`acpctl cancel {name}`)"
            ))
    }
}
