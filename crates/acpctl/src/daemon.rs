//! Finding, stopping, replacing and reloading the daemon.

use std::thread;
use std::time::{Duration, Instant};

use acpd_api::{
    AgentInfo, AgentRef, DaemonInfo, DaemonRestartParams, DaemonStopParams, Empty, Environment,
    ExitCode, GcParams, GcResult, GcSession, SessionInfo, Status, StatusParams, TurnState,
    Untrusted, method,
};
use acpd_client::{
    CallError, ConnectError, Connection, LinkError, Options, Paths, Place, connect, stopped_daemon,
    wait_until_gone,
};

use crate::error::{CommandError, ErrorKind, Result};
use crate::human;
use crate::info::daemon::mistakes;
use crate::live::{Event, Live, in_words};
use crate::text::{Text, shell_word, text};
use crate::ui::Ui;

/// Maximum time from the answer that agents have ended to the end of the daemon.
const END_DEADLINE: Duration = Duration::from_secs(30);

pub(crate) fn stop(paths: &Paths, detach: bool, spawn: bool, ui: &mut Ui) -> Result {
    for _ in 0..STOPS {
        let done = match stop_once(paths, detach, spawn, ui)? {
            // A daemon that died has left its agents to the next one.
            Stopped::Died if !detach && has_shims(paths) => continue,
            Stopped::Died | Stopped::Whole { turns: 0 } => "acpd stopped".into(),
            Stopped::Whole { turns: 1 } => "acpd stopped; 1 running turn was interrupted".into(),
            Stopped::Whole { turns } => {
                text!("acpd stopped; {} running turns were interrupted", turns)
            }
            Stopped::NotRunning => "acpd is not running".into(),
        };
        return ui.done(done);
    }
    let text = "acpd died while stopping; its agents may still run";
    Err(CommandError::new(ExitCode::Error, text).hint("run `acpctl daemon stop` again to end them"))
}

pub(crate) fn detach(paths: &Paths, ui: &mut Ui) -> Result {
    stop_once(paths, true, false, ui)?;
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

fn stop_once(paths: &Paths, detach: bool, spawn: bool, ui: &mut Ui) -> Result<Stopped> {
    // The next daemon ends the agents of a dead one.
    let spawn = spawn && !detach && has_shims(paths);
    let Some(connection) = find(paths, spawn)? else { return Ok(Stopped::NotRunning) };
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
        Err(error) if error.kind == ErrorKind::Gone => {
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
fn start_of(daemon: &DaemonInfo) -> (u64, u64) {
    (daemon.boot, daemon.since)
}

/// Asks for the daemon, and the agents and sessions in use.
pub(crate) const IN_USE: StatusParams = StatusParams { cwd: None, in_use: true, recent: Some(0) };

pub(crate) fn info(connection: &mut Connection) -> Result<DaemonInfo> {
    let status: Status = connection.call(method::STATUS, &IN_USE)?;
    Ok(status.daemon)
}

/// Asks about one agent, with all that is known of it.
pub(crate) fn agent(connection: &mut Connection, name: &str) -> Result<AgentInfo, CallError> {
    connection.call(method::AGENT_SHOW, &AgentRef { agent: name.to_owned() })
}

pub(crate) fn info_if(found: Option<Connection>) -> Result<Option<DaemonInfo>> {
    found.map(|mut connection| info(&mut connection)).transpose()
}

/// Starts no daemon.
pub(crate) fn running(paths: &Paths) -> Result<Option<Connection>> {
    find(paths, false)
}

/// Connects to this daemon only, not to its successors.
fn find(paths: &Paths, spawn: bool) -> Result<Option<Connection>> {
    match connect(&Options { spawn, place: Place::Here(paths.clone()) }) {
        Ok(connection) => Ok(Some(connection)),
        Err(ConnectError::NotRunning) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the running daemon's information. A closing socket accepts connections for a moment,
/// without an answer, because the service manager closes its own socket later.
pub(crate) fn serving(paths: &Paths) -> Result<Option<DaemonInfo>> {
    match info_if(running(paths)?) {
        Err(error) if error.kind == ErrorKind::Gone => Ok(None),
        found => found,
    }
}

/// Interval of checks for a stopped daemon that does not end.
const LOOK: Duration = Duration::from_secs(2);
/// A restarting daemon that is away longer has died.
const DIED: Duration = Duration::from_secs(1);

/// Restarts the daemon in place to use the current configuration, if that is valid.
pub(crate) fn reload(paths: &Paths, ui: &mut Ui) -> Result {
    let mut connection = running(paths)?.ok_or_else(|| {
        not_running("it reads the configuration when it starts: `acpctl daemon start`")
    })?;
    let status: Status = connection.call(method::STATUS, &Empty {})?;
    let Some(changed) = &status.daemon.config_changed else {
        return ui.done("the configuration has not changed");
    };
    if !changed.mistakes.is_empty() {
        let text = text!("acpd keeps the old configuration:{}", mistakes(&changed.mistakes));
        return Err(CommandError::new(ExitCode::Error, text).hint("fix it: `acpctl config edit`"));
    }
    take_place(connection, paths, Environment::default(), ui)?;
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
        let Err(CallError::Rpc(error)) = agent(&mut connection, name.raw()) else { continue };
        let error = CommandError::rpc(&error);
        let sessions = human::counted(*sessions, "session");
        let rest = text!("{}; its {} can only be read", error.message, sessions);
        ui.say(match error.hints.first() {
            Some(hint) => text!("{}\n  {}", rest, hint),
            None => rest,
        });
    }
    announce_expiry(&mut connection, ui);
    Ok(())
}

pub(crate) fn restart(
    connection: Connection,
    paths: &Paths,
    environment: Environment,
    ui: &mut Ui,
) -> Result {
    let (before, DaemonInfo { pid, version, .. }) = take_place(connection, paths, environment, ui)?;
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
    announce_expiry(&mut to_running(paths)?, ui);
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
        Err(error) if error.kind == ErrorKind::Gone => None,
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
    while connection.reader.recv_within(LOOK).is_ok() {
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
        match find(paths, spawn).and_then(info_if) {
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
    running(paths)?.ok_or_else(|| not_running("start it with `acpctl daemon start`"))
}

fn not_running(hint: &'static str) -> CommandError {
    CommandError::new(ExitCode::NotFound, "acpd is not running").hint(hint)
}

const MAX_NAMED: usize = 8;

/// Prints the sessions that the limits of `[retention]` delete next, and the time.
pub(crate) fn announce_expiry(connection: &mut Connection, ui: &mut Ui) {
    let look = GcParams { dry_run: true, ..GcParams::default() };
    // Without a limit, or with an older daemon, this fails.
    let found: Result<GcResult, CallError> = connection.call(method::GC, &look);
    let Ok(found) = found else { return };
    let Some(next) = found.next.filter(|_| !found.sessions.is_empty()) else { return };
    let mut names: Vec<Text> =
        found.sessions.iter().take(MAX_NAMED).map(|one| expired_handle(one).into()).collect();
    let more = found.sessions.len() - names.len();
    if more > 0 {
        names.push(text!("{} more", more));
    }
    ui.say(text!(
        "[retention] deletes {} at {}: {}\n  to keep them, raise the limits and reload before; `acpctl gc --dry-run` \
         lists them",
        expired_amount(&found),
        human::clock(next),
        Text::join(names, ", ")
    ));
}

pub(crate) fn expired_amount(found: &GcResult) -> Text {
    let count = human::counted(found.sessions.len(), "session");
    text!("{} ({})", count, human::bytes(found.bytes))
}

pub(crate) fn expired_handle(session: &GcSession) -> &Untrusted {
    session.name.as_ref().unwrap_or(&session.session_id)
}
