//! `[defaults]` and `[agents.NAME]`: profiles of agents. Their defaults are in `defaults.toml`.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::path::PathBuf;
use std::time::Duration;

use acp_wire::Versions;
use acpd_core::profile::FailureSign;
pub use acpd_core::profile::{ClosedBy, OnInterrupted, OnLimit, OnLost, Reseed, Sharing};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::format::{
    Address, As, Command, Directory, Each, ErrorText, Failed, FailureText, File, Member, OnFailure,
    OneOf, Record, Table, Time, TimeOrNever, Timeout, VariableName, VariablePattern, Whole, Word,
};
use crate::config::secrets::{Credential, CredentialFormat};

/// Keys for `[agents.NAME]` only.
pub(super) const AGENT_KEYS: [&str; 14] = [
    "title",
    "command",
    "args",
    "tcp",
    "credentials",
    "failed_turn",
    "model",
    "mode",
    "install",
    "login",
    "login_file",
    "auth_errors",
    "gone_errors",
    "client_meta",
];
/// Keys for the catalogue only.
pub(super) const CATALOGUE_KEYS: [&str; 4] = ["info_names", "repositories", "tried", "builtin"];
/// Keys whose tables add up.
pub(super) const ADDED_KEYS: [&str; 3] = ["env", "credentials", "inherit_env"];

/// Everything acpd needs to know about an agent, resolved to plain values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Profile {
    /// The name to show to people. When unset: the agent's own name.
    pub title: Option<String>,
    /// How to start the agent. A string is a program, looked up in the agent's `PATH`; for an
    /// agent of the catalogue it replaces the program and keeps the arguments. A list is the
    /// whole command.
    #[serde(with = "As::<Command>")]
    pub command: Vec<String>,
    /// Arguments to put after `command`. For an agent of the catalogue they replace the ones
    /// listed there.
    #[serde(with = "As::<Each<Word>>")]
    args: Vec<String>,
    #[serde(with = "As::<Record<Tcp>>")]
    tcp: Tcp,
    /// Whether a `command` that is `npx` or `uvx` is replaced by the package's own program when the
    /// package is installed, in the version that the command asks for. Then a start needs no network.
    /// Agents of the catalogue are never downloaded by a start: `acpctl agent install` does that.
    pub prefer_installed: bool,
    /// Environment variables to set. Tables add up; the innermost value of a variable wins.
    pub env: Variables,
    /// Environment variables whose values are looked up before each start; see
    /// [credentials](#credentials).
    #[serde(with = "As::<Table<VariableName, CredentialFormat>>")]
    pub credentials: BTreeMap<String, Credential>,
    /// Environment variables to pass on from the daemon, besides those that every agent gets
    /// (see below). Lists add up. `"*"` alone passes everything on.
    #[serde(with = "As::<Each<VariablePattern>>")]
    pub inherit_env: Vec<String>,
    /// The directory that the agent's process starts in. The client chooses the directory that a
    /// session works in.
    #[serde(with = "As::<Directory>")]
    pub cwd: Option<PathBuf>,
    /// Whether all sessions of the agent share one process, or each has its own.
    #[serde(with = "As::<OneOf<Sharing>>")]
    pub sharing: Sharing,
    /// How long an agent that nobody uses is kept running. Its sessions come back with the
    /// next prompt.
    #[serde(with = "As::<TimeOrNever>")]
    pub idle_timeout: Option<Duration>,
    /// How long a session that nothing uses keeps its process at the agent, for agents with a process for each
    /// session. It sleeps then, and comes back with the next prompt. Never while a turn, a question, a tool call,
    /// a terminal or a subagent is open.
    #[serde(with = "As::<TimeOrNever>")]
    pub session_idle_timeout: Option<Duration>,
    /// How long the agent may take to answer `initialize`.
    #[serde(with = "As::<Timeout>")]
    pub start_timeout: Duration,
    /// How long the agent may take to restore a session.
    #[serde(with = "As::<Timeout>")]
    pub restore_timeout: Duration,
    /// How long the agent may take to end a cancelled turn before it is stopped.
    #[serde(with = "As::<Timeout>")]
    pub cancel_timeout: Duration,
    /// How long a turn may be silent before people are told that it has stalled, and how long a new
    /// session, a mode or an option may be unanswered. Waiting for an answer of a person or for a
    /// running tool does not count.
    #[serde(with = "As::<TimeOrNever>")]
    pub stall_notice: Option<Duration>,
    #[serde(with = "As::<Record<StopTimes>>")]
    pub stop: StopTimes,
    /// Whether an agent that died is started again.
    #[serde(rename = "restart", with = "As::<OnFailure>")]
    pub restart_on_failure: bool,
    /// The wait before a restart. It doubles with every failure in a row.
    #[serde(with = "As::<Time>")]
    pub restart_delay: Duration,
    /// The longest wait before a restart.
    #[serde(with = "As::<Time>")]
    pub restart_max_delay: Duration,
    /// How many failures in a row are too many. The agent then stays down until someone starts it
    /// or sends it a prompt.
    #[serde(with = "As::<Whole<u32, 1>>")]
    pub restart_budget: u32,
    /// An agent that stayed down for this long begins a new count.
    #[serde(with = "As::<Timeout>")]
    pub restart_window: Duration,
    /// How long an agent must have been ready to be restarted without a wait.
    #[serde(with = "As::<Time>")]
    pub ready_after: Duration,
    /// Whether the agent goes on replaying a session after it answered `session/load`.
    pub late_replay: bool,
    /// How old a session must be before the agent may load it, for agents that lose one which is loaded soon after
    /// it began. A restore waits for that.
    #[serde(with = "As::<Time>")]
    pub load_after: Duration,
    /// Whether the agent replays all prompts when it loads a session. With `false` nothing is said about
    /// what is missing there.
    pub replays: bool,
    /// How a turn counts in which the agent says nothing: no text, no tool call. With `"failed"` it is
    /// an error, for agents that stay silent when their model fails.
    #[serde(rename = "empty_turn", with = "As::<Failed>")]
    pub empty_turn_fails: bool,
    /// How to tell a turn that failed from one that ended, for agents that end both the same way: `"MEMBER=TEXT"`
    /// for the last update of the turn that has this member, or the answer to the prompt, with this text at its
    /// beginning. `"content.text=Error: "` is such a message.
    #[serde(with = "As::<Each<FailureText>>")]
    pub failed_turn: Vec<FailureSign>,
    /// The methods that may be used to restore a session, as far as the agent offers them.
    #[serde(with = "As::<Each<OneOf<RestoreMethod>>>")]
    pub restore: Vec<RestoreMethod>,
    /// Whether a session that is restored gets its MCP servers again. Without, an agent that refuses
    /// them there has only those that it remembers itself.
    pub restore_mcp: bool,
    /// Whether a session is made or brought back only if its directory exists here. `false` is for an
    /// agent that sees other directories than this machine: in a container, over `ssh`.
    pub check_cwd: bool,
    /// Whether conversations are kept. With `false` acpd deletes a conversation for good when its session is closed,
    /// and no search finds it before; see [how much is kept](#how-much-is-kept).
    pub persist_history: bool,
    /// Whose `session/close` closes a session that several clients use. With `"last"` each client only
    /// leaves it, until the last one does. With `"owner"` the client that has been there longest closes
    /// it for all.
    #[serde(with = "As::<OneOf<ClosedBy>>")]
    pub closed_by: ClosedBy,
    /// The model that sessions begin with, by its id or its name. A client can choose another one. What the
    /// agent does not offer is told in the session.
    pub model: Option<String>,
    /// The mode that sessions begin with, by its id or its name.
    pub mode: Option<String>,
    /// What becomes of a session that the agent cannot bring back. With `"reseed"` the next prompt
    /// goes to a new session of the agent, after a summary of the last request, and people are told.
    /// With `"stop"` it is lost, and prompts to it are refused.
    #[serde(with = "As::<OneOf<OnLost>>")]
    pub on_lost: OnLost,
    /// What the new session gets before the prompt when the agent has lost the old one. With `"summary"` it is the
    /// last request and the end of the answer, with `"transcript"` the last 64 KiB of the conversation, for agents
    /// that cannot load sessions.
    #[serde(with = "As::<OneOf<Reseed>>")]
    pub reseed: Reseed,
    /// What becomes of a task whose turn was cut off because the agent died. With `"continue"` the
    /// agent is asked to go on once its session is back: once, and not if somebody has cancelled
    /// the turn or sent another prompt.
    #[serde(with = "As::<OneOf<OnInterrupted>>")]
    pub on_interrupted: OnInterrupted,
    /// What becomes of a task whose turn ended by a usage limit of the agent. With `"wait"` acpd waits until
    /// the limit is over and asks the agent to continue, at most five times in a row; see
    /// [usage limits](#usage-limits).
    #[serde(with = "As::<OneOf<OnLimit>>")]
    pub on_limit: OnLimit,
    /// What acpd does for the agent when no editor that is attached does it: `fs` reads and writes
    /// files in the folders of a session, and nowhere else; `terminal` runs commands, which end with
    /// the agent, its session or the daemon. What the agent is not offered, it does itself, and its
    /// own commands outlive the daemon.
    #[serde(with = "As::<Each<OneOf<Offer>>>")]
    pub services: Vec<Offer>,
    /// Whether the agent is offered to show the work of its subagents: what they say and ask, as
    /// sessions of their own. Clients that cannot show that then see less of what the agent does.
    pub subagents: bool,
    /// The version of the protocol that acpd speaks with the agent; with `"auto"` it is version 2, a
    /// preview, if the agent has it.
    #[serde(with = "As::<OneOf<Versions>>")]
    pub protocol: Versions,
    /// Whether the agent can be used at all.
    pub enabled: bool,
    /// The command that installs the agent, shown when it cannot be found.
    pub install: Option<String>,
    /// The command that logs the agent in. `acpctl auth login` runs it if the agent itself offers no
    /// way.
    pub login: Option<String>,
    /// The file in which the agent keeps its login. While a login is wanted, a change of it counts as
    /// one.
    #[serde(with = "As::<File>")]
    pub login_file: Option<PathBuf>,
    /// How to tell an error of the agent that wants a login from others, for agents that do not say
    /// so with -32000: a text in its message or its data, in any case, or its code.
    #[serde(with = "As::<Each<ErrorText>>")]
    pub auth_errors: Vec<String>,
    /// How to tell an error to `session/load` which means that the agent has lost the session, for
    /// agents that do not say so with -32002: written like `auth_errors`.
    #[serde(with = "As::<Each<ErrorText>>")]
    pub gone_errors: Vec<String>,
    /// What the agent hears of a client's extensions: members `_meta` of its capabilities, where
    /// `"auth.gateway"` stands for `auth._meta.gateway` and for `_meta.auth.gateway`. See
    /// [extensions of clients](#extensions-of-clients).
    #[serde(with = "As::<Each<Member>>")]
    pub client_meta: Vec<String>,
    /// Names by which the program calls itself in `agentInfo.name`. An agent that is configured under another name
    /// is treated like this one where it calls itself so.
    #[serde(with = "As::<Each<Word>>")]
    pub info_names: Vec<String>,
    /// Repositories in which the packages of `install` are developed, each as `"PACKAGE=REPOSITORY"`. A package for
    /// which the registry names another one is not installed.
    #[serde(with = "As::<Each<Word>>")]
    pub repositories: Vec<String>,
    /// Whether acpd is tested with this agent.
    pub tried: bool,
    /// Whether the program is the daemon's own executable, whatever `command` calls it.
    pub builtin: bool,
    #[serde(skip)]
    pub name: String,
    /// Position in the catalogue: the first installed agent is the default. `None` for an agent of
    /// the user's file alone.
    #[serde(skip)]
    pub position: Option<usize>,
    /// The catalogue defines the start, not the user.
    #[serde(skip)]
    pub is_known_command: bool,
    /// Number of names in `inherit_env` from the catalogue; they come first.
    #[serde(skip)]
    pub(super) known_variables: usize,
}

/// Connections to an agent over TCP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Tcp {
    /// Start the agent's command and talk with it over a connection to a port of this machine
    /// instead of its standard input and output.
    spawn: bool,
    /// The port for `tcp.spawn`; 0 stands for a free one. It replaces `{port}` in the arguments of the
    /// command.
    #[serde(with = "As::<Whole<u16, 0>>")]
    port: Option<u16>,
    /// Start nothing, and talk with an agent that listens at this `host:port`. It is never stopped.
    #[serde(with = "As::<Address>")]
    connect: Option<String>,
}

/// Times of the steps that stop an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StopTimes {
    /// When an agent is stopped: how long it has after its standard input was closed.
    #[serde(with = "As::<Time>")]
    pub eof: Duration,
    /// When an agent is stopped: how long it has after that, from `SIGTERM` to `SIGKILL`.
    #[serde(with = "As::<Time>")]
    pub term: Duration,
    /// When an agent died by itself: how long the processes that it left behind have, from
    /// `SIGTERM` to `SIGKILL`.
    #[serde(with = "As::<Time>")]
    pub leftovers: Duration,
}

impl Profile {
    pub fn transport(&self) -> Transport<'_> {
        match (&self.tcp.connect, self.tcp.spawn) {
            (Some(address), _) => Transport::TcpConnect(address),
            (None, true) => Transport::TcpSpawn(self.tcp.port.unwrap_or(0)),
            (None, false) => Transport::Stdio,
        }
    }

    /// Without a `cwd`, returns the home directory.
    pub(crate) fn start_dir(&self) -> PathBuf {
        let home = || std::env::home_dir().unwrap_or_else(|| PathBuf::from("/"));
        self.cwd.clone().unwrap_or_else(home)
    }

    /// Returns whether acpd starts no process.
    pub(crate) fn is_remote(&self) -> bool {
        self.tcp.connect.is_some()
    }

    /// Returns keys that do not fit together, and a hint.
    pub(super) fn contradiction(&self) -> Option<(&'static str, &'static str)> {
        let (spawn, connect) = (self.tcp.spawn, self.tcp.connect.is_some());
        if spawn && connect {
            let hint = "`connect` is for an agent that runs, `spawn` for one to be started";
            Some(("has both `tcp.spawn` and `tcp.connect`", hint))
        } else if self.tcp.port.is_some() && !spawn {
            Some(("has a `tcp.port` without `tcp.spawn`", "add `tcp.spawn = true`"))
        } else if connect && !self.command.is_empty() {
            let hint = "leave out `command`: nothing is started, or use `tcp.spawn`";
            Some(("has both `tcp.connect` and `command`", hint))
        } else {
            None
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport<'a> {
    Stdio,
    /// A connection to this port after the start; 0 for a free port.
    TcpSpawn(u16),
    /// A connection to this `host:port`.
    TcpConnect(&'a str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Offer {
    /// `fs/read_text_file` and `fs/write_text_file`.
    Fs,
    /// `terminal/*`.
    Terminal,
}

impl Offer {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Fs => "fs",
            Self::Terminal => "terminal",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RestoreMethod {
    /// `session/resume`, which replays nothing.
    Resume,
    /// `session/load`, which replays the conversation.
    Load,
}

/// Environment variables by name. `Debug` shows the names alone: values may be secrets.
#[derive(Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct Variables(#[serde(with = "As::<Table<VariableName, Word>>")] BTreeMap<String, String>);

impl Deref for Variables {
    type Target = BTreeMap<String, String>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
