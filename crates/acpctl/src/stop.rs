//! Stopping and finding the daemon.

use std::time::Duration;

use acpd_api::{
    DaemonInfo, DaemonStopParams, Empty, ExitCode, SessionInfo, Status, TurnState, method,
};
use acpd_client::{ConnectError, Connection, Options, Paths, connect, wait_until_gone};

use crate::door::Door;
use crate::error::{CommandError, Result};
use crate::live::{Event, Live};
use crate::text::text;
use crate::ui::Ui;

/// Maximum time from the answer that agents have ended to the end of the daemon.
pub(crate) const END_DEADLINE: Duration = Duration::from_secs(30);

pub(crate) fn stop(paths: &Paths, detach: bool, door: Door, ui: &mut Ui) -> Result {
    for _ in 0..STOPS {
        let done = match stop_once(paths, detach, door, ui)? {
            // A daemon that died has left its agents to the next one.
            Stopped::Died if !detach && has_shims(paths) => continue,
            Stopped::Died | Stopped::Whole { turns: 0 } => "acpd stopped".into(),
            Stopped::Whole { turns: 1 } => "acpd stopped; 1 running turn was interrupted".into(),
            Stopped::Whole { turns } => {
                text!("acpd stopped; {} running turns were interrupted", turns)
            }
            Stopped::NotRunning => "acpd is not running".into(),
        };
        ui.stop_spinning();
        ui.say(done);
        return Ok(());
    }
    let text = "acpd died while stopping; its agents may still run";
    Err(CommandError::new(ExitCode::Error, text).hint("run `acpctl daemon stop` again to end them"))
}

pub(crate) fn detach(paths: &Paths, ui: &mut Ui) -> Result {
    stop_once(paths, true, Door { spawn: false }, ui)?;
    ui.stop_spinning();
    Ok(())
}

/// Maximum attempts with daemons that die while stopping.
const STOPS: usize = 3;

enum Stopped {
    NotRunning,
    Whole { turns: usize },
    Died,
}

fn stop_once(paths: &Paths, detach: bool, door: Door, ui: &mut Ui) -> Result<Stopped> {
    // The next daemon ends the agents of a dead one.
    let spawn = door.spawn && !detach && has_shims(paths);
    // Connect to this daemon only, not to its successors.
    let connection = match connect(&Options { spawn, paths: paths.clone() }) {
        Ok(connection) => connection,
        Err(ConnectError::NotRunning { .. }) => return Ok(Stopped::NotRunning),
        Err(error) => return Err(error.into()),
    };
    ui.spin("stopping");
    let mut live = Live::new(connection)?;
    let (mut before, mut turns) = (None, 0);
    let stopped = live.call(ui, method::STATUS, &Empty {}).and_then(|status: Status| {
        before = Some((status.daemon.pid, start_of(&status.daemon)));
        turns = if detach { 0 } else { running_turns(&status) };
        live.call(ui, method::DAEMON_STOP, &DaemonStopParams { detach })
    });
    let how = match stopped {
        Ok(Empty {}) => {
            while !matches!(live.next(ui)?, Event::Ended(_) | Event::Interrupt | Event::Detach) {}
            Stopped::Whole { turns }
        }
        // The daemon may have ended before its answer was read, and may have a successor.
        Err(error) if error.is_gone() => {
            // Or the daemon is there, and reports why it does not serve.
            match serving(paths)? {
                // A daemon that restarted has the same pid.
                Some(now) if before.is_none_or(|(_, start)| start == start_of(&now)) => {
                    return Err(error);
                }
                Some(_) => return Ok(Stopped::Died),
                None => Stopped::Died,
            }
        }
        Err(error) => return Err(error),
    };
    if let Some((pid, _)) = before {
        wait_until_gone(paths, pid, END_DEADLINE)?;
    }
    Ok(how)
}

pub(crate) fn running_turns(status: &Status) -> usize {
    let runs = |session: &&SessionInfo| session.turn.state != TurnState::Idle;
    status.sessions.iter().filter(runs).count()
}

/// Returns whether there may be agents without a daemon.
pub(crate) fn has_shims(paths: &Paths) -> bool {
    paths.state.join("shims").read_dir().is_ok_and(|mut shims| shims.next().is_some())
}

/// Identifies a start of the daemon. The boot number alone begins again with another database.
pub(crate) fn start_of(daemon: &DaemonInfo) -> (u64, u64) {
    (daemon.boot, daemon.since)
}

pub(crate) fn info(connection: &mut Connection) -> Result<DaemonInfo> {
    let status: Status = connection.call(method::STATUS, &Empty {})?;
    Ok(status.daemon)
}

/// Starts no daemon.
pub(crate) fn running(paths: &Paths) -> Result<Option<Connection>> {
    match connect(&Options { spawn: false, paths: paths.clone() }) {
        Ok(connection) => Ok(Some(connection)),
        Err(ConnectError::NotRunning { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the running daemon's information. A closing socket accepts connections for a moment,
/// without an answer, because the service manager closes its own socket later.
pub(crate) fn serving(paths: &Paths) -> Result<Option<DaemonInfo>> {
    match running(paths)?.map(|mut connection| info(&mut connection)).transpose() {
        Err(error) if error.is_gone() => Ok(None),
        found => found,
    }
}
