use std::collections::BTreeMap;

use acp_wire::acp::ClientCapabilities;
use acp_wire::{Body, ErrorObject, Frame, Id, Version};
use acpd_api::{
    Environment, GcParams, HookEvent, Metrics, Reseed, SessionInfo, Status, StatusParams,
    UsageParams,
};
use bytes::Bytes;

use crate::ids::{ClientId, HostId, InteractionId, Requester, Seq, SessionKey};
use crate::record::{HostState, Reads, Record};

pub use crate::record::ReadStyle;

#[derive(Debug, Clone)]
pub enum Input {
    Client(ClientId, ClientEvent),
    Host(HostId, HostEvent),
    /// The file with the login of an agent that wants one has changed.
    LoginSeen(String),
    Served {
        request: InteractionId,
        /// The result is JSON text; an error has the failure and the way out.
        result: Result<Bytes, ErrorObject>,
    },
    /// The machine was asleep (ms). The hub's clock stood still meanwhile.
    Slept(u64),
    /// Answers [`Effect::FindDirectory`].
    DirectoryFound {
        question: u64,
        exists: bool,
    },
    /// Answers [`Effect::Summarize`].
    Summary {
        session: SessionKey,
        /// A few KiB for the agent; empty if the journal has nothing.
        text: String,
    },
    /// Answers [`Effect::Measure`].
    Measured {
        look: Look,
        /// Bytes by session.
        sizes: Result<BTreeMap<SessionKey, u64>, String>,
    },
    /// Comes once for each terminal that was created, even after its release.
    TerminalEnded {
        terminal: InteractionId,
        end: TerminalEnd,
    },
    /// Answers [`Effect::LookAtTerminal`].
    TerminalSeen {
        terminal: InteractionId,
        tail: TerminalTail,
    },
    /// The relay retries the batch.
    StoreFailing {
        reason: String,
        hint: Option<String>,
    },
    StoreWorks,
    /// Agents are stopped, then comes [`Effect::Exit`].
    Stop,
    Tick,
}

/// Descent of a client's process, as far as it can be seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClientOrigin {
    #[default]
    User,
    /// In this run, if it is known.
    Agent(Option<HostId>),
}

#[derive(Debug, Clone)]
pub enum ClientEvent {
    Opened(ClientOrigin),
    /// The default agent where the configuration names none. Comes before lines that may need it.
    DefaultFound(String),
    Lines(Vec<Body>),
    /// The client gets no live lines until its queue is empty.
    Lagged,
    /// The queue of a slow client is empty.
    Drained,
    /// Answers [`ToClient::Read`]. Comes once for each, in order, even if the session is gone.
    ReadDone {
        session: SessionKey,
        /// Inclusive.
        upto: Seq,
    },
    /// Answers [`ToClient::Rows`]. Comes once for each.
    RowsWritten,
    Closed,
}

#[derive(Debug, Clone)]
pub enum HostEvent {
    /// The process starts with credentials that expire.
    CredentialsGood {
        /// Remaining lifetime (ms).
        left: u64,
    },
    /// The process runs. Nothing was sent to it yet.
    Started { pid: u32, start: u64 },
    /// The process could not be started. No other event follows.
    Refused(SpawnError),
    /// A process of an earlier daemon was found and can be used.
    Adopted {
        pid: u32,
        start: u64,
        /// Output before this byte offset is on disk. Later output follows.
        end: u64,
    },
    /// A process of an earlier daemon is unusable and being ended; [`HostEvent::Gone`] follows.
    Lost { reason: String },
    /// Lines of the process, without those over the limit.
    Output(Vec<Frame>),
    /// Lines up to this number were written to stdin.
    Written { chunk: u64 },
    /// A line was written without some of its configured MCP servers.
    ServersLeftOut { request: Id, servers: Vec<LeftOut> },
    /// All output was delivered. Descendants may be left, whose lines belong to no session.
    Exited {
        /// Predicate, such as `ended with exit code 3`.
        ending: String,
        stderr: String,
    },
    /// Answers [`Effect::FindLeftovers`]. Empty if the processes cannot be named.
    Left(Vec<LeftProcess>),
    /// No process of the tree is left, and all output was delivered.
    Gone,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpawnError {
    pub message: String,
    pub hint: Option<String>,
    /// A retry cannot help: no such file, not executable.
    pub permanent: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftProcess {
    pub pid: u32,
    /// Empty if the system reports no name.
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    pub server: String,
    /// For people, without secrets.
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileService {
    ReadTextFile {
        /// Absolute.
        path: String,
        /// First line, from 1.
        line: Option<u32>,
        limit: Option<u32>,
    },
    WriteTextFile {
        /// Absolute.
        path: String,
        content: String,
    },
}

/// A command that acpd runs for an agent (`terminal/create`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTerminal {
    /// Profile whose environment the command gets.
    pub agent: String,
    pub host: HostId,
    /// A program, or a line for a shell.
    pub command: String,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    /// Absolute.
    pub cwd: String,
    pub output_byte_limit: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalEnd {
    pub code: Option<u32>,
    pub signal: Option<String>,
    pub tail: TerminalTail,
}

/// The end of a command's output, for people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TerminalTail {
    /// At most some KiB.
    pub output: String,
    pub truncated: bool,
}

/// The request that waits for the sizes of sessions; none for the timer.
#[derive(Debug, Clone)]
pub struct Look(pub(crate) Option<(Requester, GcParams)>);

/// An action after the commit of the batch's records.
#[derive(Debug, Clone)]
pub enum Effect {
    Client(ClientId, ToClient),
    /// Close a connection once the client has read its lines. No event of it follows.
    Close(ClientId),
    Host(HostId, ToHost),
    /// Update the search index of a session. May get lost; the next daemon finds out.
    Index(SessionKey),
    Spawn {
        host: HostId,
        agent: String,
    },
    /// Take over a process of an earlier daemon, and report [`HostEvent::Adopted`], or
    /// [`HostEvent::Lost`] and later [`HostEvent::Gone`]. The process gets each missing line of
    /// the outbox once.
    Adopt(HostState),
    /// Report processes that survived SIGKILL: [`HostEvent::Left`].
    FindLeftovers(HostId),
    /// Carry out a file request of an agent, and report [`Input::Served`].
    Serve {
        host: HostId,
        request: InteractionId,
        /// The working directory first. Files outside of these folders are refused.
        roots: Vec<String>,
        service: FileService,
    },
    /// Check a session's directory, and report [`Input::DirectoryFound`]. A directory that acpd
    /// cannot see, because the agent is elsewhere, counts as existing.
    FindDirectory {
        question: u64,
        agent: String,
        /// Absolute.
        cwd: String,
    },
    /// Summarize a journal for the agent, and report [`Input::Summary`].
    Summarize {
        session: SessionKey,
        upto: Seq,
        what: Reseed,
    },
    /// Measure the conversations, and report [`Input::Measured`].
    Measure {
        look: Look,
        sessions: Vec<SessionKey>,
    },
    /// Run a command, and report [`Input::Served`]. The request's number names the terminal.
    CreateTerminal {
        terminal: InteractionId,
        new: Box<NewTerminal>,
    },
    /// Report the output of a command with [`Input::Served`].
    TerminalOutput {
        request: InteractionId,
        terminal: InteractionId,
    },
    /// Report the output of a command with [`Input::TerminalSeen`], unless it was released.
    LookAtTerminal(InteractionId),
    /// End a command. [`Input::TerminalEnded`] follows, unless the command has ended before.
    KillTerminal(InteractionId),
    /// End a command, and drop its output. The terminal may not exist.
    ReleaseTerminal(InteractionId),
    /// Watch the file with an agent's login, or stop watching: [`Input::LoginSeen`].
    WatchLogin {
        agent: String,
        wanted: bool,
    },
    /// Drop cached credentials, because the login has changed or is missing.
    ForgetCredentials(String),
    Hook {
        event: HookEvent,
        /// Input of the command: [`acpd_api::HookInfo`] as JSON text.
        about: Bytes,
    },
    /// Show a desktop notification. Both texts are short, escaped, and without content of the
    /// session.
    Notify {
        title: String,
        body: String,
    },
    Trace(Box<Trace>),
    /// Log a refused request or a failed restore. Never holds a payload or the agent's words.
    Failure {
        agent: String,
        /// Public id.
        session: Option<String>,
        /// The refused method, or the fate of the session.
        what: String,
        code: Option<i64>,
    },
    /// Log sessions (public ids) that the configured limits have deleted.
    Expired {
        sessions: Vec<String>,
        can_undo: bool,
    },
    /// End the daemon and leave agents running; where they cannot, stop them first
    /// ([`Input::Stop`]). The relay answers the request, because only it knows whether the daemon
    /// can start again.
    Leave {
        client: ClientId,
        id: Id,
        /// Start again, with these variables if the configuration names them.
        restart: Option<Environment>,
    },
    /// End all process trees and the daemon, although the journal fails. Always urgent.
    Abort,
    /// All agents are gone: end the daemon.
    Exit,
}

#[derive(Debug, Clone)]
pub enum ToClient {
    /// Without newline.
    Line(Bytes),
    /// The status, to which the relay adds the use of memory.
    Status {
        id: Id,
        status: Box<Status>,
        part: StatusPart,
    },
    /// Rows for a watcher. [`ClientEvent::RowsWritten`] follows.
    Rows(Bytes),
    /// A piece of journal. [`ClientEvent::ReadDone`] follows.
    Read(Read),
    Log(LogPage),
    Search {
        id: Id,
        search: Box<Search>,
    },
    Usage {
        id: Id,
        asked: UsageParams,
    },
    LogLevel {
        id: Id,
        level: Option<String>,
    },
    /// The stored modes and options, as an answer or an update.
    Values(SessionValues),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToHost {
    /// A line for stdin, numbered from 1 without gaps. A known number is ignored.
    Write {
        chunk: u64,
        line: Bytes,
    },
    /// Output up to this byte offset is committed.
    Ack(u64),
    Stop(StopStep),
    /// Busy with a turn or a request, or idle: decides how long the process may outlive the daemon.
    Lease(bool),
    /// The end of the process is on disk. Comes after [`HostEvent::Gone`], or never.
    Forget,
    /// A sentence about the agent for its log. Never holds a payload.
    Note(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPage {
    pub id: Id,
    pub session: SessionKey,
    pub session_id: String,
    pub after: Seq,
    pub upto: Seq,
    pub limit: u32,
    pub reads: Reads,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionValues {
    pub form: ValuesForm,
    pub session: SessionKey,
    /// Mode in force, newer than the stored `modes`.
    pub mode: Option<String>,
    pub boolean_options: bool,
    pub version: Version,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValuesForm {
    Answer {
        id: Id,
        /// JSON text `"key":value,…` for the beginning of the result; may be empty.
        extra: String,
    },
    /// `config_option_update`, for versions that have modes as an option.
    Update { public_id: String },
}

#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    pub words: Vec<String>,
    pub sessions: BTreeMap<SessionKey, SessionInfo>,
    pub limit: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    pub session: SessionKey,
    pub public_id: String,
    pub after: Seq,
    pub upto: Seq,
    pub style: ReadStyle,
    pub view: View,
    pub origin: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct View {
    pub version: Version,
    pub numbers: Numbers,
    /// `_acpd/…` notices.
    pub notices: bool,
    /// Lines of version 2 as agents have sent them, also for a client of version 1.
    pub originals: bool,
    pub capabilities: ClientCapabilities,
    /// Longest line in bytes; 0 = no limit.
    pub max_line: u64,
    /// The editor whose terminals stay terminals; others become text. 0 = none.
    pub editor: u64,
}

/// The place of a line's sequence number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Numbers {
    #[default]
    None,
    /// `_meta._acpd.seq`.
    InMeta,
    /// [`acpd_api::LinePosition`].
    InFront,
}

impl View {
    /// Returns whether both clients are shown the same lines.
    pub(crate) fn shows_as(&self, other: &View) -> bool {
        let shown = |view: &View| {
            let can = view.capabilities;
            let kinds = (can.boolean_options, can.notices, can.compaction, can.plan, can.subagents);
            (
                (view.version, view.originals, view.numbers, view.notices),
                (view.max_line, view.editor, kinds),
            )
        };
        shown(self) == shown(other)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    pub client: ClientId,
    pub of: TraceOf,
    pub clients: bool,
    /// Include the content of lines.
    pub full: bool,
    pub method: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TraceOf {
    Agent(String),
    Session(SessionKey),
}

#[derive(Debug, Clone, PartialEq)]
pub enum StatusPart {
    All(StatusParams),
    Agents,
    /// `_acpd/agent/show`, and other methods with its result.
    Agent(String),
    /// `_acpd/metrics`: the hub's part, without agents.
    Metrics(Box<Metrics>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopStep {
    CloseStdin,
    /// SIGTERM to the group and to processes that left it.
    Term,
    /// SIGKILL to every process of the tree.
    Kill,
}

/// Records and effects of one or more inputs.
///
/// Architecture invariant: effects run after the records are committed, in order. Only `urgent`
/// effects may run at once, and they show nothing that is not on disk.
#[derive(Debug, Default)]
pub struct Batch {
    pub records: Vec<Record>,
    /// The transaction must survive a loss of power.
    pub durable: bool,
    pub effects: Vec<Effect>,
    /// Answers from memory while the store fails.
    pub urgent: Vec<Effect>,
    /// For [`Hub::answer_unwritten`](crate::Hub::answer_unwritten).
    pub accepted: Vec<Accepted>,
}

impl Batch {
    pub(crate) fn append(&mut self, mut later: Batch) {
        self.records.append(&mut later.records);
        self.durable |= later.durable;
        self.effects.append(&mut later.effects);
        self.urgent.append(&mut later.urgent);
        self.accepted.append(&mut later.accepted);
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.effects.is_empty() && self.urgent.is_empty()
    }
}

/// A request whose answer waits for this batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    pub(crate) to: Requester,
    /// An unanswered `initialize` is undone, so the client can send it again.
    pub(crate) is_initialize: bool,
}
