//! Queued prompts and running turns. The diagram is in `hub/session/turn.rs`.

use std::collections::BTreeSet;

use acp_wire::bound::NAME;
use acp_wire::{StateKey, UpdateClass, clipped, code, set_member, str_at};
use acpd_api::{ClientName, CutShort, QueueInfo, QueuedPrompt, Reason, Tokens};
use bytes::Bytes;
use serde_json::json;

use crate::fault::Fault;
use crate::ids::{Requester, SessionKey, Time};
use crate::params::raw_at;
use crate::profile::FailureSign;
use crate::prompt::{continues, has_yes, idempotency_key, meta, once};
use crate::record::{Canceller, PromptMessage, Record, RowId};
use crate::session::Session;
use crate::session::limit::Held;
use crate::session::replay::replayed_as;
use crate::session::work::{TurnEnd, Work, WorkEffect, WorkEvent, step};

pub(crate) const GOES_ON: &str =
    "send another prompt to continue; the interrupted turn is not repeated";

pub(crate) fn wait_or_cancel(session: &str) -> String {
    format!("wait until it is done, or cancel it: `acpctl cancel {session}`")
}

/// A prompt in the queue, or of the running turn.
#[derive(Debug, Clone)]
pub(crate) struct Queued {
    pub(crate) ticket: u64,
    /// Receivers of the answer, oldest first; none after a restart of the daemon or client.
    pub(crate) senders: Vec<Requester>,
    pub(crate) line: Bytes,
    /// Time of the request, then of the dispatch.
    pub(crate) at: Time,
}

#[derive(Debug)]
pub(crate) struct Running {
    /// The line is empty unless it may be sent again, or answers permission questions.
    pub(crate) prompt: Queued,
    /// The agent gets the prompt again if it has done nothing for it.
    pub(crate) is_repeatable: bool,
    pub(crate) number: u64,
    /// Number of the prompt's line in the outbox.
    pub(crate) chunk: u64,
    /// None while the agent has not taken the prompt.
    pub(crate) message: Option<PromptMessage>,
    /// A client knows from an answer that the prompt is in the journal.
    pub(crate) is_promised: bool,
    pub(crate) key: Option<String>,
    pub(crate) work: Work,
    /// `None` if this daemon has not seen the cancel.
    pub(crate) cut_short: Option<CutShort>,
    pub(crate) last_line: Time,
    /// The agent may still echo this prompt as `user_message_chunk`.
    pub(crate) echo: Option<String>,
    pub(crate) replayed_as: Option<u64>,
    /// The agent may echo these messages at any time.
    pub(crate) added: Vec<String>,
    /// This daemon has seen the whole turn.
    pub(crate) whole: bool,
    /// acpd wrote the prompt, to continue an interrupted task.
    pub(crate) continues: bool,
    /// Number of usage limits in a row before this turn.
    pub(crate) waits: u64,
    pub(crate) tokens: Tokens,
    pub(crate) failure: TurnFailure,
}

/// Signs of a failure that an agent does not report as one.
#[derive(Debug, Default)]
pub(crate) struct TurnFailure {
    /// Indices in the profile's `failed_turn`.
    signs: BTreeSet<usize>,
    /// The agent's last text, clipped.
    text: String,
}

impl TurnFailure {
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

    pub(crate) fn reported(&self, signs: &[FailureSign], result: &[u8]) -> Option<&str> {
        let is_in_result = || signs.iter().any(|sign| sign.is_in(result) == Some(true));
        (!self.signs.is_empty() || is_in_result()).then_some(self.text.as_str())
    }
}

#[derive(Debug)]
pub(crate) struct Cancel {
    pub(crate) whose: Canceller,
    pub(crate) cut_short: CutShort,
}

impl Cancel {
    pub(crate) fn by(by: Option<ClientName>) -> Cancel {
        Cancel { whose: Canceller::Client, cut_short: CutShort { why: "cancelled".into(), by } }
    }

    pub(crate) fn because(why: &str) -> Cancel {
        Cancel { whose: Canceller::Acpd, cut_short: CutShort { why: why.into(), by: None } }
    }
}

impl Queued {
    /// Ends the prompt in the queue, or its turn.
    pub(crate) fn ended(&self, session: SessionKey) -> Record {
        Record::Delete(RowId::Turn(session, self.ticket))
    }
}

impl Running {
    /// `text`: as the agent would echo it. `runs_out`: the agent may refuse the prompt for want of a
    /// login.
    pub(crate) fn new(
        prompt: Queued,
        (number, chunk): (u64, u64),
        text: String,
        now: Time,
        runs_out: bool,
    ) -> Running {
        let line = &prompt.line;
        let is_kept = runs_out || once(line).is_some();
        let kept = if is_kept { line.clone() } else { Bytes::new() };
        Running {
            key: idempotency_key(line).ok().flatten(),
            continues: continues(line),
            waits: Held::of(line).map_or(0, |held| held.waits),
            is_repeatable: runs_out || has_yes(line),
            prompt: Queued { line: kept, ..prompt },
            number,
            chunk,
            message: None,
            is_promised: false,
            work: Work::Running { touched: false },
            cut_short: None,
            last_line: now,
            replayed_as: replayed_as(&text),
            echo: Some(text),
            added: Vec::new(),
            whole: true,
            tokens: Tokens::default(),
            failure: TurnFailure::default(),
        }
    }

    pub(crate) fn step(&mut self, event: WorkEvent) -> Option<WorkEffect> {
        let (work, effect) = step(self.work, event);
        self.work = work;
        effect
    }

    pub(crate) fn end(&mut self, event: WorkEvent) -> TurnEnd {
        match self.step(event) {
            Some(WorkEffect::End(end)) => end,
            _ => TurnEnd::CutOff,
        }
    }

    /// Returns the time since the dispatch (ms), once, if this daemon has seen the whole turn.
    pub(crate) fn touch(&mut self, now: Time) -> Option<u64> {
        let is_first = self.step(WorkEvent::Touched) == Some(WorkEffect::Begun);
        (is_first && self.whole).then(|| now.since(self.prompt.at))
    }

    /// Returns whether a user message is the prompt, or was added to the turn.
    pub(crate) fn is_said(&self, text: &str) -> bool {
        self.echo.iter().chain(&self.added).any(|said| said.contains(text.trim()))
    }

    pub(crate) fn is_added(&self, text: &str) -> bool {
        !text.trim().is_empty() && self.added.iter().any(|said| said.contains(text.trim()))
    }

    /// Returns whether an agent of version 2 has the prompt in its history.
    pub(crate) fn is_inserted(&self) -> bool {
        matches!(self.message, Some(PromptMessage::Agents(_)))
    }

    /// Returns `true` for the first cancel.
    pub(crate) fn cancel(&mut self, cancel: Cancel) -> bool {
        let is_first = self.step(WorkEvent::Cancel(cancel.whose)) == Some(WorkEffect::AskToEnd);
        if is_first {
            self.cut_short = Some(cancel.cut_short);
        }
        is_first
    }
}

/// Facts such as commands may come at any time.
pub(crate) fn is_work(class: UpdateClass) -> bool {
    !matches!(class, UpdateClass::State(key) if key != StateKey::Plan)
}

impl Session {
    /// Returns the place of the prompt that this one replaces, else the last.
    pub(crate) fn place_in_line(&self, line: &[u8]) -> usize {
        let taken_back = meta(line).in_place_of;
        let came_later = |queued: &Queued| taken_back.is_some_and(|ticket| queued.ticket > ticket);
        self.queue.iter().position(came_later).unwrap_or(self.queue.len())
    }

    pub(crate) fn interrupted_fault(&self, fault: Fault) -> Fault {
        let row = &self.row;
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

    pub(crate) fn lost_fault(&self) -> Fault {
        let row = &self.row;
        let reason = row.reason.as_deref().unwrap_or("the agent no longer has it");
        Fault::new(Reason::SessionLost, format!("session `{}` is lost: {reason}", row.public_id))
            .session(&row.public_id)
            .hint(self.way_out().unwrap_or_default())
    }

    pub(crate) fn to_agent_id(&self, line: Bytes) -> Bytes {
        let row = &self.row;
        if row.agent_id == row.public_id {
            return line;
        }
        set_member(&line, &["params", "sessionId"], json!(row.agent_id).to_string().as_bytes())
    }

    pub(crate) fn queue_info(&self) -> QueueInfo {
        let prompts = self.queue.iter().zip(1..).filter_map(|(queued, place)| {
            let prompt = raw_at(&queued.line, &["params", "prompt"])?.to_owned();
            Some(QueuedPrompt { place, ticket: queued.ticket, at: queued.at.0, prompt })
        });
        QueueInfo { session_id: self.row.public_id.clone().into(), prompts: prompts.collect() }
    }

    pub(crate) fn no_turn(&self) -> Fault {
        let text = format!("no turn runs in session `{}`", self.row.handle());
        let fault = Fault::new(Reason::NoTurn, text).with_code(code::INVALID_REQUEST);
        fault.session(&self.row.public_id)
    }

    pub(crate) fn no_background(&self) -> Fault {
        let text = format!("no work is in the background of session `{}`", self.row.handle());
        let fault = Fault::new(Reason::NoTurn, text).with_code(code::INVALID_REQUEST);
        fault.session(&self.row.public_id)
    }

    /// The `session/inject` was sent as `_session/steering`.
    pub(crate) fn not_taken(&self, outcome: &str) -> Fault {
        let row = &self.row;
        let outcome = clipped(outcome, NAME);
        let text = format!("agent `{}` did not take the message: `{outcome}`", row.agent);
        Fault::new(Reason::CannotSteer, text)
            .session(&row.public_id)
            .hint("send it again, or as a prompt, which waits until the turn is over")
    }

    pub(crate) fn cannot_steer(&self) -> Fault {
        let row = &self.row;
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
