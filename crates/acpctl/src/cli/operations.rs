//! Arguments of what is done with the daemon itself.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::{Json, Tail};

#[derive(Debug, Subcommand)]
pub(crate) enum Daemon {
    /// Start the daemon if none runs.
    Start,
    /// Stop the daemon and every agent.
    Stop {
        /// Leave the agents running; the next daemon takes them over.
        #[arg(long)]
        detach: bool,
    },
    /// Run the installed daemon, with the configuration as it is now, in place of the running one; agents and
    /// turns continue. From a terminal, it gets the variables of this terminal that the configuration names.
    Restart,
    /// Have the daemon use the configuration as it is now; agents and turns continue. One with mistakes changes nothing.
    Reload,
    /// Show the daemon; exit with 3 if none runs.
    Status(Json),
    /// Print the daemon's log: its file, or what the system that has started it keeps.
    Logs(Tail),
    /// Show what the running daemon logs, or change it until it starts again or reads its configuration.
    #[command(after_help = LOG_LEVEL)]
    LogLevel {
        /// `off`, `error`, `warn`, `info`, `debug` or `trace`, or a filter such as `info,acpd=debug` [default: show it].
        level: Option<String>,
        #[command(flatten)]
        json: Json,
    },
}

/// Where a level is from.
const LOG_LEVEL: &str = "`log_level` in the configuration is what it starts with.";

/// Arguments of `doctor`.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Doctor {
    /// Do what can be done without ending a turn: have acpd read its configuration, write the service's files anew.
    #[arg(long)]
    pub(crate) fix: bool,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// What `metrics` is for.
pub(super) const METRICS: &str = "\
Counters begin anew with the daemon. docs/recipes.md has the timer for it.";

/// Arguments of `trace`.
#[derive(Debug, Args)]
#[command(after_help = TRACE)]
pub(crate) struct Trace {
    /// A name, an id, a unique prefix of either, words of a title, or `-` for the last one used [default: `-`].
    pub(crate) session: Option<String>,
    /// All lines of this agent; with SESSION, look only among the agent's sessions.
    #[arg(short, long)]
    pub(crate) agent: Option<String>,
    /// Show also the lines between acpd and its clients.
    #[arg(long)]
    pub(crate) clients: bool,
    /// Show what is in the lines, without secrets.
    #[arg(long)]
    pub(crate) full: bool,
    /// Only methods that fit this pattern, and the answers to them: `session/*`.
    #[arg(long, value_name = "GLOB")]
    pub(crate) method: Option<String>,
    /// Print each line as one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How a trace is read.
const TRACE: &str = "\
-> is from acpd, <- to acpd. Each line has its time, who is at the other end, what it is, its method, #ID, for an answer \
the time since its request, and its size.

--full shows what is said in the conversation. Values that belong to secrets are left out (environments, headers, MCP \
servers, logins, `_meta`), and so is what looks like a key; what else a person or an agent has written is there.";

/// Arguments of `report`.
#[derive(Debug, Args)]
#[command(after_help = REPORT)]
pub(crate) struct Report {
    /// Write it to this new file; `-` prints it [default: `acpd-report-TIME.md` here].
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Write it without showing it and without asking.
    #[arg(long)]
    pub(crate) yes: bool,
}

/// What a report is.
const REPORT: &str = "\
It has versions, the system, what `acpctl doctor` finds, which keys of the configuration are set, agents and sessions by \
their states, the end of the daemon's log and its metrics. It has no word of a conversation, nothing that agents have \
written to stderr, no values of variables, headers and arguments, and no names of you, your machine, sessions and \
directories.";
