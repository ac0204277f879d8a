//! `acpctl daemon …`.

use std::time::Duration;

use acpd_api::{DaemonInfo, Empty, Status, method};
use acpd_client::{ConnectError, Connection, Options, Paths, connect, wait_until_gone};

use super::agent::key_values;
use super::{Door, log_file, ps};
use crate::cli::{Daemon, Json};
use crate::error::{CommandError, Result};
use crate::human;
use crate::live::{Event, Live};
use crate::ui::Ui;

/// How long the daemon may take to end after it has answered that its agents are gone.
const END_DEADLINE: Duration = Duration::from_secs(30);

/// Runs a `daemon` command.
pub(super) fn daemon(command: Daemon, door: Door, ui: &mut Ui) -> Result {
    let paths = Paths::discover()?;
    match command {
        Daemon::Start => start(&paths, door, ui),
        Daemon::Stop => stop(&paths, ui),
        Daemon::Restart => {
            stop(&paths, ui)?;
            start(&paths, Door { spawn: true }, ui)
        }
        Daemon::Status(json) => status(&paths, json, ui),
        Daemon::Logs(tail) => log_file::print(&paths.daemon_log(), tail, ui),
    }
}

fn start(paths: &Paths, door: Door, ui: &mut Ui) -> Result {
    if let Some(mut connection) = running(paths)? {
        let pid = info(&mut connection)?.pid;
        ui.say(&format!("acpd runs already (pid {pid})"));
        return Ok(());
    }
    let mut connection = door.connect()?;
    let pid = info(&mut connection)?.pid;
    ui.say(&format!("acpd started (pid {pid})"));
    Ok(())
}

fn stop(paths: &Paths, ui: &mut Ui) -> Result {
    let Some(connection) = running(paths)? else {
        ui.say("acpd is not running");
        return Ok(());
    };
    ui.spin(Some("stopping"));
    let mut live = Live::new(connection)?;
    let Empty {} = live.call(ui, method::DAEMON_STOP, &Empty {})?;
    // Its agents are gone; now it ends itself.
    while !matches!(live.next(ui)?, Event::Closed | Event::Interrupt) {}
    wait_until_gone(paths, END_DEADLINE)?;
    ui.spin(None);
    ui.say("acpd stopped");
    Ok(())
}

fn status(paths: &Paths, json: Json, ui: &mut Ui) -> Result {
    let options = Options { spawn: false, paths: paths.clone() };
    let daemon = info(&mut connect(&options).map_err(|error| {
        match error {
            ConnectError::NotRunning { .. } => {
                CommandError::new(acpd_api::ExitCode::NotFound, error.to_string())
                    .hint("start it with `acpctl daemon start`")
            }
            other => other.into(),
        }
    })?)?;
    if json.json {
        return Ok(ui.json(&daemon)?);
    }
    let paint = ui.out_paint();
    ui.print(&ps::daemon_line(&daemon, human::now(), paint))?;
    let rows = [
        ("socket", daemon.socket),
        ("database", daemon.database),
        ("log", daemon.log),
        ("config", daemon.config),
        ("default agent", daemon.default_agent),
    ];
    Ok(ui.print(&key_values(&rows, paint))?)
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
