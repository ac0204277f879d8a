//! Folds journal lines into blocks. Folding is pure, and accepts any line, because agents write
//! most of the content.
//!
//! ```text
//! State ─ turns ─ blocks ─ (subagent) ─ blocks …
//!       ├ asked: tool calls and subagents that wait for an answer, in no journal
//!       └ header: the newest value of everything else
//! ```
//!
//! Architecture invariant: a turn is folded without earlier turns. So it is the same whether they
//! were read or not, and older turns can be added in front ([`State::earlier`]).

mod notice;
mod turn;

use std::collections::BTreeSet;
use std::sync::Arc;

use acp_wire::{Message as Wire, locate, parse};
use acpd_api::{LogEntry, NAMESPACE, StateChanged, Untrusted, method};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::block::{Block, Id, Kind, short};
use crate::header::{self, Header};
use crate::lenient::{self, text};
pub use notice::{cut_short, person};
pub use turn::{Started, Turn};

/// Tool calls and subagent sessions with open questions.
type OpenQuestions = BTreeSet<Untrusted>;

/// A line on its way into a turn.
#[derive(Debug, Clone, Copy)]
struct Step<'a> {
    seq: u64,
    /// The session of the line, or a subagent in it.
    session: &'a Untrusted,
    is_own: bool,
    asked: &'a OpenQuestions,
    /// Members that the line clears.
    cleared: &'a [String],
}

/// The state of a session after the lines that were read.
#[derive(Debug, Clone, Default)]
pub struct State {
    session: Untrusted,
    folder: Option<Arc<str>>,
    hides_plans: bool,
    header: Header,
    turns: Vec<Turn>,
    asked: OpenQuestions,
    at: u64,
    /// Lines of a first turn that was read from its middle: number, method and params. They are
    /// folded again when older lines arrive.
    head: Vec<(u64, String, String)>,
}

impl State {
    pub fn new(session: &Untrusted) -> State {
        State { session: session.clone(), ..State::default() }
    }

    #[must_use]
    pub fn within(mut self, folder: &Untrusted) -> State {
        self.set_folder(folder);
        self
    }

    /// Sets the session's folder, which is cut from paths.
    pub fn set_folder(&mut self, folder: &Untrusted) {
        self.folder = Some(folder.raw().into());
    }

    pub fn short(&self, path: &Untrusted) -> Untrusted {
        self.folder.as_ref().map_or_else(|| path.clone(), |folder| short(path, folder))
    }

    /// Hides plans if the daemon's answer to `initialize` requests that (`show_plan`).
    pub fn heed(&mut self, hello: &RawValue) {
        let path = ["agentCapabilities", "_meta", NAMESPACE, "showPlan"];
        let hello = hello.get().as_bytes();
        self.hides_plans = locate(hello, &path).is_some_and(|range| &hello[range] == b"false");
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the header, to set values that are not in the journal.
    pub fn header_mut(&mut self) -> &mut Header {
        &mut self.header
    }

    /// The oldest first.
    pub fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// Returns the blocks from top to bottom, without those inside of subagents.
    pub fn blocks(&self) -> impl DoubleEndedIterator<Item = &Block> {
        self.turns.iter().flat_map(|turn| &turn.blocks)
    }

    /// Returns an empty state of the same session.
    #[must_use]
    pub fn emptied(&self) -> State {
        let mut emptied = State {
            folder: self.folder.clone(),
            hides_plans: self.hides_plans,
            ..State::new(&self.session)
        };
        emptied.header.modes.clone_from(&self.header.modes);
        emptied
    }

    /// Returns a block, also from inside a subagent.
    pub fn get(&self, id: Id) -> Option<&Block> {
        self.find(id).map(|(block, ..)| block)
    }

    /// Returns a block with its turn and the subagent around it.
    pub fn find(&self, id: Id) -> Option<(&Block, &Turn, Option<Id>)> {
        let mut turns = self.turns[..self.turns_to(id)].iter().rev();
        turns.find_map(|turn| turn.find(id).map(|(block, of)| (block, turn, of)))
    }

    /// The number of the last line.
    pub fn last(&self) -> u64 {
        self.at
    }

    /// The number of the first line; none before the first visible line.
    pub fn first(&self) -> Option<u64> {
        let head = self.head.first().map(|(seq, ..)| *seq);
        head.or_else(|| self.turns.iter().find_map(Turn::first))
    }

    /// Removes and returns all turns but the last, for a reader that reads a long journal once.
    pub fn drain(&mut self) -> Vec<Turn> {
        self.head.clear();
        let rest = self.turns.len().saturating_sub(1);
        self.turns.drain(..rest).collect()
    }

    /// Drops turns until `kept` are above that of the block, if there are more than `most`.
    /// [`State::earlier`] can add them again. Returns whether turns were dropped.
    pub fn drop_turns_above(&mut self, id: Id, most: usize, kept: usize) -> bool {
        let above = self.turns_to(id).saturating_sub(1);
        let is_much = above > most;
        if is_much {
            self.head.clear();
            self.turns.drain(..above.saturating_sub(kept));
        }
        is_much
    }

    fn turns_to(&self, id: Id) -> usize {
        self.turns.partition_point(|turn| turn.first().is_none_or(|first| first <= id.seq()))
    }

    pub fn into_turns(self) -> Vec<Turn> {
        self.turns
    }

    /// Folds a notification of the daemon. Returns the ids of new, changed and removed blocks.
    pub fn fold(&mut self, line: &[u8]) -> Vec<Id> {
        self.line(None, line)
    }

    pub fn fold_entry(&mut self, seq: u64, line: &str) -> Vec<Id> {
        self.line(Some(seq), line.as_bytes())
    }

    fn line(&mut self, seq: Option<u64>, line: &[u8]) -> Vec<Id> {
        match parse(line) {
            Ok(Wire::Notification { method, params: Some(params) }) => {
                self.notification(seq, &method, params.get())
            }
            _ => Vec::new(),
        }
    }

    /// Folds the entries right before the first line. Returns the ids of new and changed blocks.
    pub fn earlier(&mut self, entries: &[LogEntry]) -> Vec<Id> {
        let mut older = self.emptied();
        let first = self.first();
        let mut changed = Vec::new();
        for entry in entries.iter().filter(|entry| first.is_none_or(|first| entry.seq < first)) {
            changed.extend(older.fold_entry(entry.seq, entry.line.get()));
        }
        if self.turns.first().is_some_and(|turn| turn.started.is_none()) {
            self.turns.remove(0);
        }
        let head = std::mem::take(&mut self.head);
        for (seq, method, params) in &head {
            changed.extend(older.notification(Some(*seq), method, params));
        }
        for turn in &mut older.turns {
            changed.extend(turn.settle(&self.asked));
        }
        if !self.turns.is_empty()
            && let Some(turn) = older.turns.last_mut()
        {
            changed.extend(turn.close(&self.asked));
        }
        self.head = older.head;
        older.turns.append(&mut self.turns);
        self.turns = older.turns;
        self.header.take_older(older.header);
        self.at = self.at.max(older.at);
        changed.sort_unstable();
        changed.dedup();
        changed
    }

    /// `seq` is the line's number if `raw` does not contain it.
    pub fn notification(&mut self, seq: Option<u64>, method: &str, raw: &str) -> Vec<Id> {
        let Some(mut params) = lenient::members(raw) else { return Vec::new() };
        match method {
            method::SESSION_STATE => return self.live(params),
            method::CAUGHT_UP => {
                let is_own = text(&params, "sessionId").is_some_and(|it| it == self.session);
                // Open questions are announced again after this notice.
                return if is_own { self.set_asked(OpenQuestions::new()) } else { Vec::new() };
            }
            _ => {}
        }
        let meta = params.remove("_meta");
        let own = meta.as_ref().and_then(|meta| meta.get("_acpd"));
        let number = || own.and_then(|own| own.get("seq")).and_then(Value::as_u64);
        let Some(seq) = seq.or_else(number) else {
            // The line is in no journal, such as the list of commands when a session is opened.
            self.unnumbered(method, params);
            return Vec::new();
        };
        if seq <= self.at {
            // A repeated line after a lost connection.
            return Vec::new();
        }
        let steered = own.and_then(|own| own.get("steered")) == Some(&Value::Bool(true));
        let Some(Value::String(session)) = params.remove("sessionId") else { return Vec::new() };
        let session = Untrusted::from(session);
        let is_own = session == self.session;
        let owner = own.and_then(|own| own.get("session")).and_then(Value::as_str);
        if owner.is_some_and(|owner| self.session != *owner) {
            return Vec::new();
        }
        if self.turns.iter().all(|turn| turn.started.is_none()) && method != method::TURN_STARTED {
            self.head.push((seq, method.to_owned(), raw.to_owned()));
        }
        self.at = seq;
        let asked = self.asked.clone();
        let update = params.remove("update");
        let is_second = own.and_then(|own| own.get("version")).is_some_and(|version| *version == 2);
        let cleared = update.as_ref().and_then(Value::as_object).filter(|_| is_second);
        let cleared = cleared.into_iter().flatten().filter(|(_, value)| value.is_null());
        let cleared: Vec<String> = cleared.map(|(name, _)| name.clone()).collect();
        let step = Step { seq, session: &session, is_own, asked: &asked, cleared: &cleared };
        match (method, update) {
            ("session/update", Some(Value::Object(mut update))) => {
                lenient::mend(&mut update);
                self.update(&step, steered, update)
            }
            ("session/update", _) => self.unread(&step, "an update of the agent"),
            (method::TURN_STARTED, _) if is_own => self.turn_started(&step, params),
            (method, _) => self.notice(&step, method, params),
        }
    }

    fn unnumbered(&mut self, method: &str, mut params: Map<String, Value>) {
        let is_own = text(&params, "sessionId").is_some_and(|session| session == self.session);
        if let Some(Value::Object(mut update)) = params.remove("update")
            && is_own
            && method == "session/update"
            && let Some(Value::String(kind)) = update.remove("sessionUpdate")
        {
            lenient::mend(&mut update);
            self.head_of_screen(&kind, &update);
        }
    }

    fn turn(&mut self) -> &mut Turn {
        if self.turns.is_empty() {
            self.turns.push(Turn::default());
        }
        self.turns.last_mut().expect("there is one")
    }

    fn turn_started(&mut self, step: &Step<'_>, params: Map<String, Value>) -> Vec<Id> {
        let number = |name| params.get(name).and_then(Value::as_u64).unwrap_or_default();
        let started = Started { seq: step.seq, turn: number("turn"), at: number("at") };
        self.header.working = Some(true);
        let changed = self.turns.last_mut().map_or_else(Vec::new, |turn| turn.close(step.asked));
        self.turns.push(Turn::new(started));
        changed
    }

    fn notice(&mut self, step: &Step<'_>, method: &str, params: Map<String, Value>) -> Vec<Id> {
        let Some(block) = notice::block(step, method, params) else { return Vec::new() };
        let mut changed = self.turn().push(step, block);
        if method == method::TURN_ENDED && step.is_own {
            self.header.working = Some(false);
            changed.extend(self.turn().close(step.asked));
        }
        changed.sort_unstable();
        changed.dedup();
        changed
    }

    fn update(
        &mut self,
        step: &Step<'_>,
        steered: bool,
        mut update: Map<String, Value>,
    ) -> Vec<Id> {
        let kind = update.remove("sessionUpdate");
        let Some(kind) = kind.as_ref().and_then(Value::as_str) else {
            return self.unread(step, "an update of the agent");
        };
        match kind {
            "user_message_chunk" => self.turn().chunk(step, Kind::Prompt, steered, update),
            "agent_message_chunk" => self.turn().chunk(step, Kind::Answer, steered, update),
            "agent_thought_chunk" => self.turn().chunk(step, Kind::Thought, steered, update),
            "user_message" => self.turn().replace(step, Kind::Prompt, update),
            "agent_message" => self.turn().replace(step, Kind::Answer, update),
            "agent_thought" => self.turn().replace(step, Kind::Thought, update),
            "tool_call_content_chunk" => self.turn().add_content(step, update),
            "terminal_update" | "terminal_output_chunk" => self.turn().terminal(step, &update),
            "tool_call" | "tool_call_update" => {
                let folder = self.folder.clone();
                self.turn().call(step, folder, update)
            }
            "plan" | "plan_update" | "plan_removed" if self.hides_plans => Vec::new(),
            "plan" | "plan_update" | "plan_removed" => {
                let (changed, plan) = self.turn().plan(step, kind, update);
                if step.is_own {
                    self.header.plan = Some(plan);
                }
                changed
            }
            "subagent_update" => self.turn().subagent(step, &update),
            "compaction_update" => self.turn().compaction(step, &update),
            "notice" => {
                let block = notice::of_agent(step, &update);
                block.map_or_else(Vec::new, |block| self.turn().push(step, block))
            }
            "current_mode_update" => {
                let Some(mode) = text(&update, "currentModeId") else {
                    return self.unread(step, "the mode of the session");
                };
                let block = notice::mode(step, &mode, self.header.mode_name(&mode));
                if step.is_own {
                    self.header.mode = Some(mode);
                }
                self.turn().push(step, block)
            }
            // Everything else belongs to the session itself, and only the newest value is shown.
            _ if step.is_own => {
                self.head_of_screen(kind, &update);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn unread(&mut self, step: &Step<'_>, what: &'static str) -> Vec<Id> {
        self.turn().push(step, notice::unread(step, what))
    }

    fn head_of_screen(&mut self, kind: &str, update: &Map<String, Value>) {
        let header = &mut self.header;
        match kind {
            "config_option_update" => {
                header.options = Some(lenient::list(update.get("configOptions")));
            }
            "available_commands_update" => {
                header.commands = Some(lenient::list(update.get("availableCommands")));
            }
            "usage_update" => header::read_usage(update, &mut header.usage),
            _ => {}
        }
    }

    fn live(&mut self, params: Map<String, Value>) -> Vec<Id> {
        match serde_json::from_value::<StateChanged>(Value::Object(params)) {
            Ok(now) if now.session_id == self.session => {
                self.header.live_turn = Some(now.turn);
                self.set_asked(now.asked.into_iter().collect())
            }
            _ => Vec::new(),
        }
    }

    /// Sets the subjects of open questions; their blocks stay open.
    fn set_asked(&mut self, asked: OpenQuestions) -> Vec<Id> {
        if self.asked == asked {
            return Vec::new();
        }
        self.asked = asked;
        self.turns.iter_mut().flat_map(|turn| turn.settle(&self.asked)).collect()
    }
}
