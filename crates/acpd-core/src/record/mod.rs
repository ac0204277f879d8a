//! Records of a batch, and the snapshot that they add up to.
//!
//! A batch of records is applied in one transaction. [`Snapshot::apply`] is the meaning of each
//! record; the store implements the same meaning in SQL, and a property test holds the two together.
//!
//! Architecture invariant: what may hold secrets is [`Record::Secret`], which the store keeps in a table
//! of its own; for as long as it is not written to the agent [`Record::Outbox`]; and until it is
//! answered [`Record::Asked`].

mod forked;
pub(crate) mod snapshot;
mod usage;

use std::collections::{BTreeMap, BTreeSet};

use acp_wire::{Id, StateKey};
use acpd_api::escape::shell_word;
use acpd_api::{AuthSource, AuthState, Cost, RestoreLevel, Tokens};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::ids::{HostId, InteractionId, Seq, SessionKey, Time};
use crate::tool_calls::frozen::Frozen;

pub use acpd_policy::Remembered;
pub use forked::{ForkPoint, Forked};
pub use snapshot::{ClientState, HostState, SessionState, Snapshot, Spent};
pub use usage::{Counter, Used, When};

/// One change of what is on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// A daemon incarnation began; ids that it issues start at `boot << 32`.
    Boot {
        /// Number of the incarnation, from 1.
        boot: u64,
    },
    /// Replaces what is known of an agent profile.
    Agent(AgentRow),
    /// Replaces what is known of the login of an agent profile.
    Auth(AuthRow),
    /// A process is to be started, with no process id yet, or was started; written before anything
    /// is said to it.
    Host(HostRow),
    /// A process and all its descendants are gone; drops what is kept for it: outbox, parked lines,
    /// open requests and interactions.
    HostGone {
        host: HostId,
    },
    /// All output of a host up to this byte offset is part of this or an earlier transaction.
    HostOffset {
        host: HostId,
        /// Byte offset, just after a line unless `inside`.
        offset: u64,
        /// The offset lies inside a line over the limit, the rest of which is dropped.
        inside: bool,
    },
    /// A line for a session that is not known yet, kept until it is.
    Parked {
        /// Which host wrote it.
        host: HostId,
        session: String,
        line: Bytes,
    },
    /// Parked lines found their session, or are no longer needed.
    Unparked {
        /// Which host wrote them.
        host: HostId,
        /// The agent's id of the session; `None` = of all sessions.
        session: Option<String>,
    },
    /// Something was asked of an agent and is not answered.
    Asked(AskedRow),
    /// A request to an agent was answered, or its answer does not matter any more.
    Answered {
        id: u64,
    },
    /// A line for a host that is not known to be written yet.
    Outbox {
        host: HostId,
        /// Number of the line, from 1 per host.
        chunk: u64,
        /// The line, without its newline.
        line: Bytes,
    },
    /// The host has written every chunk up to this one; drops them from the outbox.
    Written {
        host: HostId,
        chunk: u64,
    },
    /// Replaces a session's facts. `head` is not part of it: events move it.
    Session(Box<SessionRow>),
    /// Replaces the `mcpServers` that a client gave for a session (JSON text). May hold secrets.
    Secret {
        session: SessionKey,
        mcp_servers: Bytes,
    },
    /// Replaces a value that the agent gave in a response and that a later attach needs.
    Value {
        session: SessionKey,
        key: ValueKey,
        json: Bytes,
    },
    /// Removes a session with its journal, turns, values and secrets.
    SessionRemoved {
        session: SessionKey,
    },
    Event(EventRow),
    /// Begins the journal of a session that was forked from another one, unless it has begun.
    Forked(Forked),
    Turn(TurnRow),
    /// The turn of a prompt with an idempotency key has ended.
    PromptKey(PromptKeyRow),
    /// Adds what was used, for good.
    Usage(UsageRow),
    Interaction(InteractionRow),
    /// Removes an interaction that is answered or withdrawn.
    InteractionGone {
        id: InteractionId,
    },
    /// Number of lines of a client that can resume under its token.
    Client {
        token: String,
        /// Lines that are dealt with in this or an earlier transaction.
        received: u64,
    },
    /// A client is not expected to come back; drops the answers kept for it.
    ClientGone {
        token: String,
    },
    /// A decision of a person holds from now on.
    Remembered(Remembered),
    /// The prompt is taken back.
    Unremembered {
        id: i64,
    },
    /// The answer to a client's request, kept until the client says that it has it.
    Reply(ReplyRow),
    /// A client has an answer.
    ReplyGone {
        token: String,
        /// The client's id of the request.
        id: Id,
    },
}

/// The receiver of an answer: a request of a client that can resume under its token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sender {
    pub token: String,
    /// The client's id of the request.
    pub id: Id,
}

/// A request to an agent that is not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedRow {
    /// Id of the request, unique across incarnations.
    pub id: u64,
    /// The process that was asked.
    pub host: HostId,
    pub what: Asked,
}

/// Purpose of a request to an agent, as stored. Stored as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    Initialize,
    /// A client's `session/new` or `session/fork`.
    NewSession {
        /// The receiver of the answer; none if the client does not return.
        sender: Option<Sender>,
        /// Handle for the session.
        name: Option<String>,
        cwd: String,
        /// Params of the request (JSON text). May hold secrets, like its outbox row.
        params: String,
        /// Where it goes on from, if it is a fork.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fork: Option<ForkPoint>,
        /// Notices for the conversation once it exists.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notices: Vec<String>,
    },
    /// A session that only the agent knows, to be taken over.
    Adopt {
        session: String,
        cwd: String,
        /// Params of the request (JSON text). May hold secrets, like its outbox row.
        params: String,
        /// Notices for the conversation once it exists.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notices: Vec<String>,
    },
    /// The prompt of a session's running turn.
    Prompt {
        session: SessionKey,
    },
    /// A prompt whose turn acpd has given up and the agent has not: its session was closed or deleted.
    Abandoned {
        session: String,
    },
    /// A step of a session's restore.
    Restore {
        session: SessionKey,
    },
    /// A step of a restore that was given up; the agent may still replay the session.
    GivenUp {
        session: String,
    },
    /// A message of a client into the running turn of a session.
    Steer {
        /// The receiver of the answer.
        sender: Option<Sender>,
        session: SessionKey,
        /// The message: a list of content blocks (JSON text).
        blocks: String,
        /// Id of the message in the conversation.
        message: String,
        /// How the client has asked.
        form: SteerForm,
    },
    Relay {
        /// The receiver of the answer.
        sender: Option<Sender>,
        session: Option<SessionKey>,
        method: String,
        /// Params of the request (JSON text), if the answer alone does not show the change.
        params: Option<String>,
    },
    /// A setting that the configuration wants for a session that begins.
    Preset {
        session: SessionKey,
        preset: Preset,
    },
    /// Nothing depends on the answer.
    Nothing,
}

/// A setting that a session begins with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    Mode {
        mode: String,
    },
    Option {
        option: String,
        /// By its id, too.
        value: String,
    },
}

/// An answer that is kept for a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyRow {
    pub token: String,
    /// The client's id of the request.
    pub id: Id,
    pub line: Bytes,
    /// The session that the answer made known to the client: it is attached to it with the answer.
    pub session: Option<SessionKey>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ValueKey {
    /// `modes` of a new, load or resume result.
    Modes,
    ConfigOptions,
}

impl ValueKey {
    /// Name of the member in the agent's results, also used on disk.
    pub fn as_str(self) -> &'static str {
        match self {
            ValueKey::Modes => "modes",
            ValueKey::ConfigOptions => "configOptions",
        }
    }
}

/// One agent profile as the store knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentRow {
    pub name: String,
    /// The user's wish: up, down, or as needed.
    pub desired: Desired,
    /// Identifies the launch line that `initialize` belongs to.
    pub fingerprint: String,
    /// The last `initialize` result, as the agent sent it.
    pub initialize: Option<Bytes>,
    /// `session/resume` was advertised but answered with "method not found".
    pub resume_lies: bool,
    /// `session/load` was advertised but answered with "method not found".
    pub load_lies: bool,
    /// Client extensions that the process had got (JSON object), see
    /// [`crate::profile::Profile::client_meta`].
    pub client_meta: Option<String>,
}

/// Login of an agent. Stored as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthRow {
    pub agent: String,
    pub state: AuthState,
    pub since: Time,
    /// Evidence for the state.
    pub source: AuthSource,
    /// The method of the last `authenticate` that worked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
}

/// The user's wish for an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Desired {
    /// Start when something needs it, stop when idle.
    #[default]
    OnDemand,
    Up,
    /// Keep it stopped until a person starts it.
    Down,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRow {
    pub host: HostId,
    pub agent: String,
    /// Leader's process id; 0 while it is not known.
    pub pid: u32,
    /// Leader's start time as `acpd-sys` gives it; together with `pid` an identity.
    pub start: u64,
    /// The only session that it serves, for profiles that do not share a process.
    pub session: Option<SessionKey>,
    /// When it became usable.
    pub ready: Option<Time>,
    pub stopping: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    pub key: SessionKey,
    pub agent: String,
    /// Id that clients use; unique per agent.
    pub public_id: String,
    /// Id that the agent uses now; differs from `public_id` after a collision or a renewal.
    pub agent_id: String,
    /// Handle for people; unique per agent and cwd.
    pub name: Option<String>,
    /// Working directory as first accepted.
    pub cwd: String,
    /// `session/new` params as first accepted (JSON object), without `mcpServers`.
    pub params: Bytes,
    pub host: Option<HostId>,
    /// Where it stands when no process holds it.
    pub rest: Dormant,
    /// Why, when there is something to say.
    pub reason: Option<String>,
    pub restore: Option<RestoreLevel>,
    /// Mode that should be in force.
    pub mode: Option<String>,
    /// Option values that should be in force: option id → JSON text of the value.
    pub options: BTreeMap<String, String>,
    /// Tool calls of the running turn that have not ended; they are closed if the agent dies.
    pub open_tools: BTreeSet<String>,
    /// Sessions of its subagents that the process holds, by the agent's ids.
    pub children: BTreeMap<String, Child>,
    /// Title that the agent gave; until then, the beginning of the first prompt.
    pub title: Option<String>,
    /// Title that a person gave: it stands before the agent's.
    pub own_title: Option<String>,
    /// Other members of `session_info_update` that are in force (JSON object): each update is a patch.
    pub info: Option<String>,
    pub archived: bool,
    /// When a person has deleted it, who may still want it back.
    pub removed: Option<Time>,
    /// Extensions of the client that made it, for its agent (JSON object), see
    /// [`crate::profile::Profile::client_meta`].
    pub client_meta: Option<String>,
    /// Prompts that were dispatched; also the number of the last turn.
    pub prompts: u64,
    /// The agent has said something in a turn, or ended one: it may have a conversation to lose.
    pub heard: bool,
    /// Hash of the text of the last prompt in the journal; tells replayed history from news.
    pub last_prompt: u64,
    /// Prompts that a replay of the agent's session has to show.
    pub replayable: Replayable,
    /// How the last turn ended, in one word.
    pub last_outcome: Option<String>,
    pub usage: Used,
    pub created: Time,
    /// Last prompt or state change.
    pub updated: Time,
}

/// Prompts that a replay of an agent's session has to show: those that the agent has answered, or was cut
/// off from. Not those that it has refused, that were cancelled, and commands of its own such as
/// `/compact`. Stored as JSON.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replayable {
    pub prompts: u64,
    /// Hash of the text of the last one, without white space at its ends.
    pub last: u64,
    /// The agent has said something about one of them.
    pub answered: bool,
}

impl SessionRow {
    pub(crate) fn handle(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.public_id)
    }

    /// Name for commands: one word, although agents choose any ids.
    pub(crate) fn word(&self) -> String {
        shell_word(self.handle())
    }
}

/// A session of a subagent, which a session has announced. Stored as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Child {
    /// Id that clients use.
    pub public_id: String,
    /// Public id of the session that announced it: this one, or another child of it.
    pub parent: String,
    /// Clients may cancel what it does.
    pub cancel: bool,
    /// The subagent works or waits for a person, by the agent's reports.
    pub busy: bool,
    /// Last position of the journal when it was announced or changed.
    pub seq: Seq,
}

impl Child {
    /// Clients know it as one that works, or that they may cancel.
    pub(crate) fn is_open(&self) -> bool {
        self.busy || self.cancel
    }
}

/// Where a session stands when no process holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dormant {
    /// Comes back with the next prompt. Live sessions are parked ones as far as the disk knows.
    Parked,
    /// Closed by a person.
    Closed,
    /// Waits for a login; also if a process holds it.
    NeedsLogin,
    /// The agent refused it for good.
    Lost,
    /// The agent failed to restore it for a reason that may pass; the next prompt tries again.
    Failed,
    /// The directory does not exist; the next prompt checks again.
    NoDirectory,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRow {
    pub session: SessionKey,
    pub seq: Seq,
    /// ACP version of the connection it came from.
    pub pv: u8,
    pub kind: EventKind,
    pub at: Time,
    /// The notification, complete, with the session's public id.
    pub line: Bytes,
    /// The client whose own doing it is (its token, else a name of its connection): a reader that
    /// goes on from its cursor is not shown its own lines, as it was not when they were live.
    pub origin: Option<String>,
}

/// Kind of a journal line, for replays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    /// `session/update` that is part of the conversation.
    Update,
    /// `session/update` of which only the last counts when history is replayed.
    State(StateKey),
    /// `session/update` that is never replayed to plain ACP clients.
    Live,
    /// An `_acpd/…` notice; only for clients that asked for notices.
    Notice,
    /// Another notification of the agent with this session's id.
    Extension,
    /// Like `Update`, but taken from an agent's replay: it happened outside acpd.
    Imported,
    /// A sentence of acpd as `session/update`, for clients that are shown no notices.
    Banner,
    /// Any notification of the agent with the id of a child session, which the line has; only for
    /// clients that show subagents.
    Child,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnRow {
    pub session: SessionKey,
    /// Order in the session's queue; never reused within a session.
    pub ticket: u64,
    pub state: TurnStage,
    pub at: Time,
    /// Clients that come back and get the answer: the sender, and those that sent it again under its key.
    pub senders: Vec<Sender>,
    /// The client that cancelled it after its dispatch.
    pub cancelling: Option<Canceller>,
    /// The client's `session/prompt` line; `None` leaves the one that is there.
    pub line: Option<Bytes>,
}

/// Outcome of a prompt with an idempotency key, kept as long as its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptKeyRow {
    /// Session: the same key in another one is another prompt.
    pub session: SessionKey,
    pub key: String,
    pub turn: u64,
    /// JSON object with the `result` or the `error` of the answer.
    pub outcome: Bytes,
}

/// The client that cancelled a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Canceller {
    /// A client: `cancelled` is what it wants to hear.
    Client,
    /// acpd, because the session or the agent is to go.
    Acpd,
}

/// Where a turn stands, as far as the disk knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnStage {
    /// Waits for its predecessors or for the session.
    Queued,
    /// Given to a host as this chunk.
    Dispatched { host: HostId, chunk: u64 },
    /// Over; only the journal tells how.
    Ended,
}

/// Usage, as the agent reported it. It stays when the session is deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRow {
    pub at: Time,
    pub day: Time,
    pub agent: String,
    pub session: String,
    pub cwd: String,
    /// Number of the turn that has ended; none for a cost that was told at another time.
    pub turn: Option<u64>,
    pub tokens: Tokens,
    pub cost: Option<Cost>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InteractionRow {
    pub id: InteractionId,
    /// Session; none if it is about a request of a client.
    pub session: Option<SessionKey>,
    /// The process that asked.
    pub host: HostId,
    /// The agent's request, complete, with its own id. A notification is none: it is the line for the
    /// session's journal if the daemon ends before it can say more of a command.
    pub line: Bytes,
    pub at: Time,
    /// Subject of a permission question.
    pub frozen: Option<Box<Frozen>>,
}

/// How a client has asked, which decides how it is answered. Stored as JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SteerForm {
    /// `_session/steering`; a message that comes too late is to be the next prompt.
    Extension,
    /// `_session/steering` with `idleBehavior: "promptRequired"`: the client sends it as a prompt itself.
    PromptRequired,
    Inject,
}

impl SteerForm {
    /// The method of clients.
    pub(crate) fn method(self) -> &'static str {
        match self {
            SteerForm::Extension | SteerForm::PromptRequired => "_session/steering",
            SteerForm::Inject => "session/inject",
        }
    }
}

impl SessionRow {
    /// The title that counts.
    pub(crate) fn shown_title(&self) -> Option<&str> {
        self.own_title.as_deref().or(self.title.as_deref())
    }
}
