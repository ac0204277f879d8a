//! `acpctl daemon …`.

use std::thread;
use std::time::{Duration, Instant};

use acp_wire::code;
use acpd_api::{
    AgentInfo, AgentState, DaemonInfo, DaemonRestartParams, DaemonStopParams, Empty, Environment,
    ExitCode, SessionInfo, Status, TurnState, method,
};
use acpd_client::{
    CallError, ConnectError, Connection, Options, Paths, connect, link, stopped_daemon,
    wait_until_gone,
};

use crate::cli::{Daemon, Json};
use crate::door::Door;
use crate::error::{CommandError, Result};
use crate::live::{Event, Live, in_words};
use crate::table::key_values;
use crate::text::text;
use crate::ui::Ui;
use crate::{human, info, log_file};

/// How long the daemon may take to end after it has answered that its agents are gone.
const END_DEADLINE: Duration = Duration::from_secs(30);
/// How often it is looked whether a daemon that does not end is stopped.
const LOOK: Duration = Duration::from_secs(2);
/// A restarting daemon that is away longer than this has died.
const DIED: Duration = Duration::from_secs(1);

/// Runs a `daemon` command.
pub(super) fn daemon(command: Daemon, door: Door, ui: &mut Ui) -> Result {
    let paths = Paths::discover()?;
    match command {
        Daemon::Start => start(&paths, door, ui),
        Daemon::Stop { detach } => stop(&paths, detach, door, ui),
        Daemon::Restart => restart(&paths, ui),
        Daemon::Status(json) => status(&paths, json, ui),
        Daemon::Logs(tail) => log_file::print(&paths.daemon_log(), tail, ui),
    }
}

fn start(paths: &Paths, door: Door, ui: &mut Ui) -> Result {
    if let Some(mut connection) = running(paths)? {
        let pid = info(&mut connection)?.pid;
        ui.say(text!("acpd is already running (pid {})", pid));
        return Ok(());
    }
    let mut connection = door.connect()?;
    let status: Status = connection.call(method::STATUS, &Empty {})?;
    ui.say(text!("acpd started (pid {})", status.daemon.pid));
    let kept = |agent: &&AgentInfo| agent.state == AgentState::Stopped && agent.reason.is_some();
    for AgentInfo { name, reason, hint, .. } in status.agents.iter().filter(kept) {
        ui.say(text!("{} stays down, {}: {}", name, reason, hint));
    }
    Ok(())
}

fn stop(paths: &Paths, detach: bool, door: Door, ui: &mut Ui) -> Result {
    for _ in 0..STOPS {
        match stop_once(paths, detach, door, ui)? {
            // A daemon that died meanwhile has left its agents to the next one.
            Stopped::Died if !detach && has_shims(paths) => {}
            Stopped::Died => {
                ui.stop_spinning();
                ui.say("acpd stopped");
                return Ok(());
            }
            Stopped::Whole { cut_off } => {
                ui.stop_spinning();
                ui.say(match cut_off {
                    0 => "acpd stopped".into(),
                    1 => "acpd stopped; 1 running turn was cut off".into(),
                    many => text!("acpd stopped; {} running turns were cut off", many),
                });
                return Ok(());
            }
            Stopped::NotRunning => {
                ui.stop_spinning();
                ui.say("acpd is not running");
                return Ok(());
            }
        }
    }
    let text = "acpd died while it was stopping, and its agents may still run";
    Err(CommandError::new(ExitCode::Error, text).hint("run `acpctl daemon stop` again to end them"))
}

/// How often a daemon may die while it is stopping.
const STOPS: usize = 3;

/// How a daemon ended.
enum Stopped {
    NotRunning,
    /// It did all that it was to do.
    Whole {
        /// Turns that ran until then, and do not go on without it.
        cut_off: usize,
    },
    /// It was gone before it could say so.
    Died,
}

fn stop_once(paths: &Paths, detach: bool, door: Door, ui: &mut Ui) -> Result<Stopped> {
    // Agents that are left of a daemon that is gone are ended by the next one.
    let spawn = door.spawn && !detach && has_shims(paths);
    // To this daemon, and to none after it.
    let link = match link(Options { spawn, paths: paths.clone() }, Duration::ZERO) {
        Ok(link) => link,
        Err(ConnectError::NotRunning { .. }) => return Ok(Stopped::NotRunning),
        Err(error) => return Err(error.into()),
    };
    ui.spin("stopping");
    let mut live = Live::new(link)?;
    let (mut before, mut cut_off) = (None, 0);
    let stopped = live.call(ui, method::STATUS, &Empty {}).and_then(|status: Status| {
        before = Some((status.daemon.pid, start_of(&status.daemon)));
        let runs = |session: &&SessionInfo| session.turn.state != TurnState::Idle;
        cut_off = if detach { 0 } else { status.sessions.iter().filter(runs).count() };
        live.call(ui, method::DAEMON_STOP, &DaemonStopParams { detach })
    });
    let how = match stopped {
        Ok(Empty {}) => {
            // What it had to end has ended; now it ends itself.
            while !matches!(
                live.next(ui)?,
                Event::Closed | Event::Failed(_) | Event::Interrupt | Event::Detach
            ) {}
            Stopped::Whole { cut_off }
        }
        // It may have ended before its answer was read, and have a successor already.
        Err(error) if error.is_gone() => {
            match running(paths)?.map(|mut connection| info(&mut connection)).transpose() {
                // One that was started again has the same pid.
                Ok(Some(now)) if before.is_none_or(|(_, start)| start == start_of(&now)) => {
                    return Err(error);
                }
                Ok(Some(_)) => return Ok(Stopped::Died),
                Ok(None) => Stopped::Died,
                Err(now) if now.is_gone() => Stopped::Died,
                // It is there, and says why it does not serve.
                Err(now) => return Err(now),
            }
        }
        Err(error) => return Err(error),
    };
    if let Some((pid, _)) = before {
        wait_until_gone(paths, pid, END_DEADLINE)?;
    }
    Ok(how)
}

/// Whether there may be agents without a daemon.
fn has_shims(paths: &Paths) -> bool {
    paths.state.join("shims").read_dir().is_ok_and(|mut shims| shims.next().is_some())
}

/// Lets the running daemon put the installed one into its place.
fn restart(paths: &Paths, ui: &mut Ui) -> Result {
    let Some(mut connection) = running(paths)? else {
        return start(paths, Door { spawn: true }, ui);
    };
    ui.spin("restarting");
    let before = match info(&mut connection) {
        Ok(info) => Some(start_of(&info)),
        // It dies at this moment.
        Err(error) if error.is_gone() => None,
        Err(error) => return Err(error),
    };
    // An error of its configuration comes here, and everything stays as it is.
    let environment = if ui.is_on_terminal() { Environment::own() } else { Environment::default() };
    match connection.call(method::DAEMON_RESTART, &DaemonRestartParams { environment }) {
        Ok(Empty {}) | Err(CallError::Closed | CallError::Io(_)) => {}
        Err(CallError::Rpc(error)) if error.code == code::METHOD_NOT_FOUND => {
            // Older than this command; it can only be stopped and started.
            drop(connection);
            stop(paths, false, Door { spawn: false }, ui)?;
            return start(paths, Door { spawn: true }, ui);
        }
        Err(error) => return Err(error.into()),
    }
    // The end of the connection is the end of the old one: nothing is asked before it.
    let end = Instant::now() + END_DEADLINE;
    let mut told = false;
    while !connection.ends_within(LOOK) {
        told = told || tell_stopped(paths, ui);
        if Instant::now() >= end {
            let text = text!("acpd has not ended in {} s", END_DEADLINE.as_secs());
            return Err(
                CommandError::new(ExitCode::Error, text).hint("look into `acpctl daemon logs`")
            );
        }
    }
    let pid = successor(paths, before, ui)?;
    ui.stop_spinning();
    ui.say(text!("acpd restarted (pid {})", pid));
    Ok(())
}

/// Reports a daemon that a signal has stopped, since it may be continued. Returns whether there is one.
fn tell_stopped(paths: &Paths, ui: &mut Ui) -> bool {
    let Some(stopped) = stopped_daemon(paths) else { return false };
    ui.say(in_words(&stopped));
    true
}

/// Tells a start of the daemon from all others. The number alone begins anew with another database.
fn start_of(daemon: &DaemonInfo) -> (u64, u64) {
    (daemon.boot, daemon.since)
}

/// The pid of the daemon that was not started then, as soon as it answers. One that died on its way is
/// replaced.
fn successor(paths: &Paths, before: Option<(u64, u64)>, ui: &mut Ui) -> Result<u32> {
    let start = Instant::now();
    let end = start + END_DEADLINE;
    let mut pause = Duration::from_millis(5);
    let mut told = false;
    loop {
        let spawn = start.elapsed() > DIED;
        let answer = match connect(&Options { spawn, paths: paths.clone() }) {
            Ok(mut connection) => info(&mut connection).map(Some),
            Err(ConnectError::NotRunning { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        };
        match answer {
            Ok(Some(now)) if Some(start_of(&now)) != before => return Ok(now.pid),
            Err(error) if Instant::now() >= end => return Err(error),
            Ok(_) if Instant::now() >= end => {
                let text = text!("acpd has not come back in {} s", END_DEADLINE.as_secs());
                return Err(CommandError::new(ExitCode::Error, text)
                    .hint("look into `acpctl daemon logs`, then `acpctl daemon start`"));
            }
            // One that says nothing took its time already.
            Err(_) => told = told || tell_stopped(paths, ui),
            Ok(_) => {}
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(200));
    }
}

fn status(paths: &Paths, json: Json, ui: &mut Ui) -> Result {
    let options = Options { spawn: false, paths: paths.clone() };
    let daemon = info(&mut connect(&options).map_err(|error| {
        match error {
            ConnectError::NotRunning { .. } => CommandError::because(ExitCode::NotFound, &error)
                .hint("start it with `acpctl daemon start`"),
            other => other.into(),
        }
    })?)?;
    if json.json {
        return Ok(ui.json(&daemon)?);
    }
    let paint = ui.out_paint();
    ui.print(info::daemon::line(&daemon, human::now(), paint))?;
    let rows = [
        ("socket", daemon.socket.into()),
        ("database", daemon.database.into()),
        ("log", daemon.log.into()),
        ("config", daemon.config.into()),
        ("default agent", daemon.default_agent.into()),
    ];
    Ok(ui.print(key_values(&rows, paint))?)
}

fn info(connection: &mut Connection) -> Result<DaemonInfo> {
    let status: Status = connection.call(method::STATUS, &Empty {})?;
    Ok(status.daemon)
}

/// A connection to the daemon if one runs; none is started.
fn running(paths: &Paths) -> Result<Option<Connection>> {
    match connect(&Options { spawn: false, paths: paths.clone() }) {
        Ok(connection) => Ok(Some(connection)),
        Err(ConnectError::NotRunning { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
