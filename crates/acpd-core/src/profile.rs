//! The hub's view of an agent profile. The daemon has the rest (environment, paths).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

use acp_wire::str_at;
use acpd_api::{Cost, HookEvent, McpKind};
use serde::Deserialize;

pub use acp_wire::acp::Services;
pub use acpd_api::Reseed;
pub use acpd_policy::{Policy, Workspaces};
pub use jiff::tz::TimeZone;

/// Everything the hub is configured with.
#[derive(Debug, Clone)]
pub struct Config {
    /// The agent of a connection that names none.
    pub default_agent: String,
    /// The configuration does not name it: [`crate::ClientEvent::DefaultFound`] replaces it.
    pub default_is_found: bool,
    pub agents: BTreeMap<String, Profile>,
    /// Quirks of programs by their `agentInfo.name`, for profiles with [`Profile::takes_quirks`].
    pub quirks: BTreeMap<String, Quirks>,
    pub policy: Policy,
    /// Limit of one line in bytes, for messages about it.
    pub line_limit: u64,
    pub max_clients: u32,
    /// Maximum number of agents that start at the same time, at least 1.
    pub cold_starts: u32,
    /// Events with hooks; others are not reported.
    pub hooks: BTreeSet<HookEvent>,
    /// How long a deleted session can be brought back (ms); 0 = not at all.
    pub keep_deleted: u64,
    /// Desktop notifications for sessions without attached clients.
    pub notify: bool,
    /// Directories with settings of their own.
    pub workspaces: Vec<Workspace>,
    /// How much is kept where no workspace says something else.
    pub retention: Limits,
    pub budget: Option<BudgetLimit>,
    /// How far agents may work with agents.
    pub delegation: Delegation,
    /// Returns where days begin. To read the time zones of the system takes longer than to start.
    pub time_zone: fn() -> TimeZone,
    /// Fixed facts for `status`.
    pub daemon: DaemonFacts,
}

/// Settings that sessions begin with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Defaults {
    /// The model, by its id or its name.
    pub model: Option<String>,
    /// The mode, by its id or its name.
    pub mode: Option<String>,
}

/// A directory with settings of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Workspace {
    /// The directory, absolute; all below it belongs to it.
    pub path: String,
    /// The agent of clients that name none, and for which the settings are; without one they are for all.
    pub agent: Option<String>,
    pub defaults: Defaults,
    /// No limit lets its sessions go.
    pub keep: bool,
    /// Limits in place of those for all.
    pub retention: Limits,
}

impl Workspace {
    fn has(&self, dir: &str) -> bool {
        Path::new(dir).starts_with(&self.path)
    }
}

/// How much is kept without a person's doing. What is not set has no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// How long after its last use a session stays (ms).
    pub max_age: Option<u64>,
    pub max_sessions: Option<u32>,
    /// Maximum size of a conversation in bytes.
    pub max_size: Option<u64>,
}

/// Those of the workspaces that a directory belongs to, the innermost first.
pub(crate) fn workspaces_of<'c>(workspaces: &'c [Workspace], dir: &str) -> Vec<&'c Workspace> {
    let mut found: Vec<_> = workspaces.iter().filter(|of| of.has(dir)).collect();
    found.sort_by_key(|workspace| std::cmp::Reverse(workspace.path.len()));
    found
}

impl Config {
    /// The agent of a client that names none, and works in this directory.
    pub(crate) fn agent_for(&self, dir: Option<&str>) -> &str {
        self.agent_of_workspace(dir).unwrap_or(&self.default_agent)
    }

    /// Returns whether that agent is in no configuration, but was found installed.
    pub(crate) fn is_found_for(&self, dir: Option<&str>) -> bool {
        self.default_is_found && self.agent_of_workspace(dir).is_none()
    }

    fn agent_of_workspace(&self, dir: Option<&str>) -> Option<&str> {
        let found = workspaces_of(&self.workspaces, dir?);
        found.into_iter().find_map(|workspace| workspace.agent.as_deref())
    }

    /// Settings of an agent's new sessions in a directory.
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

    /// A profile, or what stands in for one that was removed.
    pub(crate) fn profile(&self, name: &str) -> &Profile {
        static REMOVED: LazyLock<Profile> = LazyLock::new(Profile::default);
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
    /// A person is asked before the next turn begins.
    Ask,
}

/// Fixed facts about the daemon for `status`, and for screens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DaemonFacts {
    pub version: String,
    pub pid: u32,
    /// Start (ms since the epoch).
    pub since: u64,
    pub socket: String,
    pub database: String,
    pub log: String,
    pub config: String,
    /// Acpd's own views leave plans out.
    pub hides_plans: bool,
}

/// One agent profile. All times in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    pub title: String,
    pub command: Vec<String>,
    /// Identifies the launch line; a cached `initialize` result is valid for one fingerprint.
    pub fingerprint: String,
    /// File with the agent's stderr, for people.
    pub log: String,
    /// The command that logs in, for people.
    pub login_hint: Option<String>,
    /// Sign of a missing login in an error other than -32000: a text in message or data, ignoring
    /// case, or its code.
    pub auth_errors: Vec<String>,
    /// Sign of a session that the agent has lost, in an error to `session/load` other than -32002: a text
    /// or a code, as above.
    pub gone_errors: Vec<String>,
    /// For how long the credentials are good that a process gets, if that is known: the shortest.
    pub credentials_ttl: Option<u64>,
    /// The login is in a known file: [`crate::Effect::WatchLogin`].
    pub has_login_file: bool,
    /// The launch line was tried by acpd's authors.
    pub tried: bool,
    /// One process for all sessions, or one each.
    pub sharing: Sharing,
    /// Idle time after which the process is stopped; 0 = never.
    pub idle_timeout: u64,
    /// Close a session at the agent when nothing has used it for this long (ms); 0 = never.
    pub session_idle_timeout: u64,
    /// From spawn to the answer to `initialize`.
    pub start_timeout: u64,
    /// One request of a restore.
    pub restore_timeout: u64,
    /// From `session/cancel` to the end of the turn, before the process is stopped.
    pub cancel_timeout: u64,
    /// Silence of a turn after which clients are notified; 0 = never.
    pub stall_notice: u64,
    pub stop: StopTimes,
    /// When and how often it is restarted.
    pub restart: Restart,
    /// The catalogue does not have it, so its quirks are those of the program that it turns out to be.
    pub takes_quirks: bool,
    /// Part of a replay may come after the response of `session/load`.
    pub late_replay: bool,
    /// Age that a session must have before a load (ms); 0 = none.
    pub load_after: u64,
    /// A load replays the whole conversation, so what is missing there is lost.
    pub replays: bool,
    /// A turn that ends as `end_turn` without a word of the agent has failed.
    pub empty_turn_fails: bool,
    /// Signs by which a turn that ended well for its agent has failed.
    pub failed_turn: Vec<FailureSign>,
    pub use_resume: bool,
    pub use_load: bool,
    /// A session that is brought back gets its MCP servers again.
    pub restore_mcp: bool,
    /// Conversations stay when their session is closed.
    pub persist_history: bool,
    /// Clients whose `session/close` closes a shared session.
    pub closed_by: ClosedBy,
    pub defaults: Defaults,
    /// Treatment of a session that cannot be restored.
    pub on_lost: OnLost,
    /// Text that its new session gets about the lost one.
    pub reseed: Reseed,
    /// Treatment of a task whose turn was interrupted.
    pub on_interrupted: OnInterrupted,
    /// Treatment of a task whose turn ended at a usage limit.
    pub on_limit: OnLimit,
    /// Services of acpd if no editor offers them.
    pub services: Services,
    /// Offer to show the agent's subagents.
    pub subagents: bool,
    /// MCP servers of the configuration for its sessions.
    pub mcp: Vec<McpServer>,
    /// Which members `_meta` of a client's capabilities it hears of: `a.b` stands for `_meta.a.b` and
    /// for `a._meta.b`.
    pub client_meta: Vec<String>,
}

/// The hub's view of a configured MCP server; see [`crate::mcp`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    pub name: String,
    /// How it is talked with.
    pub kind: McpKind,
    /// Only for sessions that work there.
    pub workspace: Option<Workspaces>,
    /// acpd's own server, which gets the number of its session.
    pub builtin: bool,
}

/// Clients whose `session/close` closes a shared session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClosedBy {
    /// No client's: each leaves, and the last one closes the session.
    #[default]
    Last,
    /// That of the controller that has been there longest.
    Owner,
}

/// Treatment of a session that cannot be restored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnLost {
    /// The next prompt goes to a new session of the agent, behind a summary, and that is told.
    #[default]
    Reseed,
    /// The session is lost: prompts are refused.
    Stop,
}

/// Treatment of a task whose turn was interrupted by the death of its process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnInterrupted {
    /// Nothing: a person can send the prompt again.
    #[default]
    Fail,
    /// The agent is asked to go on, once.
    Continue,
}

/// Treatment of a task whose turn ended at a usage limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnLimit {
    /// Nothing: a person can send another prompt when it is over.
    #[default]
    Fail,
    /// The agent is asked to continue when it is over.
    Wait,
}

/// Sign of a failed turn: the last update that has a member, or the answer to the prompt, has this text at
/// the beginning of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureSign {
    /// Path of the member in the update or in the result.
    pub path: Vec<String>,
    /// Beginning of its text.
    pub text: String,
}

impl FailureSign {
    pub fn parse(sign: &str) -> Option<FailureSign> {
        let (path, text) = sign.split_once('=')?;
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        let is_whole = !text.is_empty() && path.iter().all(|member| !member.is_empty());
        is_whole.then(|| FailureSign { path, text: text.to_owned() })
    }

    /// Returns whether the sign is there; `None` if the object does not have the member.
    pub(crate) fn is_in(&self, object: &[u8]) -> Option<bool> {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        Some(str_at(object, &path)?.starts_with(&self.text))
    }
}

/// Ways in which a program differs from the protocol.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Quirks {
    pub stop: StopTimes,
    pub auth_errors: Vec<String>,
    pub gone_errors: Vec<String>,
    pub late_replay: bool,
    pub load_after: u64,
    pub empty_turn_fails: bool,
    pub failed_turn: Vec<FailureSign>,
    pub no_resume: bool,
    pub no_restore_mcp: bool,
}

impl Quirks {
    /// Returns the quirks that a profile is configured with.
    pub fn of(profile: &Profile) -> Quirks {
        Quirks {
            stop: profile.stop,
            auth_errors: profile.auth_errors.clone(),
            gone_errors: profile.gone_errors.clone(),
            late_replay: profile.late_replay,
            load_after: profile.load_after,
            empty_turn_fails: profile.empty_turn_fails,
            failed_turn: profile.failed_turn.clone(),
            no_resume: !profile.use_resume,
            no_restore_mcp: !profile.restore_mcp,
        }
    }
}

impl Profile {
    /// Takes the quirks of its program. What is configured otherwise than by default stays.
    pub(crate) fn take_quirks(&mut self, quirks: &Quirks) {
        let Quirks { stop, auth_errors, gone_errors, failed_turn, .. } = quirks.clone();
        if self.stop == StopTimes::default() {
            self.stop = stop;
        }
        for (own, known) in
            [(&mut self.auth_errors, auth_errors), (&mut self.gone_errors, gone_errors)]
        {
            if own.is_empty() {
                *own = known;
            }
        }
        if self.failed_turn.is_empty() {
            self.failed_turn = failed_turn;
        }
        if self.load_after == 0 {
            self.load_after = quirks.load_after;
        }
        self.late_replay |= quirks.late_replay;
        self.empty_turn_fails |= quirks.empty_turn_fails;
        self.use_resume &= !quirks.no_resume;
        self.restore_mcp &= !quirks.no_restore_mcp;
    }
}

/// How many processes an agent profile has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sharing {
    /// All sessions share one.
    #[default]
    Agent,
    /// Each session has its own.
    Session,
}

/// Times of the stop ladder in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopTimes {
    /// From closing stdin to SIGTERM.
    pub eof: u64,
    /// From SIGTERM to SIGKILL.
    pub term: u64,
    /// From SIGTERM to SIGKILL for the processes that an unexpectedly dead leader left.
    pub leftovers: u64,
}

impl Default for StopTimes {
    fn default() -> StopTimes {
        StopTimes { eof: 3_000, term: 7_000, leftovers: 1_000 }
    }
}

/// Restart rules; times in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restart {
    /// Restart after an unexpected exit.
    pub on_failure: bool,
    /// First delay; doubles with each failure.
    pub delay: u64,
    pub max_delay: u64,
    /// Number of failures …
    pub budget: u32,
    /// … within this time that are a crash loop.
    pub window: u64,
    /// Ready time after which a crash leads to an immediate restart.
    pub ready_after: u64,
}

impl Default for Profile {
    fn default() -> Profile {
        Profile {
            title: String::new(),
            command: Vec::new(),
            fingerprint: String::new(),
            log: String::new(),
            login_hint: None,
            auth_errors: Vec::new(),
            gone_errors: Vec::new(),
            credentials_ttl: None,
            has_login_file: false,
            tried: false,
            sharing: Sharing::Agent,
            idle_timeout: 30 * 60_000,
            session_idle_timeout: 0,
            start_timeout: 60_000,
            restore_timeout: 30_000,
            cancel_timeout: 10_000,
            stall_notice: 5 * 60_000,
            stop: StopTimes::default(),
            restart: Restart {
                on_failure: true,
                delay: 250,
                max_delay: 30_000,
                budget: 5,
                window: 120_000,
                ready_after: 10_000,
            },
            takes_quirks: false,
            late_replay: false,
            load_after: 0,
            replays: true,
            empty_turn_fails: false,
            failed_turn: Vec::new(),
            use_resume: true,
            use_load: true,
            restore_mcp: true,
            persist_history: true,
            closed_by: ClosedBy::default(),
            defaults: Defaults::default(),
            on_lost: OnLost::default(),
            reseed: Reseed::default(),
            on_interrupted: OnInterrupted::default(),
            on_limit: OnLimit::default(),
            services: Services::default(),
            subagents: false,
            mcp: Vec::new(),
            client_meta: Vec::new(),
        }
    }
}
