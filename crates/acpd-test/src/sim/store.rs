//! The model store: committed records, and the rules of every journal.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use acp_wire::{StateKey, locate, str_at};
use acpd_core::ids::{HostId, SessionKey};
use acpd_core::record::{
    Dormant, EventKind, EventRow, Forked, InteractionRow, LineForm, Reads, Record, Row,
    SessionState, Snapshot, ValueKey,
};
use acpd_core::{Batch, Read, ReadStyle};
use bytes::Bytes;
use serde_json::Value;

use super::folded::text_of;
use super::truth::Truth;

#[derive(Debug, Default)]
pub(super) struct Journal {
    pub(super) rows: Vec<EventRow>,
    /// Texts of chunks, each once.
    texts: BTreeSet<String>,
    /// Prompts that came again after the agent had refused them, and those that a fork copies.
    again: Vec<String>,
    copies: Vec<String>,
    /// Chunks of the last prompt so far, to check their order.
    last: Option<(String, u64)>,
    /// The running turn.
    pub(super) turn: Option<u64>,
    turns: u64,
    /// Prompt of the turn, and number of the agent's lines in it.
    prompt: Option<String>,
    said: u64,
    /// Prompts in the agent's context, according to the conversation.
    pub(super) known: BTreeSet<String>,
    /// The journal has announced a summary that has not reached the agent.
    pub(super) owes_summary: bool,
}

#[derive(Debug, Default)]
pub(super) struct Store {
    pub(super) snapshot: Snapshot,
    /// Journals, with those of deleted sessions.
    pub(super) journals: BTreeMap<SessionKey, Journal>,
    values: BTreeMap<(SessionKey, ValueKey), Bytes>,
    /// Public id → session, with deleted ones.
    pub(super) public: BTreeMap<String, SessionKey>,
    /// Public ids that were used again after a deletion, or restored: a line does not show whose it
    /// is.
    pub(super) reused: BTreeSet<String>,
    /// Every line that was ever committed for an agent.
    pub(super) outbox: BTreeMap<(HostId, u64), Bytes>,
    /// Effects of tool calls, by all lines of the journals.
    calls: BTreeMap<String, String>,
    pub(super) waiting: VecDeque<Batch>,
    pub(super) failing: bool,
}

impl Store {
    pub(super) fn commit(&mut self, records: &[Record], truth: &mut Truth) -> Result<(), String> {
        for record in records {
            match record {
                Record::Event(row) => {
                    self.note_call(&row.line);
                    self.append(row, truth)?;
                }
                Record::Forked(fork) => self.fork(fork, truth)?,
                Record::Put(Row::Session(row)) => {
                    let old = self.public.insert(row.public_id.clone(), row.key);
                    let before = self.snapshot.sessions.get(&row.key);
                    let is_back = row.removed.is_none()
                        && before.is_some_and(|state| state.row.removed.is_some());
                    // A follower of the old session does not follow the new one with its id.
                    if is_back || old.is_some_and(|old| old != row.key) {
                        self.reused.insert(row.public_id.clone());
                    }
                    let reason = row.reason.as_deref().unwrap_or_default();
                    if reason.starts_with("a person gave it up") {
                        truth.hit("given up by a person");
                    }
                    match row.rest {
                        Dormant::Parked | Dormant::Closed => {}
                        Dormant::NeedsLogin => truth.hit("session waits for a login"),
                        Dormant::Lost => truth.hit("session lost"),
                        Dormant::Failed => truth.hit("session not restored for now"),
                        Dormant::NoDirectory => truth.hit("session without its directory"),
                    }
                }
                Record::Put(Row::Value { session, key, json }) => {
                    self.values.insert((*session, *key), json.clone());
                }
                Record::Put(Row::Outbox { host, chunk, line }) => {
                    self.check_answer(*host, line, truth)?;
                    let old = self.outbox.insert((*host, *chunk), line.clone());
                    if let Some(old) = old {
                        return Err(format!("{host:?}: chunk {chunk} was {old:?} already"));
                    }
                }
                Record::SessionRemoved { session } => {
                    self.values.retain(|(of, _), _| of != session);
                }
                _ => {}
            }
            if !self.snapshot.fits(record) {
                return Err(format!("does not fit: {record:?}"));
            }
            self.snapshot.apply(record);
        }
        Ok(())
    }

    fn note_call(&mut self, line: &[u8]) {
        let member = |name| str_at(line, &["params", "update", name]);
        if let (Some(id), Some(does)) = (member("toolCallId"), member("title"))
            && member("sessionUpdate").as_deref() == Some("tool_call_update")
        {
            self.calls.insert(id.into_owned(), does.into_owned());
        }
    }

    /// Checks that an allowed call was allowed by a person, with the effect that acpd knew then.
    fn check_answer(&self, host: HostId, line: &[u8], truth: &mut Truth) -> Result<(), String> {
        let option = str_at(line, &["result", "outcome", "optionId"]);
        let (Some(option), Some(id)) = (option, locate(line, &["id"])) else { return Ok(()) };
        let mut open = self.snapshot.interactions.values();
        let is_it = |question: &&InteractionRow| {
            let asked = locate(&question.line, &["id"]).map(|at| &question.line[at]);
            question.host == host && asked == Some(&line[id.clone()])
        };
        let question = open.find(is_it).ok_or("an answer to a question that is not open")?;
        let of = |name| str_at(&question.line, &["params", "toolCall", name]).unwrap_or_default();
        let does =
            self.calls.get(&*of("toolCallId")).cloned().unwrap_or_else(|| of("title").into());
        if !truth.consents.contains(&(does.clone(), option.to_string())) {
            return Err(format!("the agent is told `{option}` for {does}, by nobody"));
        }
        truth.hit("answer to a call as it is");
        Ok(())
    }

    fn append(&mut self, row: &EventRow, truth: &mut Truth) -> Result<(), String> {
        if !self.snapshot.sessions.contains_key(&row.session) {
            return Err(format!("event for {:?}, which does not exist", row.session));
        }
        let journal = self.journals.entry(row.session).or_default();
        let head = journal.rows.len() as u64;
        if row.seq != head + 1 {
            return Err(format!("{:?}: line {} after {head}", row.session, row.seq));
        }
        let line: Value = serde_json::from_slice(&row.line)
            .map_err(|e| format!("journal line is no JSON: {e}"))?;
        journal
            .check(&line, (row.kind, row.form), truth)
            .map_err(|e| format!("{:?} {}: {e}", row.session, row.seq))?;
        journal.rows.push(row.clone());
        Ok(())
    }

    /// Checks that a fork has the lines up to the moment when it was made.
    fn fork(&mut self, fork: &Forked, truth: &mut Truth) -> Result<(), String> {
        let of = |key| self.snapshot.sessions.get(key).map(|state| state.head);
        if of(&fork.session) != Some(0) || of(&fork.from).is_none_or(|head| head < fork.upto) {
            return Err(format!("{:?} cannot begin with {:?}", fork.session, fork.from));
        }
        let from = self.journals.get(&fork.from);
        let lines = fork.lines(from.map_or(&[][..], |journal| &journal.rows));
        let again = from.map(|journal| journal.again.clone()).unwrap_or_default();
        self.journals.entry(fork.session).or_default().copies = again;
        lines.iter().try_for_each(|row| self.append(row, truth))?;
        // The fork has the whole context of its session.
        let owes = self.journals.get(&fork.from).is_some_and(|journal| journal.owes_summary);
        if let Some(journal) = self.journals.get_mut(&fork.session) {
            journal.owes_summary &= owes;
            // The agent has copied what it had.
            journal.known.retain(|text| truth.received.contains(text));
        }
        Ok(())
    }

    /// All sessions but those that were deleted and can be restored.
    pub(super) fn sessions(&self) -> impl Iterator<Item = &SessionState> {
        self.snapshot.sessions.values().filter(|state| state.row.removed.is_none())
    }

    pub(super) fn has(&self, key: SessionKey) -> bool {
        self.snapshot.sessions.get(&key).is_some_and(|state| state.row.removed.is_none())
    }

    /// The rows of a piece of journal as the daemon reads them, and the position it reaches.
    pub(super) fn read(&self, read: &Read, most: usize) -> (Vec<EventRow>, u64) {
        let exists = self.snapshot.sessions.contains_key(&read.session);
        let Some(journal) = self.journals.get(&read.session).filter(|_| exists) else {
            return (Vec::new(), read.upto);
        };
        if read.style == ReadStyle::Commands {
            let is = |row: &&EventRow| row.kind == EventKind::State(StateKey::Commands);
            let before = journal.rows.iter().take_while(|row| row.seq <= read.upto);
            return (before.filter(is).last().cloned().into_iter().collect(), read.upto);
        }
        let wanted = |row: &&EventRow| {
            let inside = row.seq > read.after && row.seq <= read.upto;
            let told = !matches!(row.kind, EventKind::State(_) | EventKind::Live);
            inside && (read.style == ReadStyle::Resume || told)
        };
        let mut rows: Vec<EventRow> =
            journal.rows.iter().filter(wanted).take(most).cloned().collect();
        let full = rows.len() == most;
        let upto = if full { rows.last().map_or(read.upto, |row| row.seq) } else { read.upto };
        if read.style == ReadStyle::History && upto == read.upto {
            let mut states = BTreeMap::new();
            for row in journal.rows.iter().take_while(|row| row.seq <= upto) {
                if let EventKind::State(key) = row.kind {
                    states.insert(key, row.clone());
                }
            }
            rows.extend(states.into_values());
        }
        (rows, upto)
    }

    pub(super) fn values(&self, session: SessionKey) -> Vec<(ValueKey, Bytes)> {
        let all = self.values.iter().filter(|((of, _), _)| *of == session);
        all.map(|((_, key), json)| (*key, json.clone())).collect()
    }
}

impl Journal {
    /// Checks one more line: nothing twice, chunks in order, turns begin and end in pairs.
    fn check(
        &mut self,
        line: &Value,
        (kind, form): (EventKind, LineForm),
        truth: &mut Truth,
    ) -> Result<(), String> {
        let update = &line["params"]["update"];
        if !form.is_for(Reads::First) {
            truth.hit("original of a line");
            let is_state = kind == EventKind::Live;
            if !is_state && !self.texts.insert(line.to_string()) {
                return Err(format!("the original `{line}` is in the journal twice"));
            }
            return Ok(());
        }
        if kind == EventKind::Banner {
            return Ok(());
        }
        let is_chunk = update["sessionUpdate"].as_str().is_some_and(|u| u.ends_with("_chunk"));
        if is_chunk && let Some(text) = update["content"]["text"].as_str() {
            // A prompt that an agent has refused may come again, but for a client of version 2 it
            // is in the history.
            let may_repeat = truth.refused.contains(text) && !truth.inserted.contains_key(text);
            if !self.texts.insert(text.to_owned()) {
                let copy = self.copies.iter().position(|copy| copy == text);
                if copy.map(|at| self.copies.remove(at)).is_none() && !may_repeat {
                    return Err(format!("`{text}` is in the journal twice"));
                }
                self.again.push(text.to_owned());
            }
            if let Some((prompt, n)) = text.split_once('#') {
                let n: u64 = n.parse().unwrap_or_default();
                let expected = match &self.last {
                    Some((last, at)) if last == prompt => at + 1,
                    _ => 0,
                };
                if n != expected && kind != EventKind::Imported {
                    return Err(format!("`{text}` where #{expected} was expected"));
                }
                self.last = Some((prompt.to_owned(), n));
            }
        }
        if line["params"]["_meta"]["_acpd"]["steered"] == true {
            self.steered(update, truth)?;
        } else if kind != EventKind::Imported {
            self.check_turn(update, is_chunk)?;
        }
        let number = line["params"]["turn"].as_u64();
        match line["method"].as_str() {
            Some(acpd_api::method::TURN_STARTED) => {
                if self.turn.is_some() || number != Some(self.turns + 1) {
                    return Err(format!("turn {number:?} starts in turn {:?}", self.turn));
                }
                self.turns += 1;
                self.turn = number;
                self.prompt = None;
                self.said = 0;
            }
            Some(acpd_api::method::TURN_ENDED) => {
                if self.turn.is_none() || self.turn != number {
                    return Err(format!("turn {number:?} ends in turn {:?}", self.turn));
                }
                self.turn = None;
                let prompt = self.prompt.take().unwrap_or_default();
                let stopped = line["params"]["outcome"]["kind"] == "stopped";
                let said = truth.ended.get(&prompt).copied();
                match line["params"]["outcome"]["kind"].as_str() {
                    Some("interrupted") => truth.hit("turn interrupted"),
                    Some("unwedged") => truth.hit("turn unwedged"),
                    Some("outcome_unknown") => truth.hit("outcome of a turn unknown"),
                    Some("error") => truth.hit("turn refused"),
                    _ => {}
                }
                // A turn that the user has cancelled counts as cancelled even if the agent could
                // not answer.
                let is_cancelled = line["params"]["outcome"]["stopReason"] == "cancelled";
                let is_cut_off = is_cancelled && said.is_none_or(|said| self.said <= said);
                if stopped && said != Some(self.said) && !is_cut_off {
                    let here = self.said;
                    return Err(format!("{prompt} has {here} lines, the agent said {said:?}"));
                }
            }
            Some(acpd_api::method::RESTORED) => match line["params"]["level"].as_str() {
                Some("resumed") => truth.hit("told as resumed"),
                Some("loaded") => truth.hit("told as loaded"),
                Some("partial") => truth.hit("told as partial"),
                Some("reseeded") => {
                    truth.hit("told as reseeded");
                    self.known.clear();
                    self.owes_summary = true;
                }
                Some("lost") => {
                    truth.hit("told as lost");
                    self.known.clear();
                }
                _ => {}
            },
            Some(acpd_api::method::NOTICE) => {
                let text = line["params"]["text"].as_str().unwrap_or_default();
                if text.starts_with("the session begins anew") {
                    truth.hit("told as begun anew");
                    self.known.clear();
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks a message to a turn: the agent has it, and all clients are notified.
    fn steered(&mut self, update: &Value, truth: &Truth) -> Result<(), String> {
        let text = update["content"]["text"].as_str().unwrap_or_default();
        if !truth.steered.contains(text) {
            return Err(format!("{text} is in the journal, and no agent has taken it"));
        }
        self.known.insert(text.to_owned());
        Ok(())
    }

    /// Returns whether clients of version 2 see a message with this text.
    pub(super) fn is_said(&self, text: &str) -> bool {
        self.rows.iter().any(|row| match row.form {
            LineForm::First | LineForm::Meaning => false,
            LineForm::Second | LineForm::Echo => {
                let id = str_at(&row.line, &["params", "update", "messageId"]);
                id.is_some_and(|id| id.strip_prefix("u-") == Some(text))
            }
            LineForm::Converted | LineForm::Same => text_of(row).as_deref() == Some(text),
        })
    }

    /// Returns whether a message into a turn is there, or came later with a replay.
    pub(super) fn has(&self, text: &str) -> bool {
        self.texts.contains(text)
    }

    /// Checks that the answer to a prompt has every line, in order.
    fn check_turn(&mut self, update: &Value, is_chunk: bool) -> Result<(), String> {
        let text = update["content"]["text"].as_str().filter(|_| is_chunk);
        let numbered = text
            .or(update["title"].as_str())
            .and_then(|text| text.split_once('#'))
            .map(|(of, _)| of);
        let of = update["_meta"]["turn"].as_str().or(numbered);
        if of.is_some() && of == self.prompt.as_deref() {
            if numbered.is_none() && update["_meta"]["n"] != self.said {
                return Err(format!("line {} was expected: {update}", self.said));
            }
            self.said += 1;
        } else if self.turn.is_some() && self.prompt.is_none() {
            self.prompt = text.map(str::to_owned);
            self.known.extend(self.prompt.clone());
        }
        Ok(())
    }

    /// The position of the last chunk of this prompt's answer.
    pub(super) fn end_of(&self, prompt: &str, reads: Reads) -> u64 {
        let of_prompt = |row: &&EventRow| {
            let text = format!("\"{prompt}#");
            row.form.is_for(reads)
                && row.line.windows(text.len()).any(|window| window == text.as_bytes())
        };
        self.rows.iter().rev().find(of_prompt).map_or(0, |row| row.seq)
    }
}
