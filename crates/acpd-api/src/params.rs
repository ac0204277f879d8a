use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{AgentInfo, ClientName, Environment, Role, SessionInfo, Untrusted};

/// An empty object: no params, or no result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Empty {}

/// Parameters for the state of the daemon.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct StatusParams {
    /// The client's working directory, which decides the default agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Leaves out agents that are not in use and counts them in `unused`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub in_use: bool,
    /// Leaves out sessions at rest, but for this many that were used last, and counts them in
    /// `omitted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recent: Option<u32>,
}

/// Parameters for replacing the running daemon.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DaemonRestartParams {
    /// The terminal's environment: the next daemon gets its configured variables.
    #[serde(skip_serializing_if = "Environment::is_empty")]
    pub environment: Environment,
}

/// Parameters for stopping the daemon.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DaemonStopParams {
    /// Leave the agents and their turns running; the next daemon takes them over.
    pub detach: bool,
}

/// Parameters for reading and changing the log level.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LogLevelParams {
    /// The new level, or a filter as in the configuration. Absent: unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
}

/// Current and configured log levels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLevel {
    /// The current level or filter.
    pub level: Untrusted,
    /// The configured level, which a restart sets again.
    pub configured: Untrusted,
}

impl LogLevel {
    /// The levels of a filter, the quietest first.
    pub const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
}

/// A reference to an agent profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRef {
    /// Name of the agent's profile.
    pub agent: String,
}

/// Parameters for restarting an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestartParams {
    /// Name of the agent's profile.
    pub agent: String,
    /// Start even if processes of the last run survive SIGKILL.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
}

/// All enabled agents, and others with sessions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentList {
    /// Sorted by name.
    pub agents: Vec<AgentInfo>,
}

/// A reference to a session: a name, an id or a prefix of either that matches one session only.
///
/// An exact name in `cwd` wins over an exact name elsewhere, and an exact name or id over a prefix.
/// An id is no prefix of acpd's numbered variants of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionRef {
    /// Name, id or prefix.
    pub session: String,
    /// Restricts the result to sessions of this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The caller's working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Match only sessions in exactly `cwd` with exactly this name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exact_name: bool,
    /// acpd's number for a tool of the session; the other members are ignored then.
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

/// MCP servers of connected clients.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpServerList {
    /// Names given by the clients.
    pub servers: Vec<Untrusted>,
}

/// Parameters for calling an MCP server of a client.
#[derive(Debug, Serialize, Deserialize)]
pub struct McpCallParams {
    /// The session in question.
    #[serde(rename = "ref")]
    pub session: SessionRef,
    /// Name of the server.
    pub server: String,
    /// The method: `tools/list` or `tools/call`.
    pub method: String,
    /// Parameters of that method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Box<RawValue>>,
}

/// Filters for the list of sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SessionListParams {
    /// Restricts the result to sessions of this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Restricts the result to this working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Treatment of archived sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived: Option<ArchiveFilter>,
    /// Restricts the result to sessions whose name or id begins with this text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begins: Option<String>,
    /// Restricts the result to sessions that have all these labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Restricts the result to sessions that had a prompt.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub used: bool,
    /// Maximum number of sessions; the others are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Treatment of archived sessions, with the words of `session/list`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArchiveFilter {
    /// Lists sessions that are not archived.
    #[default]
    Exclude,
    /// Lists all sessions.
    Include,
    /// Lists archived sessions only.
    Only,
}

impl ArchiveFilter {
    /// Returns whether such a session is listed.
    pub fn takes(self, archived: bool) -> bool {
        match self {
            ArchiveFilter::Exclude => !archived,
            ArchiveFilter::Include => true,
            ArchiveFilter::Only => archived,
        }
    }
}

/// Sessions of all agents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionList {
    /// The most recently used first.
    pub sessions: Vec<SessionInfo>,
}

/// Parameters for renaming a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenameParams {
    /// The session in question.
    #[serde(rename = "ref")]
    pub session: SessionRef,
    /// The new name; null removes the name.
    pub name: Option<String>,
}

/// Parameters for setting a title.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TitleParams {
    /// The session in question.
    #[serde(rename = "ref")]
    pub session: SessionRef,
    /// The new title; null restores the agent's.
    pub title: Option<String>,
}

/// Parameters for moving a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveParams {
    /// The session in question.
    #[serde(rename = "ref")]
    pub session: SessionRef,
    /// The new directory, an absolute path.
    pub cwd: String,
}

/// Parameters for following a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachParams {
    /// The session in question.
    #[serde(rename = "ref")]
    pub session: SessionRef,
    /// Send lines after this sequence number; 0: everything. Absent: only new lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// Rights of the client.
    #[serde(default)]
    pub role: Role,
}

/// The session that is followed now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttachResult {
    /// The session as it is now.
    pub session: SessionInfo,
}

/// Parameters for cancelling a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelParams {
    /// The session in question.
    #[serde(flatten)]
    pub session: SessionRef,
    /// Keep the queued prompts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub turn_only: bool,
    /// End the work in the background instead of the turn, as far as the agent can end it alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
    /// Name of the client, for other clients; not needed after `initialize`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<ClientName>,
}

/// Parameters for deleting a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoveParams {
    /// The session in question.
    #[serde(flatten)]
    pub session: SessionRef,
    /// Delete at once: the session cannot be restored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub now: bool,
}

/// Effect of deleting a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoveResult {
    /// Time until which it can be restored (ms since the epoch), if it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

/// Parameters for restoring a deleted session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct UndoParams {
    /// Name, id or prefix of the id; the last deleted session if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Restricts the result to sessions of this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Restricts the result to sessions deleted at this time or later (ms since the epoch).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
}

/// The deleted session that was restored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UndoResult {
    /// The session as it is now.
    pub session: SessionInfo,
    /// The former name, if another session has it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name_taken: Option<Untrusted>,
    /// Number of matching deleted sessions that can still be restored.
    #[serde(default)]
    pub kept: u32,
}

/// Parameters for reading a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogParams {
    /// The session in question.
    #[serde(rename = "ref")]
    pub session: SessionRef,
    /// Entries after this sequence number.
    #[serde(default)]
    pub after: u64,
    /// Most entries to return: 1000 if absent, and never more than about 4 MiB in one answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Return lines of version 2 of the protocol as agents have sent them, with the member `version`
    /// in their `_meta._acpd`; otherwise what they mean in version 1.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub originals: bool,
}

impl LogParams {
    /// All entries behind `after`, page by page.
    pub fn after(session: SessionRef, after: u64) -> LogParams {
        LogParams { session, after, limit: None, originals: false }
    }

    /// The same with the lines of version 2 as agents have sent them.
    #[must_use]
    pub fn with_originals(self) -> LogParams {
        LogParams { originals: true, ..self }
    }
}

/// A page of a journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogResult {
    /// The session's public id.
    pub session_id: Untrusted,
    /// The lines, in order, without those that other lines repeat: a page may be empty, and not the
    /// last one.
    pub entries: Vec<LogEntry>,
    /// The `after` of the next page; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// One line of a journal.
#[derive(Debug, Serialize, Deserialize)]
pub struct LogEntry {
    /// Sequence number of the line.
    pub seq: u64,
    /// The notification as it was relayed.
    pub line: Box<RawValue>,
}
