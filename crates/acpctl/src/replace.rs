//! Replaces the running daemon by the installed one, or restarts it with another configuration.

use std::thread;
use std::time::{Duration, Instant};

use acpd_api::{
    AgentInfo, AgentRef, DaemonInfo, DaemonRestartParams, Empty, Environment, ExitCode, Status,
    method,
};
use acpd_client::{
    CallError, ConnectError, Connection, LinkError, Options, Paths, connect, stopped_daemon,
};

use crate::error::{CommandError, Result};
use crate::expiry;
use crate::human;
use crate::info::daemon::mistakes;
use crate::live::in_words;
use crate::stop::{END_DEADLINE, info, running, start_of};
use crate::text::{shell_word, text};
use crate::ui::Ui;

/// Interval of checks for a stopped daemon that does not end.
const LOOK: Duration = Duration::from_secs(2);
/// A restarting daemon that is away longer has died.
const DIED: Duration = Duration::from_secs(1);

/// Restarts the daemon in place to use the current configuration, if that is valid.
pub(crate) fn reload(paths: &Paths, ui: &mut Ui) -> Result {
    let Some(mut connection) = running(paths)? else {
        return Err(CommandError::new(ExitCode::NotFound, "acpd is not running")
            .hint("it reads the configuration when it starts: `acpctl daemon start`"));
    };
    let status: Status = connection.call(method::STATUS, &Empty {})?;
    let Some(changed) = &status.daemon.config_changed else {
        ui.say("the configuration has not changed");
        return Ok(());
    };
    if !changed.mistakes.is_empty() {
        let text = text!("acpd keeps the old configuration:{}", mistakes(&changed.mistakes));
        return Err(CommandError::new(ExitCode::Error, text).hint("fix it: `acpctl config edit`"));
    }
    take_place(connection, paths, Environment::default(), ui)?;
    ui.stop_spinning();
    ui.say("configuration reloaded");
    let runs = |agent: &&AgentInfo| agent.pid.is_some() && changed.agents.contains(&agent.name);
    for AgentInfo { name, .. } in status.agents.iter().filter(runs) {
        let word = shell_word(name);
        ui.say(text!(
            "{} keeps its old settings until you restart it: acpctl agent restart {}",
            name,
            word
        ));
    }
    let mut connection = to_running(paths)?;
    for AgentInfo { name, sessions, .. } in status.agents.iter().filter(|agent| agent.sessions > 0)
    {
        let agent = AgentRef { agent: name.raw().to_owned() };
        let shown: std::result::Result<AgentInfo, CallError> =
            connection.call(method::AGENT_SHOW, &agent);
        let Err(CallError::Rpc(error)) = shown else { continue };
        let error = CommandError::rpc(&error);
        let sessions = human::counted(u64::from(*sessions), "session");
        let rest = text!("{}; its {} can only be read", error.message(), sessions);
        ui.say(match error.first_hint() {
            Some(hint) => text!("{}\n  {}", rest, hint),
            None => rest,
        });
    }
    expiry::announce(&mut connection, ui);
    Ok(())
}

pub(crate) fn restart(
    connection: Connection,
    paths: &Paths,
    environment: Environment,
    ui: &mut Ui,
) -> Result {
    let (before, DaemonInfo { pid, version, .. }) = take_place(connection, paths, environment, ui)?;
    ui.stop_spinning();
    ui.say(match before.filter(|before| before.version != version) {
        Some(before) => {
            text!("acpd restarted (pid {}): version {}, was {}", pid, version, before.version)
        }
        None => text!("acpd restarted (pid {})", pid),
    });
    let own = env!("CARGO_PKG_VERSION");
    if version != *own {
        ui.say(text!(
            "the installed acpd is {}, but this is acpctl {}: install both again",
            version,
            own
        ));
    }
    expiry::announce(&mut to_running(paths)?, ui);
    Ok(())
}

/// Returns the old daemon's information, unless it just died, and the new one's.
fn take_place(
    mut connection: Connection,
    paths: &Paths,
    environment: Environment,
    ui: &mut Ui,
) -> Result<(Option<DaemonInfo>, DaemonInfo)> {
    ui.spin("restarting");
    let before = match info(&mut connection) {
        Ok(info) => Some(info),
        // The daemon is dying.
        Err(error) if error.is_gone() => None,
        Err(error) => return Err(error),
    };
    // A mistake in the configuration fails here and changes nothing.
    match connection.call(method::DAEMON_RESTART, &DaemonRestartParams { environment }) {
        Ok(Empty {})
        | Err(CallError::Ended(LinkError::Closed | LinkError::Io(_) | LinkError::Stopped)) => {}
        Err(error) => return Err(error.into()),
    }
    // The old daemon ends with the connection: send no requests before.
    let end = Instant::now() + END_DEADLINE;
    let mut is_reported = false;
    while !connection.ends_within(LOOK) {
        is_reported = is_reported || report_stopped(paths, ui);
        if Instant::now() >= end {
            let text = text!("acpd did not stop within {} s", END_DEADLINE.as_secs());
            return Err(CommandError::new(ExitCode::Error, text).hint("see `acpctl daemon logs`"));
        }
    }
    let now = successor(paths, before.as_ref().map(start_of), ui)?;
    Ok((before, now))
}

/// Reports a daemon that a signal stopped, because a user may continue it. Returns whether there is
/// one.
fn report_stopped(paths: &Paths, ui: &mut Ui) -> bool {
    let Some(stopped) = stopped_daemon(paths) else { return false };
    ui.say(in_words(&stopped));
    true
}

/// Waits until a later daemon than `before` answers. A daemon that died on its way is replaced.
fn successor(paths: &Paths, before: Option<(u64, u64)>, ui: &mut Ui) -> Result<DaemonInfo> {
    let start = Instant::now();
    let end = start + END_DEADLINE;
    let mut pause = Duration::from_millis(5);
    let mut is_reported = false;
    loop {
        let spawn = start.elapsed() > DIED;
        let answer = match connect(&Options { spawn, paths: paths.clone() }) {
            Ok(mut connection) => info(&mut connection).map(Some),
            Err(ConnectError::NotRunning { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        };
        match answer {
            Ok(Some(now)) if Some(start_of(&now)) != before => return Ok(now),
            Err(error) if Instant::now() >= end => return Err(error),
            Ok(_) if Instant::now() >= end => {
                let text = text!("acpd did not restart within {} s", END_DEADLINE.as_secs());
                return Err(CommandError::new(ExitCode::Error, text)
                    .hint("see `acpctl daemon logs`, then `acpctl daemon start`"));
            }
            // A silent daemon has already taken its time.
            Err(_) => is_reported = is_reported || report_stopped(paths, ui),
            Ok(_) => {}
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(200));
    }
}

pub(crate) fn to_running(paths: &Paths) -> Result<Connection> {
    let options = Options { spawn: false, paths: paths.clone() };
    connect(&options).map_err(|error| match error {
        ConnectError::NotRunning { .. } => CommandError::because(ExitCode::NotFound, &error)
            .hint("start it with `acpctl daemon start`"),
        other => other.into(),
    })
}
