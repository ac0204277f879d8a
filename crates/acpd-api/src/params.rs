//! Parameters and results of the `_acpd/*` methods.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{AgentInfo, ClientName, Environment, Role, SessionInfo, Untrusted};

/// Nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Empty {}

/// Parameters of `_acpd/status`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct StatusParams {
    /// The directory that the client works in: it decides which agent is the default one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

/// Parameters of `_acpd/daemon/restart`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DaemonRestartParams {
    /// The environment of the terminal: what of it the configuration names, the next daemon gets.
    #[serde(skip_serializing_if = "Environment::is_empty")]
    pub environment: Environment,
}

/// Parameters of `_acpd/daemon/stop`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DaemonStopParams {
    /// Leave the agents and their turns running; the next daemon takes them over.
    pub detach: bool,
}

/// Parameters of `_acpd/daemon/log_level`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LogLevelParams {
    /// What to log from now on: a level, or a filter as in the configuration. Absent: it stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
}

/// Result of `_acpd/daemon/log_level`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogLevel {
    /// What is logged.
    pub level: Untrusted,
    /// What the configuration says: it holds again when the daemon starts anew.
    pub configured: Untrusted,
}

impl LogLevel {
    /// The levels, the quietest first. A filter is made of them.
    pub const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
}

/// Names an agent profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentRef {
    /// Profile name.
    pub agent: String,
}

/// Parameters of `_acpd/agent/restart`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RestartParams {
    /// Profile name.
    pub agent: String,
    /// Do not wait for processes of its last run that do not end, not even by SIGKILL.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
}

/// Result of `_acpd/agent/list`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentList {
    /// In the order of their names.
    pub agents: Vec<AgentInfo>,
}

/// Names a session: a name, an id or a prefix of either that fits one session only.
///
/// An exact name in `cwd` beats an exact name elsewhere, and an exact name or id beats a prefix. An id
/// is no prefix of the one that acpd made from it by a number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionRef {
    /// Name, id or prefix.
    pub session: String,
    /// Only sessions of this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The caller's working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Match `session` as a whole name in exactly `cwd` and nothing else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exact_name: bool,
    /// The number by which a tool of its agent names it; nothing else counts then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
}

impl SessionRef {
    /// The session of an agent with this id.
    pub fn to(agent: &str, id: &str) -> SessionRef {
        SessionRef {
            session: id.to_owned(),
            agent: Some(agent.to_owned()),
            ..SessionRef::default()
        }
    }
}

/// Result of `_acpd/mcp/list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpServerList {
    /// The names that the clients gave them.
    pub servers: Vec<Untrusted>,
}

/// Parameters of `_acpd/mcp/call`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpCallParams {
    /// Which session.
    #[serde(rename = "ref")]
    pub session: SessionRef,
    /// Which of its servers, by name.
    pub server: String,
    /// `tools/list` or `tools/call`.
    pub method: String,
    /// Of that method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Box<RawValue>>,
}

/// Filter of `_acpd/session/list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SessionListParams {
    /// Only sessions of this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Only sessions with this working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Whether sessions in the archive are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived: Option<ArchiveFilter>,
}

/// Which sessions are listed, as far as the archive goes. The words are those of `session/list`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArchiveFilter {
    /// Those that are not in the archive.
    #[default]
    Exclude,
    /// All.
    Include,
    /// Those in the archive.
    Only,
}

impl ArchiveFilter {
    /// Whether a session is listed.
    pub fn takes(self, archived: bool) -> bool {
        match self {
            ArchiveFilter::Exclude => !archived,
            ArchiveFilter::Include => true,
            ArchiveFilter::Only => archived,
        }
    }
}

/// Result of `_acpd/session/list`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionList {
    /// The most recently used first.
    pub sessions: Vec<SessionInfo>,
}

/// Parameters of `_acpd/session/rename`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RenameParams {
    /// Which session.
    #[serde(rename = "ref")]
    pub session: SessionRef,
    /// Its new name; null takes the name away.
    pub name: Option<String>,
}

/// Parameters of `_acpd/session/title`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TitleParams {
    /// Which session.
    #[serde(rename = "ref")]
    pub session: SessionRef,
    /// Its title; null takes a person's title away, and the agent's counts again.
    pub title: Option<String>,
}

/// Parameters of `_acpd/session/move`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MoveParams {
    /// Which session.
    #[serde(rename = "ref")]
    pub session: SessionRef,
    /// The directory that it works in from now on, an absolute path.
    pub cwd: String,
}

/// Parameters of `_acpd/session/attach`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttachParams {
    /// Which session.
    #[serde(rename = "ref")]
    pub session: SessionRef,
    /// Send what comes after this sequence number; 0 = everything. Absent = only what comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// What the client may do.
    #[serde(default)]
    pub role: Role,
}

/// Result of `_acpd/session/attach`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttachResult {
    /// The session.
    pub session: SessionInfo,
}

/// Parameters of `_acpd/session/cancel`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelParams {
    /// Which session.
    #[serde(flatten)]
    pub session: SessionRef,
    /// Only the running turn: prompts that wait behind it stay, and the next one begins.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub turn_only: bool,
    /// Who cancels, for others who are told; not needed after `initialize`, which says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<ClientName>,
}

/// Parameters of `_acpd/session/remove`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemoveParams {
    /// Which session.
    #[serde(flatten)]
    pub session: SessionRef,
    /// At once: it cannot be brought back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub now: bool,
}

/// Result of `_acpd/session/remove`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemoveResult {
    /// Until when it can be brought back (ms since the epoch), if it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

/// Parameters of `_acpd/session/undo`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct UndoParams {
    /// Its name, its id or the beginning of that; the session that was deleted last when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Only sessions of this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Only sessions that were deleted at this time or later (ms since the epoch).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
}

/// Result of `_acpd/session/undo`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UndoResult {
    /// The session.
    pub session: SessionInfo,
    /// Its name, if another session has that now: it came back without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name_taken: Option<Untrusted>,
    /// How many deleted sessions, of those that were asked about, can still be brought back.
    #[serde(default)]
    pub kept: u32,
}

/// Parameters of `_acpd/session/log`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogParams {
    /// Which session.
    #[serde(rename = "ref")]
    pub session: SessionRef,
    /// Entries after this sequence number.
    #[serde(default)]
    pub after: u64,
    /// The most entries to return; 1000 when absent, and never more than about 4 MiB in one answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Result of `_acpd/session/log`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogResult {
    /// The session's public id.
    pub session_id: Untrusted,
    /// In order.
    pub entries: Vec<LogEntry>,
    /// Ask again with this as `after`; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// One line of a journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogEntry {
    /// Position.
    pub seq: u64,
    /// The notification as it was relayed.
    pub line: Box<RawValue>,
}
