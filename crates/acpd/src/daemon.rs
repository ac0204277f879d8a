//! From the first line to the last: locks, files, threads, and their end.

use std::fmt;
use std::fs;
use std::time::Duration;

use acpd_core::{Batch, Hub};
use acpd_sys::dir::private_dir;
use acpd_sys::lock::{InstanceLock, LockError};
use acpd_sys::paths::Paths;
use acpd_sys::{limits, process, startup};
use tokio::sync::{mpsc, watch};

use crate::clients::{self, Door, Service};
use crate::config::{self, Config};
use crate::host::Reaper;
use crate::journal::Journal;
use crate::log::{self, BoundedLog};
use crate::relay::{Agents, Clock, Relay, Sources};
use crate::{settings, signals};

/// Batches of lines that may wait for the relay, per kind of source.
const EVENTS: usize = 64;
/// How long clients may take to read their last lines when the daemon ends.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Why the daemon could not run; shows its hint as well.
#[derive(Debug)]
pub struct Failure {
    message: String,
    hint: Option<String>,
}

impl Failure {
    fn new(message: impl fmt::Display, hint: Option<impl fmt::Display>) -> Failure {
        Failure { message: message.to_string(), hint: hint.map(|hint| hint.to_string()) }
    }

    fn system(what: &str, error: impl fmt::Display) -> Failure {
        Failure::new(format!("{what}: {error}"), None::<String>)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

/// Runs the daemon until it is told to stop.
///
/// # Errors
/// When it cannot start. Whoever started it through the start-up pipe has been told then.
pub fn run() -> Result<(), Failure> {
    // First, while there is one thread only: it takes a variable out of the environment.
    let notifier = startup::startup_notifier();
    let background = notifier.is_some();
    match Daemon::open(background) {
        Ok(daemon) => daemon.run(|| {
            if let Some(notifier) = notifier {
                notifier.ready();
            }
        }),
        Err(failure) => {
            if let Some(notifier) = notifier {
                notifier.failed(&failure.to_string());
            }
            Err(failure)
        }
    }
}

/// Everything that can fail at the start, done.
struct Daemon {
    paths: Paths,
    config: Config,
    _lock: InstanceLock,
    runtime: tokio::runtime::Runtime,
    door: Door,
    signals: signals::Stops,
    writer: acpd_store::Writer,
    reader: acpd_store::Reader,
    snapshot: acpd_core::record::Snapshot,
    reports: mpsc::UnboundedReceiver<acpd_store::Report>,
}

impl Daemon {
    fn open(background: bool) -> Result<Daemon, Failure> {
        let paths = Paths::discover().map_err(|e| Failure::new(&e, e.hint()))?;
        let logs = paths.agent_log("agent");
        let agent_logs = logs.parent().unwrap_or(&paths.state);
        for dir in [&paths.runtime, &paths.state, &paths.state.join("log"), agent_logs] {
            private_dir(dir).map_err(|e| Failure::new(&e, e.hint()))?;
        }
        let lock = InstanceLock::acquire(&paths.lock()).map_err(|error| locked(&error))?;
        let config = config::load(&paths.config_file()).map_err(|e| Failure::new(&e, e.hint()))?;
        let file =
            background.then(|| BoundedLog::open(&paths.daemon_log(), config.daemon.log_max_bytes));
        log::start(&config.daemon.log_level, file);
        process::become_subreaper().map_err(|e| Failure::system("cannot become a subreaper", e))?;
        limits::no_core_dumps().map_err(|e| Failure::system("cannot turn off core dumps", e))?;
        limits::raise_nofile_limit().ok();
        limits::return_large_buffers();
        let signals = signals::watch().map_err(|e| Failure::system("cannot watch signals", e))?;
        let (report, reports) = mpsc::unbounded_channel();
        let (writer, reader, snapshot) = acpd_store::open(&paths.database(), move |event| {
            // The relay is gone only when the daemon ends.
            report.send(event).ok();
        })
        .map_err(|e| Failure::new(&e, e.hint()))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| Failure::system("cannot start the runtime", e))?;
        let door = runtime
            .block_on(async { Door::open(paths.socket()) })
            .map_err(|e| Failure::new(e, None::<String>))?;
        Ok(Daemon {
            paths,
            config,
            _lock: lock,
            runtime,
            door,
            signals,
            writer,
            reader,
            snapshot,
            reports,
        })
    }

    fn run(self, ready: impl FnOnce()) -> Result<(), Failure> {
        let Daemon { paths, config, runtime, door, .. } = self;
        let clock = Clock::start();
        let (client_events, from_clients) = mpsc::channel(EVENTS);
        let (host_events, from_hosts) = mpsc::channel(EVENTS);
        let reaper = Reaper::start(host_events.clone())
            .map_err(|e| Failure::system("cannot start a thread", e))?;
        let journal =
            Journal::start(self.reader).map_err(|e| Failure::system("cannot start a thread", e))?;
        let service = Service {
            events: client_events,
            journal,
            reaper: reaper.clone(),
            line_limit: config.daemon.line_limit as usize,
            max_clients: config.daemon.max_clients as usize,
        };
        // Enough to tell this journal's processes from those of another one.
        let generation = self.snapshot.generation.chars().take(16).collect();
        let hub_config = settings::hub_config(&config, &paths, clock.now().0);
        let mut first = Batch::default();
        let mut hub = Hub::recover(self.snapshot, hub_config, clock.now(), &mut first);
        hub.seal(&mut first);
        let socket = paths.socket();
        let agents = Agents { config, paths, generation, reaper, events: host_events };
        let sources = Sources {
            clients: from_clients,
            hosts: from_hosts,
            reports: self.reports,
            stops: self.signals,
        };
        let writer = runtime.block_on(async move {
            let (stop, stopped) = watch::channel(false);
            let accepting = tokio::spawn(clients::accept(door, service, stopped));
            let relay = Relay::new(hub, first, clock, agents, self.writer);
            tracing::info!(pid = std::process::id(), "acpd is ready");
            ready();
            let (writer, last) = relay.run(sources).await;
            stop.send(true).ok();
            accepting.await.ok();
            tokio::time::timeout(LAST_LINES, last.written()).await.ok();
            writer
        });
        // Under the lock, so it is ours.
        fs::remove_file(&socket).ok();
        runtime.shutdown_background();
        let closed = writer.close();
        tracing::info!("acpd has ended");
        closed.map_err(|e| Failure::new(format!("the journal could not be closed: {e}"), e.hint()))
    }
}

fn locked(error: &LockError) -> Failure {
    let hint = match error {
        LockError::Held { .. } => Some("`acpctl status` shows it, `acpctl daemon stop` ends it"),
        LockError::Io { .. } => None,
    };
    Failure::new(error, hint)
}
