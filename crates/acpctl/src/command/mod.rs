//! The commands, one file each.

mod acp;
mod agent;
mod attach;
mod auth;
mod backup;
mod cancel;
#[cfg(feature = "tui")]
mod chat;
mod completions;
mod config;
mod daemon;
mod doctor;
mod gc;
mod man;
mod metrics;
mod pending;
mod policy;
mod ps;
mod queue;
mod report;
mod restore;
mod run;
mod service;
mod session;
#[cfg(feature = "tui")]
mod top;
mod trace;
mod usage;
mod wait;

use acpd_api::ExitCode;

#[cfg(any(feature = "mcp", feature = "web"))]
use crate::beside::become_program;
use crate::cli::{Cli, Command, Later, Session};
use crate::door::Door;
use crate::error::Result;
use crate::ui::Ui;
use pending::Decision;

pub(crate) fn dispatch(cli: Cli, ui: &mut Ui) -> Result<ExitCode> {
    let door = Door { spawn: !cli.global.no_spawn };
    match cli.command {
        #[cfg(feature = "tui")]
        Command::Top => top::top(door, ui)?,
        #[cfg(feature = "tui")]
        Command::Chat(Later(args)) => return chat::chat(&args, door, ui),
        Command::Run(Later(args)) => return run::run(args, door, ui),
        Command::Attach(Later(args)) => return attach::attach(&args, door, ui),
        Command::Wait(Later(args)) => return wait::wait(&args, door, ui),
        Command::Cancel(Later(args)) => cancel::cancel(&args, door, ui)?,
        Command::Acp(Later(args)) => return acp::acp(&args, door),
        #[cfg(feature = "mcp")]
        Command::Mcp(Later(args)) => return become_program("acpctl-mcp", &args.args, door),
        #[cfg(feature = "web")]
        Command::Web(Later(args)) => return become_program("acpctl-web", &args.args, door),
        Command::Ps(Later(args)) => ps::ps(args, door, ui)?,
        Command::Queue(Later(args)) => queue::queue(args, door, ui)?,
        Command::Usage(Later(args)) => usage::usage(&args, door, ui)?,
        Command::Session(Later(Session::Command(command))) => {
            return session::session(command, door, ui);
        }
        // It prompts, as `run` does.
        Command::Session(Later(Session::Handoff(args))) => return run::handoff(&args, door, ui),
        Command::Agent(Later(command)) => agent::agent(command, door, ui)?,
        Command::Auth(Later(command)) => auth::auth(command, door, ui)?,
        Command::Pending(Later(args)) => pending::pending(&args, door, ui)?,
        Command::Allow(Later(args)) => pending::decide(&args, Decision::Allow, door, ui)?,
        Command::Deny(Later(args)) => pending::decide(&args, Decision::Deny, door, ui)?,
        Command::Answer(Later(args)) => pending::answer(&args, door, ui)?,
        Command::Policy(Later(command)) => policy::policy(command, door, ui)?,
        Command::Daemon(Later(command)) => daemon::daemon(command, door, ui)?,
        Command::Doctor(Later(args)) => doctor::doctor(args, ui)?,
        Command::Metrics(Later(args)) => metrics::metrics(args, door, ui)?,
        Command::Trace(Later(args)) => return trace::trace(&args, door, ui),
        Command::Report(Later(args)) => report::report(&args, ui)?,
        Command::Config(Later(command)) => config::config(&command, ui)?,
        Command::Service(Later(command)) => service::service(command, door, ui)?,
        Command::Backup(Later(args)) => backup::backup(&args, ui)?,
        Command::Restore(Later(args)) => restore::restore(&args, ui)?,
        Command::Gc(Later(args)) => gc::gc(args, door, ui)?,
        Command::Completions(Later(args)) => completions::completions(args.shell, ui)?,
        Command::Man { dir } => man::man(&dir)?,
    }
    Ok(ExitCode::Ok)
}
