//! What acpd tells about itself, its agents and its sessions.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{AuthInfo, BudgetInfo, Untrusted, Usage};

/// Result of `_acpd/status`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The daemon itself.
    pub daemon: DaemonInfo,
    /// Every configured agent, and agents that still have sessions.
    pub agents: Vec<AgentInfo>,
    /// Every session that is not deleted and not in the archive.
    pub sessions: Vec<SessionInfo>,
}

/// The running daemon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DaemonInfo {
    /// Version of the program.
    pub version: Untrusted,
    /// Version of the `_acpd/*` methods.
    pub api: u32,
    /// Process id.
    pub pid: u32,
    /// Number of the incarnation: another one with each start and each restart in place.
    #[serde(default)]
    pub boot: u64,
    /// When it started (ms since the epoch).
    pub since: u64,
    /// Resident memory in bytes, where the system tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rss: Option<u64>,
    /// Connected clients.
    pub clients: u32,
    /// Whether the journal can be written.
    pub store: StoreState,
    /// The budget of the day, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetInfo>,
    /// The agent that a connection gets when it names none, in the directory that was asked about.
    pub default_agent: Untrusted,
    /// No configuration names that agent: it is the first one that is installed, or `demo`, a script, if none is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub default_is_found: bool,
    /// Where its files are.
    pub socket: Untrusted,
    /// Database file.
    pub database: Untrusted,
    /// The daemon's own log.
    pub log: Untrusted,
    /// Configuration file, whether or not it exists.
    pub config: Untrusted,
    /// Set if the file does not say any more what the daemon has read from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_changed: Option<ConfigChanged>,
}

/// Package of a registry, and the repository in which it is developed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PackageInfo {
    /// Name in the registry.
    pub name: Untrusted,
    /// Repository without a scheme, such as `github.com/github/copilot-cli`.
    pub repository: Untrusted,
}

/// What has become of a configuration since it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigChanged {
    /// When the file was changed (ms since the epoch); none if it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// Why no daemon could start with it, if so: what is wrong in it, in the order of the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mistakes: Vec<ConfigMistake>,
    /// Agents that it starts in another way: those that run do so as before until they are started again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<Untrusted>,
}

/// What `acpd config` finds in the configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigReport {
    /// The file.
    pub file: Untrusted,
    /// Whether it is there; without it, everything has its default.
    pub exists: bool,
    /// What is wrong in it, in the order of the file.
    pub mistakes: Vec<ConfigMistake>,
}

/// What the configuration comes to, key by key: what `acpctl config show` tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigValues {
    /// The file.
    pub file: Untrusted,
    /// Whether it is there; without it, everything has its default.
    pub exists: bool,
    /// Agents that have a table of their own, and the default one.
    pub agents: Vec<Untrusted>,
    /// All keys, those of every known agent among them.
    pub values: Vec<ConfigValue>,
    /// The directory that `here` is about.
    pub dir: Untrusted,
    /// What counts in it: `agent`, and with that agent `model`, `mode` and `diagnostics`.
    pub here: Vec<ConfigValue>,
}

/// What holds for a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigValue {
    /// Its table and its name, with dots between them.
    pub key: Untrusted,
    /// As it would be written, without what may be a secret; null if it is unset.
    pub value: Value,
    /// Who says so. If several add up, the innermost comes last.
    pub from: Vec<ConfigPlace>,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "place", rename_all = "snake_case")]
pub enum ConfigPlace {
    /// Nobody says anything.
    Default,
    /// What acpd knows of the agent.
    Catalogue,
    /// The file.
    File {
        /// The line in it, counted from 1.
        line: u32,
        /// The table there; none at the top of the file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        table: Option<Untrusted>,
    },
}

/// Something that is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMistake {
    /// What, without its place.
    pub message: Untrusted,
    /// The file, with `~` for the home directory.
    pub file: Untrusted,
    /// The line in it, counted from 1; none if the file could not be read at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The character in that line, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The way out, where there is an obvious one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<Untrusted>,
}

impl ConfigMistake {
    /// What and where, on a line.
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

/// Whether the journal can be written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum StoreState {
    /// Everything is committed as it comes.
    Ok,
    /// Writes fail and are retried; nothing new is shown meanwhile.
    Failing {
        /// What the file system or the database said.
        reason: Untrusted,
        /// What a person can do about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<Untrusted>,
        /// Since when (ms since the epoch).
        since: u64,
    },
}

/// One agent profile and its process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentInfo {
    /// Profile name.
    pub name: Untrusted,
    /// Human title from the catalogue or the profile.
    pub title: Untrusted,
    /// State of its process.
    pub state: AgentState,
    /// Since when it is in this state (ms since the epoch).
    pub since: u64,
    /// Why, when there is something to say: last exit, error, what is waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Untrusted>,
    /// Process id of the leader.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Those of the others, for an agent of which each session has a process of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_pids: Vec<u32>,
    /// Resident memory of the whole tree in bytes, of all trees if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rss: Option<u64>,
    /// How many processes the tree has, or all trees together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u32>,
    /// Restarts after unexpected exits since the daemon started.
    pub restarts: u32,
    /// Command line.
    pub command: Vec<Untrusted>,
    /// Name and version that the agent reported last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<Untrusted>,
    /// Sessions that acpd knows of this agent.
    pub sessions: u32,
    /// File with the agent's stderr.
    pub log: Untrusted,
    /// Whether the launch line was tried by acpd's authors.
    pub tried: bool,
    /// What a person can do about its state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<Untrusted>,
    /// MCP servers of the configuration that its sessions get.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp: Vec<McpInfo>,
    /// Whether it is logged in.
    #[serde(default)]
    pub auth: AuthInfo,
    /// Whether its program is on this machine; not said in `_acpd/status`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed: Option<bool>,
    /// The command that installs it, if it is not installed and acpd knows one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<Untrusted>,
    /// Packages of that command whose repository is known. Said only in the info of a single agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<PackageInfo>,
    /// The address that it is reached at, if acpd does not start it. Said only in the info of a single agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Untrusted>,
    /// Mode in which the agent began its last new session since the daemon started, unless the configuration sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_mode: Option<Untrusted>,
    /// Why its program cannot be run as things are. Said only in the info of a single agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_found: Option<Untrusted>,
    /// Methods that this version of the agent announced and then answered with "method not found": acpd no longer uses
    /// them. A restart of the agent has acpd try them again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsupported: Vec<Untrusted>,
    /// Variables that it inherits from the daemon, if the daemon has them: names, or beginnings of names
    /// with a `*`. Said only in the info of a single agent, as `inherited` is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inherits: Vec<Untrusted>,
    /// The names of those that the daemon has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inherited: Vec<Untrusted>,
    /// Variables that the user's configuration wants for it, and that the daemon does not have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<Untrusted>,
    /// All that its next process gets, by name. Said only in the info of a single agent, as `login_shell` is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<VariableInfo>,
    /// The shell that the daemon asks what agents inherit, if it asks one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login_shell: Option<LoginShellInfo>,
    /// The shims beside its processes; not said in `_acpd/status`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shims: Vec<ShimInfo>,
}

/// The process that keeps an agent's process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShimInfo {
    /// Its process id.
    pub pid: u32,
    /// The release of acpd that it is of. That of 0.1.0 does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Untrusted>,
}

/// A variable of an agent's environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VariableInfo {
    /// Its name.
    pub name: Untrusted,
    /// Its value; absent if it may be a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Untrusted>,
    /// Who sets it.
    pub from: VariableFrom,
}

/// Who sets a variable of an agent. More may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VariableFrom {
    /// It is in the daemon's environment.
    Daemon,
    /// The files of the login shell.
    LoginShell,
    /// `env` in the configuration.
    Config,
    /// `credentials` in the configuration.
    Credential,
    /// Something else.
    #[serde(other)]
    Other,
}

/// The shell that is asked for the environment of a login.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoginShellInfo {
    /// The shell.
    pub program: Untrusted,
    /// Why it has not answered as in a terminal when it was asked last, and what agents get then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Untrusted>,
}

/// An MCP server of the configuration, as one agent gets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpInfo {
    /// Its name.
    pub name: Untrusted,
    /// How it is talked with.
    #[serde(rename = "type")]
    pub kind: McpKind,
    /// Globs of the working directories that it is for; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workspace: Vec<Untrusted>,
    /// Why the agent does not get it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<Untrusted>,
}

/// How an MCP server is talked with (protocol brief, `McpServer`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum McpKind {
    /// On the standard input and output of a process that the agent starts.
    Stdio,
    /// Over streamable HTTP.
    Http,
    /// Over HTTP with server-sent events.
    Sse,
}

impl McpKind {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            McpKind::Stdio => "stdio",
            McpKind::Http => "http",
            McpKind::Sse => "sse",
        }
    }
}

impl fmt::Display for McpKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// State of an agent's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentState {
    /// No process.
    Stopped,
    /// The process is being made.
    Starting,
    /// `initialize` has been sent.
    Initializing,
    /// The agent wants a login.
    NeedsAuth,
    /// Usable.
    Ready,
    /// Going down.
    Stopping,
    /// Waiting before the next start.
    Backoff,
    /// Given up; a start by a person clears it.
    Failed,
}

/// One session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionInfo {
    /// Id as clients use it.
    pub session_id: Untrusted,
    /// Agent profile.
    pub agent: Untrusted,
    /// Handle for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Untrusted>,
    /// Its title: the one that a person gave, else the agent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Untrusted>,
    /// Working directory.
    pub cwd: Untrusted,
    /// The session whose agent has begun it, if an agent has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// State.
    pub state: SessionState,
    /// Process id of the agent's process that has the session, if one has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// It is in the archive.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub archived: bool,
    /// Why, when there is something to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Untrusted>,
    /// What a person can do, if the session waits for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<Untrusted>,
    /// What the last restore kept, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restore: Option<RestoreLevel>,
    /// The running turn, or the last one.
    pub turn: TurnInfo,
    /// Set while acpd waits for the end of a usage limit, to have the agent continue then (ms since the
    /// epoch).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_until: Option<u64>,
    /// Prompts that wait for the running one.
    pub queued: u32,
    /// Attached clients. Connections of one program at one `place` are one.
    pub clients: u32,
    /// Prompts so far.
    pub prompts: u64,
    /// What the agent has told of tokens and cost, if it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Last sequence number of the journal.
    pub seq: u64,
    /// Created (ms since the epoch).
    pub created: u64,
    /// Last prompt, or end of a turn (ms since the epoch).
    pub updated: u64,
    /// When the agent said something in it last (ms since the epoch); absent if this daemon has heard nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_line: Option<u64>,
    /// What the running turn does now; absent if none runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doing: Option<Doing>,
}

/// The session whose agent has begun another one. It may be deleted by now.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Parent {
    /// Its agent profile.
    pub agent: Untrusted,
    /// Its id.
    pub session_id: Untrusted,
}

/// What a running turn does now, as far as its agent has said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Doing {
    /// What kind of work it is.
    pub kind: DoingKind,
    /// For [`DoingKind::Thinking`] the beginning of what the agent says, for [`DoingKind::Writing`] its last line (of a
    /// line that is too long, the words since it did not fit any more), for [`DoingKind::Tool`] the title of the call, for [`DoingKind::Command`] its command, for
    /// [`DoingKind::Waiting`] what is asked: at most [`Doing::TEXT`] characters on one line, the last of them
    /// `…` if there is more. May be empty.
    #[serde(default, skip_serializing_if = "Untrusted::is_empty")]
    pub text: Untrusted,
    /// Since when (ms since the epoch).
    pub since: u64,
}

impl Doing {
    /// Characters of a text.
    pub const TEXT: usize = 80;
}

/// What kind of work a turn does. More kinds may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DoingKind {
    /// The agent has the prompt and has not said anything yet.
    Starting,
    /// The agent thinks.
    Thinking,
    /// The agent writes an answer.
    Writing,
    /// A tool call that is no command.
    Tool,
    /// A command.
    Command,
    /// A question waits for a person.
    Waiting,
    /// Something else.
    #[serde(other)]
    Other,
}

/// State of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// The agent's process holds it.
    Live,
    /// On disk only; the next prompt brings it back.
    Parked,
    /// Being brought back.
    Restoring,
    /// Waits for something that a person must do.
    Blocked,
    /// The agent no longer has it; the journal stays readable.
    Lost,
    /// Closed by a person; the next prompt brings it back.
    Closed,
}

/// How much of a conversation survived a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RestoreLevel {
    /// The process never died.
    Exact,
    /// The agent resumed it.
    Resumed,
    /// The agent loaded it, with all that acpd knows of.
    Loaded,
    /// The agent loaded it, but its replay lacks a part of the conversation.
    Partial,
    /// Made anew; it had never had a prompt, so nothing was lost.
    Renewed,
    /// A new session with a summary.
    Reseeded,
    /// Nothing.
    Lost,
}

/// Text that a new session of the agent gets about the lost one.
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
#[serde(rename_all = "camelCase")]
pub struct TurnInfo {
    /// What happens in the session.
    pub state: TurnState,
    /// Since when (ms since the epoch); 0 when there was no turn yet.
    pub since: u64,
    /// How the last turn ended, in words: a stop reason, `interrupted`, `unwedged`,
    /// `outcome_unknown`, `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Untrusted>,
    /// Why the last turn was cut off, if it was and this daemon has seen it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Untrusted>,
}

/// What a session does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnState {
    /// Nothing.
    Idle,
    /// Works on a prompt.
    Working,
    /// Waits for a person's answer.
    NeedsAction,
}
