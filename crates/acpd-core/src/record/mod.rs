//! Records of a batch, applied in one transaction. [`Snapshot::apply`] defines each record; the
//! store does the same in SQL, and a property test compares the two.
//!
//! Architecture invariant: secrets are only in [`Row::Secret`], until the session is deleted; in
//! [`Row::Outbox`], until the line is written to the agent; and in [`Row::Asked`], until the request
//! is answered.

mod forked;
mod purpose;
mod row;
mod snapshot;
mod usage;

use std::collections::{BTreeMap, BTreeSet};

use acp_wire::dialect::{BackgroundWork, message_id};
use acp_wire::{Id, StateKey, Version, build, str_at};
use acpd_api::escape::shell_word;
use acpd_api::{AuthSource, AuthState, Cost, RestoreLevel, Tokens, TurnState, method};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::ids::{HostId, InteractionId, Seq, SessionKey, Time};
use crate::tool_calls::frozen::Frozen;

pub use crate::ids::Sender;
pub use acpd_policy::Remembered;
pub use forked::{ForkPoint, Forked};
pub(crate) use purpose::SET_TITLE;
pub use purpose::{Adoption, NewSession, Opener, Purpose, Steer, Wanted};
pub use row::{JournalRow, Row, RowId};
pub use snapshot::{ClientState, HostState, SessionState, Snapshot, Spent};
pub use usage::{Counter, Used, When};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// Ids of a daemon begin at `boot << 32`.
    Boot {
        /// From 1.
        boot: u64,
    },
    /// Adds a row, or replaces the one with its key.
    Put(Row),
    Delete(RowId),
    /// Deletes the rows of a process. The engine closes its requests and interactions itself.
    HostGone {
        host: HostId,
    },
    /// Deletes a client with the answers kept for it.
    ClientGone {
        token: String,
    },
    /// Deletes the rows of a session and its journal.
    SessionRemoved {
        session: SessionKey,
    },
    Event(EventRow),
    /// Copies the journal of a forked session, unless the fork has a journal already.
    Forked(Forked),
    Usage(UsageRow),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedRow {
    /// Unique across daemons.
    pub id: u64,
    pub host: HostId,
    pub what: Purpose,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    Mode { mode: String },
    Option { option: String, value: String },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyRow {
    pub token: String,
    pub id: Id,
    #[serde(skip)]
    pub line: Bytes,
    /// The client is attached when it gets the answer.
    pub session: Option<SessionKey>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ValueKey {
    Modes,
    ConfigOptions,
}

impl ValueKey {
    /// Returns the member's name in the agent's results, which is also the name on disk.
    pub fn as_str(self) -> &'static str {
        match self {
            ValueKey::Modes => "modes",
            ValueKey::ConfigOptions => "configOptions",
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentRow {
    pub name: String,
    pub desired: Desired,
    /// Identifies the launch line that gave this `initialize` result.
    pub fingerprint: String,
    /// As the agent sent it.
    #[serde(skip)]
    pub initialize: Option<Bytes>,
    /// The agent advertised `session/resume`, but answered "method not found".
    pub resume_lies: bool,
    /// The agent advertised `session/load`, but answered "method not found".
    pub load_lies: bool,
    /// Client extensions (JSON object), see [`crate::profile::Profile::client_meta`].
    pub client_meta: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthRow {
    pub agent: String,
    pub state: AuthState,
    pub since: Time,
    pub source: AuthSource,
    /// Method of the last `authenticate` that worked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
}

/// The names are on disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Desired {
    /// Start on demand, stop when idle.
    #[default]
    OnDemand,
    Up,
    /// Do not start until the user does.
    Down,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostRow {
    pub host: HostId,
    pub agent: String,
    /// Leader's process id. 0: unknown, and the process may not have started.
    pub pid: u32,
    /// Leader's start time from `acpd-sys`. Together with `pid` it identifies the process.
    pub start: u64,
    /// The only session of the process, if the profile does not share one.
    pub session: Option<SessionKey>,
    pub ready: Option<Time>,
    pub stopping: bool,
    /// Output before this byte offset is part of this or an earlier transaction. The offset is just
    /// after a line unless `inside`.
    pub offset: u64,
    /// The offset lies inside a line over the limit, whose end is dropped.
    pub inside: bool,
    /// Last line that the process got.
    pub written: u64,
    /// The version of the protocol that it speaks.
    #[serde(default, skip_serializing_if = "Version::is_first")]
    pub version: Version,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionRow {
    pub key: SessionKey,
    pub agent: String,
    /// Unique per agent.
    pub public_id: String,
    /// Differs from `public_id` after a collision or a renewal.
    pub agent_id: String,
    /// Handle for people; unique per agent and cwd.
    pub name: Option<String>,
    pub cwd: String,
    /// `session/new` params as first accepted (JSON object), without `mcpServers`.
    #[serde(skip)]
    pub params: Bytes,
    pub host: Option<HostId>,
    /// State while no process holds the session.
    pub rest: Dormant,
    pub reason: Option<String>,
    pub restore: Option<RestoreLevel>,
    /// Mode to restore.
    pub mode: Option<String>,
    /// Option values to restore: option id → JSON text of the value.
    pub options: BTreeMap<String, String>,
    /// Open tool calls of the running turn. They are closed if the agent dies.
    pub open_tools: BTreeSet<String>,
    /// Background work of the process.
    pub background: Vec<BackgroundWork>,
    /// Set when the agent has listed such work once: then no list differs from an empty one.
    pub lists_background: bool,
    /// Activity of the session, as an agent of version 2 has said.
    pub agent_state: TurnState,
    /// The subagents' sessions that the process holds, by the agent's ids.
    pub children: BTreeMap<String, Child>,
    /// Title from the agent; until then, the beginning of the first prompt.
    pub title: Option<String>,
    /// Title from the user, which replaces the agent's.
    pub own_title: Option<String>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub labels: BTreeSet<String>,
    /// Merged members of all `session_info_update` patches, without the title (JSON object).
    pub info: Option<String>,
    pub archived: bool,
    /// The user deleted the session, which can still be restored.
    pub removed: Option<Time>,
    /// Client extensions (JSON object), see [`crate::profile::Profile::client_meta`].
    pub client_meta: Option<String>,
    /// Last number in the queue, see [`TurnRow::ticket`].
    pub last_ticket: u64,
    /// Dispatched prompts; also the number of the last turn.
    pub prompts: u64,
    /// The agent has sent something in a turn, or ended one, so there may be a conversation to
    /// lose.
    pub heard: bool,
    /// Hash of the last prompt's text. Separates replayed history from new lines.
    pub last_prompt: u64,
    pub replayable: Replayable,
    pub last_outcome: Option<String>,
    pub usage: Used,
    pub created: Time,
    /// Last prompt or state change.
    pub updated: Time,
}

/// Prompts that a replay of the agent's session must contain: prompts that the agent answered, or
/// was interrupted at. Refused and cancelled prompts do not count, nor do the agent's own commands
/// such as `/compact`. Stored as JSON.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replayable {
    pub prompts: u64,
    /// Hash of the last one's text, trimmed.
    pub last: u64,
    /// The agent has sent something about one of them.
    pub answered: bool,
}

impl SessionRow {
    pub(crate) fn shown_title(&self) -> Option<&str> {
        self.own_title.as_deref().or(self.title.as_deref())
    }

    pub(crate) fn handle(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.public_id)
    }

    pub(crate) fn begins(&self, text: &str) -> bool {
        self.name.iter().chain([&self.public_id]).any(|name| name.starts_with(text))
    }

    /// Returns the handle as one word of a shell, because agents choose any ids.
    pub(crate) fn word(&self) -> String {
        shell_word(self.handle())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Child {
    pub public_id: String,
    /// Public id of the announcing session: this one, or another child.
    pub parent: String,
    pub cancel: bool,
    /// The subagent works or waits for the user, as the agent reports.
    pub busy: bool,
    /// Last position of the journal when the child was announced or changed.
    pub seq: Seq,
}

impl Child {
    pub(crate) fn is_open(&self) -> bool {
        self.busy || self.cancel
    }
}

/// State of a session that no process holds. The names are on disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dormant {
    /// Restored by the next prompt. On disk, loaded sessions are `Parked` too.
    #[default]
    Parked,
    Closed,
    /// Waits for a login, even if a process holds the session.
    NeedsLogin,
    /// The agent refused the session for good.
    Lost,
    /// The restore failed for a reason that may pass. The next prompt tries again.
    Failed,
    /// The next prompt checks again.
    NoDirectory,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRow {
    pub session: SessionKey,
    pub seq: Seq,
    pub form: LineForm,
    pub kind: EventKind,
    pub at: Time,
    /// The complete notification, with the session's public id.
    pub line: Bytes,
    /// The client that caused the line: its token, else a name of the connection. A client that
    /// continues from its cursor does not get its own lines.
    pub origin: Option<String>,
    /// Message or call that the line is about, for ids that stay the same: for a chunk of a message
    /// the position of the message's first line, for an update of a call the number of the last
    /// dispatched turn.
    pub entity: Option<u64>,
}

/// The versions of the protocol that a line of a journal is for. The numbers are on disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum LineForm {
    /// A line of version 1; clients of version 2 get it converted.
    #[default]
    Converted = 0x01,
    /// An agent's line that is the same in both versions.
    Same = 0x02,
    /// A line of version 1; clients of version 2 have got the agent's own line.
    First = 0x11,
    /// An agent's own line of version 2; clients of version 1 get others for it.
    Second = 0x12,
    /// Meaning in version 1 of a line of the form `Second`.
    Meaning = 0x21,
    /// An agent's own line of version 2 about what is there in the form `First`.
    Echo = 0x22,
}

/// The versions that a reader of a journal understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    First,
    Second,
    Both,
}

impl LineForm {
    pub const ALL: [LineForm; 6] = [
        LineForm::Converted,
        LineForm::Same,
        LineForm::First,
        LineForm::Second,
        LineForm::Meaning,
        LineForm::Echo,
    ];

    /// Returns whether a line is for a reader. Each reader gets everything once.
    pub fn is_for(self, reads: Reads) -> bool {
        match self {
            LineForm::Converted | LineForm::Same => true,
            LineForm::First => reads != Reads::Second,
            LineForm::Second => reads != Reads::First,
            LineForm::Meaning => reads == Reads::First,
            LineForm::Echo => reads == Reads::Second,
        }
    }
}

/// Returns whether a notice of a journal begins or ends a turn.
pub(crate) fn is_about_turn(notice: &[u8]) -> bool {
    let method = str_at(notice, &["method"]);
    matches!(method.as_deref(), Some(method::TURN_STARTED | method::TURN_ENDED))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    /// `session/update` that is part of the conversation.
    Update,
    /// `session/update` of which a replay shows only the last one.
    State(StateKey),
    /// `session/update` that plain ACP clients never get in a replay.
    Live,
    /// An `_acpd/…` notice, only for clients that requested notices.
    Notice,
    /// Another notification of the agent with this session's id.
    Extension,
    /// An `Update` from an agent's replay that happened outside acpd.
    Imported,
    /// acpd's own text as `session/update`, for clients without notices.
    Banner,
    /// Any notification of the agent with a child session's id, only for clients that show
    /// subagents.
    Child,
}

/// Lines that a read leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadStyle {
    /// None: the client continues from its cursor.
    Resume,
    /// For newcomers: live-only lines, and each state except its last value.
    History,
    /// Everything except the available commands, for clients that continue without the history.
    Commands,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnRow {
    pub session: SessionKey,
    /// Order in the session's queue; never reused within a session.
    pub ticket: u64,
    pub state: TurnStage,
    pub at: Time,
    /// Clients with a token: the sender, and those that repeated the prompt with its key.
    pub senders: Vec<Sender>,
    pub cancelling: Option<Canceller>,
}

/// Outcome of a prompt with an idempotency key, kept as long as its session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptKeyRow {
    pub session: SessionKey,
    pub key: String,
    pub turn: u64,
    /// None if the agent has not taken the prompt.
    #[serde(default)]
    pub message: Option<PromptMessage>,
    /// JSON object with the `result` or the `error` of the answer.
    #[serde(skip)]
    pub outcome: Bytes,
}

/// The names are on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Canceller {
    /// A client, which expects `cancelled`.
    Client,
    /// acpd, because it ends the session or the agent.
    Acpd,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnStage {
    /// Waits for earlier turns or for the session.
    Queued,
    /// Given to a process as line `chunk`.
    Dispatched {
        host: HostId,
        chunk: u64,
        /// None while the agent has not taken the prompt.
        #[serde(default)]
        message: Option<PromptMessage>,
        /// The message that the agent writes, if clients name messages by it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        open: Option<OpenMessage>,
    },
}

/// The name of a prompt's message for clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PromptMessage {
    /// By the position of its first line in the journal.
    Own(Seq),
    /// The id that an agent of version 2 has given it.
    Agents(String),
}

impl PromptMessage {
    /// The answer that the prompt is in the history, for versions in which it does not wait for the
    /// turn.
    pub(crate) fn answer(&self, id: &Id) -> Bytes {
        let message = match self {
            PromptMessage::Own(seq) => message_id(*seq),
            PromptMessage::Agents(message) => message.clone(),
        };
        build::response(id, &json!({ "messageId": message }))
    }
}

/// A message that the next chunk may continue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenMessage {
    /// Position of its first line.
    pub first: Seq,
    /// The kind of its updates.
    pub update: String,
    /// Hash of the agent's `messageId`.
    pub id: Option<u64>,
}

/// Usage as the agent reported it. Outlives its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRow {
    pub at: Time,
    pub day: Time,
    pub agent: String,
    pub session: String,
    pub cwd: String,
    /// The ended turn; none for a cost reported between turns.
    pub turn: Option<u64>,
    pub tokens: Tokens,
    pub cost: Option<Cost>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InteractionRow {
    pub id: InteractionId,
    pub session: Option<SessionKey>,
    pub host: HostId,
    /// With the agent's id. A notification is the line for the session's journal if the daemon ends
    /// before the command's output is known.
    #[serde(skip)]
    pub line: Bytes,
    /// The question as an agent of version 2 has asked it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original: Option<String>,
    pub at: Time,
    pub frozen: Option<Box<Frozen>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SteerForm {
    /// `_session/steering`: a message that comes too late becomes the next prompt.
    Extension,
    /// `_session/steering` with `idleBehavior: "promptRequired"`: the client then sends a prompt
    /// itself.
    PromptRequired,
    Inject,
}

impl SteerForm {
    pub(crate) fn method(self) -> &'static str {
        match self {
            SteerForm::Extension | SteerForm::PromptRequired => "_session/steering",
            SteerForm::Inject => "session/inject",
        }
    }
}
