//! The conversation of one session as blocks for the page. No I/O.
//!
//! ```text
//!  daemon ──lines──▶ acpd_view::State ──ids of changed blocks──▶ encoding ──▶ page
//!    ▲                                                                         │
//!    └──── _acpd/session/log ◀──── missing and older lines ◀─── open, older ───┘
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
//! | `_page/block` | a block (see `encoding`): new, or instead of the one with its `id` |
//! | `_page/delta` | `id`, `last`, `text`: more of the last text of a message |
//! | `_page/done` | `id`, `last`, `progress`, `folding`, and `line` of a thought: a message has ended, its content stays |
//! | `_page/gone` | `id` |
//! | `_page/head` | members of the header that changed |
//! | `_page/live` | `seq`, `first`, `hasOlder`: all lines up to `seq` were sent, `first` is the first one that was read |
//!
//! | request of the page | params | result |
//! | --- | --- | --- |
//! | `_page/open` | `agent`, `session`, `controls`, and of a page that reconnects its `first` line and its last one (`after`) | `cwd` |
//! | `_page/older` | | `first`, `hasOlder`, after the blocks |
//! | `_page/bodies` | `ids` | `{}`, after the blocks |
//!
//! Blocks are flat: `of` names the subagent of a block, `turn` the first line of its turn, and
//! `id`s grow from top to bottom. Other messages pass unchanged, except open questions
//! (`_acpd/watch`): they are sent with their changes compared and their answers explained.
//!
//! acpd sends no client its own prompts and choices. If a number is missing, later lines wait until
//! the missing ones were read from the journal.
//!
//! Architecture invariant: the page has what [`State`] has, even if lines were lost, paged or
//! dropped meanwhile.

mod changes;
mod encoding;

use std::collections::{BTreeSet, HashMap};

use acp_wire::{
    ErrorObject, Id as RequestId, Message, Outcome, build, code, locate, parse, set_member, str_at,
};
use acpd_api::{
    AttachParams, AttachResult, CaughtUp, LogEntry, LogParams, LogResult, NAMESPACE, Role,
    SessionInfo, SessionRef, method,
};
use acpd_view::{Header, Id, Settings, State};
use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use changes::ids;

/// Lines to read before the page shows something.
const FIRST: u64 = 300;
/// Lines of a page of the journal.
const PAGE: u64 = 1000;
/// Turns to keep; the page asks for dropped ones again.
const KEPT: usize = 100;
/// Turns above which older ones are dropped.
const MOST: usize = 500;

/// Messages in response to a message.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    pub(crate) to_page: Vec<Bytes>,
    pub(crate) to_daemon: Vec<Bytes>,
}

#[derive(Debug, Default)]
pub(crate) struct PageConversation {
    session: SessionRef,
    state: State,
    /// Lines up to this one are read only on request.
    from: u64,
    is_attached: bool,
    /// The daemon's answer to `initialize`.
    hello: Option<Box<RawValue>>,
    last_request: u64,
    requests: HashMap<RequestId, OwnRequest>,
    /// Lines that wait for those before them.
    held: Option<Vec<Bytes>>,
    /// Sent size of messages that have not ended: parts, and bytes of the last one.
    sent: HashMap<Id, (usize, usize)>,
    open: BTreeSet<Id>,
    /// Subagents whose blocks were sent.
    shown: BTreeSet<Id>,
    /// The header as it was sent.
    header: Header,
    head: Map<String, Value>,
}

#[derive(Debug)]
enum OwnRequest {
    Show(OpenRequest),
    Attach(OpenRequest),
    Log { reading: LogReading, to: u64 },
}

#[derive(Debug)]
struct OpenRequest {
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
enum LogReading {
    /// Lines that the page had before its connection was lost.
    Again(OpenRequest),
    /// Lines that were not sent to this connection.
    Missing,
    Older {
        reply: RequestId,
        after: u64,
        entries: Vec<LogEntry>,
        /// Unfolded blocks in dropped turns.
        bodies: Vec<Id>,
    },
}

impl PageConversation {
    /// Returns whether a line of the page is a request to the conversation, not to the daemon.
    pub(crate) fn takes(line: &[u8]) -> bool {
        str_at(line, &["method"]).is_some_and(|method| method.starts_with("_page/"))
    }

    pub(crate) fn on_page(&mut self, line: &Bytes) -> Outgoing {
        let mut out = Outgoing::default();
        let Ok(Message::Request { id, method, params }) = parse(line) else { return out };
        match &*method {
            "_page/open" => match read::<OpenParams>(params) {
                Some(params) => self.open(OpenRequest { reply: id, params }, &mut out),
                None => out.refuse(&id, None),
            },
            "_page/older" => self.older(id, Vec::new(), &mut out),
            "_page/bodies" => self.bodies(id, params, &mut out),
            _ => out.refuse(&id, None),
        }
        out
    }

    pub(crate) fn on_daemon(&mut self, line: Bytes) -> Outgoing {
        let mut out = Outgoing::default();
        match parse(&line) {
            Ok(Message::Response { id, outcome }) => {
                if let Some(request) = self.requests.remove(&id) {
                    self.on_answer(request, outcome, &mut out);
                } else {
                    if let Outcome::Result(result) = outcome {
                        self.on_result(result, &mut out);
                    }
                    out.to_page.push(with_questions(&line, "result"));
                    // A request of the page may have written lines, which acpd sends to the other
                    // clients only.
                    self.read_missing(Vec::new(), &mut out);
                }
            }
            Ok(Message::Notification { method, .. }) => match &*method {
                method::SESSION_REMOVED | method::PROMPT_QUEUED => out.to_page.push(line),
                method::CHANGED => out.to_page.push(with_questions(&line, "params")),
                _ => self.on_line(line, &mut out),
            },
            Ok(Message::Request { id, method, .. }) => match &*method {
                // Questions are answered on another connection.
                "session/request_permission" | "elicitation/create" => {}
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

    fn open(&mut self, request: OpenRequest, out: &mut Outgoing) {
        let OpenParams { agent, session, .. } = &request.params;
        let session = SessionRef::to(agent, session);
        *self = PageConversation {
            session: session.clone(),
            hello: self.hello.take(),
            last_request: self.last_request,
            ..PageConversation::default()
        };
        self.ask(method::SESSION_SHOW, &session, OwnRequest::Show(request), out);
    }

    fn ask(
        &mut self,
        method: &str,
        params: &impl serde::Serialize,
        request: OwnRequest,
        out: &mut Outgoing,
    ) {
        self.last_request += 1;
        // The ids of the page are numbers.
        let id = Value::from(format!("page-{}", self.last_request));
        let Some(id) = RequestId::from_value(&id) else { return };
        out.to_daemon.push(build::request(&id, method, params));
        self.requests.insert(id, request);
    }

    fn read(&mut self, after: u64, to: u64, reading: LogReading, out: &mut Outgoing) {
        let limit = to.saturating_sub(after).min(PAGE) as u32;
        let asked = LogParams::after(self.session.clone(), after).with_originals();
        let params = LogParams { limit: Some(limit), ..asked };
        self.ask(method::SESSION_LOG, &params, OwnRequest::Log { reading, to }, out);
    }

    /// Reads lines that come before `held`.
    fn read_missing(&mut self, held: Vec<Bytes>, out: &mut Outgoing) {
        if self.held.is_some() || !self.is_attached {
            return;
        }
        self.held = Some(held);
        self.read(self.cursor(), u64::MAX, LogReading::Missing, out);
    }

    /// The last line that was read.
    fn cursor(&self) -> u64 {
        self.state.last().max(self.from)
    }

    /// The first line that was read.
    fn first(&self) -> u64 {
        self.state.first().unwrap_or(self.from + 1)
    }

    fn range(&self) -> Value {
        json!({"first": self.first(), "hasOlder": self.from > 0})
    }

    fn on_answer(&mut self, request: OwnRequest, outcome: Outcome<'_>, out: &mut Outgoing) {
        let (result, error) = match outcome {
            Outcome::Result(result) => (Some(result), None),
            Outcome::Error(error) => (None, Some(error)),
        };
        match request {
            OwnRequest::Show(request) => match read(result) {
                Some(info) => self.on_shown(request, &info, out),
                None => out.refuse(&request.reply, error),
            },
            OwnRequest::Attach(request) if result.is_none() => out.refuse(&request.reply, error),
            OwnRequest::Attach(request) => {
                self.is_attached = true;
                let attached: Option<AttachResult> = read(result);
                let cwd = attached.map(|attached| attached.session.cwd).unwrap_or_default();
                out.answer(&request.reply, &json!({"cwd": cwd}));
            }
            OwnRequest::Log { reading, to } => match (read(result), reading) {
                (Some(page), reading) => self.on_log(reading, to, page, out),
                (None, LogReading::Missing) => self.release(out),
                (
                    None,
                    LogReading::Again(OpenRequest { reply, .. }) | LogReading::Older { reply, .. },
                ) => out.refuse(&reply, error),
            },
        }
    }

    /// Takes facts about the daemon or the session from an answer to the page.
    fn on_result(&mut self, result: &RawValue, out: &mut Outgoing) {
        let has = |name| locate(result.get().as_bytes(), &[name]).is_some();
        if has("protocolVersion") {
            self.hello = Some(result.to_owned());
        }
        if self.is_attached && (has("modes") || has("configOptions")) {
            let Settings { modes, options } = Settings::from_raw(result);
            let header = self.state.header_mut();
            if let Some(modes) = modes {
                header.mode.get_or_insert(modes.current_mode_id);
                header.modes = modes.available_modes;
            }
            if !options.is_empty() {
                header.options = Some(options);
            }
            self.send_header(out);
        }
    }

    fn on_shown(&mut self, request: OpenRequest, info: &SessionInfo, out: &mut Outgoing) {
        self.state = State::new(&info.session_id).within(&info.cwd);
        if let Some(hello) = &self.hello {
            self.state.heed(hello);
        }
        match (request.params.first, request.params.after) {
            (Some(first), Some(after)) if first <= after => {
                self.from = first.saturating_sub(1);
                self.read(self.from, after, LogReading::Again(request), out);
            }
            _ => {
                self.from = info.seq.saturating_sub(FIRST);
                self.attach(request, out);
            }
        }
    }

    fn attach(&mut self, request: OpenRequest, out: &mut Outgoing) {
        let role = if request.params.controls { Role::Controller } else { Role::Observer };
        let params =
            AttachParams { session: self.session.clone(), after: Some(self.cursor()), role };
        self.ask(method::SESSION_ATTACH, &params, OwnRequest::Attach(request), out);
    }

    fn on_log(&mut self, mut reading: LogReading, to: u64, page: LogResult, out: &mut Outgoing) {
        for entry in page.entries {
            match &mut reading {
                LogReading::Again(_) => drop(self.state.fold_entry(entry.seq, entry.line.get())),
                LogReading::Missing => {
                    let changed = self.state.fold_entry(entry.seq, entry.line.get());
                    self.send(changed, out);
                }
                LogReading::Older { entries, .. } => entries.push(entry),
            }
        }
        match page.next {
            Some(next) if next < to => self.read(next, to, reading, out),
            _ => self.on_read(reading, out),
        }
    }

    /// Takes the end of a reading.
    fn on_read(&mut self, reading: LogReading, out: &mut Outgoing) {
        match reading {
            LogReading::Again(request) => {
                // Questions may have changed how blocks of this turn are folded.
                let turn = self.state.turns().last();
                let ids = turn.map(|turn| ids(&turn.blocks)).unwrap_or_default();
                self.send(ids, out);
                self.attach(request, out);
            }
            LogReading::Missing => self.release(out),
            LogReading::Older { reply, after, entries, bodies } => {
                self.from = after;
                if entries.is_empty() && after > 0 {
                    return self.older(reply, bodies, out);
                }
                // The first turn is folded again with its beginning.
                let cut = self.state.turns().first().filter(|turn| turn.started.is_none());
                let mut changed = cut.map(|turn| ids(&turn.blocks)).unwrap_or_default();
                changed.extend(self.state.earlier(&entries));
                changed.sort_unstable();
                changed.dedup();
                self.send(changed, out);
                if bodies.is_empty() {
                    out.answer(&reply, &self.range());
                } else {
                    self.send_bodies(reply, bodies, out);
                }
            }
        }
    }

    fn release(&mut self, out: &mut Outgoing) {
        let mut begins_turn = false;
        for line in self.held.take().unwrap_or_default() {
            begins_turn |= self.fold(&line, out);
        }
        if begins_turn {
            self.read_missing(Vec::new(), out);
        }
    }

    /// Takes a notification or a question of the daemon.
    fn on_line(&mut self, line: Bytes, out: &mut Outgoing) {
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

    /// Folds a line. Returns whether a turn begins: its prompt may be the page's own, which acpd
    /// did not send.
    fn fold(&mut self, line: &Bytes, out: &mut Outgoing) -> bool {
        if let Some(seq) = caught_up(line) {
            let mut range = self.range();
            range["seq"] = seq.max(self.cursor()).into();
            out.notify("_page/live", &range);
        }
        let changed = self.state.fold(line);
        self.send(changed, out);
        let begins_turn = str_at(line, &["method"]).is_some_and(|it| it == method::TURN_STARTED);
        let last = Id::Line(self.state.last());
        if begins_turn && self.state.drop_turns_above(last, MOST, KEPT) {
            self.from = self.first() - 1;
        }
        begins_turn
    }

    /// Reads a page of the journal before the first line.
    fn older(&mut self, reply: RequestId, bodies: Vec<Id>, out: &mut Outgoing) {
        if self.from == 0 {
            return out.answer(&reply, &self.range());
        }
        let (after, entries) = (self.from.saturating_sub(PAGE), Vec::new());
        self.read(after, self.from, LogReading::Older { reply, after, entries, bodies }, out);
    }

    fn bodies(&mut self, reply: RequestId, params: Option<&RawValue>, out: &mut Outgoing) {
        let params: Option<Value> = read(params);
        let ids = params.as_ref().and_then(|params| params["ids"].as_array());
        let Some(ids) = ids else { return out.refuse(&reply, None) };
        let ids = ids.iter().filter_map(encoding::read_id).collect();
        self.send_bodies(reply, ids, out);
    }

    /// Sends blocks with their bodies; dropped turns are read again.
    fn send_bodies(&mut self, reply: RequestId, ids: Vec<Id>, out: &mut Outgoing) {
        if self.from > 0 && ids.iter().any(|id| id.seq() < self.first()) {
            return self.older(reply, ids, out);
        }
        for id in ids {
            self.send_body(id, out);
        }
        out.answer(&reply, &json!({}));
    }
}

impl Outgoing {
    fn notify(&mut self, method: &str, params: &impl serde::Serialize) {
        self.to_page.push(build::notification(method, params));
    }

    fn answer(&mut self, id: &RequestId, result: &Value) {
        self.to_page.push(build::response(id, result));
    }

    /// Answers with an error of the daemon, or that an unreadable message has come.
    fn refuse(&mut self, id: &RequestId, error: Option<&RawValue>) {
        let differ = || ErrorObject::new(code::INVALID_PARAMS, "the page and its server differ");
        self.to_page.push(build::error(id, &error.map_or_else(differ, ErrorObject::from_raw)));
    }
}

/// Rows with open questions as the page shows them.
fn with_questions(line: &Bytes, member: &str) -> Bytes {
    let Some(at) = locate(line, &[member, "interactions"]) else { return line.clone() };
    let Ok(mut questions) = serde_json::from_slice(&line[at]) else { return line.clone() };
    encoding::questions(&mut questions);
    set_member(line, &[member, "interactions"], questions.to_string().as_bytes())
}

fn read<T: DeserializeOwned>(params: Option<&RawValue>) -> Option<T> {
    serde_json::from_str(params?.get()).ok()
}

/// The number of a line in the journal.
fn seq(line: &[u8]) -> Option<u64> {
    let at = locate(line, &["params", "_meta", NAMESPACE, "seq"])?;
    str::from_utf8(&line[at]).ok()?.parse().ok()
}

/// The last line that was sent, from a notice that all were sent.
fn caught_up(line: &[u8]) -> Option<u64> {
    let name = str_at(line, &["method"])?;
    let params = locate(line, &["params"]).filter(|_| name == method::CAUGHT_UP)?;
    serde_json::from_slice::<CaughtUp>(&line[params]).ok().map(|told| told.seq)
}

#[cfg(test)]
mod tests;
