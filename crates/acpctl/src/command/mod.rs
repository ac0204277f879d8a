//! The commands, one file each.

mod acp;
mod agent;
mod attach;
mod auth;
mod completions;
mod daemon;
mod elsewhere;
mod export;
mod last;
mod log_file;
mod pending;
mod permission;
mod policy;
mod ps;
mod reseed;
mod run;
mod search;
mod session;
mod settings;

use std::env;
use std::path::{self, Path, PathBuf};
use std::time::Duration;

use acpd_api::{ClientMeta, ExitCode, SessionRef};
use acpd_client::{Connection, LinkReader, LinkWriter, Options, PATIENCE, Paths, connect, link};
use serde_json::{Value, json};

use crate::cli::{Cli, Command, Which};
use crate::error::{CommandError, Result};
use crate::text::text;
use crate::ui::Ui;
use pending::Decision;

/// Runs the command.
pub(crate) fn dispatch(cli: Cli, ui: &mut Ui) -> Result<ExitCode> {
    let door = Door { spawn: !cli.global.no_spawn };
    match cli.command {
        Command::Run(args) => return run::run(&args, door, ui),
        Command::Attach(args) => attach::attach(&args, door, ui)?,
        Command::Acp(args) => return acp::acp(&args, door),
        Command::Ps(json) => ps::ps(json, door, ui)?,
        Command::Session(command) => session::session(command, door, ui)?,
        Command::Agent(command) => agent::agent(command, door, ui)?,
        Command::Auth(command) => auth::auth(command, door, ui)?,
        Command::Pending(args) => pending::pending(&args, door, ui)?,
        Command::Allow(args) => pending::decide(&args, Decision::Allow, door, ui)?,
        Command::Deny(args) => pending::decide(&args, Decision::Deny, door, ui)?,
        Command::Answer(args) => pending::answer(&args, door, ui)?,
        Command::Policy(command) => policy::policy(command, door, ui)?,
        Command::Daemon(command) => daemon::daemon(command, door, ui)?,
        Command::Completions { shell } => completions::completions(shell, ui)?,
    }
    Ok(ExitCode::Ok)
}

/// The way to the daemon.
#[derive(Debug, Clone, Copy)]
struct Door {
    /// Start the daemon if none runs.
    spawn: bool,
}

impl Door {
    /// Connects, and starts the daemon unless that was forbidden.
    fn connect(self) -> Result<Connection> {
        let paths = Paths::discover()?;
        Ok(connect(&Options { spawn: self.spawn, paths })?)
    }

    /// Connects in the same way, for as long as the command runs: also to the daemon's successors.
    fn lasting_link(self) -> Result<(LinkReader, LinkWriter)> {
        self.link(PATIENCE)
    }

    /// Connects to this daemon and to none after it.
    fn single_link(self) -> Result<(LinkReader, LinkWriter)> {
        self.link(Duration::ZERO)
    }

    fn link(self, patience: Duration) -> Result<(LinkReader, LinkWriter)> {
        let paths = Paths::discover()?;
        Ok(link(Options { spawn: self.spawn, paths }, patience)?)
    }
}

/// The parameters of acpctl's `initialize`: it serves no agent, and shows what not every client does.
fn initialize_params(meta: &ClientMeta) -> Value {
    let mut params = acpd_client::initialize_params(meta, "acpctl");
    params["clientCapabilities"]["session"] =
        json!({"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}});
    params
}

/// A session as the user names it, with the directory that makes names unique, if there is one: it
/// may have been deleted under us.
fn session_ref(session: &str, agent: Option<&str>) -> SessionRef {
    SessionRef {
        session: session.to_owned(),
        agent: agent.map(str::to_owned),
        cwd: current_dir().and_then(|dir| utf8(&dir)).ok(),
        exact_name: false,
    }
}

/// The one session of a command line.
fn which(which: &Which) -> SessionRef {
    session_ref(&which.session, which.agent.as_deref())
}

/// The current directory.
fn current_dir() -> Result<PathBuf> {
    env::current_dir().map_err(|error| {
        CommandError::new(ExitCode::NotFound, text!("cannot tell the current directory: {}", error))
            .hint("go to a directory that exists, or name one with `--cwd`")
    })
}

/// An absolute path without symbolic links, as agents and session names want it.
fn directory(path: &Path) -> Result<PathBuf> {
    let full = path.canonicalize().map_err(|error| CommandError::file("enter", path, &error))?;
    if full.is_dir() {
        Ok(full)
    } else {
        Err(CommandError::usage(text!("`{}` is not a directory", path)))
    }
}

/// An absolute path; its links stay.
fn absolute(path: &Path) -> Result<PathBuf> {
    path::absolute(path).map_err(|error| CommandError::file("find", path, &error))
}

/// A path as JSON can carry it.
fn utf8(path: &Path) -> Result<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        CommandError::usage(text!("`{}` is not valid UTF-8", path))
            .hint("agents take only paths that JSON can hold; rename it")
    })
}
