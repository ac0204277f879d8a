//! Every key of the configuration, with its default and its documentation.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use acpd_api::{Cost, HookEvent};
pub use acpd_core::profile::{ClosedBy, OnInterrupted, OnLimit, OnLost, Reseed, Sharing, WhenOver};
use toml::Spanned;
use toml::de::DeValue;

use crate::config::keys::fault::Fault;
use crate::config::keys::kind::{
    Address, Arguments, Choice, Command, CommandLine, Count, Directory, Environment, Flag, Kind,
    Line, LineSize, LogFilter, Members, Money, Names, OneOf, Perhaps, Port, Size, SomeOf, Time,
    TimeOrNever, Timeout,
};
use crate::config::keys::schema::{Schema, list_of, text};
use crate::config::keys::variables::Variables;
use crate::config::keys::{Key, Keys, Scope, keys};
use crate::config::tables::auth::{Credential, Credentials, ErrorPatterns, FailureSigns, File};

keys! {
    /// The keys at the top of the file.
    pub(crate) struct Root {
        /// The agent for clients that name none. When unset: the first one configured under
        /// `[agents]`, else the first one of [known agents](#known-agents) that is tried and installed,
        /// else `demo`, a script.
        Shared "default_agent" => pub(crate) default_agent: Option<String> as Line = None;
    }
    beside {}
}

keys! {
    /// How the daemon itself behaves.
    pub struct Daemon {
        /// What to log: a level, or a filter of the `tracing` library.
        Shared "log_level" => pub log_level: String as LogFilter = "info".to_owned();
        /// The size in bytes at which the log file is rotated.
        Shared "log_max_bytes" => pub log_max_bytes: u64 as Size = 10 << 20;
        /// The longest line in bytes that is accepted from an agent or a client. A longer one is
        /// discarded, and its request answered with an error. At most 128 MiB.
        Shared "line_limit" => pub line_limit: u64 as LineSize = 64 << 20;
        /// How many bytes may wait for one client. A client that falls further behind is caught up
        /// from the journal instead.
        Shared "client_queue" => pub client_queue: u64 as Size = 8 << 20;
        /// How many clients may be connected at once. Commands that only look or manage do not count.
        Shared "max_clients" => pub max_clients: u32 as Count = 64;
        /// How many agents may be started at the same time. The others wait for their turn: first come
        /// those that somebody waits for, then those with a session that somebody has open.
        Shared "cold_starts" => pub cold_starts: u32 as Count = 4;
        /// How long a session that `acpctl session rm` has deleted can be brought back by `acpctl session undo`; with
        /// `"0s"` it is gone at once.
        Shared "keep_deleted" => pub keep_deleted: Duration as Time = Duration::from_hours(24);
        /// Whether the desktop shows a notification when an agent asks something or a turn of more than a
        /// minute is over, and nobody is attached to the session.
        Shared "notify" => pub notify: bool as Flag = true;
        /// Whether the machine is kept awake while an agent works on a prompt and waits for nobody.
        Shared "keep_awake" => pub keep_awake: bool as Flag = false;
        /// Whether agents inherit from the environment that your login shell makes (`PATH` first of all) and not from
        /// the daemon's own. With `"auto"` they do if no shell has started the daemon: a service manager, a desktop
        /// or cron did.
        Shared "login_shell" => pub login_shell: UseLoginShell as OneOf<UseLoginShell>
            = UseLoginShell::Auto;
        /// How long an agent that has nothing to do continues without a daemon.
        Shared "orphan_timeout" => pub orphan_timeout: Option<Duration> as TimeOrNever
            = Some(Duration::from_mins(30));
        /// The same for an agent in the middle of a turn.
        Shared "busy_orphan_timeout" => pub busy_orphan_timeout: Option<Duration> as TimeOrNever
            = Some(Duration::from_hours(24));
    }
    beside {}
}

keys! {
    /// Commands that are run when something happens.
    pub struct Hooks {
        /// An agent asks a person: a permission that no rule decides, a form, or a page to open.
        Shared "on_permission" => pub on_permission: Vec<String> as CommandLine = Vec::new();
        /// A turn is over, in whatever way.
        Shared "on_turn_end" => pub on_turn_end: Vec<String> as CommandLine = Vec::new();
        /// An agent's process ended by itself.
        Shared "on_crash" => pub on_crash: Vec<String> as CommandLine = Vec::new();
        /// An agent wants a login.
        Shared "on_login" => pub on_login: Vec<String> as CommandLine = Vec::new();
    }
    beside {}
}

impl Hooks {
    /// What a command is run for, and the command.
    pub fn configured(&self) -> impl Iterator<Item = (HookEvent, &[String])> {
        let command = |event| match event {
            HookEvent::Permission => &self.on_permission,
            HookEvent::TurnEnd => &self.on_turn_end,
            HookEvent::Crash => &self.on_crash,
            HookEvent::Login => &self.on_login,
        };
        let all = HookEvent::ALL.into_iter().map(move |event| (event, command(event).as_slice()));
        all.filter(|(_, command)| !command.is_empty())
    }
}

keys! {
    /// A directory with settings of its own.
    pub struct Workspace {
        /// The directory, with all below it; it must be given. Of several the innermost comes first.
        Shared "path" => pub path: Option<PathBuf> as Directory = None;
        /// The agent for `acpctl run` and `acpctl chat` in this directory, for editors that start `acpctl acp` in it
        /// without naming one, and for other clients that name none and say where they are.
        /// `model` and `mode` are then for sessions of this agent only.
        Shared "agent" => pub agent: Option<String> as Line = None;
        /// The model that sessions begin with, by its id or its name.
        Shared "model" => pub model: Option<String> as Line = None;
        /// The mode that sessions begin with, by its id or its name.
        Shared "mode" => pub mode: Option<String> as Line = None;
        /// What the tool `diagnostics` of [acpd's own server](delegation.md#diagnostics) runs here: command lines for a
        /// shell, or `"detect"` for those that the files here call for. They may run code of the directory.
        /// `"editor:TOOL"` names the tool of an editor that is asked first, in place of the usual names. When unset, or an
        /// empty list: no command.
        Shared "diagnostics" => pub diagnostics: Option<Vec<String>> as CommandLines = None;
        /// Whether sessions of all agents that work here stay until you delete them, whatever `[retention]` says.
        Shared "keep" => pub keep: bool as Flag = false;
        /// `max_age` of `[retention]` for the sessions of all agents that work here.
        Shared "retention.max_age" => pub max_age: Option<Duration> as Perhaps<Timeout> = None;
        /// `max_sessions` of `[retention]` for these: they are counted by themselves.
        Shared "retention.max_sessions" => pub max_sessions: Option<u32> as Perhaps<Count> = None;
        /// `max_size` of `[retention]` for these: they are added up by themselves.
        Shared "retention.max_size" => pub max_size: Option<u64> as Perhaps<Size> = None;
    }
    beside {}
}

/// Command lines for a shell, or nothing said.
struct CommandLines;

impl Kind for CommandLines {
    type Value = Option<Vec<String>>;

    fn describe() -> String {
        "a list of command lines".to_owned()
    }

    fn schema() -> Schema {
        list_of(&text("\\S"))
    }

    fn read(value: &Spanned<DeValue<'_>>) -> Result<Self::Value, Fault> {
        let lines = Arguments::read(value)?;
        if lines.iter().any(|line| line.trim().is_empty()) {
            return Err(Fault::new(value, "has an empty command"));
        }
        Ok(Some(lines))
    }

    fn show(value: &Self::Value) -> String {
        value.as_ref().map_or_else(String::new, Arguments::show)
    }
}

keys! {
    /// What may be spent.
    pub struct Budget {
        /// What may be spent in a day, as far as agents tell the cost of their sessions, all of them together: an
        /// amount and its currency. When unset: as much as you like.
        Shared "per_day" => pub per_day: Option<Cost> as Money = None;
        /// What happens when it is spent. With `"warn"` people are told, in the session and in `acpctl ps`. With
        /// `"ask"` each prompt waits until a person allows it (`acpctl allow`), for as much again.
        Shared "when_over" => pub when_over: WhenOver as OneOf<WhenOver> = WhenOver::Warn;
    }
    beside {}
}

keys! {
    /// How acpd's own views look.
    pub struct Tui {
        /// Whether `run`, `attach`, `chat` and the page show the plans of agents. The journal has them in any case:
        /// `session log`, exports and editors do not change.
        Shared "show_plan" => pub show_plan: bool as Flag = true;
    }
    beside {}
}

impl Choice for WhenOver {
    const WORDS: &'static [(&'static str, Self)] = &[("warn", Self::Warn), ("ask", Self::Ask)];
}

/// Whether the login shell is asked what agents inherit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UseLoginShell {
    /// If no shell has started the daemon.
    Auto,
    /// Whoever has started it.
    Always,
    /// The daemon's own environment is what they inherit.
    Never,
}

impl Choice for UseLoginShell {
    const WORDS: &'static [(&'static str, Self)] =
        &[("auto", Self::Auto), ("always", Self::Always), ("never", Self::Never)];
}

keys! {
    /// Everything acpd needs to know about an agent, resolved to plain values.
    pub struct Profile {
        /// The name to show to people. When unset: the agent's own name.
        Agent "title" => pub title: Option<String> as Line = None;
        /// How to start the agent. A string is a program, looked up in the agent's `PATH`; for an
        /// agent of the catalogue it replaces the program and keeps the arguments. A list is the
        /// whole command.
        Agent "command" => pub command: Vec<String> as Command = Vec::new();
        /// Arguments to put after `command`. For an agent of the catalogue they replace the ones
        /// listed there.
        Agent "args" => args: Vec<String> as Arguments = Vec::new();
        /// Start the agent's command and talk with it over a connection to a port of this machine
        /// instead of its standard input and output.
        Agent "tcp.spawn" => tcp_spawn: bool as Flag = false;
        /// The port for `tcp.spawn`; 0 stands for a free one. It replaces `{port}` in the arguments of the
        /// command.
        Agent "tcp.port" => tcp_port: Option<u16> as Port = None;
        /// Start nothing, and talk with an agent that listens at this `host:port`. It is never stopped.
        Agent "tcp.connect" => tcp_connect: Option<String> as Address = None;
        /// Whether a `command` that is `npx` or `uvx` is replaced by the package's own program when the
        /// package is installed, in the version that the command asks for. Then a start needs no network.
        /// Agents of the catalogue are never downloaded by a start: `acpctl agent install` does that.
        Shared "prefer_installed" => pub prefer_installed: bool as Flag = true;
        /// Environment variables to set. Tables add up; the innermost value of a variable wins.
        Shared "env" => pub env: Variables as Environment = Variables::default();
        /// Environment variables whose values are looked up before each start; see
        /// [credentials](#credentials).
        Agent "credentials" => pub credentials: BTreeMap<String, Credential> as Credentials
            = BTreeMap::new();
        /// Environment variables to pass on from the daemon, besides those that every agent gets
        /// (see below). Lists add up. `"*"` alone passes everything on.
        Shared "inherit_env" => pub inherit_env: Vec<String> as Names = Vec::new();
        /// The directory that the agent's process starts in. The client chooses the directory that a
        /// session works in.
        Shared "cwd" => pub cwd: Option<PathBuf> as Directory = None;
        /// Whether all sessions of the agent share one process, or each has its own.
        Shared "sharing" => pub sharing: Sharing as OneOf<Sharing> = Sharing::Agent;
        /// How long an agent that nobody uses is kept running. Its sessions come back with the
        /// next prompt.
        Shared "idle_timeout" => pub idle_timeout: Option<Duration> as TimeOrNever
            = Some(Duration::from_mins(30));
        /// How long a session that nothing uses keeps its process at the agent, for agents with a process for each
        /// session. It sleeps then, and comes back with the next prompt. Never while a turn, a question, a tool call,
        /// a terminal or a subagent is open.
        Shared "session_idle_timeout" => pub session_idle_timeout: Option<Duration> as TimeOrNever = None;
        /// How long the agent may take to answer `initialize`.
        Shared "start_timeout" => pub start_timeout: Duration as Timeout = Duration::from_mins(1);
        /// How long the agent may take to restore a session.
        Shared "restore_timeout" => pub restore_timeout: Duration as Timeout
            = Duration::from_secs(30);
        /// How long the agent may take to end a cancelled turn before it is stopped.
        Shared "cancel_timeout" => pub cancel_timeout: Duration as Timeout
            = Duration::from_secs(10);
        /// How long a turn may be silent before people are told that it has stalled, and how long a new
        /// session, a mode or an option may be unanswered. Waiting for an answer of a person or for a
        /// running tool does not count.
        Shared "stall_notice" => pub stall_notice: Option<Duration> as TimeOrNever
            = Some(Duration::from_mins(5));
        /// When an agent is stopped: how long it has after its standard input was closed.
        Shared "stop.eof" => pub stop_eof: Duration as Time = Duration::from_secs(3);
        /// When an agent is stopped: how long it has after that, from `SIGTERM` to `SIGKILL`.
        Shared "stop.term" => pub stop_term: Duration as Time = Duration::from_secs(7);
        /// When an agent died by itself: how long the processes that it left behind have, from
        /// `SIGTERM` to `SIGKILL`.
        Shared "stop.leftovers" => pub stop_leftovers: Duration as Time = Duration::from_secs(1);
        /// Whether an agent that died is started again.
        Shared "restart" => pub restart: Restart as OneOf<Restart> = Restart::OnFailure;
        /// The wait before a restart. It doubles with every failure in a row.
        Shared "restart_delay" => pub restart_delay: Duration as Time = Duration::from_millis(250);
        /// The longest wait before a restart.
        Shared "restart_max_delay" => pub restart_max_delay: Duration as Time
            = Duration::from_secs(30);
        /// How many failures within `restart_window` are too many. The agent then stays down until
        /// someone starts it or sends it a prompt.
        Shared "restart_budget" => pub restart_budget: u32 as Count = 5;
        /// See `restart_budget`.
        Shared "restart_window" => pub restart_window: Duration as Timeout
            = Duration::from_mins(2);
        /// How long an agent must have been ready to be restarted without a wait.
        Shared "ready_after" => pub ready_after: Duration as Time = Duration::from_secs(10);
        /// Whether the agent goes on replaying a session after it answered `session/load`.
        Shared "late_replay" => pub late_replay: bool as Flag = false;
        /// How old a session must be before the agent may load it, for agents that lose one which is loaded soon after
        /// it began. A restore waits for that.
        Shared "load_after" => pub load_after: Duration as Time = Duration::ZERO;
        /// Whether the agent replays all prompts when it loads a session. With `false` nothing is said about
        /// what is missing there.
        Shared "replays" => pub replays: bool as Flag = true;
        /// How a turn counts in which the agent says nothing: no text, no tool call. With `"failed"` it is
        /// an error, for agents that stay silent when their model fails.
        Shared "empty_turn" => pub empty_turn: EmptyTurn as OneOf<EmptyTurn> = EmptyTurn::Ended;
        /// How to tell a turn that failed from one that ended, for agents that end both the same way: `"MEMBER=TEXT"`
        /// for the last update of the turn that has this member, or the answer to the prompt, with this text at its
        /// beginning. `"content.text=Error: "` is such a message.
        Agent "failed_turn" => pub failed_turn: Vec<String> as FailureSigns = Vec::new();
        /// The methods that may be used to restore a session, as far as the agent offers them.
        Shared "restore" => pub restore: Vec<RestoreMethod> as SomeOf<RestoreMethod>
            = vec![RestoreMethod::Resume, RestoreMethod::Load];
        /// Whether a session that is restored gets its MCP servers again. Without, an agent that refuses
        /// them there has only those that it remembers itself.
        Shared "restore_mcp" => pub restore_mcp: bool as Flag = true;
        /// Whether a session is made or brought back only if its directory exists here. `false` is for an
        /// agent that sees other directories than this machine: in a container, over `ssh`.
        Shared "check_cwd" => pub check_cwd: bool as Flag = true;
        /// Whether conversations are kept. With `false` acpd deletes a conversation for good when its session is closed,
        /// and no search finds it before; see [how much is kept](#how-much-is-kept).
        Shared "persist_history" => pub persist_history: bool as Flag = true;
        /// Whose `session/close` closes a session that several clients use. With `"last"` each client only
        /// leaves it, until the last one does. With `"owner"` the client that has been there longest closes
        /// it for all.
        Shared "closed_by" => pub closed_by: ClosedBy as OneOf<ClosedBy> = ClosedBy::Last;
        /// The model that sessions begin with, by its id or its name. A client can choose another one. What the
        /// agent does not offer is told in the session.
        Agent "model" => pub model: Option<String> as Line = None;
        /// The mode that sessions begin with, by its id or its name.
        Agent "mode" => pub mode: Option<String> as Line = None;
        /// What becomes of a session that the agent cannot bring back. With `"reseed"` the next prompt
        /// goes to a new session of the agent, after a summary of the last request, and people are told.
        /// With `"stop"` it is lost, and prompts to it are refused.
        Shared "on_lost" => pub on_lost: OnLost as OneOf<OnLost> = OnLost::Reseed;
        /// What the new session gets before the prompt when the agent has lost the old one. With `"summary"` it is the
        /// last request and the end of the answer, with `"transcript"` the last 64 KiB of the conversation, for agents
        /// that cannot load sessions.
        Shared "reseed" => pub reseed: Reseed as OneOf<Reseed> = Reseed::Summary;
        /// What becomes of a task whose turn was cut off because the agent died. With `"continue"` the
        /// agent is asked to go on once its session is back: once, and not if somebody has cancelled
        /// the turn or sent another prompt.
        Shared "on_interrupted" => pub on_interrupted: OnInterrupted as OneOf<OnInterrupted>
            = OnInterrupted::Fail;
        /// What becomes of a task whose turn ended by a usage limit of the agent. With `"wait"` acpd waits until
        /// the limit is over and asks the agent to continue, at most five times in a row; see
        /// [usage limits](#usage-limits).
        Shared "on_limit" => pub on_limit: OnLimit as OneOf<OnLimit> = OnLimit::Fail;
        /// What acpd does for the agent when no editor that is attached does it: `fs` reads and writes
        /// files in the folders of a session, and nowhere else; `terminal` runs commands, which end with
        /// the agent, its session or the daemon. What the agent is not offered, it does itself, and its
        /// own commands outlive the daemon.
        Shared "services" => pub services: Vec<Offer> as SomeOf<Offer> = vec![Offer::Fs];
        /// Whether the agent is offered to show the work of its subagents: what they say and ask, as
        /// sessions of their own. Clients that cannot show that then see less of what the agent does.
        Shared "subagents" => pub subagents: bool as Flag = true;
        /// Whether the agent can be used at all.
        Shared "enabled" => pub enabled: bool as Flag = true;
        /// The command that installs the agent, shown when it cannot be found.
        Agent "install" => pub install: Option<String> as Line = None;
        /// The command that logs the agent in. `acpctl auth login` runs it if the agent itself offers no
        /// way.
        Agent "login" => pub login: Option<String> as Line = None;
        /// The file in which the agent keeps its login. While a login is wanted, a change of it counts as
        /// one.
        Agent "login_file" => pub login_file: Option<PathBuf> as File = None;
        /// How to tell an error of the agent that wants a login from others, for agents that do not say
        /// so with -32000: a text in its message or its data, in any case, or its code.
        Agent "auth_errors" => pub auth_errors: Vec<String> as ErrorPatterns = Vec::new();
        /// How to tell an error to `session/load` which means that the agent has lost the session, for
        /// agents that do not say so with -32002: written like `auth_errors`.
        Agent "gone_errors" => pub gone_errors: Vec<String> as ErrorPatterns = Vec::new();
        /// What the agent hears of a client's extensions: members `_meta` of its capabilities, where
        /// `"auth.gateway"` stands for `auth._meta.gateway` and for `_meta.auth.gateway`. See
        /// [extensions of clients](#extensions-of-clients).
        Agent "client_meta" => pub client_meta: Vec<String> as Members = Vec::new();
        /// Names by which the program calls itself in `agentInfo.name`. An agent that is configured under another name
        /// is treated like this one where it calls itself so.
        Catalogue "info_names" => pub info_names: Vec<String> as Arguments = Vec::new();
        /// Repositories in which the packages of `install` are developed, each as `"PACKAGE=REPOSITORY"`. A package for
        /// which the registry names another one is not installed.
        Catalogue "repositories" => pub repositories: Vec<String> as Arguments = Vec::new();
        /// Whether acpd is tested with this agent.
        Catalogue "tried" => pub tried: bool as Flag = false;
        /// Whether the program is the daemon's own executable, whatever `command` calls it.
        Catalogue "builtin" => pub builtin: bool as Flag = false;
    }
    beside {
        /// The agent's name, unique in the configuration.
        pub name: String = String::new();
        /// Who described the agent.
        pub source: Source = Source::User;
        /// Position in the catalogue, counted from 0: of several installed agents the first one is the default.
        pub position: usize = 0;
        /// Whether the catalogue, and not the user, says how it is started.
        pub is_known_command: bool = false;
    }
}

impl Profile {
    /// An agent about which nothing has been said yet.
    pub(crate) fn named(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// Prepares for a `command` that comes over the one there is. A `whole` command (a list) leaves
    /// nothing of the old one; a string keeps the arguments, so that saying where a known agent's
    /// program is will do.
    pub(crate) fn replace_command(&mut self, whole: bool) {
        self.builtin = false;
        self.is_known_command = false;
        if whole {
            self.args.clear();
        }
    }

    /// Nothing is started: what the catalogue says of that does not count.
    pub(crate) fn drop_known_command(&mut self) {
        self.replace_command(true);
        self.command.clear();
    }

    /// How the agent is talked with.
    pub fn transport(&self) -> Transport<'_> {
        match (&self.tcp_connect, self.tcp_spawn) {
            (Some(address), _) => Transport::TcpConnect(address),
            (None, true) => Transport::TcpSpawn(self.tcp_port.unwrap_or(0)),
            (None, false) => Transport::Stdio,
        }
    }

    /// What does not fit together about it, with the way out.
    pub(crate) fn contradiction(&self) -> Option<(&'static str, &'static str)> {
        if self.tcp_spawn && self.tcp_connect.is_some() {
            let hint = "`connect` is for an agent that runs, `spawn` for one to be started";
            Some(("has both `tcp.spawn` and `tcp.connect`", hint))
        } else if self.tcp_port.is_some() && !self.tcp_spawn {
            Some(("has a `tcp.port` without `tcp.spawn`", "add `tcp.spawn = true`"))
        } else if self.tcp_connect.is_some() && !self.command.is_empty() {
            let hint = "leave out `command`: nothing is started, or use `tcp.spawn`";
            Some(("has both `tcp.connect` and `command`", hint))
        } else {
            None
        }
    }

    /// Makes `command` the whole command, once all tables have been read.
    pub(crate) fn finish(&mut self) {
        self.command.append(&mut self.args);
    }
}

/// How an agent is talked with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport<'a> {
    /// On its standard input and output.
    Stdio,
    /// On a connection to this port, after it was started; 0 for a free one.
    TcpSpawn(u16),
    /// On a connection to this `host:port`.
    TcpConnect(&'a str),
}

/// Where a profile comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The built-in catalogue alone.
    Catalogue,
    /// The user's file alone.
    User,
    /// The catalogue, changed by a table of the user's file.
    Both,
}

impl Choice for Sharing {
    const WORDS: &'static [(&'static str, Self)] =
        &[("agent", Self::Agent), ("session", Self::Session)];
}

/// Whether an agent that died is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// Whenever it ended without having been stopped.
    OnFailure,
    /// Only when it is needed again.
    Never,
}

impl Choice for Restart {
    const WORDS: &'static [(&'static str, Self)] =
        &[("on-failure", Self::OnFailure), ("never", Self::Never)];
}

impl Choice for ClosedBy {
    const WORDS: &'static [(&'static str, Self)] = &[("last", Self::Last), ("owner", Self::Owner)];
}

impl Choice for OnLost {
    const WORDS: &'static [(&'static str, Self)] =
        &[("reseed", Self::Reseed), ("stop", Self::Stop)];
}

impl Choice for Reseed {
    const WORDS: &'static [(&'static str, Self)] =
        &[("summary", Self::Summary), ("transcript", Self::Transcript)];
}

impl Choice for OnInterrupted {
    const WORDS: &'static [(&'static str, Self)] =
        &[("fail", Self::Fail), ("continue", Self::Continue)];
}

impl Choice for OnLimit {
    const WORDS: &'static [(&'static str, Self)] = &[("fail", Self::Fail), ("wait", Self::Wait)];
}

/// What a turn is that ends without a word of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmptyTurn {
    /// One that ended.
    Ended,
    /// One that failed.
    Failed,
}

impl Choice for EmptyTurn {
    const WORDS: &'static [(&'static str, Self)] =
        &[("ended", Self::Ended), ("failed", Self::Failed)];
}

/// Something that acpd does for agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// `fs/read_text_file` and `fs/write_text_file`.
    Fs,
    /// `terminal/*`.
    Terminal,
}

impl Choice for Offer {
    const WORDS: &'static [(&'static str, Self)] =
        &[("fs", Self::Fs), ("terminal", Self::Terminal)];
}

/// A method of the protocol that brings a session back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoreMethod {
    /// `session/resume`, which replays nothing.
    Resume,
    /// `session/load`, which replays the conversation.
    Load,
}

impl Choice for RestoreMethod {
    const WORDS: &'static [(&'static str, Self)] =
        &[("resume", Self::Resume), ("load", Self::Load)];
}
