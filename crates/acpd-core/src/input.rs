//! Inputs and effects of the hub.

use std::collections::BTreeMap;

use acp_wire::{Body, Frame, Id};
use acpd_api::{
    Environment, HookEvent, Metrics, Reseed, SessionInfo, Status, StatusParams, UsageParams,
};
use bytes::Bytes;

use crate::ids::{ClientId, HostId, InteractionId, Requester, Seq, SessionKey};
use crate::record::Record;

#[derive(Debug, Clone)]
pub enum Input {
    Client(ClientId, ClientEvent),
    Host(HostId, HostEvent),
    /// The file changed in which an agent that wants a login keeps it.
    LoginSeen {
        agent: String,
    },
    /// acpd has done what an agent asked of it.
    Served {
        request: InteractionId,
        /// The result, as JSON text, or what went wrong.
        result: Result<Bytes, ServeError>,
    },
    /// The machine was asleep, in which time the clock of the hub has stood still.
    Slept {
        /// For how long (ms).
        time: u64,
    },
    /// Answer to [`Effect::FindDirectory`]: whether the directory exists.
    DirectoryFound {
        question: u64,
        exists: bool,
    },
    /// Answer to [`Effect::Summarize`]: a summary of a session.
    Summary {
        session: SessionKey,
        /// A few KiB for the agent, empty if the journal says nothing.
        text: String,
    },
    /// How much was said in sessions, asked for with [`Effect::Measure`].
    Measured {
        question: u64,
        /// Bytes by session, or why that cannot be told.
        sizes: Result<BTreeMap<SessionKey, u64>, String>,
    },
    /// A command that acpd runs for an agent has ended. Comes once for each that was made, also if it
    /// is released by then.
    TerminalEnded {
        terminal: InteractionId,
        /// How, and what it had written.
        end: TerminalEnd,
    },
    /// Answer to [`Effect::LookAtTerminal`]: the output of a command so far.
    TerminalSeen {
        terminal: InteractionId,
        tail: TerminalTail,
    },
    /// The journal cannot be written; the batch is retried.
    StoreFailing {
        reason: String,
        hint: Option<String>,
    },
    /// The journal can be written again.
    StoreWorks,
    /// A person or the system asks the daemon to end: agents are stopped, then [`Effect::Exit`].
    Stop,
    /// The time that [`crate::Hub::deadline`] named has come.
    Tick,
}

/// Descent of a client's process, as far as it can be seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClientOrigin {
    /// Not below an agent.
    #[default]
    User,
    /// Below an agent: the run of it, if that can be seen as well.
    Agent(Option<HostId>),
}

#[derive(Debug, Clone)]
pub enum ClientEvent {
    Opened(ClientOrigin),
    /// This agent is installed, and is the default where the configuration names none. Reported before the lines
    /// that may need it.
    DefaultFound(String),
    Lines(Vec<Body>),
    /// The client reads too slowly: no live lines until its queue is empty.
    Lagged,
    /// The slow client has read everything that was sent.
    Drained,
    /// A piece of journal, asked for with [`ToClient::Read`], was sent. One for each, in their order,
    /// also when the session is gone by then.
    ReadDone {
        session: SessionKey,
        /// Up to and including this position.
        upto: Seq,
    },
    /// Rows that it watches ([`ToClient::Rows`]) were written. One for each.
    RowsWritten,
    Closed,
}

/// Event of a process, or of its shim.
#[derive(Debug, Clone)]
pub enum HostEvent {
    /// The process is about to start with credentials that expire.
    CredentialsGood {
        /// For how long (ms).
        left: u64,
    },
    /// The process runs; nothing was sent to it yet.
    Started { pid: u32, start: u64 },
    /// The process could not be started; no other event follows.
    Refused(SpawnError),
    /// An earlier daemon started it; it was found again, and is spoken with.
    Adopted {
        pid: u32,
        start: u64,
        /// Output before this byte offset is on disk; later output follows.
        end: u64,
    },
    /// An earlier daemon started it, and it cannot be spoken with any more. What is left of it is
    /// being ended; [`HostEvent::Gone`] follows.
    Lost { reason: String },
    /// Lines of the process. Lines over the limit are discarded.
    Output(Vec<Frame>),
    /// Every line up to this number has been written to its stdin.
    Written {
        /// Number of the last line.
        chunk: u64,
    },
    /// A line has gone to it without some of the MCP servers of the configuration that it was to
    /// bring.
    ServersLeftOut {
        /// Id of the request in that line.
        request: Id,
        servers: Vec<LeftOut>,
    },
    /// The leader has ended; descendants may be left. All its output was delivered before: later
    /// lines belong to no session.
    Exited {
        /// The end as a predicate, such as `ended with exit code 3`.
        ending: String,
        /// The last lines of its stderr.
        stderr: String,
    },
    /// Answer to [`Effect::FindLeftovers`], at any time: the processes that survived a kill, empty
    /// if they cannot be named.
    Left(Vec<LeftProcess>),
    /// No process of its tree is left and all of its output has been handed over.
    Gone,
}

/// Why a process could not be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpawnError {
    pub message: String,
    pub hint: Option<String>,
    /// Trying again cannot help: no such file, not executable.
    pub permanent: bool,
}

/// A process of an agent's tree that was sent SIGKILL and is still there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftProcess {
    pub pid: u32,
    /// Name of the process; empty if the system does not report one.
    pub name: String,
}

/// An MCP server of the configuration that an agent did not get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    pub server: String,
    /// Why, in words without a secret.
    pub reason: String,
}

/// Why acpd could not do what an agent asked of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeError {
    pub code: i64,
    /// Description of the event, and the way out.
    pub message: String,
}

/// Work on a session's files for an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileService {
    ReadTextFile {
        /// Absolute path of the file.
        path: String,
        /// First line, from 1.
        line: Option<u32>,
        /// Maximum number of lines.
        limit: Option<u32>,
    },
    WriteTextFile {
        /// Absolute path of the file.
        path: String,
        content: String,
    },
}

/// A command that acpd runs for an agent when no editor does it (`terminal/create`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTerminal {
    /// The agent profile whose environment it has.
    pub agent: String,
    /// The process that asked.
    pub host: HostId,
    /// A program, or a line for a shell.
    pub command: String,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    /// Absolute path of the directory.
    pub cwd: String,
    /// Bytes of output that are kept.
    pub output_byte_limit: Option<u64>,
}

/// The end of a command that acpd ran for an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalEnd {
    /// Exit code, if the process exited.
    pub code: Option<u32>,
    /// The name of the signal that ended it.
    pub signal: Option<String>,
    /// The last of what it wrote; at most some KiB.
    pub tail: TerminalTail,
}

/// The last of what a command wrote, for people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TerminalTail {
    /// At most some KiB.
    pub output: String,
    /// There was more before.
    pub truncated: bool,
}

/// Something to be done after the records of the same batch are committed.
#[derive(Debug, Clone)]
pub enum Effect {
    /// Something for a client, in the order in which it is said.
    Client(ClientId, ToClient),
    /// Close a connection once it has read what was sent to it. Nothing more is heard of it.
    Close(ClientId),
    Host(HostId, ToHost),
    /// There is something new to be found in a session: a turn has ended. Or nothing any more: it was
    /// deleted. May get lost: it is found out at the next start.
    Index(SessionKey),
    /// Start a process of this agent profile.
    Spawn {
        host: HostId,
        agent: String,
    },
    /// Go on with a process that an earlier daemon started, and report [`HostEvent::Adopted`], or
    /// [`HostEvent::Lost`] and later [`HostEvent::Gone`].
    Adopt(Adopt),
    /// Look who is left of a process that was killed, and report [`HostEvent::Left`].
    FindLeftovers {
        host: HostId,
    },
    /// Do something with a file for an agent, and report [`Input::Served`].
    Serve {
        /// The process that asked.
        host: HostId,
        request: InteractionId,
        /// The folders of its session, the working directory first: nothing outside of them.
        roots: Vec<String>,
        service: FileService,
    },
    /// Find out whether an agent's session can work in a directory, and report
    /// [`Input::DirectoryFound`]. What an agent elsewhere sees is not known: it is there.
    FindDirectory {
        question: u64,
        agent: String,
        /// Absolute path of the directory.
        cwd: String,
    },
    /// Sum up for the agent what the journal of a session says, and report [`Input::Summary`].
    Summarize {
        session: SessionKey,
        upto: Seq,
        /// A summary or a transcript.
        what: Reseed,
    },
    /// Find out how much was said in these sessions, and report [`Input::Measured`].
    Measure {
        question: u64,
        sessions: Vec<SessionKey>,
    },
    /// Run a command for an agent, and report [`Input::Served`]. The terminal is named by the number
    /// of the request.
    CreateTerminal {
        terminal: InteractionId,
        new: Box<NewTerminal>,
    },
    /// Tell what a command has written, with [`Input::Served`].
    TerminalOutput {
        request: InteractionId,
        terminal: InteractionId,
    },
    /// Tell the last of what a command has written so far, with [`Input::TerminalSeen`]; nothing if it
    /// was released.
    LookAtTerminal {
        terminal: InteractionId,
    },
    /// End a command that acpd runs for an agent; [`Input::TerminalEnded`] follows if it has not
    /// ended before.
    KillTerminal {
        terminal: InteractionId,
    },
    /// End a command likewise, and request nothing more of it. It may not have been made.
    ReleaseTerminal {
        terminal: InteractionId,
    },
    /// Begin or end to watch the file in which an agent keeps its login: [`Input::LoginSeen`].
    WatchLogin {
        agent: String,
        /// `true` to watch, `false` to stop watching.
        wanted: bool,
    },
    /// Forget the credentials that were looked up for an agent: it has, or wants, another login.
    ForgetCredentials {
        agent: String,
    },
    /// Run the command that the configuration has for this, if it has one.
    Hook {
        event: HookEvent,
        /// Input of the command: [`acpd_api::HookInfo`] as JSON text.
        about: Bytes,
    },
    /// Show a desktop notification about a session without attached clients. Both texts are short,
    /// escaped, and have no content of the session.
    Notify {
        title: String,
        body: String,
    },
    /// Show a client lines as they go, until its connection ends.
    Trace(Box<Trace>),
    /// An agent refused a request, or a session could not come back, for the log. Never holds a
    /// payload, nor the agent's words.
    Failure {
        agent: String,
        /// Public id of the session that it is about.
        session: Option<String>,
        /// The method that was refused, or what became of the session.
        what: String,
        code: Option<i64>,
    },
    /// The limits of the configuration have deleted these sessions (public ids), for the log.
    Expired {
        sessions: Vec<String>,
        can_undo: bool,
    },
    /// End the daemon and leave agents running where they can be; where not, stop them first
    /// ([`Input::Stop`]). The request is answered by who does it: whether the daemon can start again
    /// is known only there.
    Leave {
        client: ClientId,
        id: Id,
        /// Start again, with these variables if the configuration names them.
        restart: Option<Environment>,
    },
    /// End the daemon although the journal cannot be written: every process tree first, without
    /// waiting for anything else. Always urgent.
    Abort,
    /// All agents are gone: end the daemon.
    Exit,
}

#[derive(Debug, Clone)]
pub enum ToClient {
    /// A line without newline.
    Line(Bytes),
    /// The status, to be completed with what only the system knows (memory).
    Status {
        id: Id,
        status: Box<Status>,
        part: StatusPart,
    },
    /// A line with rows that the client watches; then [`ClientEvent::RowsWritten`] is reported.
    Rows(Bytes),
    /// A piece of journal; then [`ClientEvent::ReadDone`] is reported.
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
        /// New log level, if it is to change.
        level: Option<String>,
    },
    /// An answer with the values kept for a session (`modes`, `configOptions`).
    Values(SessionValues),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToHost {
    /// A line for its stdin. Numbers start at 1 and have no gaps; a number that was taken before is
    /// ignored, so a line may be handed over again after a reconnect.
    Write {
        chunk: u64,
        line: Bytes,
    },
    /// Everything that it wrote up to this byte offset is committed and need not be kept.
    Ack {
        offset: u64,
    },
    Stop(StopStep),
    /// From now on it is busy or idle, which decides how long it may outlive the daemon.
    Lease {
        /// A turn runs, or something waits for an answer.
        busy: bool,
    },
    /// The end of the process is on disk, so its records can go. Comes after [`HostEvent::Gone`],
    /// or never.
    Forget,
    /// Something odd that the agent did, in a sentence for its log. Never holds a payload.
    Note(String),
}

/// A page of journal as the answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPage {
    pub id: Id,
    pub session: SessionKey,
    pub session_id: String,
    pub after: Seq,
    pub upto: Seq,
    pub limit: u32,
}

/// The values kept for a session as the result of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionValues {
    pub id: Id,
    pub session: SessionKey,
    /// Mode in force, newer than the stored `modes`.
    pub mode: Option<String>,
    /// Members to put first into the result (JSON text `"key":value,…`), may be empty.
    pub extra: String,
    /// The client can show boolean options.
    pub boolean_options: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    pub words: Vec<String>,
    pub sessions: BTreeMap<SessionKey, SessionInfo>,
    pub limit: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adopt {
    pub host: HostId,
    pub agent: String,
    /// Leader's process id; 0 if it is not known whether there ever was one.
    pub pid: u32,
    pub start: u64,
    /// Output is wanted from this byte offset on.
    pub offset: u64,
    /// The offset lies inside a line over the limit, the rest of which is to be dropped.
    pub inside: bool,
    /// Lines that are not known to be written, in their order: those that the process has not got
    /// are to be written, once.
    pub chunks: Vec<(u64, Bytes)>,
}

/// A piece of journal for a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    pub session: SessionKey,
    pub public_id: String,
    pub after: Seq,
    pub upto: Seq,
    /// Lines to leave out.
    pub style: ReadStyle,
    /// How this client wants lines.
    pub view: View,
    /// Lines with this origin are left out.
    pub origin: Option<String>,
}

/// Lines that a reading of the journal leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadStyle {
    /// Nothing: the client goes on from its cursor.
    Resume,
    /// History for a newcomer: of each state only the last value, and no live-only lines.
    History,
    /// All but the commands that are on offer, for a client that goes on without the history.
    Commands,
}

/// How a client wants journal lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct View {
    /// `_meta._acpd.seq` on every line.
    pub seq: bool,
    pub notices: bool,
    pub boolean_options: bool,
    pub notice_updates: bool,
    pub compaction: bool,
    /// `plan_update` and `plan_removed` updates.
    pub plan: bool,
    /// `subagent_update` and `session_message*` updates.
    pub subagents: bool,
    /// Longest line in bytes; 0 = no limit.
    pub max_line: u64,
    /// Owner of the terminals that are shown as terminals, the others become text; 0 = no owner.
    pub editor: u64,
}

/// Which lines a client is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    pub client: ClientId,
    pub of: TraceOf,
    /// Also those between acpd and its clients.
    pub clients: bool,
    /// With what is in them.
    pub full: bool,
    /// Only methods that fit this pattern.
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
    /// `_acpd/agent/show` and what answers like it.
    Agent(String),
    /// `_acpd/metrics`: what the hub knows of them, without agents.
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
/// Architecture invariant: effects are performed after the records are committed, in order; only
/// `urgent` effects may be performed at once, and they never show anything that is not on disk.
#[derive(Debug, Default)]
pub struct Batch {
    /// To be committed in one transaction, in order.
    pub records: Vec<Record>,
    /// The transaction must survive a loss of power.
    pub durable: bool,
    /// To be performed after the commit, in order.
    pub effects: Vec<Effect>,
    /// Answers from memory while the store fails; to be performed at once.
    pub urgent: Vec<Effect>,
    /// Requests whose answers wait for this batch: [`Hub::answer_unwritten`](crate::Hub::answer_unwritten).
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

    /// Returns whether there are neither records nor effects.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.effects.is_empty() && self.urgent.is_empty()
    }
}

/// A request whose answer waits for the batch that it came with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    pub(crate) to: Requester,
    /// An `initialize` is undone, so that it can be sent again.
    pub(crate) is_initialize: bool,
}
