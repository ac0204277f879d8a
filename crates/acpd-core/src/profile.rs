//! The hub's view of an agent profile. Environment and paths stay in the daemon.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

use acp_wire::{Version, Versions, str_at};
use acpd_api::{Cost, DaemonInfo, HookEvent, McpKind};
use serde::Deserialize;

pub use acp_wire::acp::Services;
pub use acpd_api::Reseed;
pub use acpd_policy::{Policy, Workspaces};
pub use jiff::tz::TimeZone;

#[derive(Debug, Clone)]
pub struct Config {
    pub default_agent: String,
    /// The configuration names no default agent: [`crate::ClientEvent::DefaultFound`] sets it.
    pub default_is_found: bool,
    pub agents: BTreeMap<String, Profile>,
    /// Known programs by `agentInfo.name`, for profiles with [`Profile::takes_quirks`].
    pub quirks: BTreeMap<String, Profile>,
    pub policy: Policy,
    /// Limit in bytes, for messages about it.
    pub line_limit: u64,
    pub max_clients: u32,
    /// Newest version of the protocol for clients.
    pub newest: Version,
    /// Maximum number of agents that start at the same time, at least 1.
    pub cold_starts: u32,
    /// Events with hooks. Others are not reported.
    pub hooks: BTreeSet<HookEvent>,
    /// Time in which a deleted session can be restored (ms); 0 = none.
    pub keep_deleted: u64,
    pub notify: bool,
    pub workspaces: Vec<Workspace>,
    /// Limits for sessions outside of workspaces with own limits.
    pub retention: Limits,
    pub budget: Option<BudgetLimit>,
    pub delegation: Delegation,
    /// A function, because reading the system's time zones takes longer than starting.
    pub time_zone: fn() -> TimeZone,
    /// Facts about the daemon that do not change.
    pub daemon: DaemonInfo,
    /// acpd's own views hide plans.
    pub hides_plans: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Defaults {
    /// By id or name.
    pub model: Option<String>,
    /// By id or name.
    pub mode: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Workspace {
    /// Absolute path; subdirectories belong to the workspace.
    pub path: String,
    /// Default agent of clients in the workspace. The settings are for this agent only; `None` =
    /// for all agents.
    pub agent: Option<String>,
    pub defaults: Defaults,
    /// Sessions here are exempt from all limits.
    pub keep: bool,
    /// Replaces the general limits, each kind by itself.
    pub retention: Limits,
}

impl Workspace {
    fn has(&self, dir: &str) -> bool {
        Path::new(dir).starts_with(&self.path)
    }
}

/// Retention limits; `None` = no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Time since the last use (ms).
    pub max_age: Option<u64>,
    pub max_sessions: Option<u32>,
    /// Maximum size of a conversation in bytes.
    pub max_size: Option<u64>,
}

/// Returns the workspaces that contain a directory, innermost first.
pub(crate) fn workspaces_of<'c>(workspaces: &'c [Workspace], dir: &str) -> Vec<&'c Workspace> {
    let mut found: Vec<_> = workspaces.iter().filter(|of| of.has(dir)).collect();
    found.sort_by_key(|workspace| std::cmp::Reverse(workspace.path.len()));
    found
}

impl Config {
    pub(crate) fn agent_for(&self, dir: Option<&str>) -> &str {
        self.agent_of_workspace(dir).unwrap_or(&self.default_agent)
    }

    /// Returns whether the default agent was found installed, not configured.
    pub(crate) fn is_found_for(&self, dir: Option<&str>) -> bool {
        self.default_is_found && self.agent_of_workspace(dir).is_none()
    }

    fn agent_of_workspace(&self, dir: Option<&str>) -> Option<&str> {
        let found = workspaces_of(&self.workspaces, dir?);
        found.into_iter().find_map(|workspace| workspace.agent.as_deref())
    }

    pub(crate) fn defaults(&self, agent: &str, dir: &str) -> Defaults {
        let own = |of: &&Workspace| of.agent.as_deref().is_none_or(|named| named == agent);
        let found =
            workspaces_of(&self.workspaces, dir).into_iter().filter(own).map(|of| &of.defaults);
        let mut all: Vec<&Defaults> = found.collect();
        all.push(&self.profile(agent).defaults);
        Defaults {
            model: all.iter().find_map(|defaults| defaults.model.clone()),
            mode: all.iter().find_map(|defaults| defaults.mode.clone()),
        }
    }

    /// Returns a profile; the standard one if it was removed.
    pub(crate) fn profile(&self, name: &str) -> &Profile {
        static REMOVED: LazyLock<Profile> = LazyLock::new(Profile::standard);
        self.agents.get(name).unwrap_or(&REMOVED)
    }
}

/// Limits on delegated sessions: depth, number, answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delegation {
    /// Maximum depth, without the user's session.
    pub max_depth: u32,
    /// Maximum number per session, without archived ones.
    pub max_sessions: u32,
    /// Lets agents answer questions of turns that they sent.
    pub answer: bool,
}

impl Default for Delegation {
    fn default() -> Self {
        Self { max_depth: 2, max_sessions: 16, answer: false }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetLimit {
    pub per_day: Cost,
    pub when_over: WhenOver,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhenOver {
    #[default]
    Warn,
    /// Ask the user before the next turn begins.
    Ask,
}

/// One agent profile. All times are in milliseconds. The default has none: see
/// [`Profile::standard`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    pub title: String,
    pub command: Vec<String>,
    /// Identifies the launch line. A stored `initialize` result is valid for one fingerprint.
    pub fingerprint: String,
    /// File with the agent's stderr, for people.
    pub log: String,
    /// Login command, for people.
    pub login_hint: Option<String>,
    /// Signs of a missing login in errors other than -32000: a code, or text in the message or
    /// data, ignoring case.
    pub auth_errors: Vec<String>,
    /// Signs of a lost session in errors to `session/load` other than -32002: a code or text, as
    /// above.
    pub gone_errors: Vec<String>,
    /// Shortest known lifetime of a process's credentials.
    pub credentials_ttl: Option<u64>,
    pub has_login_file: bool,
    pub tried: bool,
    pub sharing: Sharing,
    /// Idle time before the process is stopped; 0 = never.
    pub idle_timeout: u64,
    /// Unused time before a session is closed at the agent; 0 = never.
    pub session_idle_timeout: u64,
    /// From spawn to the answer to `initialize`.
    pub start_timeout: u64,
    /// Time for each request of a restore.
    pub restore_timeout: u64,
    /// From `session/cancel` to the stop of the process, unless the turn ends.
    pub cancel_timeout: u64,
    /// Silence in a turn before clients are notified; 0 = never.
    pub stall_notice: u64,
    pub stop: StopTimes,
    pub restart: Restart,
    /// The profile is not in the catalogue, so it takes the quirks of the program that `initialize`
    /// names.
    pub takes_quirks: bool,
    /// Part of a replay may come after the response of `session/load`.
    pub late_replay: bool,
    /// Minimum age of a session for a load; 0 = none.
    pub load_after: u64,
    /// A load replays the whole conversation, so a missing part is lost.
    pub replays: bool,
    /// A turn that ends as `end_turn` without any update has failed.
    pub empty_turn_fails: bool,
    pub failed_turn: Vec<FailureSign>,
    pub use_resume: bool,
    pub use_load: bool,
    /// A restored session gets its MCP servers again.
    pub restore_mcp: bool,
    /// Conversations survive the close of their session.
    pub persist_history: bool,
    pub closed_by: ClosedBy,
    pub defaults: Defaults,
    pub on_lost: OnLost,
    /// Text that a new session gets about the lost one.
    pub reseed: Reseed,
    pub on_interrupted: OnInterrupted,
    pub on_limit: OnLimit,
    /// acpd's services if no editor offers them.
    pub services: Services,
    pub subagents: bool,
    pub protocol: Versions,
    pub mcp: Vec<McpServer>,
    /// Members `_meta` of client capabilities that the agent gets: `a.b` stands for `_meta.a.b` and
    /// for `a._meta.b`.
    pub client_meta: Vec<String>,
}

/// The hub's view of a configured MCP server; see [`crate::mcp`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    pub name: String,
    pub kind: McpKind,
    /// The server is only for sessions in these directories.
    pub workspace: Option<Workspaces>,
    /// acpd's own server, which gets the number of its session.
    pub builtin: bool,
}

/// Clients whose `session/close` closes a shared session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClosedBy {
    /// Each client leaves. The last one closes the session.
    #[default]
    Last,
    /// The session's owner: the first attached controller.
    Owner,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnLost {
    /// The next prompt goes to a new session of the agent, after a summary. Clients are notified.
    #[default]
    Reseed,
    /// Prompts are refused.
    Stop,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnInterrupted {
    /// Nothing: the user can send the prompt again.
    #[default]
    Fail,
    /// acpd asks the agent once to continue.
    Continue,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnLimit {
    /// Nothing: the user can send another prompt after the limit.
    #[default]
    Fail,
    /// acpd asks the agent to continue after the limit.
    Wait,
}

/// Sign of a failed turn: a member of the prompt's answer, or of the last update that has it,
/// begins with this text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureSign {
    pub path: Vec<String>,
    pub text: String,
}

impl FailureSign {
    pub fn parse(sign: &str) -> Option<FailureSign> {
        let (path, text) = sign.split_once('=')?;
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        let is_whole = !text.is_empty() && path.iter().all(|member| !member.is_empty());
        is_whole.then(|| FailureSign { path, text: text.to_owned() })
    }

    /// Returns `None` if the object does not have the member.
    pub(crate) fn is_in(&self, object: &[u8]) -> Option<bool> {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        Some(str_at(object, &path)?.starts_with(&self.text))
    }
}

impl Profile {
    /// Returns a profile with the times and rules of the standard configuration.
    pub fn standard() -> Profile {
        Profile {
            idle_timeout: 30 * 60_000,
            start_timeout: 60_000,
            restore_timeout: 30_000,
            cancel_timeout: 10_000,
            stall_notice: 5 * 60_000,
            restart: Restart {
                on_failure: true,
                delay: 250,
                max_delay: 30_000,
                budget: 5,
                window: 120_000,
                ready_after: 10_000,
            },
            replays: true,
            use_resume: true,
            use_load: true,
            restore_mcp: true,
            persist_history: true,
            ..Profile::default()
        }
    }

    /// Takes the ways in which a known program differs from the protocol. Keeps settings that
    /// differ from the default.
    pub(crate) fn take_quirks(&mut self, known: &Profile) {
        fn inherit<T: Clone + Default + PartialEq>(own: &mut T, known: &T) {
            if *own == T::default() {
                own.clone_from(known);
            }
        }
        inherit(&mut self.stop, &known.stop);
        inherit(&mut self.auth_errors, &known.auth_errors);
        inherit(&mut self.gone_errors, &known.gone_errors);
        inherit(&mut self.failed_turn, &known.failed_turn);
        inherit(&mut self.load_after, &known.load_after);
        self.late_replay |= known.late_replay;
        self.empty_turn_fails |= known.empty_turn_fails;
        self.use_resume &= known.use_resume;
        self.restore_mcp &= known.restore_mcp;
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sharing {
    #[default]
    Agent,
    Session,
}

/// Times of the stop ladder in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopTimes {
    /// From closing stdin to SIGTERM.
    pub eof: u64,
    /// From SIGTERM to SIGKILL.
    pub term: u64,
    /// From SIGTERM to SIGKILL for processes that survive an unexpectedly dead leader.
    pub leftovers: u64,
}

impl Default for StopTimes {
    fn default() -> StopTimes {
        StopTimes { eof: 3_000, term: 7_000, leftovers: 1_000 }
    }
}

/// Restart rules; times in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Restart {
    pub on_failure: bool,
    /// First delay, doubled with each failure.
    pub delay: u64,
    pub max_delay: u64,
    /// A crash loop is this number of failures in a row.
    pub budget: u32,
    /// Failures do not count after the agent was down for longer than its delay and this.
    pub window: u64,
    /// A crash after this ready time leads to an immediate restart.
    pub ready_after: u64,
}
