//! `acpctl daemon …`: the daemon itself, its state and log.

use acpd_api::{
    AgentInfo, AgentState, Empty, Environment, LogLevel, LogLevelParams, Status, method,
};
use acpd_client::Paths;
use clap::Subcommand;

use crate::args::Json;
use crate::daemon::{self, info, reload, running, stop, to_running};
use crate::error::Result;
use crate::human;
use crate::info::daemon::line;
use crate::live::Door;
use crate::log_file::{self, Tail};
use crate::service::Service;
use crate::text::{key_values, text};
use crate::ui::Ui;

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(super) enum Daemon {
    /// Start the daemon if it is not running.
    #[command(after_long_help = examples!(
        "acpctl daemon start" => "Start the daemon before the first use",
    ))]
    Start,
    /// Stop the daemon and all agents.
    #[command(after_long_help = examples!(
        "acpctl daemon stop" => "Stop turns, agents and the daemon",
        "acpctl daemon stop --detach" => "Stop only the daemon; agents keep working",
    ))]
    Stop {
        /// Leave agents running; the next daemon takes them over.
        #[arg(long)]
        detach: bool,
    },
    /// Replace the running daemon by the installed one, with the current configuration; agents and turns continue.
    ///
    /// From a terminal, it gets the variables of this terminal that the configuration names.
    #[command(after_long_help = examples!(
        "acpctl daemon restart" => "Run the new acpd after an upgrade",
    ))]
    Restart,
    /// Reload the configuration; agents and turns continue. Mistakes change nothing.
    #[command(after_long_help = examples!(
        "acpctl daemon reload" => "Use the current configuration",
    ))]
    Reload,
    /// Show the daemon; exits with 3 if it is not running.
    #[command(after_long_help = examples!(
        "acpctl daemon status" => "Check whether it runs; scripts use the exit code",
    ))]
    Status(Json),
    /// Print the daemon's log, from its file or from the service manager.
    #[command(after_long_help = examples!(
        "acpctl daemon logs -f" => "Follow the log",
    ))]
    Logs(Tail),
    /// Show or change the daemon's log level until it restarts or reloads.
    #[command(after_long_help = examples!(
        "`log_level` in the configuration is the level at start.";
        "acpctl daemon log-level" => "Show the level",
        "acpctl daemon log-level debug" => "Log more while you look for a problem",
        "acpctl daemon log-level info" => "Go back",
    ))]
    LogLevel {
        /// `off`, `error`, `warn`, `info`, `debug` or `trace`, or a filter such as `info,acpd=debug` [default: show it].
        level: Option<String>,
        #[command(flatten)]
        json: Json,
    },
}

pub(super) fn daemon(command: Daemon, ui: &mut Ui) -> Result {
    let paths = Paths::discover()?;
    match command {
        Daemon::Start => start(&paths, ui.door(), ui),
        Daemon::Stop { detach } => stop(&paths, detach, ui.may_start, ui),
        Daemon::Restart => restart(&paths, ui),
        Daemon::Reload => reload(&paths, ui),
        Daemon::Status(json) => status(&paths, json, ui),
        Daemon::LogLevel { level, json } => log_level(level, json, &paths, ui),
        // A daemon that the service manager started logs to the manager.
        Daemon::Logs(tail) => match Service::with_log(&paths) {
            Some(service) => service.print_log(tail, ui),
            None => log_file::print(&paths.daemon_log(), tail, ui),
        },
    }
}

fn start(paths: &Paths, door: Door, ui: &mut Ui) -> Result {
    if let Some(mut connection) = running(paths)? {
        let pid = info(&mut connection)?.pid;
        return ui.done(text!("acpd is already running (pid {})", pid));
    }
    let mut connection = door.connect()?;
    let status: Status = connection.call(method::STATUS, &Empty {})?;
    ui.say(text!("acpd started (pid {})", status.daemon.pid));
    let kept = |agent: &&AgentInfo| agent.state == AgentState::Stopped && agent.reason.is_some();
    for AgentInfo { name, reason, hint, .. } in status.agents.iter().filter(kept) {
        ui.say(text!("{} is not started, {}: {}", name, reason, hint));
    }
    Ok(())
}

/// Asks the running daemon to replace itself by the installed one.
fn restart(paths: &Paths, ui: &mut Ui) -> Result {
    let Some(connection) = running(paths)? else {
        return start(paths, ui.door(), ui);
    };
    let environment = if ui.is_on_terminal() { Environment::own() } else { Environment::default() };
    daemon::restart(connection, paths, environment, ui)
}

fn log_level(level: Option<String>, json: Json, paths: &Paths, ui: &mut Ui) -> Result {
    let mut connection = to_running(paths)?;
    let is_change = level.is_some();
    let now: LogLevel = connection.call(method::DAEMON_LOG_LEVEL, &LogLevelParams { level })?;
    if json.json {
        return Ok(ui.json(&now)?);
    }
    if !is_change {
        ui.print(text!("{}\n", now.level))?;
    }
    if now.level != now.configured {
        let LogLevel { level, configured } = &now;
        ui.say(text!(
            "acpd logs `{}` until it restarts or reloads; the configured level is `{}`",
            level,
            configured
        ));
    } else if is_change {
        ui.say(text!("acpd logs `{}`, the configured level", now.level));
    }
    Ok(())
}

fn status(paths: &Paths, json: Json, ui: &mut Ui) -> Result {
    let daemon = info(&mut to_running(paths)?)?;
    if json.json {
        return Ok(ui.json(&daemon)?);
    }
    ui.print(line(&daemon, human::now()))?;
    let log = match Service::with_log(paths) {
        Some(service) => service.log_place()?,
        None => daemon.log.into(),
    };
    let rows = [
        ("socket", daemon.socket.into()),
        ("database", daemon.database.into()),
        ("log", log),
        ("config", daemon.config.into()),
        ("default agent", daemon.default_agent.into()),
    ];
    Ok(ui.print(key_values(&rows))?)
}
