//! Locks: the daemon's own, and the one that clients hold while they start it.
//!
//! The kernel releases a lock when its holder dies, however it dies. acpd never removes a lock
//! file: a removed file can be locked twice.

use std::fs::{File, TryLockError};
use std::io::{self, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use thiserror::Error;

use crate::files;
use crate::process::look_up;

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

/// The most that is read of a lock file, in bytes.
const LONGEST: u64 = 16 << 10;

/// How long [`InstanceLock::acquire`] waits for the lock of a process that has ended.
const RELEASE: Duration = Duration::from_secs(5);

/// A held lock. Dropping it, or dying, releases it.
#[derive(Debug)]
pub struct InstanceLock {
    file: File,
}

impl Drop for InstanceLock {
    fn drop(&mut self) {
        // Closing is not enough: a child between fork and exec has the file open as well.
        let _ = system::unlock(&self.file);
    }
}

/// Why a lock was not taken.
#[derive(Debug, Error)]
pub enum LockError {
    #[error("`{}` is locked by {}", .path.display(), holder(*.pid))]
    Held {
        path: PathBuf,
        /// As the holder wrote it into the file: good for a message, nothing else.
        pid: Option<u32>,
    },
    #[error("cannot lock `{}`", .path.display())]
    Io { path: PathBuf, source: io::Error },
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

impl InstanceLock {
    /// Takes the lock, or returns its holder at once. The directory must exist.
    ///
    /// A lock can outlive its holder for a moment: Windows releases it some time after the end of
    /// the process, and Unix when a child that the process was starting has got to its exec. So
    /// this waits for a holder that has ended.
    pub fn acquire(path: &Path) -> Result<InstanceLock, LockError> {
        let taken = take(path, |file| match system::try_lock(file) {
            Ok(()) => Ok(()),
            Err(TryLockError::WouldBlock) => Err(held(path)),
            Err(TryLockError::Error(source)) => Err(failed(path, source)),
        });
        match taken {
            Err(LockError::Held { pid: Some(pid), .. }) if has_ended(pid) => {
                InstanceLock::acquire_wait(path, RELEASE)
            }
            taken => taken,
        }
    }

    /// Adds a line below the pid, for processes that find the lock held.
    pub fn add_line(&self, line: &str) -> io::Result<()> {
        writeln!(&self.file, "{line}")
    }

    /// Takes the lock, waiting for its holder for up to `deadline`, then [`LockError::Held`].
    ///
    /// The kernel waits, on a thread of its own: if the deadline passes first, that thread stays
    /// until it gets the lock, and releases it at once.
    pub fn acquire_wait(path: &Path, deadline: Duration) -> Result<InstanceLock, LockError> {
        let (send, receive) = mpsc::sync_channel(1);
        let owned = path.to_owned();
        thread::Builder::new()
            .name("lock".to_owned())
            .spawn(move || {
                let wait =
                    |file: &File| system::lock(file).map_err(|source| failed(&owned, source));
                // Without a receiver, the lock is dropped with the message.
                let _ = send.send(take(&owned, wait));
            })
            .map_err(|source| failed(path, source))?;
        receive.recv_timeout(deadline).unwrap_or_else(|_| Err(held(path)))
    }
}

fn has_ended(pid: u32) -> bool {
    look_up(pid).is_ok_and(|found| found.is_none_or(|process| process.is_zombie()))
}

/// Locks a file for as long as it is open. The lock is advisory: reads and writes ignore it.
pub fn hold(file: &File) -> Result<(), TryLockError> {
    system::try_lock(file)
}

/// Opens, locks, and makes sure that the locked file is still the one at `path`: a cleaner of
/// temporary directories may have removed it in between.
fn take(
    path: &Path,
    lock: impl Fn(&File) -> Result<(), LockError>,
) -> Result<InstanceLock, LockError> {
    loop {
        let mut file = system::open(path).map_err(|source| failed(path, source))?;
        lock(&file)?;
        if is_at(&file, path).map_err(|source| failed(path, source))? {
            sign(&mut file).map_err(|source| failed(path, source))?;
            return Ok(InstanceLock { file });
        }
    }
}

/// Returns whether the open file is the one that `path` names now.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let open = files::stamp_of(file)?;
    Ok(files::stamp(path)?.is_some_and(|named| named.id == open.id))
}

/// Writes this pid over what an earlier holder left.
fn sign(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn held(path: &Path) -> LockError {
    let pid = signature(path).map(|signature| signature.pid);
    LockError::Held { path: path.to_owned(), pid }
}

/// The lines that the last holder of a lock wrote into its file: good for a message or a try, nothing
/// else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    pub pid: u32,
    pub line: Option<String>,
}

/// Returns whether a process holds this lock. Neither makes the lock nor takes it.
pub fn is_held(path: &Path) -> io::Result<bool> {
    let file = match files::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        other => other?,
    };
    match system::try_lock_shared(&file) {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Reads a lock file. Returns `None` if it is empty or cannot be read.
pub fn signature(path: &Path) -> Option<Signature> {
    let text = String::from_utf8(files::read(path, LONGEST).ok()?).ok()?;
    let mut lines = text.lines();
    let pid = lines.next()?.trim().parse().ok()?;
    Some(Signature { pid, line: lines.next().map(str::to_owned) })
}

fn failed(path: &Path, source: io::Error) -> LockError {
    LockError::Io { path: path.to_owned(), source }
}
