use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use acpd_sys::files;
use acpd_sys::lock::{self, InstanceLock, LockError};
use acpd_sys::paths::Paths;
use acpd_sys::socket::{Stream, check_place, is_left, other_end};
use acpd_sys::startup::{StartupOutcome, spawn_daemon};

use crate::error::{ConnectError, NotAnswering};
use crate::host::Host;
use crate::program::{daemon_exe, with_hint};
use crate::stream::is_timeout;

/// The usual patience of a link: how long a daemon may stay away while the user waits for it.
/// Otherwise it may stay away for any time.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// The same with other machines: a network may be away for longer than a daemon.
const FAR_PATIENCE: Duration = Duration::from_mins(10);
/// Longest wait for a daemon that accepts no connections, or does not read.
pub(crate) const ACCEPT_PATIENCE: Duration = Duration::from_secs(5);
const START_DEADLINE: Duration = Duration::from_secs(10);
/// Pause between tries to start a daemon while another one starts or ends.
const TAKEN: Duration = Duration::from_millis(50);
/// Longest wait for a daemon that runs without a socket.
const NO_SOCKET: Duration = Duration::from_secs(1);
/// Pause between checks for a daemon that ends.
const GONE: Duration = Duration::from_millis(5);

#[derive(Debug, Clone)]
pub struct Options {
    pub spawn: bool,
    pub place: Place,
}

/// Place of the daemon.
#[derive(Debug, Clone)]
pub enum Place {
    /// On this machine.
    Here(Paths),
    Host(Arc<Host>),
    /// On several machines, which look like one.
    Machines(Arc<dyn Join>),
}

/// Several machines that look like one.
pub trait Join: Debug + Send + Sync {
    /// Names of the machines for people.
    fn names(&self) -> String;

    /// Opens a connection to all of them.
    fn open(&self, spawn: bool) -> Result<Stream, ConnectError>;
}

impl Place {
    /// Returns whether a daemon of this machine runs, or died without removing its socket.
    pub fn has_socket(&self) -> bool {
        matches!(self, Place::Here(paths) if is_left(&paths.socket()))
    }

    /// Returns how long the daemon may stay away while the user waits for it.
    pub fn patience(&self) -> Duration {
        match self {
            Place::Here(_) => PATIENCE,
            Place::Host(_) | Place::Machines(_) => FAR_PATIENCE,
        }
    }

    /// The second and the longest pause between two attempts to connect again.
    pub(crate) fn pauses(&self) -> (Duration, Duration) {
        match self {
            Place::Here(_) => (Duration::from_millis(20), Duration::from_secs(1)),
            Place::Host(_) | Place::Machines(_) => {
                (Duration::from_millis(500), Duration::from_secs(30))
            }
        }
    }

    pub(crate) fn not_answering(&self) -> NotAnswering {
        match self {
            Place::Here(paths) => NotAnswering::now(paths),
            Place::Host(host) => NotAnswering::There { host: host.name.clone() },
            Place::Machines(machines) => NotAnswering::There { host: machines.names() },
        }
    }
}

/// Opens a bare socket, for callers with a runtime of their own; otherwise like
/// [`connect`](crate::connect()).
pub fn open_socket(options: &Options) -> Result<Stream, ConnectError> {
    Ok(open_or_start(options)?.stream)
}

#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) stream: Stream,
    /// The daemon was started for this socket, and ends together with the parent of this program.
    pub(crate) is_bound: bool,
}

/// The socket of the user's daemon; see [`connect`](crate::connect()).
pub(crate) fn open_or_start(options: &Options) -> Result<Opened, ConnectError> {
    let running = |stream| Opened { stream, is_bound: false };
    let paths = match &options.place {
        Place::Here(paths) => paths,
        Place::Host(host) => return host.open(options.spawn).map(running),
        Place::Machines(machines) => return machines.open(options.spawn).map(running),
    };
    if let Some(stream) = open(paths)? {
        return Ok(running(stream));
    }
    if !options.spawn {
        return match wait_for_socket(paths)? {
            Some(stream) => Ok(running(stream)),
            None if is_locked(paths) => {
                let pid = lock::signature(&paths.lock()).map(|signature| signature.pid);
                Err(ConnectError::NoSocket { socket: paths.socket(), pid })
            }
            None => Err(ConnectError::NotRunning),
        };
    }
    let lock = hold_starts(paths)?;
    // The last holder of the lock may have started the daemon.
    if let Some(stream) = open(paths)? {
        return Ok(running(stream));
    }
    let opened = start_and_open(paths)?;
    drop(lock);
    opened.ok_or(ConnectError::NotRunning)
}

/// Waits for the socket of a daemon that holds its lock: the daemon replaces a removed socket at
/// once.
fn wait_for_socket(paths: &Paths) -> Result<Option<Stream>, ConnectError> {
    let end = Instant::now() + NO_SOCKET;
    while is_locked(paths) && Instant::now() < end {
        thread::sleep(TAKEN);
        if let Some(stream) = open(paths)? {
            return Ok(Some(stream));
        }
    }
    Ok(None)
}

fn is_locked(paths: &Paths) -> bool {
    lock::is_held(&paths.lock()).unwrap_or(false)
}

/// Locks the start of daemons, for a client that replaces the running daemon. Other clients wait,
/// and then look for a daemon again.
pub fn hold_starts(paths: &Paths) -> Result<InstanceLock, ConnectError> {
    files::private_dir(&paths.runtime)?;
    Ok(InstanceLock::acquire_wait(&paths.runtime.join("acpd.start.lock"), START_DEADLINE)?)
}

/// Starts the daemon, or waits for another one that is starting or ending.
fn start_and_open(paths: &Paths) -> Result<Option<Opened>, ConnectError> {
    let end = Instant::now() + START_DEADLINE;
    loop {
        let started = start(paths);
        // A failure usually means that another client has started a daemon.
        let stream = open(paths)?;
        match started {
            Err(error) if stream.is_none() => {
                if !is_taken(paths, &error) || Instant::now() >= end {
                    return Err(error);
                }
            }
            started => {
                let is_bound = started.unwrap_or_default();
                return Ok(stream.map(|stream| Opened { stream, is_bound }));
            }
        }
        thread::sleep(TAKEN);
    }
}

/// Returns whether a daemon did not start because another one holds the lock. Only its message
/// shows that.
fn is_taken(paths: &Paths, error: &ConnectError) -> bool {
    let words = format!("`{}` is locked", paths.lock().display());
    matches!(error, ConnectError::StartFailed { reason, .. } if reason.contains(&words))
}

/// Waits after a stop until the daemon with this pid no longer holds the instance lock. A successor
/// may hold it by then.
pub fn wait_until_gone(paths: &Paths, pid: u32, deadline: Duration) -> Result<(), ConnectError> {
    let end = Instant::now() + deadline;
    while !matches!(paths.state.try_exists(), Ok(false)) {
        match InstanceLock::acquire(&paths.lock()) {
            Ok(_released_at_once) => break,
            Err(LockError::Held { pid: Some(holder), .. }) if holder != pid => break,
            Err(LockError::Held { pid, .. }) if Instant::now() >= end => {
                let (seconds, log) = (deadline.as_secs(), paths.daemon_log());
                return Err(ConnectError::StillRunning { seconds, pid, log });
            }
            Err(LockError::Held { .. }) => thread::sleep(GONE),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Starts the daemon. Returns whether it ends together with the parent of this program.
fn start(paths: &Paths) -> Result<bool, ConnectError> {
    let log = paths.daemon_log();
    let pipe = spawn_daemon(&daemon_exe(), ["run"], &log)?;
    let is_bound = pipe.is_bound;
    match pipe.wait(START_DEADLINE) {
        StartupOutcome::Ready => Ok(is_bound),
        StartupOutcome::Failed(words) => {
            let (reason, hint) = with_hint(&words);
            let (reason, hint) = (reason.to_owned(), hint.map(str::to_owned));
            Err(ConnectError::StartFailed { reason, hint })
        }
        StartupOutcome::Died => Err(ConnectError::StartDied { log }),
        StartupOutcome::TimedOut => {
            Err(ConnectError::StartTimedOut { seconds: START_DEADLINE.as_secs(), log })
        }
    }
}

/// Opens a connection; `None` if no daemon listens, neither at the usual place nor where the lock
/// file says. The places differ if the daemon was started in a login with another runtime
/// directory.
pub(crate) fn open(paths: &Paths) -> Result<Option<Stream>, ConnectError> {
    let usual = paths.socket();
    if let Some(stream) = try_socket(&usual, paths)? {
        return Ok(Some(stream));
    }
    match named_socket(paths).filter(|named| *named != usual) {
        Some(named) => try_socket(&named, paths),
        None => Ok(None),
    }
}

/// The socket in the lock file, in the line after the pid. The name of a dead socket stays there.
fn named_socket(paths: &Paths) -> Option<PathBuf> {
    let path = PathBuf::from(lock::signature(&paths.lock())?.line?);
    path.is_absolute().then_some(path)
}

fn try_socket(socket: &Path, paths: &Paths) -> Result<Option<Stream>, ConnectError> {
    if !check_place(socket)? {
        return Ok(None);
    }
    let failed = |source| ConnectError::Socket { socket: socket.to_owned(), source };
    let stream = match acpd_sys::socket::connect(socket, ACCEPT_PATIENCE) {
        Ok(stream) => stream,
        Err(error) if is_unserved(&error) => return Ok(None),
        Err(error) if is_timeout(&error) => return Err(NotAnswering::now(paths).into()),
        Err(error) => return Err(failed(error)),
    };
    let daemon = other_end(&stream).map_err(failed)?;
    if daemon.is_ours() {
        Ok(Some(stream))
    } else {
        Err(ConnectError::ForeignServer { socket: socket.to_owned(), uid: daemon.uid })
    }
}

fn is_unserved(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}
