//! State of the daemon, its agents and its sessions.

use acp_wire::Version;
use acp_wire::dialect::WorkKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::{Display, IntoStaticStr};

use crate::{AuthInfo, BudgetInfo, HostState, Untrusted, Usage};

/// State of the daemon, all agents and all sessions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// State of the daemon.
    pub daemon: DaemonInfo,
    /// Every configured agent, and agents that still have sessions; only those in use if requested.
    pub agents: Vec<AgentInfo>,
    /// Number of omitted agents, if only those in use were requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unused: Option<u32>,
    /// Every session that is not deleted and not in the archive, or those asked for with `recent`.
    pub sessions: Vec<SessionInfo>,
    /// Number of sessions left out because of `recent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted: Option<u32>,
    /// The machines of a client that joins several; never from a daemon.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostState>,
}

/// State of the running daemon.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DaemonInfo {
    /// Version of the program.
    pub version: Untrusted,
    /// Version of the `_acpd/*` methods.
    pub api: u32,
    /// Process id of the daemon.
    pub pid: u32,
    /// Number of the incarnation: another one with each start and each restart in place.
    #[serde(default)]
    pub boot: u64,
    /// Start time (ms since the epoch).
    pub since: u64,
    /// Resident memory in bytes, if the system reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rss: Option<u64>,
    /// Number of connected clients.
    pub clients: u32,
    /// State of the journal.
    pub store: StoreState,
    /// The budget of the day, if one is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetInfo>,
    /// The agent of connections that name none, in the requested directory.
    pub default_agent: Untrusted,
    /// The default agent is not configured: it is the first installed one, or else `demo`, a
    /// built-in script.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub default_is_found: bool,
    /// Path of the socket.
    pub socket: Untrusted,
    /// Path of the database.
    pub database: Untrusted,
    /// The daemon's own log.
    pub log: Untrusted,
    /// Configuration file, whether or not it exists.
    pub config: Untrusted,
    /// Changes of the file that are not loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_changed: Option<ConfigChanged>,
}

/// Package of a registry, and the repository in which it is developed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageInfo {
    /// Name in the registry.
    pub name: Untrusted,
    /// Repository without a scheme, such as `github.com/github/copilot-cli`.
    pub repository: Untrusted,
}

/// Changes of the configuration file since it was loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigChanged {
    /// Time of the change (ms since the epoch); absent if the file is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// Mistakes that would keep a daemon from starting, in the order of the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mistakes: Vec<ConfigMistake>,
    /// Agents whose start has changed: running ones keep the old configuration until they are
    /// started again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<Untrusted>,
}

/// Result of checking the configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigReport {
    /// Path of the file.
    pub file: Untrusted,
    /// `false` if there is no file; all values are defaults then.
    pub exists: bool,
    /// All mistakes, in the order of the file.
    pub mistakes: Vec<ConfigMistake>,
}

/// Effective values of the configuration, as `acpctl config show` prints them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigValues {
    /// Path of the file.
    pub file: Untrusted,
    /// `false` if there is no file; all values are defaults then.
    pub exists: bool,
    /// Agents with a table of their own, and the default one.
    pub agents: Vec<Untrusted>,
    /// All keys, with those of every known agent.
    pub values: Vec<ConfigValue>,
    /// The directory of `here`.
    pub dir: Untrusted,
    /// Values for that directory: `agent`, and that agent's `model`, `mode` and `diagnostics`.
    pub here: Vec<ConfigValue>,
}

/// Effective value of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigValue {
    /// Name of the key with its table, separated by dots.
    pub key: Untrusted,
    /// The value in the form of the file, without possible secrets; null if unset.
    pub value: Value,
    /// Origins of the value. If several add up, the innermost comes last.
    pub from: Vec<ConfigPlace>,
}

/// Origin of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "place", rename_all = "snake_case")]
pub enum ConfigPlace {
    /// The default that is built into acpd.
    Default,
    /// The catalogue of known agents.
    Catalogue,
    /// A line of the configuration file.
    File {
        /// Line number, from 1.
        line: u32,
        /// Name of the table; absent at the top of the file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        table: Option<Untrusted>,
    },
}

/// A mistake in a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigMistake {
    /// Description of the mistake, without its place.
    pub message: Untrusted,
    /// The file, with `~` for the home directory.
    pub file: Untrusted,
    /// Line number, from 1; absent if the file could not be read at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Character in that line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The way out, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<Untrusted>,
}

impl ConfigMistake {
    /// Returns message and place on one line.
    pub fn told(&self) -> Untrusted {
        let message = self.message.raw();
        match (self.line, self.column) {
            (Some(line), Some(column)) => {
                format!("{message} ({}:{line}:{column})", self.file.raw()).into()
            }
            _ => message.into(),
        }
    }
}

/// State of the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum StoreState {
    /// Every line is committed as it comes.
    #[default]
    Ok,
    /// Writes fail and are retried; new lines are held back until then.
    Failing {
        /// Error of the file system or the database.
        reason: Untrusted,
        /// Advice for the user.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<Untrusted>,
        /// Start of the failure (ms since the epoch).
        since: u64,
    },
}

/// One agent profile and its process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentInfo {
    /// Name of the agent's profile.
    pub name: Untrusted,
    /// Human title from the catalogue or the profile.
    pub title: Untrusted,
    /// State of its process.
    pub state: AgentState,
    /// Start of the state (ms since the epoch).
    pub since: u64,
    /// Reason of the state: last exit, error, or the event that the agent waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Untrusted>,
    /// Process id of the leader.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Process ids of further leaders, if each session has its own process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_pids: Vec<u32>,
    /// Resident memory of all trees in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rss: Option<u64>,
    /// Number of processes in all trees of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u32>,
    /// Restarts after unexpected exits since the daemon started.
    pub restarts: u32,
    /// Command with its arguments.
    pub command: Vec<Untrusted>,
    /// Name and version that the agent reported last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<Untrusted>,
    /// Version of the protocol that its ready process speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Version>,
    /// Number of the agent's sessions.
    pub sessions: u32,
    /// File with the agent's stderr.
    pub log: Untrusted,
    /// acpd was tested with this agent.
    pub tried: bool,
    /// Advice for the user about the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<Untrusted>,
    /// MCP servers of the configuration that its sessions get.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp: Vec<McpInfo>,
    /// State of the login.
    #[serde(default)]
    pub auth: AuthInfo,
    /// State of the installation: `true` if the program is there; absent in `_acpd/status`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed: Option<bool>,
    /// The command to install the agent, if it is missing and acpd knows one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<Untrusted>,
    /// Packages of that command with a known repository. Only in answers about one agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<PackageInfo>,
    /// Address of the agent, if acpd does not start it. Only in answers about one agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Untrusted>,
    /// Mode in which the agent began its last new session since the daemon started, unless one is
    /// configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_mode: Option<Untrusted>,
    /// Reason why the program cannot be run. Only in answers about one agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_found: Option<Untrusted>,
    /// Methods that this version of the agent announced and then answered with "method not found".
    /// acpd does not use them until the agent restarts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsupported: Vec<Untrusted>,
    /// Inherited variables: names, or beginnings of names with a `*`. Only in answers about one
    /// agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inherits: Vec<Untrusted>,
    /// Names of inherited variables that the daemon has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inherited: Vec<Untrusted>,
    /// Configured variables that the daemon lacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<Untrusted>,
    /// Environment of the next process, by name. Only in answers about one agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<VariableInfo>,
    /// The shell that the daemon asks for inherited variables, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login_shell: Option<LoginShellInfo>,
    /// Shims of the agent's processes; absent in `_acpd/status`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shims: Vec<ShimInfo>,
}

impl AgentInfo {
    /// Returns whether the agent runs, has sessions, or has a state that needs a reason.
    pub fn is_in_use(&self) -> bool {
        self.state != AgentState::Stopped || self.sessions > 0 || self.reason.is_some()
    }
}

/// The process next to an agent's process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShimInfo {
    /// Process id of the shim.
    pub pid: u32,
    /// Version of its program. Shims of 0.1.0 do not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Untrusted>,
}

/// A variable of an agent's environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariableInfo {
    /// Name of the variable.
    pub name: Untrusted,
    /// Value of the variable; absent if it may be a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Untrusted>,
    /// Origin of the value.
    pub from: VariableFrom,
}

/// Origin of a variable. More values may be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VariableFrom {
    /// The environment of the daemon's process.
    Daemon,
    /// The files of the login shell.
    LoginShell,
    /// `env` in the configuration.
    Config,
    /// `credentials` in the configuration.
    Credential,
    /// A newer value than this client knows.
    #[serde(other)]
    Other,
}

/// The shell that supplies the environment of a login.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginShellInfo {
    /// Path of the shell.
    pub program: Untrusted,
    /// Why the shell did not answer as in a terminal last time, and the environment of agents in
    /// that case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Untrusted>,
}

/// An MCP server of the configuration, as one agent gets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpInfo {
    /// Name of the server.
    pub name: Untrusted,
    /// Transport of the server.
    #[serde(rename = "type")]
    pub kind: McpKind,
    /// Globs of the server's working directories; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workspace: Vec<Untrusted>,
    /// Why the agent does not get the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<Untrusted>,
}

/// Transport of an MCP server (ACP, `McpServer`), with the word in the protocol.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Display, IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum McpKind {
    /// Standard input and output of a process that the agent starts.
    Stdio,
    /// Streamable HTTP.
    Http,
    /// HTTP with server-sent events.
    Sse,
}

/// State of an agent's process.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum AgentState {
    /// The agent has no process.
    #[default]
    Stopped,
    /// The process is being started.
    Starting,
    /// acpd has sent `initialize`.
    Initializing,
    /// The agent requires a login.
    NeedsAuth,
    /// The agent is ready.
    Ready,
    /// acpd ends the agent's processes.
    Stopping,
    /// acpd waits before the next start.
    Backoff,
    /// acpd has given up; a start by the user clears this state.
    Failed,
}

/// State of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionInfo {
    /// Id for clients.
    pub session_id: Untrusted,
    /// Name of the agent's profile.
    pub agent: Untrusted,
    /// Name of the session: a handle for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Untrusted>,
    /// Title of the session: the user's, else the agent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Untrusted>,
    /// Labels of the session, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<Untrusted>,
    /// Working directory of the session.
    pub cwd: Untrusted,
    /// The session whose agent created this one, if an agent did. It may be deleted by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionRowKey>,
    /// State of the session's process.
    pub state: SessionState,
    /// Process id of the agent's process that has the session, if one has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The session is archived.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub archived: bool,
    /// Reason of the state, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Untrusted>,
    /// Advice for the user, if the session waits for the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<Untrusted>,
    /// Level of the last restore.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restore: Option<RestoreLevel>,
    /// The running turn, or the last one.
    pub turn: TurnInfo,
    /// End of a usage limit, after which acpd has the agent continue (ms since the epoch).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_until: Option<u64>,
    /// Number of queued prompts.
    pub queued: u32,
    /// Background work of the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<WorkInfo>,
    /// Attached clients. Connections of one program at one `place` count as one.
    pub clients: u32,
    /// Number of prompts that were sent to the agent.
    pub prompts: u64,
    /// Tokens and cost, if the agent reported any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Last sequence number of the journal.
    pub seq: u64,
    /// Time of creation (ms since the epoch).
    pub created: u64,
    /// Time of the last prompt, or end of a turn (ms since the epoch).
    pub updated: u64,
    /// Time of the agent's last line (ms since the epoch); absent if this daemon got none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_line: Option<u64>,
    /// Current work of the running turn; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doing: Option<Doing>,
}

/// Background work: what an agent does outside of the turns of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkInfo {
    /// Kind of the work.
    pub kind: WorkKind,
    /// The agent's id of the terminal, the tool call or the subagent's session.
    pub id: Untrusted,
    /// The command or the title, if the agent has told one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Untrusted>,
    /// The agent can end it alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub can_be_cancelled: bool,
}

impl WorkInfo {
    /// Returns the title, or else the id.
    pub fn name(&self) -> &Untrusted {
        self.title.as_ref().unwrap_or(&self.id)
    }
}

/// Key of a session's row: ids are unique within an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionRowKey {
    /// Name of the agent's profile.
    pub agent: Untrusted,
    /// Id for clients.
    pub session_id: Untrusted,
}

/// Current work of a running turn, by the agent's reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doing {
    /// Kind of the work.
    pub kind: DoingKind,
    /// Details by kind: for [`DoingKind::Thinking`] the beginning of the thought, for
    /// [`DoingKind::Writing`] the last line of the answer, for [`DoingKind::Tool`] the title of the
    /// call, for [`DoingKind::Command`] the command, for [`DoingKind::Waiting`] the question. Up to
    /// [`Doing::TEXT`] characters on one line, with `…` if it was cut. May be empty.
    #[serde(default, skip_serializing_if = "Untrusted::is_empty")]
    pub text: Untrusted,
    /// Start of the work (ms since the epoch).
    pub since: u64,
}

impl Doing {
    /// Most characters of a text.
    pub const TEXT: usize = 80;
}

/// Kind of a turn's work. More kinds may be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DoingKind {
    /// The agent has the prompt and has not sent anything yet.
    Starting,
    /// The agent sends a thought.
    Thinking,
    /// The agent writes an answer.
    Writing,
    /// A tool call that is no command.
    Tool,
    /// A tool call that runs a command.
    Command,
    /// A question waits for the user.
    Waiting,
    /// A newer value than this client knows.
    #[serde(other)]
    Other,
}

/// State of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// An agent's process has the session.
    Live,
    /// On disk only; the next prompt restores it.
    Parked,
    /// The agent is loading it.
    Restoring,
    /// Waits for an action of the user.
    Blocked,
    /// The agent no longer has the session; the journal stays readable.
    Lost,
    /// Closed by the user; the next prompt restores it.
    Closed,
}

// The names are on disk, too.
/// Completeness of a restored conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RestoreLevel {
    /// The process never died.
    Exact,
    /// The agent resumed the session.
    Resumed,
    /// The agent loaded the session, with everything that acpd knows.
    Loaded,
    /// The agent loaded the session, but its replay lacks a part of the conversation.
    Partial,
    /// The session was created again; it had no prompt, so nothing was lost.
    Renewed,
    /// A new session got a summary.
    Reseeded,
    /// Refused with `on_lost = "stop"`; the agent has nothing of the session.
    Lost,
}

/// Text for a new session of the agent about the lost one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reseed {
    /// The last request and the end of the answer.
    #[default]
    Summary,
    /// The end of the conversation.
    Transcript,
}

impl Reseed {
    /// Returns its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Reseed::Summary => "a summary",
            Reseed::Transcript => "a transcript",
        }
    }
}

impl RestoreLevel {
    /// Returns whether the agent continues with less than the conversation.
    pub fn is_less(self) -> bool {
        matches!(self, RestoreLevel::Partial | RestoreLevel::Reseeded)
    }
}

/// The running turn of a session, or the last one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnInfo {
    /// State of the session's turn.
    pub state: TurnState,
    /// Start of the state (ms since the epoch); 0 before the first turn.
    pub since: u64,
    /// Outcome of the last turn: a stop reason, `interrupted`, `unwedged`, `outcome_unknown` or
    /// `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Untrusted>,
    /// Why the last turn was cut off, if this daemon has seen it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Untrusted>,
}

/// State of a session's turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnState {
    /// No turn runs in the session.
    #[default]
    Idle,
    /// The agent works on a prompt.
    Working,
    /// The turn waits for an answer of the user.
    NeedsAction,
}
