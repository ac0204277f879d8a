//! Conversation of one session as blocks: the only fold of the page. No I/O.
//!
//! ```text
//!  daemon ──lines──▶ acpd_view::State ──ids of changed blocks──▶ draw ──▶ page
//!    ▲                                                                     │
//!    └── _acpd/session/log ◀── missing lines, older lines, dropped bodies ─┘ open, older, bodies
//! ```
//!
//! A block on the page:
//!
//! ```text
//!         block           block, delta            block, done
//!  absent ─────▶ open ◀───────────────▶ changed ─────────────▶ done
//!                  ▲                                             │ its turn ends: sent as its line
//!                  └──────── block, with all of its body ◀───────┘ the user unfolds it: bodies
//!  any ──gone──▶ absent: a plan that was removed, or a block that became a part of another one
//! ```
//!
//! | sent to the page | params |
//! | --- | --- |
//! | `_page/block` | a block (see `draw`): new, or in place of the one with its `id` |
//! | `_page/delta` | `id`, `last`, `text`: more of the last text of a message |
//! | `_page/done` | `id`, `last`, `progress`, `folding`, and `line` of a thought: a message has ended, its content stays |
//! | `_page/gone` | `id` |
//! | `_page/head` | members of the header that changed |
//! | `_page/live` | `seq`, `first`, `hasOlder`: all lines up to `seq` were sent, `first` is the first one that was read |
//!
//! | request of the page | params | result |
//! | --- | --- | --- |
//! | `_page/open` | `agent`, `session`, `controls`, and of a page that comes back its `first` line and its last one (`after`) | `cwd` |
//! | `_page/older` | | `first`, `hasOlder`, behind the blocks |
//! | `_page/bodies` | `ids`, of a block in a subagent behind that of the subagent | `{}`, behind the blocks |
//!
//! Blocks are flat: `of` names the subagent that a block is in, `turn` the first line of its turn, and `id`s grow from top
//! to bottom. Everything else passes between page and daemon as it is, but for open questions (`_acpd/watch`), which are
//! sent with their changes compared and their answers explained (`draw::questions`).
//!
//! acpd sends no client its own prompts and choices. So where a number is missing, lines wait until those before them
//! were read from the journal: the page shows the journal itself.
//!
//! Architecture invariant: what the page gets is what [`State`] is, whatever was lost, paged or dropped meanwhile.

mod draw;
mod send;

use std::collections::{BTreeSet, HashMap, VecDeque};

use acp_wire::{
    ErrorObject, Id as RequestId, Message, Outcome, build, code, locate, parse, set_member, str_at,
};
use acpd_api::{
    AttachParams, AttachResult, CaughtUp, LogEntry, LogParams, LogResult, NAMESPACE, Role,
    SessionInfo, SessionRef, Untrusted, method,
};
use acpd_view::{Header, Id, Settings, State};
use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use send::ids;

/// Lines that are read before the page shows something.
const FIRST: u64 = 300;
/// Lines of a page of the journal.
const PAGE: u64 = 1000;
/// Bytes of lines after which bodies of the running turn are dropped as well.
const MUCH: usize = 16 << 20;
/// Blocks at the end of the running turn that keep their bodies.
const CLOSE: usize = 100;

/// What is sent after a line was taken.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    pub(crate) to_page: Vec<Bytes>,
    pub(crate) to_daemon: Vec<Bytes>,
}

/// The conversation of one page.
#[derive(Debug)]
pub(crate) struct Conversation {
    session: SessionRef,
    folder: Untrusted,
    state: State,
    /// Lines up to this one are not read unless they are asked for.
    from: u64,
    has_all: bool,
    is_attached: bool,
    hello: Option<Box<RawValue>>,
    last_request: u64,
    /// Requests of ours that wait for their answers.
    asked: HashMap<RequestId, Asked>,
    /// Requests of the page whose answers say something of the session.
    passed: HashMap<RequestId, Passed>,
    /// Lines that wait for those before them.
    held: Option<Vec<Bytes>>,
    /// What was sent of messages that are not over: parts, and bytes of the last one.
    sent: HashMap<Id, (usize, usize)>,
    /// Blocks that the user has unfolded.
    open: BTreeSet<Id>,
    /// Subagents whose blocks were sent.
    shown: BTreeSet<Id>,
    header: Header,
    head: Map<String, Value>,
    /// Bytes of lines since bodies were dropped.
    taken: usize,
}

#[derive(Debug)]
enum Asked {
    Show(Opening),
    Attach(Opening),
    Log { reading: Reading, to: u64 },
}

/// A request of the page to open a session.
#[derive(Debug)]
struct Opening {
    reply: RequestId,
    params: OpenParams,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OpenParams {
    agent: String,
    session: String,
    #[serde(default)]
    controls: bool,
    first: Option<u64>,
    after: Option<u64>,
}

/// Purpose of lines that are read from the journal.
#[derive(Debug)]
enum Reading {
    /// The page had them before its connection was lost.
    Again(Opening),
    /// They were not sent to this connection.
    Missing,
    Older {
        reply: RequestId,
        entries: Vec<LogEntry>,
    },
    /// The body of the first block, which was dropped; then those of the others.
    Bodies {
        reply: Option<RequestId>,
        again: Box<State>,
        ids: VecDeque<Id>,
    },
}

#[derive(Debug, Clone, Copy)]
enum Passed {
    Hello,
    Settings,
    Watch,
}

impl Default for Conversation {
    fn default() -> Conversation {
        let (session, folder) = (SessionRef::default(), Untrusted::default());
        Conversation {
            session,
            folder: folder.clone(),
            state: State::new(&folder),
            from: 0,
            has_all: false,
            is_attached: false,
            hello: None,
            last_request: 0,
            asked: HashMap::new(),
            passed: HashMap::new(),
            held: None,
            sent: HashMap::new(),
            open: BTreeSet::new(),
            shown: BTreeSet::new(),
            header: Header::default(),
            head: Map::new(),
            taken: 0,
        }
    }
}

impl Conversation {
    /// Takes a line of the page. Returns `None` for one that is for the daemon.
    pub(crate) fn on_page(&mut self, line: &Bytes) -> Option<Lines> {
        let Ok(Message::Request { id, method, params }) = parse(line) else { return None };
        let mut out = Lines::default();
        match &*method {
            "_page/open" => match read::<OpenParams>(params) {
                Some(params) => self.open(Opening { reply: id, params }, &mut out),
                None => out.refuse(&id),
            },
            "_page/older" => self.older(id, &mut out),
            "_page/bodies" => self.bodies(id, params, &mut out),
            name => {
                let passed = match name {
                    "initialize" => Passed::Hello,
                    "session/resume" | "session/set_config_option" => Passed::Settings,
                    method::WATCH => Passed::Watch,
                    _ => return None,
                };
                self.passed.insert(id, passed);
                return None;
            }
        }
        Some(out)
    }

    /// Takes a line of the daemon.
    pub(crate) fn on_daemon(&mut self, line: Bytes) -> Lines {
        let mut out = Lines::default();
        match parse(&line) {
            Ok(Message::Response { id, outcome }) => {
                if let Some(asked) = self.asked.remove(&id) {
                    self.on_answer(asked, outcome, &mut out);
                } else {
                    let is_rows = self.on_passed(&id, outcome, &mut out);
                    out.to_page.push(if is_rows { with_questions(&line, "result") } else { line });
                    // A request of the page may have written lines, which are sent to the others alone.
                    self.read_missing(Vec::new(), &mut out);
                }
            }
            Ok(Message::Notification { method, .. }) => match &*method {
                method::SESSION_REMOVED | method::PROMPT_QUEUED => out.to_page.push(line),
                method::CHANGED => out.to_page.push(with_questions(&line, "params")),
                _ => self.on_line(line, &mut out),
            },
            Ok(Message::Request { id, method, .. }) => match &*method {
                // They are answered on another connection.
                "session/request_permission" | "elicitation/create" => self.on_line(line, &mut out),
                _ => {
                    let error =
                        ErrorObject::new(code::METHOD_NOT_FOUND, "the page does not do this");
                    out.to_daemon.push(build::error(&id, &error));
                }
            },
            Err(_) => {}
        }
        out
    }

    fn open(&mut self, opening: Opening, out: &mut Lines) {
        let OpenParams { agent, session, .. } = &opening.params;
        let hello = self.hello.take();
        *self = Conversation {
            session: SessionRef::to(agent, session),
            hello,
            last_request: self.last_request,
            ..Conversation::default()
        };
        let params = self.session.clone();
        self.ask(method::SESSION_SHOW, &params, Asked::Show(opening), out);
    }

    fn ask(&mut self, method: &str, params: &impl serde::Serialize, asked: Asked, out: &mut Lines) {
        self.last_request += 1;
        // The page counts its own in numbers.
        let id = Value::from(format!("page-{}", self.last_request));
        let Some(id) = RequestId::from_value(&id) else { return };
        out.to_daemon.push(build::request(&id, method, params));
        self.asked.insert(id, asked);
    }

    fn read(&mut self, after: u64, to: u64, reading: Reading, out: &mut Lines) {
        let limit = to.saturating_sub(after).min(PAGE) as u32;
        let params = LogParams { session: self.session.clone(), after, limit: Some(limit) };
        self.ask(method::SESSION_LOG, &params, Asked::Log { reading, to }, out);
    }

    /// Reads lines that come before these, which wait.
    fn read_missing(&mut self, held: Vec<Bytes>, out: &mut Lines) {
        if self.held.is_some() || !self.is_attached {
            return;
        }
        self.held = Some(held);
        self.read(self.cursor(), u64::MAX, Reading::Missing, out);
    }

    /// The last line that was read.
    fn cursor(&self) -> u64 {
        self.state.last().max(self.from)
    }

    /// Takes the answer to a request of ours.
    fn on_answer(&mut self, asked: Asked, outcome: Outcome<'_>, out: &mut Lines) {
        match (asked, outcome) {
            (Asked::Show(opening), Outcome::Result(result)) => {
                match serde_json::from_str(result.get()) {
                    Ok(info) => self.on_shown(opening, &info, out),
                    Err(_) => out.refuse(&opening.reply),
                }
            }
            (Asked::Attach(opening), Outcome::Result(result)) => {
                self.is_attached = true;
                let told: Result<AttachResult, _> = serde_json::from_str(result.get());
                let cwd = told.map(|told| told.session.cwd).unwrap_or_default();
                out.answer(&opening.reply, &json!({"cwd": cwd}));
            }
            (Asked::Log { reading, to }, Outcome::Result(result)) => {
                match serde_json::from_str(result.get()) {
                    Ok(page) => self.on_log(reading, to, page, out),
                    Err(_) => self.on_no_log(reading, None, out),
                }
            }
            (Asked::Show(opening) | Asked::Attach(opening), Outcome::Error(error)) => {
                out.to_page.push(build::error(&opening.reply, &ErrorObject::from_raw(error)));
            }
            (Asked::Log { reading, .. }, Outcome::Error(error)) => {
                self.on_no_log(reading, Some(error), out);
            }
        }
    }

    /// Takes the answer to a request of the page. Returns whether it has rows of everything.
    fn on_passed(&mut self, id: &RequestId, outcome: Outcome<'_>, out: &mut Lines) -> bool {
        let (Some(passed), Outcome::Result(result)) = (self.passed.remove(id), outcome) else {
            return false;
        };
        match passed {
            Passed::Hello => self.hello = Some(result.to_owned()),
            Passed::Settings => {
                let Settings { modes, options } = Settings::from_raw(result);
                let header = self.state.header_mut();
                if let Some(modes) = modes {
                    header.mode.get_or_insert(modes.current_mode_id);
                    header.modes = modes.available_modes;
                }
                if !options.is_empty() {
                    header.options = options;
                }
                self.send_header(out);
            }
            Passed::Watch => return true,
        }
        false
    }

    fn on_shown(&mut self, opening: Opening, info: &SessionInfo, out: &mut Lines) {
        self.folder = info.cwd.clone();
        self.state = State::new(&info.session_id).within(&info.cwd);
        if let Some(hello) = &self.hello {
            self.state.heed(hello);
        }
        match (opening.params.first, opening.params.after) {
            (Some(first), Some(after)) if first <= after => {
                self.from = first.saturating_sub(1);
                self.has_all = self.from == 0;
                self.read(self.from, after, Reading::Again(opening), out);
            }
            _ => {
                self.from = info.seq.saturating_sub(FIRST);
                self.has_all = self.from == 0;
                self.attach(opening, out);
            }
        }
    }

    fn attach(&mut self, opening: Opening, out: &mut Lines) {
        let role = if opening.params.controls { Role::Controller } else { Role::Observer };
        let params =
            AttachParams { session: self.session.clone(), after: Some(self.cursor()), role };
        self.ask(method::SESSION_ATTACH, &params, Asked::Attach(opening), out);
    }

    fn on_log(&mut self, mut reading: Reading, to: u64, page: LogResult, out: &mut Lines) {
        let last = page.entries.last().map_or(to, |entry| entry.seq);
        for entry in page.entries {
            self.taken += entry.line.get().len();
            match &mut reading {
                Reading::Again(_) => drop(self.state.fold_entry(entry.seq, entry.line.get())),
                Reading::Missing => {
                    let changed = self.state.fold_entry(entry.seq, entry.line.get());
                    self.send(changed, out);
                }
                Reading::Older { entries, .. } => entries.push(entry),
                Reading::Bodies { again, .. } => {
                    again.fold_entry(entry.seq, entry.line.get());
                }
            }
        }
        match page.next {
            Some(next) if last < to => self.read(next, to, reading, out),
            _ => self.on_read(reading, out),
        }
    }

    /// Takes that all lines were read that were asked for.
    fn on_read(&mut self, reading: Reading, out: &mut Lines) {
        match reading {
            Reading::Again(opening) => {
                // Questions may have changed how they are folded.
                let turn = self.state.turns().last();
                let ids = turn.map(|turn| ids(&turn.blocks)).unwrap_or_default();
                self.send(ids, out);
                self.drop_bodies(usize::MAX);
                self.attach(opening, out);
            }
            Reading::Missing => self.release(out),
            Reading::Older { reply, entries } => {
                // The first turn is folded again with its beginning.
                let cut = self.state.turns().first().filter(|turn| turn.started.is_none());
                let mut changed = cut.map(|turn| ids(&turn.blocks)).unwrap_or_default();
                changed.extend(self.state.earlier(&entries));
                changed.sort_unstable();
                changed.dedup();
                self.from = self.from.min(entries.first().map_or(0, |entry| entry.seq - 1));
                self.has_all = self.from == 0;
                self.send(changed, out);
                self.drop_bodies(usize::MAX);
                out.answer(&reply, &self.range());
            }
            Reading::Bodies { reply, again, mut ids } => {
                self.state.fill(*again);
                if let Some(id) = ids.pop_front() {
                    self.send_whole(id, out);
                }
                self.read_bodies(reply, ids, out);
            }
        }
    }

    /// Takes that lines could not be read.
    fn on_no_log(&mut self, reading: Reading, error: Option<&RawValue>, out: &mut Lines) {
        match reading {
            Reading::Missing => self.release(out),
            Reading::Again(Opening { reply, .. })
            | Reading::Older { reply, .. }
            | Reading::Bodies { reply: Some(reply), .. } => match error {
                Some(error) => {
                    out.to_page.push(build::error(&reply, &ErrorObject::from_raw(error)));
                }
                None => out.refuse(&reply),
            },
            Reading::Bodies { reply: None, .. } => {}
        }
    }

    /// Takes lines that have waited.
    fn release(&mut self, out: &mut Lines) {
        let mut ends_turn = false;
        for line in self.held.take().unwrap_or_default() {
            ends_turn |= self.fold(&line, out);
        }
        if ends_turn {
            self.read_missing(Vec::new(), out);
        }
    }

    /// Takes a notification or a question of the daemon.
    fn on_line(&mut self, line: Bytes, out: &mut Lines) {
        self.taken += line.len();
        if let Some(held) = &mut self.held {
            held.push(line);
            return;
        }
        let seq = seq(&line).or_else(|| caught_up(&line).map(|seq| seq + 1));
        if seq.is_some_and(|seq| seq > self.cursor() + 1) {
            self.read_missing(vec![line], out);
        } else if self.fold(&line, out) {
            self.read_missing(Vec::new(), out);
        }
    }

    /// Folds a line. Returns whether a prompt of the page may be behind it.
    fn fold(&mut self, line: &Bytes, out: &mut Lines) -> bool {
        if let Some(seq) = caught_up(line) {
            let mut range = self.range();
            range["seq"] = seq.max(self.cursor()).into();
            out.notify("_page/live", &range);
            return false;
        }
        let changed = self.state.fold(line);
        self.send(changed, out);
        match str_at(line, &["method"]).as_deref() {
            Some(method::TURN_STARTED) => {
                self.drop_bodies(3);
                true
            }
            _ => {
                if self.taken > MUCH {
                    self.drop_bodies(3);
                }
                false
            }
        }
    }

    fn range(&self) -> Value {
        let first = self.state.first().unwrap_or(self.from + 1);
        json!({"first": first, "hasOlder": !self.has_all && first > 1})
    }

    fn older(&mut self, reply: RequestId, out: &mut Lines) {
        let first = self.state.first().unwrap_or(self.from + 1);
        if first <= 1 {
            self.has_all = true;
            out.answer(&reply, &self.range());
            return;
        }
        let (after, entries) = ((first - 1).saturating_sub(PAGE), Vec::new());
        self.read(after, first - 1, Reading::Older { reply, entries }, out);
    }

    fn bodies(&mut self, reply: RequestId, params: Option<&RawValue>, out: &mut Lines) {
        #[derive(Deserialize)]
        struct Params {
            ids: Vec<Value>,
        }
        let Some(Params { ids }) = read(params) else { return out.refuse(&reply) };
        let ids: VecDeque<Id> = ids.iter().filter_map(draw::read_id).collect();
        self.open.extend(&ids);
        self.read_bodies(Some(reply), ids, out);
    }

    /// Sends blocks whole; those that were dropped are read first.
    fn read_bodies(&mut self, reply: Option<RequestId>, mut ids: VecDeque<Id>, out: &mut Lines) {
        while let Some(id) = ids.front() {
            match self.state.get(*id) {
                Some(block) if block.is_shed() => {
                    let (after, to) = (id.seq() - 1, block.last);
                    let again = Box::new(self.state.anew());
                    self.read(after, to, Reading::Bodies { reply, again, ids }, out);
                    return;
                }
                Some(_) => self.send_whole(*id, out),
                // It is in a subagent whose body was dropped.
                None => {}
            }
            ids.pop_front();
        }
        if let Some(reply) = reply {
            out.answer(&reply, &json!({}));
        }
    }
}

impl Lines {
    fn notify(&mut self, method: &str, params: &impl serde::Serialize) {
        self.to_page.push(build::notification(method, params));
    }

    fn answer(&mut self, id: &RequestId, result: &Value) {
        self.to_page.push(build::response(id, result));
    }

    fn refuse(&mut self, id: &RequestId) {
        let error = ErrorObject::new(code::INVALID_PARAMS, "the page and its server differ");
        self.to_page.push(build::error(id, &error));
    }
}

/// Rows of everything, with open questions as the page shows them.
fn with_questions(line: &Bytes, member: &str) -> Bytes {
    let Some(at) = locate(line, &[member, "interactions"]) else { return line.clone() };
    let Ok(mut questions) = serde_json::from_slice(&line[at]) else { return line.clone() };
    draw::questions(&mut questions);
    set_member(line, &[member, "interactions"], questions.to_string().as_bytes())
}

fn read<T: DeserializeOwned>(params: Option<&RawValue>) -> Option<T> {
    serde_json::from_str(params?.get()).ok()
}

/// The number of a line, if the journal has it.
fn seq(line: &[u8]) -> Option<u64> {
    let at = locate(line, &["params", "_meta", NAMESPACE, "seq"])?;
    str::from_utf8(&line[at]).ok()?.parse().ok()
}

/// The last line that was sent, if this says that all were sent.
fn caught_up(line: &[u8]) -> Option<u64> {
    let name = str_at(line, &["method"])?;
    let params = locate(line, &["params"]).filter(|_| name == method::CAUGHT_UP)?;
    serde_json::from_slice::<CaughtUp>(&line[params]).ok().map(|told| told.seq)
}

#[cfg(test)]
mod tests;
