//! Tables that stand in one place of the file, and `[[workspace]]`. Their defaults are in `defaults.toml`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use acp_wire::Version;
use acpd_api::{Cost, HookEvent};
pub use acpd_core::profile::WhenOver;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::format::{
    As, Command, CommandText, Directory, Each, LONGEST_LINE, LogFilter, Money, OneOf, Record,
    SharedPath, Size, Table, Time, TimeOrNever, Timeout, Whole, Word, fields,
};

/// Tables that occur once in the file, with their keys in the order of documents.
pub(super) fn sections() -> [(&'static str, Vec<String>); 5] {
    [
        ("daemon", fields::<Daemon>()),
        ("hooks", fields::<Hooks>()),
        ("budget", fields::<Budget>()),
        ("retention", fields::<Retention>()),
        ("tui", fields::<Tui>()),
    ]
}

/// How the daemon itself behaves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Daemon {
    /// What to log: a level, or a filter of the `tracing` library.
    #[serde(with = "As::<LogFilter>")]
    pub log_level: String,
    /// The size in bytes at which the log file is rotated.
    #[serde(with = "As::<Size>")]
    pub log_max_bytes: u64,
    /// The longest line in bytes that is accepted from an agent or a client. A longer one is
    /// discarded, and its request answered with an error. At most 128 MiB.
    #[serde(with = "As::<Size<LONGEST_LINE>>")]
    pub line_limit: u64,
    /// How many bytes may wait for one client. A client that falls further behind is caught up
    /// from the journal instead.
    #[serde(with = "As::<Size>")]
    pub client_queue: u64,
    /// How many clients may be connected at once. Commands that only look or manage do not count.
    #[serde(with = "As::<Whole<u32, 1>>")]
    pub max_clients: u32,
    /// The versions of the protocol that clients may speak. `"1"` is always one of them; `"2"` is a preview.
    #[serde(with = "As::<Each<OneOf<Version>>>")]
    pub protocols: Vec<Version>,
    /// How many agents may be started at the same time. The others wait for their turn: first come
    /// those that somebody waits for, then those with a session that somebody has open.
    #[serde(with = "As::<Whole<u32, 1>>")]
    pub cold_starts: u32,
    /// How long a session that `acpctl session rm` has deleted can be brought back by `acpctl session undo`; with
    /// `"0s"` it is gone at once.
    #[serde(with = "As::<Time>")]
    pub keep_deleted: Duration,
    /// How old the lines of a session become before they are compressed. They stay the same, and are read a little
    /// slower.
    #[serde(with = "As::<Time>")]
    pub compress_after: Duration,
    /// Whether the desktop shows a notification when an agent asks something or a turn of more than a
    /// minute is over, and nobody is attached to the session.
    pub notify: bool,
    /// Whether the machine is kept awake while an agent works on a prompt and waits for nobody.
    pub keep_awake: bool,
    /// Whether agents inherit from the environment that your login shell makes (`PATH` first of all) and not from
    /// the daemon's own. With `"auto"` they do if no shell has started the daemon: a service manager, a desktop
    /// or cron did.
    #[serde(with = "As::<OneOf<UseLoginShell>>")]
    pub login_shell: UseLoginShell,
    /// How long an agent that has nothing to do continues without a daemon.
    #[serde(with = "As::<TimeOrNever>")]
    pub orphan_timeout: Option<Duration>,
    /// The same for an agent in the middle of a turn.
    #[serde(with = "As::<TimeOrNever>")]
    pub busy_orphan_timeout: Option<Duration>,
}

/// Commands that are run when something happens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Hooks {
    /// An agent asks a person: a permission that no rule decides, a form, or a page to open.
    #[serde(with = "As::<Command<true>>")]
    pub on_permission: Vec<String>,
    /// A turn is over, in whatever way.
    #[serde(with = "As::<Command<true>>")]
    pub on_turn_end: Vec<String>,
    /// An agent's process ended by itself.
    #[serde(with = "As::<Command<true>>")]
    pub on_crash: Vec<String>,
    /// An agent wants a login.
    #[serde(with = "As::<Command<true>>")]
    pub on_login: Vec<String>,
}

/// What may be spent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// What may be spent in a day, as far as agents tell the cost of their sessions, all of them together: an
    /// amount and its currency. When unset: as much as you like.
    #[serde(with = "As::<Money>")]
    pub per_day: Option<Cost>,
    /// What happens when it is spent. With `"warn"` people are told, in the session and in `acpctl ps`. With
    /// `"ask"` each prompt waits until a person allows it (`acpctl allow`), for as much again, or
    /// until the next day begins.
    #[serde(with = "As::<OneOf<WhenOver>>")]
    pub when_over: WhenOver,
}

/// How much of what was said is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Retention {
    /// How long a session stays after its last use. When unset: until you delete it.
    #[serde(with = "As::<Timeout>")]
    pub max_age: Option<Duration>,
    /// How many sessions stay: those that were used last. When unset: all.
    #[serde(with = "As::<Whole<u32, 1>>")]
    pub max_sessions: Option<u32>,
    /// How much of what was said stays: of the sessions that were used last. When unset: all.
    #[serde(with = "As::<Size>")]
    pub max_size: Option<u64>,
}

/// How acpd's own views look.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Tui {
    /// Whether `run`, `attach`, `chat` and the page show the plans of agents. The journal has them in any case:
    /// `session log`, exports and editors do not change.
    pub show_plan: bool,
}

/// A directory with settings of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Workspace {
    /// The directory, with all below it; it must be given. Of several the innermost comes first.
    #[serde(with = "As::<Directory>")]
    pub path: Option<PathBuf>,
    /// The agent for `acpctl run` and `acpctl chat` in this directory, for editors that start `acpctl acp` in it
    /// without naming one, and for other clients that name none and say where they are.
    /// `model` and `mode` are then for sessions of this agent only.
    pub agent: Option<String>,
    /// The model that sessions begin with, by its id or its name.
    pub model: Option<String>,
    /// The mode that sessions begin with, by its id or its name.
    pub mode: Option<String>,
    /// What the tool `diagnostics` of [acpd's own server](delegation.md#diagnostics) runs here: command lines for a
    /// shell, or `"detect"` for those that the files here call for. They may run code of the directory.
    /// `"editor:TOOL"` names the tool of an editor that is asked first, in place of the usual names. When unset, or an
    /// empty list: no command.
    #[serde(with = "As::<Each<CommandText>>")]
    pub diagnostics: Option<Vec<String>>,
    /// Whether sessions of all agents that work here stay until you delete them, whatever `[retention]` says.
    pub keep: bool,
    /// `[retention]` for the sessions of all agents that work here: counted and added up by themselves.
    #[serde(with = "As::<Record<Retention>>")]
    pub retention: Retention,
}

/// Another machine with an acpd of yours, which `acpctl --host NAME` reaches over ssh.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Host {
    /// The destination for ssh. When unset: the name.
    pub ssh: Option<String>,
    /// Options for ssh, before those of acpd and the destination.
    #[serde(with = "As::<Each<Word>>")]
    pub ssh_options: Vec<String>,
    /// The command that runs acpctl's relay there. When unset: `acpctl relay`, with acpctl from `PATH` or from where its
    /// installers put it.
    pub relay: Option<String>,
    /// Starts a daemon there if none runs.
    pub start: bool,
    /// Directories of this machine, and where the same is there: `{ "~/src" = "/home/me/code" }`. The longest counts.
    #[serde(with = "As::<Table<Word, Word>>")]
    pub map: BTreeMap<String, String>,
    /// Directories of this machine that are the same files there, such as those of a network file system: at the same
    /// path, or where `map` says. In them, an agent there uses files, terminals and MCP servers of an editor here.
    #[serde(with = "As::<Each<SharedPath>>")]
    pub shared: Vec<Option<PathBuf>>,
}

impl Workspace {
    /// `~` is the home directory.
    pub(crate) fn dir(&self) -> PathBuf {
        self.path.clone().or_else(std::env::home_dir).unwrap_or_default()
    }
}

impl Hooks {
    /// Returns the events that have a command.
    pub fn configured(&self) -> impl Iterator<Item = (HookEvent, &[String])> {
        let all = [
            (HookEvent::Permission, self.on_permission.as_slice()),
            (HookEvent::TurnEnd, self.on_turn_end.as_slice()),
            (HookEvent::Crash, self.on_crash.as_slice()),
            (HookEvent::Login, self.on_login.as_slice()),
        ];
        all.into_iter().filter(|(_, command)| !command.is_empty())
    }
}

/// Conditions for asking the login shell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UseLoginShell {
    /// If no shell has started the daemon.
    #[default]
    Auto,
    Always,
    /// Agents inherit from the daemon's own environment.
    Never,
}
