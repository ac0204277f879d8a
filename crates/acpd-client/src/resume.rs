//! Resuming a connection: a client's memory, so that a lost connection loses and repeats no line.
//! No I/O.
//!
//! The memory has the client's lines that acpd has not committed (`uncommitted`), the requests
//! without an answer in either direction (`open`, `asked`), and per session the last sequence
//! number (`cursors`). The next `initialize` reports them, and its answer says which requests to
//! send again. See `docs/protocol.md`, "Resuming a connection".
//!
//! ```text
//! Bare ── initialize ──> Greeting ── answer ──> Resumable ── leave ──> Left
//!   ^────── error ──────────┘ └─── answer ────> Plain (an older daemon)
//! ```
//!
//! Lines that follow an unanswered `initialize` wait for its answer, because before it the client
//! cannot know whether the connection can be resumed.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use acp_wire::{
    ErrorObject, Id, Message, Outcome, build, code, count_at, locate, parse, remove_member, set_id,
    set_member, str_at,
};
use acpd_api::{
    Answered, ClientToken, Empty, Leaving, LinePosition, NAMESPACE, Reason, Received,
    Resume as ResumeMeta, Resumed, method,
};
use bytes::Bytes;
use serde_json::value::RawValue;

pub use crate::error::Unresumable;
use crate::error::error_data;
use crate::request::{Cursor, Kind, member};

/// The id of the `initialize` that resumes a connection. No request of the user has it.
const RETURN_ID: &str = "\"acpd-return\"";
/// Replaces an answered request that is not committed yet, so that it does not run twice.
const NO_OP: &[u8] = br#"{"jsonrpc":"2.0","method":"_acpd/client/answered","params":{"ids":[]}}"#;
/// The member with acpd's part of the answer to `initialize`, in each version of the protocol.
const CAPABILITIES: [&str; 2] = ["agentCapabilities", "capabilities"];
/// Kept lines up to this length are copied: a slice would keep its whole block alive.
const COPIED: usize = 16 * 1024;

/// Handling of a line of acpd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The user gets the line.
    Pass,
    /// The user gets this line: it had a number, which the user did not ask for.
    Own(Bytes),
    /// The line is for the link only.
    Swallow,
    /// acpd does not resume the connection now: reconnect later.
    Refused,
}

#[derive(Debug, Default)]
enum Phase {
    #[default]
    Bare,
    Greeting {
        id: Id,
    },
    Plain,
    Resumable {
        generation: String,
    },
    /// The user has ended the connection: no line passes.
    Left,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Connection {
    #[default]
    Up,
    Down,
    /// The resuming `initialize` is not answered yet.
    Returning,
}

#[derive(Debug)]
struct Open {
    number: u64,
    line: Bytes,
    kind: Kind,
}

/// The memory of one client.
#[derive(Debug, Default)]
pub struct Resumption {
    token: String,
    /// The connection is never resumed, so acpd gets no token.
    is_single: bool,
    phase: Phase,
    connection: Connection,
    was_lost: bool,
    /// The user's `initialize`; after its answer, with the agent that it was bound to.
    hello: Bytes,
    wants_notices: bool,
    wants_numbers: bool,
    /// Requests from before `initialize`, not counted.
    early: Vec<(Id, Bytes)>,
    /// Lines without a number yet, which wait for a connection or for the answer to the first
    /// `initialize`.
    held: VecDeque<Bytes>,
    held_bytes: usize,
    /// The user has stopped the daemon of this connection.
    is_stopped: bool,
    /// acpd's error when it last closed the connection or did not resume it.
    refusal: Option<ErrorObject>,
    committed: u64,
    /// The lines after those; the first one has the number `committed + 1`.
    uncommitted: VecDeque<Bytes>,
    open: HashMap<Id, Open>,
    /// Requests that reused the id of an open one, with their line numbers: acpd refuses them.
    twins: Vec<(Id, u64)>,
    /// acpd's requests, and the number of the line that answered.
    asked: HashMap<Id, Option<u64>>,
    cursors: HashMap<String, Cursor>,
    /// The end of a turn is an update, and answers no request: version 2 of the protocol.
    tells_states: bool,
    /// Sessions with a turn, from state updates.
    working: HashSet<String>,
}

impl Resumption {
    /// The memory of a new client. The token has 16 to 64 characters of `[A-Za-z0-9_-]`.
    pub fn new(token: String) -> Resumption {
        Resumption { token, ..Resumption::default() }
    }

    /// The memory of a client that is never resumed.
    pub fn single() -> Resumption {
        Resumption { is_single: true, ..Resumption::default() }
    }

    pub fn is_up(&self) -> bool {
        self.connection == Connection::Up
    }

    /// Returns whether the user waits for an answer, for the end of a turn, or for a line that is
    /// held back.
    pub fn waits(&self) -> bool {
        let greets = matches!(self.phase, Phase::Greeting { .. });
        let is_owed = !self.open.is_empty() || !self.early.is_empty() || !self.working.is_empty();
        greets || self.held_bytes > 0 || is_owed
    }

    /// Returns whether the user has stopped the daemon, and no other one has come since.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Returns whether acpd closed the connection with an error while the user waited, and nothing
    /// can be resumed: another attempt would end in the same way.
    pub fn is_turned_away(&self) -> bool {
        self.refusal.is_some() && !self.is_resumable() && self.waits()
    }

    /// Returns whether the daemon knows this client and resumes it.
    pub fn is_resumable(&self) -> bool {
        matches!(self.phase, Phase::Resumable { .. })
    }

    /// Returns whether the connection can no longer be resumed.
    fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Plain | Phase::Left)
    }

    /// Why acpd closed the connection, or has not resumed it yet.
    pub fn refusal(&self) -> Option<&ErrorObject> {
        self.refusal.as_ref()
    }

    pub fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Takes a line of the user; adds to `out` what to write now.
    pub fn send(&mut self, line: Bytes, out: &mut VecDeque<Bytes>) {
        match self.phase {
            Phase::Plain => out.push_back(line),
            Phase::Resumable { .. } => self.send_counted(line, out),
            Phase::Bare if self.connection == Connection::Up => self.send_bare(line, out),
            // No daemon is there to answer, and none is started for this line.
            Phase::Bare if self.is_stopped => {}
            Phase::Bare | Phase::Greeting { .. } => self.hold(line),
            Phase::Left => {}
        }
    }

    /// Ends the connection for good; adds to `out` what to write now.
    pub fn leave(&mut self, out: &mut VecDeque<Bytes>) {
        if !self.is_resumable() {
            return;
        }
        self.phase = Phase::Left;
        self.held_bytes = 0;
        if self.connection == Connection::Up {
            out.push_back(build::notification(method::CLIENT_LEAVE, &Empty {}));
        }
    }

    /// Takes a line of acpd; adds to `out` what to write now.
    pub fn receive(
        &mut self,
        line: &Bytes,
        out: &mut VecDeque<Bytes>,
    ) -> Result<Verdict, Unresumable> {
        if let Some(verdict) = self.positioned(line) {
            return Ok(verdict);
        }
        let Ok(message) = parse(line) else { return Ok(Verdict::Pass) };
        // Another daemon is there: one that ends accepts connections for a moment longer, but sends
        // nothing.
        self.is_stopped = false;
        if let Some((refusal, reason)) = self.let_go(&message) {
            self.refusal = Some(refusal);
            if reason == Reason::Replaced {
                // Another connection has all of this client's state.
                self.phase = Phase::Plain;
            }
            return Ok(Verdict::Swallow);
        }
        match (message, &self.phase) {
            (_, Phase::Plain) => Ok(Verdict::Pass),
            (_, Phase::Left) => Ok(Verdict::Swallow),
            (Message::Response { id, outcome }, Phase::Resumable { .. }) => {
                self.answer(&id, outcome, out)
            }
            (Message::Response { id, outcome }, Phase::Greeting { id: hello }) if id == *hello => {
                self.greeted(outcome, out);
                Ok(Verdict::Pass)
            }
            (Message::Response { id, .. }, _) => {
                self.early.retain(|(early, _)| *early != id);
                Ok(Verdict::Pass)
            }
            (Message::Request { id, .. }, Phase::Resumable { .. }) => Ok(self.ask(id)),
            (Message::Notification { method, params }, Phase::Resumable { .. }) => {
                Ok(self.notified(line, &method, params.unwrap_or(RawValue::NULL)))
            }
            (Message::Notification { method, .. }, Phase::Bare)
                if method == method::DAEMON_STOPPED =>
            {
                self.is_stopped = true;
                self.early.clear();
                Ok(Verdict::Swallow)
            }
            _ => Ok(Verdict::Pass),
        }
    }

    /// Returns acpd's reason to close the connection if a message is that: an error about no
    /// request.
    fn let_go(&self, message: &Message<'_>) -> Option<(ErrorObject, Reason)> {
        let is_ours = self.is_up() && !self.is_over();
        match message {
            Message::Response { id, outcome: Outcome::Error(error) } if is_ours && id.is_null() => {
                let error = ErrorObject::from_raw(error);
                let reason = error_data(&error)?.reason;
                Some((error, reason))
            }
            _ => None,
        }
    }

    /// Notes that the connection is lost. Returns whether it can be resumed.
    pub fn lost(&mut self) -> bool {
        self.connection = Connection::Down;
        self.was_lost = true;
        self.cursors.values_mut().for_each(Cursor::cut_off);
        if self.is_stopped {
            self.early.clear();
        }
        !self.is_over()
    }

    /// Takes a new connection. Returns the first lines to write.
    pub fn back(&mut self) -> VecDeque<Bytes> {
        let mut out: VecDeque<Bytes> = self.early.iter().map(|(_, line)| line.clone()).collect();
        self.connection = Connection::Up;
        self.refusal = None;
        match &self.phase {
            Phase::Plain | Phase::Left => {}
            Phase::Bare => self.release(&mut out),
            Phase::Greeting { .. } => out.push_back(self.with_token(&self.hello, None)),
            Phase::Resumable { generation } => {
                let resume = self.resume(generation.clone());
                let id = serde_json::from_str(RETURN_ID).unwrap_or_else(|_| Id::null());
                out.push_back(set_id(&self.with_token(&self.hello, Some(resume)), &id));
                self.connection = Connection::Returning;
            }
        }
        out
    }

    fn send_bare(&mut self, line: Bytes, out: &mut VecDeque<Bytes>) {
        let own_client = ["params", "_meta", NAMESPACE, "client"];
        match parse(&line) {
            // A client that resumes its connection itself, or not at all.
            Ok(Message::Request { method, .. })
                if method == "initialize"
                    && (self.is_single || locate(&line, &own_client).is_some()) =>
            {
                self.phase = Phase::Plain;
            }
            Ok(Message::Request { id, method, .. }) if method == "initialize" => {
                let wants = |what| {
                    let at = locate(&line, &["params", "_meta", NAMESPACE, what]);
                    at.is_some_and(|at| &line[at] == b"true")
                };
                (self.wants_notices, self.wants_numbers) = (wants("notices"), wants("seq"));
                self.hello = line.clone();
                self.phase = Phase::Greeting { id };
                out.push_back(self.with_token(&line, None));
                return;
            }
            Ok(Message::Request { id, .. }) => self.early.push((id, line.clone())),
            _ => {}
        }
        out.push_back(line);
    }

    fn hold(&mut self, line: Bytes) {
        self.held_bytes += line.len();
        self.held.push_back(line);
    }

    fn release(&mut self, out: &mut VecDeque<Bytes>) {
        self.held_bytes = 0;
        for line in std::mem::take(&mut self.held) {
            self.send(line, out);
        }
    }

    /// Takes the answer to the first `initialize`.
    fn greeted(&mut self, outcome: Outcome<'_>, out: &mut VecDeque<Bytes>) {
        self.bound(outcome);
        self.phase = match outcome {
            Outcome::Error(_) => Phase::Bare,
            Outcome::Result(result) => match resumed(result) {
                Some(Resumed { generation, .. }) => Phase::Resumable { generation },
                None => Phase::Plain,
            },
        };
        self.release(out);
    }

    /// Keeps the agent of an answered `initialize`, so that the connection is resumed with it even
    /// if another one is the default by then.
    fn bound(&mut self, outcome: Outcome<'_>) {
        let Outcome::Result(result) = outcome else { return };
        let text = result.get().as_bytes();
        self.tells_states = locate(text, &["capabilities"]).is_some();
        let mut places = CAPABILITIES.map(|name| [name, "_meta", NAMESPACE, "agent"]).into_iter();
        if let Some(agent) = places.find_map(|path| locate(text, &path)) {
            let path = ["params", "_meta", NAMESPACE, "agent"];
            self.hello = set_member(&self.hello, &path, &text[agent]);
        }
    }

    /// Numbers a line of the user and notes what it begins or ends.
    fn send_counted(&mut self, line: Bytes, out: &mut VecDeque<Bytes>) {
        let line = if line.len() <= COPIED { Bytes::copy_from_slice(&line) } else { line };
        let number = self.committed + self.uncommitted.len() as u64 + 1;
        match parse(&line) {
            // acpd never counts a second `initialize`. The connection has its token already.
            Ok(Message::Request { id, method, .. }) if method == "initialize" => {
                if self.connection == Connection::Up {
                    out.push_back(line.clone());
                }
                match self.open.entry(id) {
                    Entry::Occupied(open) => self.twins.push((open.key().clone(), 0)),
                    Entry::Vacant(open) => {
                        open.insert(Open { number: 0, line, kind: Kind::Initialize });
                    }
                }
                return;
            }
            Ok(Message::Request { id, .. }) if self.open.contains_key(&id) => {
                self.twins.push((id, number));
            }
            Ok(Message::Request { id, method, params }) if !id.is_null() => {
                let kind = Kind::of(&method, params);
                kind.begin(&id, &mut self.cursors);
                self.open.insert(id, Open { number, line: line.clone(), kind });
            }
            Ok(Message::Response { id, .. }) => {
                self.asked.entry(id).and_modify(|answered| *answered = Some(number));
            }
            _ => {}
        }
        self.uncommitted.push_back(line.clone());
        if self.connection == Connection::Up {
            out.push_back(line);
        } else {
            self.held_bytes += line.len();
        }
    }

    fn answer(
        &mut self,
        id: &Id,
        outcome: Outcome<'_>,
        out: &mut VecDeque<Bytes>,
    ) -> Result<Verdict, Unresumable> {
        if self.connection == Connection::Returning {
            match outcome {
                // An error without an id refuses the connection itself.
                Outcome::Error(error) if id.raw() == RETURN_ID || id.is_null() => {
                    self.refusal = Some(ErrorObject::from_raw(error));
                    return Ok(Verdict::Refused);
                }
                Outcome::Result(result) if id.raw() == RETURN_ID => {
                    let resumed = resumed(result).ok_or(Unresumable::Forgotten)?;
                    return self.taken_back(resumed, out).map(|()| Verdict::Swallow);
                }
                _ => {}
            }
        }
        if self.take_twin_answer(id, outcome) {
            return Ok(Verdict::Pass);
        }
        let Some(request) = self.open.remove(id) else {
            let early = self.early.len();
            self.early.retain(|(early, _)| early != id);
            let known = !self.was_lost || id.is_null() || self.early.len() < early;
            return Ok(if known { Verdict::Pass } else { Verdict::Swallow });
        };
        self.neutralize(request.number);
        if request.kind == Kind::Initialize {
            self.bound(outcome);
        }
        let result = match outcome {
            Outcome::Result(result) => Some(result),
            Outcome::Error(_) => None,
        };
        request.kind.end(id, result, &mut self.cursors);
        if let (Kind::Leave(session), Some(_)) = (&request.kind, result) {
            self.working.remove(session);
        }
        let answered = Answered { ids: vec![id.clone()] };
        self.send_counted(build::notification(method::CLIENT_ANSWERED, &answered), out);
        Ok(Verdict::Pass)
    }

    /// Takes acpd's refusal of a request that reused the id of an open one. Returns whether the
    /// answer is one.
    fn take_twin_answer(&mut self, id: &Id, outcome: Outcome<'_>) -> bool {
        let Some(at) = self.twins.iter().position(|(twin, _)| twin == id) else { return false };
        let is_refused = matches!(outcome, Outcome::Error(error)
            if ErrorObject::from_raw(error).code == code::INVALID_REQUEST);
        if !is_refused && self.open.contains_key(id) {
            return false;
        }
        let (_, number) = self.twins.remove(at);
        self.neutralize(number);
        true
    }

    /// Replaces the line of an answered request with a no-op, so that it does not run twice if it
    /// is sent again.
    fn neutralize(&mut self, number: u64) {
        if number > self.committed {
            let at = (number - self.committed - 1) as usize;
            self.uncommitted[at] = Bytes::from_static(NO_OP);
        }
    }

    /// acpd has resumed the connection: adds to `out` all lines that it lacks.
    fn taken_back(
        &mut self,
        resumed: Resumed,
        out: &mut VecDeque<Bytes>,
    ) -> Result<(), Unresumable> {
        match &self.phase {
            Phase::Resumable { generation } if *generation == resumed.generation => {}
            _ => return Err(Unresumable::OtherJournal),
        }
        let sent = self.committed + self.uncommitted.len() as u64;
        if !(self.committed..=sent).contains(&resumed.received) {
            return Err(Unresumable::Forgotten);
        }
        self.drop_committed(resumed.received);
        // Answers to committed twins are lost.
        self.twins.retain(|(_, number)| *number > self.committed);
        self.connection = Connection::Up;
        self.refusal = None;
        self.held_bytes = 0;
        self.resend_uncommitted(out);
        self.renumber_unknown(&resumed.again, out);
        Ok(())
    }

    /// Sends again what acpd has not committed, under the same numbers; a load continues where it
    /// was cut off.
    fn resend_uncommitted(&self, out: &mut VecDeque<Bytes>) {
        let first = self.committed + 1;
        out.extend(self.uncommitted.iter().cloned());
        let at = out.len() - self.uncommitted.len();
        for (id, request) in &self.open {
            if request.number >= first {
                out[at + (request.number - first) as usize] = self.again(id, request);
            }
        }
    }

    /// Sends again the other requests that acpd no longer knows, under new numbers in their old
    /// order. An `initialize` has no number.
    fn renumber_unknown(&mut self, unknown: &[Id], out: &mut VecDeque<Bytes>) {
        let mut again: Vec<(u64, Id)> = self
            .open
            .iter()
            .filter(|(id, request)| {
                let is_never_kept = matches!(request.kind, Kind::Load(_) | Kind::Initialize);
                request.number <= self.committed && (unknown.contains(id) || is_never_kept)
            })
            .map(|(id, request)| (request.number, id.clone()))
            .collect();
        again.sort_unstable();
        for (_, id) in again {
            let number = self.committed + self.uncommitted.len() as u64 + 1;
            let Some(request) = self.open.get_mut(&id) else { continue };
            if request.kind != Kind::Initialize {
                request.number = number;
                self.uncommitted.push_back(request.line.clone());
            }
            out.push_back(self.again(&id, &self.open[&id]));
        }
    }

    /// The line of a request to send again: a load continues where it was cut off.
    fn again(&self, id: &Id, request: &Open) -> Bytes {
        match request.kind.seen(id, &self.cursors) {
            Some(seen) => {
                let path = ["params", "_meta", NAMESPACE, "after"];
                set_member(&request.line, &path, seen.to_string().as_bytes())
            }
            None => request.line.clone(),
        }
    }

    fn drop_committed(&mut self, lines: u64) {
        while self.committed < lines && self.uncommitted.pop_front().is_some() {
            self.committed += 1;
        }
        let committed = self.committed;
        self.asked.retain(|_, answered| answered.is_none_or(|number| number > committed));
    }

    fn ask(&mut self, id: Id) -> Verdict {
        let known = !id.is_null() && self.asked.insert(id, None).is_some();
        if known && self.was_lost { Verdict::Swallow } else { Verdict::Pass }
    }

    fn notified(&mut self, line: &Bytes, name: &str, params: &RawValue) -> Verdict {
        let text = params.get().as_bytes();
        match name {
            method::DAEMON_STOPPED => {
                self.phase = Phase::Plain;
                self.is_stopped = true;
                return Verdict::Swallow;
            }
            method::CLIENT_RECEIVED => {
                if let Ok(Received { lines }) = serde_json::from_str(params.get()) {
                    self.drop_committed(lines);
                }
                return Verdict::Swallow;
            }
            method::CAUGHT_UP => {
                let seq = count_at(text, &["seq"]);
                if let (Some(session), Some(seq)) = (str_at(text, &["sessionId"]), seq) {
                    Cursor::caught_up(&mut self.cursors, &session, seq);
                }
                return if self.wants_notices { Verdict::Pass } else { Verdict::Swallow };
            }
            method::SESSION_REMOVED => {
                if let Some(session) = str_at(text, &["sessionId"]) {
                    self.cursors.remove(&*session);
                    self.working.remove(&*session);
                }
            }
            "$/cancel_request" => {
                if let Some(id) = member(params, &["requestId"]) {
                    self.asked.remove(&id);
                }
            }
            name if name.starts_with("_acpd/client/") => return Verdict::Swallow,
            _ => {
                self.note_state(line);
                return self.numbered(line, text);
            }
        }
        Verdict::Pass
    }

    /// Takes a line of a journal with its position: the user gets it once.
    fn positioned(&mut self, line: &Bytes) -> Option<Verdict> {
        let asked = !self.hello.is_empty() && !self.wants_numbers;
        let (LinePosition(session, seq), own) = asked.then(|| LinePosition::split(line))??;
        self.is_stopped = false;
        let shows = match self.phase {
            Phase::Resumable { .. } => self.advance(&session, seq),
            Phase::Left => false,
            _ => true,
        };
        if shows {
            self.note_state(own);
        }
        Some(if shows { Verdict::Own(line.slice_ref(own)) } else { Verdict::Swallow })
    }

    /// Notes from a state update whether its session works.
    fn note_state(&mut self, line: &[u8]) {
        let of_update = |name| str_at(line, &["params", "update", name]);
        if !self.tells_states || of_update("sessionUpdate").as_deref() != Some("state_update") {
            return;
        }
        let Some(session) = str_at(line, &["params", "sessionId"]) else { return };
        if of_update("state").as_deref() == Some("idle") {
            self.working.remove(&*session);
        } else {
            self.working.insert(session.into_owned());
        }
    }

    /// The same without positions: the user wants numbers, or an older daemon does not know them.
    fn numbered(&mut self, line: &Bytes, text: &[u8]) -> Verdict {
        let seq = count_at(text, &["_meta", NAMESPACE, "seq"]);
        // A line of a subagent names the journal in which it has its number.
        let session =
            str_at(text, &["_meta", NAMESPACE, "session"]).or_else(|| str_at(text, &["sessionId"]));
        if let (Some(seq), Some(session)) = (seq, session)
            && !self.advance(&session, seq)
        {
            return Verdict::Swallow;
        }
        // Some clients make arguments of everything in `_meta`.
        if seq.is_some() && !self.wants_numbers {
            Verdict::Own(unnumbered(line))
        } else {
            Verdict::Pass
        }
    }

    /// Returns whether the user gets the line with this number.
    fn advance(&mut self, session: &str, seq: u64) -> bool {
        Cursor::advance(&mut self.cursors, session, seq) || !self.was_lost
    }

    /// The client's state, for the next `initialize`.
    fn resume(&self, generation: String) -> ResumeMeta {
        let (mut sessions, mut leaving) = (BTreeMap::new(), BTreeMap::new());
        for (session, cursor) in &self.cursors {
            // The request of an open load continues it.
            let Cursor::At(seq) = *cursor else { continue };
            let is_leave = |open: &Open| matches!(&open.kind, Kind::Leave(of) if of == session);
            let leaves = self.open.iter().filter(|(_, open)| is_leave(open));
            let requests = sorted(leaves.map(|(id, _)| id));
            let is_prompt = |open: &Open| matches!(&open.kind, Kind::Prompt(of) if of == session);
            // acpd follows a session with an open prompt in any case, and from its beginning if no
            // position is named.
            if requests.is_empty() || self.open.values().any(is_prompt) {
                sessions.insert(session.clone(), seq);
            } else {
                leaving.insert(session.clone(), Leaving { seq, requests });
            }
        }
        let (open, asked) = (sorted(self.open.keys()), sorted(self.asked.keys()));
        ResumeMeta { generation, sessions, leaving, open, asked }
    }

    fn with_token(&self, initialize: &Bytes, resume: Option<ResumeMeta>) -> Bytes {
        let positions = !self.wants_numbers;
        let client = ClientToken { token: self.token.clone(), positions, resume };
        let client = serde_json::to_vec(&client).expect("acpd's own values serialize");
        set_member(initialize, &["params", "_meta", NAMESPACE, "client"], &client)
    }
}

fn unnumbered(line: &Bytes) -> Bytes {
    let own = ["params", "_meta", NAMESPACE];
    let of = |member| [own[0], own[1], own[2], member];
    let mut line = remove_member(&remove_member(line, &of("seq")), &of("session"));
    for empty in [&own[..], &own[..2]] {
        if locate(&line, empty).is_some_and(|at| &line[at] == b"{}") {
            line = remove_member(&line, empty);
        }
    }
    line
}

/// Reads the part about resuming from the answer to `initialize`.
fn resumed(result: &RawValue) -> Option<Resumed> {
    CAPABILITIES.iter().find_map(|name| member(result, &[name, "_meta", NAMESPACE]))
}

fn sorted<'a>(ids: impl Iterator<Item = &'a Id>) -> Vec<Id> {
    let mut ids: Vec<Id> = ids.cloned().collect();
    ids.sort_unstable();
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_its_number_is_the_agents_own() {
        let own = r#"{"method":"m","params":{"sessionId":"s","update":{}}}"#;
        let with_meta = r#"{"method":"m","params":{"_meta":{"x":1},"sessionId":"s"}}"#;
        for text in [own, with_meta] {
            let line = Bytes::from_static(text.as_bytes());
            for number in [&br#"{"seq":7}"#[..], br#"{"seq":7,"session":"s"}"#] {
                let numbered = set_member(&line, &["params", "_meta", NAMESPACE], number);
                assert_eq!(unnumbered(&numbered), line);
            }
        }
    }
}
