//! The life of the daemon: its locks, files and threads, and their end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use acpd_api::Environment;
use acpd_core::{Batch, Hub};
use acpd_store::Report;
use acpd_sys::handover::{Heritage, KEEPS_TERMINAL, ServiceManager, ServiceState};
use acpd_sys::limits;
use acpd_sys::lock::{InstanceLock, LockError};
use acpd_sys::paths::Paths;
use acpd_sys::process;
use acpd_sys::runtime::ListeningSocket;
use acpd_sys::startup::{self, Notifier};
use tokio::sync::{mpsc, oneshot, watch};

use crate::check;
use crate::clients::Service;
use crate::clock::Clock;
use crate::config::{self, OnDisk};
use crate::door::{self, Door};
use crate::failure::Failure;
use crate::host::{Agents, Reaper};
use crate::journal::Journal;
use crate::log::{self, BoundedLog};
use crate::relay::{Ended, Readers, Relay, Sources};
use crate::search::SearchIndex;
use crate::service::{self, Pulse};
use crate::{crash, real_cwd, settings, signals};

/// Batches of lines that may wait for the relay, per kind of source.
const EVENTS: usize = 64;
const BOUND: &str = "acpd is in a Job of Windows, and ends with it: with the terminal or the program that it was started in";
/// Time for clients to read their last lines when the daemon ends.
const LAST_LINES: Duration = Duration::from_secs(1);
/// Idle time after which a thread for blocking calls ends. The runtime gives work to any of them in
/// turn: with its default of 10 s, two calls per second would keep all threads that one moment
/// needed.
const KEEP_IDLE: Duration = Duration::from_millis(500);

/// Runs the daemon until it is stopped. In the background, and when a client has started it, it
/// logs to its file. A failed start is also reported through the start-up pipe.
pub fn run(background: bool) -> Result<(), Failure> {
    // First, while there is only one thread: it removes a variable from the environment.
    let mut notifier = startup::startup_notifier();
    let background = background || notifier.is_some();
    // Before the program can be replaced.
    let exe = own_program();
    let manager = ServiceManager::find();
    match serve(background, exe.clone(), manager, &mut notifier) {
        Ok(Some((heritage, brought))) => {
            start_again(&exe, background, &manager, heritage, &brought)
        }
        Ok(None) => Ok(()),
        Err(failure) => {
            if let Some(notifier) = notifier {
                notifier.failed(&failure.to_string());
            }
            Err(failure)
        }
    }
}

/// Returns the path of this program, where an upgrade puts the next one.
fn own_program() -> PathBuf {
    let called = std::env::args_os().next().map(PathBuf::from);
    let called = called.filter(|path| path.is_absolute() && path.is_file());
    called.or_else(|| std::env::current_exe().ok()).unwrap_or_else(|| PathBuf::from("acpd"))
}

fn start_again(
    exe: &Path,
    background: bool,
    manager: &ServiceManager,
    heritage: Heritage,
    brought: &Environment,
) -> Result<(), Failure> {
    crash::point("before-exec");
    manager.keep_socket();
    let mut command = Command::new(exe);
    command.arg("run").envs(brought.iter());
    if background || !KEEPS_TERMINAL {
        command.arg("--background");
    }
    heritage
        .pass_to(command)
        .map_err(|error| Failure::system(&format!("cannot start `{}` again", exe.display()), error))
}

/// Returns the variables of a terminal that the configuration names, as it will be read next.
fn named(mut brought: Environment, file: &Path) -> Environment {
    // The file was just checked. If it has changed again, the next daemon reports that.
    match config::load(file) {
        Ok(config) => brought.retain(|name| config.names_variable(name)),
        Err(_) => brought = Environment::default(),
    }
    brought
}

/// Heritage of the next daemon, and the variables of the request for the restart.
type Successor = (Heritage, Environment);

/// Takes the lock, opens the files, and runs the relay to its end. Returns the data for the next
/// daemon, if one follows. `notifier` is taken when clients are accepted.
fn serve(
    background: bool,
    exe: PathBuf,
    manager: ServiceManager,
    notifier: &mut Option<Notifier>,
) -> Result<Option<Successor>, Failure> {
    // First, so that all new files are private.
    limits::private_files();
    let paths = check::paths()?;
    check::private_dirs(&paths)?;
    let Heritage { lock, socket } = match Heritage::take(&paths.lock()) {
        Some(heritage) => heritage,
        None => {
            let lock = InstanceLock::acquire(&paths.lock()).map_err(|error| locked(&error))?;
            Heritage { lock, socket: None }
        }
    };
    crash::point("locked");
    let config_file = Arc::new(OnDisk::now(&paths.config_file()));
    let config = Arc::new(check::configuration(&paths)?);
    let log_max_bytes = config.daemon.log_max_bytes;
    let log = background.then(|| BoundedLog::open_as_stderr(&paths.daemon_log(), log_max_bytes));
    let log = log::start(&config.daemon.log_level, log);
    if startup::is_bound() {
        tracing::warn!("{BOUND}");
    }
    process::become_subreaper().map_err(|e| Failure::system("cannot become a subreaper", e))?;
    limits::no_core_dumps().map_err(|e| Failure::system("cannot turn off core dumps", e))?;
    limits::raise_nofile_limit().ok();
    limits::return_buffers(limits::LARGE_BUFFER);
    let calls = signals::watch().map_err(|e| Failure::system("cannot watch signals", e))?;
    acpd_store::check_file(&paths.database(), &paths.search_index())
        .map_err(|e| Failure::new(&e, e.hint()))?;
    let (report, reports) = mpsc::unbounded_channel();
    let compress_after = config.daemon.compress_after;
    let (writer, reader, mut snapshot) =
        acpd_store::open(&paths.database(), compress_after, move |event| {
            if matches!(event, Report::Tidied(_)) {
                crash::point("tidied");
            }
            report.send(event).ok();
        })
        .map_err(|e| Failure::new(&e, e.hint()))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_keep_alive(KEEP_IDLE)
        .build()
        .map_err(|e| Failure::system("cannot start the runtime", e))?;
    let door = runtime
        .block_on(async { open_door(&manager, socket, &paths) })
        .map_err(|e| Failure::new(e, None::<String>))?;
    // Best effort, for clients that look elsewhere for the socket.
    lock.add_line(&paths.socket().display().to_string()).ok();

    let clock = Clock::start();
    let (client_events, from_clients) = mpsc::channel(EVENTS);
    let (host_events, from_hosts) = mpsc::channel(EVENTS);
    let no_thread = |e| Failure::system("cannot start a thread", e);
    let reaper = Reaper::start(host_events.clone()).map_err(no_thread)?;
    let journal = Journal::start(reader).map_err(no_thread)?;
    let index = SearchIndex::start(paths.database(), paths.search_index()).map_err(no_thread)?;
    let service = Service {
        events: client_events,
        journal: journal.clone(),
        index: index.clone(),
        reaper: reaper.clone(),
        config: Arc::clone(&config),
        config_file: Arc::clone(&config_file),
        paths: Arc::new(paths.clone()),
        log,
        line_limit: config.daemon.line_limit as usize,
        half_lines: Arc::default(),
    };
    // Enough to distinguish this journal's processes from those of another one.
    let generation: String = snapshot.generation.chars().take(16).collect();
    let hosts: BTreeSet<_> = snapshot.hosts.keys().copied().collect();
    if !config.has_remote_agent() {
        real_cwd::name_sessions(&mut snapshot);
    }
    let hub_config = settings::hub_config(&config, &paths, clock.now().0);
    let mut first = Batch::default();
    let mut hub = Hub::recover(snapshot, hub_config, clock.now(), &mut first);
    hub.seal(&mut first);
    let file = paths.config_file();
    let own_socket = door.own_path();
    let agents = Agents {
        config,
        config_file,
        paths,
        generation,
        exe,
        managed: manager.is_there(),
        reaper,
        events: host_events,
        logs: BTreeMap::new(),
    };
    let (writer, restart, socket) = runtime.block_on(async move {
        let (stop, stopped) = watch::channel(false);
        let (open, may_open) = oneshot::channel();
        agents.end_orphan_shims(&hosts);
        let pulse = Pulse::new(manager);
        let sources = Sources { clients: from_clients, hosts: from_hosts, reports, calls, pulse };
        let readers = Readers { journal, index };
        let relay =
            Relay::new(hub, first, clock, agents, writer, readers, open).map_err(no_thread)?;
        let notifier = notifier.take();
        let accepting = tokio::spawn(async move {
            if may_open.await.is_err() {
                return door;
            }
            tracing::info!(pid = std::process::id(), "acpd is ready");
            crash::point("listening");
            service::tell(manager, ServiceState::Ready);
            if let Some(notifier) = notifier {
                notifier.ready();
            }
            door::accept(door, service, stopped).await
        });
        let Ended { writer, mut clients, restart } = Box::pin(relay.run(sources)).await;
        service::tell(
            manager,
            if restart.is_some() { ServiceState::Restarting } else { ServiceState::Stopping },
        );
        stop.send(true).ok();
        let door = accepting.await.ok();
        let written = async { while clients.recv().await.is_some() {} };
        tokio::time::timeout(LAST_LINES, written).await.ok();
        Ok::<_, Failure>((writer, restart, door.and_then(Door::into_socket)))
    })?;
    let socket = socket.filter(|_| own_socket.is_some());
    if let Some(path) = own_socket.filter(|_| restart.is_none()) {
        // Under the lock, so it is this daemon's.
        fs::remove_file(&path).ok();
    }
    runtime.shutdown_background();
    let closed = writer.close();
    tracing::info!(restart = restart.is_some(), "acpd has ended");
    match closed {
        // The next daemon tries again. No client was shown records that are not on disk.
        Err(error) if restart.is_some() => {
            tracing::error!(%error, "the journal could not be closed");
        }
        closed => closed
            .map_err(|e| Failure::new(format!("the journal could not be closed: {e}"), e.hint()))?,
    }
    Ok(restart.map(|brought| (Heritage { lock, socket }, named(brought, &file))))
}

/// Uses the socket of the service manager, else that of the previous daemon, else a new one. Call
/// it on the runtime.
fn open_door(
    manager: &ServiceManager,
    left: Option<ListeningSocket>,
    paths: &Paths,
) -> Result<Door, String> {
    let given = manager
        .socket()
        .map_err(|error| format!("cannot use the service manager's socket: {error}"))?;
    match (given, left) {
        (Some(socket), _) => Door::given(socket, None),
        (None, Some(socket)) => Door::given(socket, Some(paths.socket())),
        (None, None) => Door::open(paths.socket()),
    }
}

pub(crate) fn locked(error: &LockError) -> Failure {
    match error {
        LockError::Held { .. } => {
            Failure::new(error, Some("`acpctl status` shows it, `acpctl daemon stop` ends it"))
        }
        LockError::Io { source, .. } => {
            let hint = "on a network file system (NFS), which may have no locks, set ACPD_STATE_DIR to a directory on \
                        a local disk";
            Failure::new(format!("{error}: {source}"), Some(hint))
        }
    }
}
