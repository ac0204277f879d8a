//! Locks: the daemon's own, and the lock of clients that start a daemon.
//!
//! The kernel releases a lock when its holder dies. acpd never removes a lock file: a removed file
//! can be locked twice.

use std::fs::{File, TryLockError};
use std::io::{self, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::files;
use crate::process::look_up;

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

/// Longest lock file that is read, in bytes.
const LONGEST: u64 = 16 << 10;

/// Longest wait of [`InstanceLock::acquire`] for the lock of a process that has ended.
const RELEASE: Duration = Duration::from_secs(5);
/// Pause between two attempts to take a held lock.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// A held lock, released on drop or death.
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

#[derive(Debug, Error)]
pub enum LockError {
    #[error("`{}` is locked by {}", .path.display(), holder(*.pid))]
    Held {
        path: PathBuf,
        /// From the lock file: for messages only.
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
    /// The lock of a holder that has ended is waited for: Windows releases it after the end of the
    /// process, and Unix when a child of the process reaches its exec.
    pub fn acquire(path: &Path) -> Result<InstanceLock, LockError> {
        match take(path) {
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

    /// Takes the lock, waiting up to `deadline` for its holder, then fails with
    /// [`LockError::Held`]. The system has no wait with a limit, so this looks again and again.
    pub fn acquire_wait(path: &Path, deadline: Duration) -> Result<InstanceLock, LockError> {
        let end = Instant::now() + deadline;
        loop {
            match take(path) {
                Err(LockError::Held { .. }) if Instant::now() < end => thread::sleep(LOOK_AGAIN),
                taken => return taken,
            }
        }
    }
}

fn has_ended(pid: u32) -> bool {
    look_up(pid).is_ok_and(|found| found.is_none_or(|process| process.is_zombie()))
}

/// Locks a file for as long as it is open. The lock is advisory: reads and writes ignore it.
pub fn hold(file: &File) -> Result<(), TryLockError> {
    system::try_lock(file)
}

/// Opens and locks the file at `path`. Repeats that if the locked file is not the one at `path` any
/// longer: a cleaner of temporary directories may have removed it.
fn take(path: &Path) -> Result<InstanceLock, LockError> {
    let failed = |source| failed(path, source);
    loop {
        let mut file = system::open(path).map_err(failed)?;
        system::try_lock(&file).map_err(|error| match error {
            TryLockError::WouldBlock => held(path),
            TryLockError::Error(source) => failed(source),
        })?;
        if is_at(&file, path).map_err(failed)? {
            sign(&mut file).map_err(failed)?;
            return Ok(InstanceLock { file });
        }
    }
}

/// Returns whether `path` still names the open file.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let open = files::stamp_of(file)?;
    Ok(files::stamp(path)?.is_some_and(|named| named.id == open.id))
}

/// Writes this pid over the lines of an earlier holder.
fn sign(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn held(path: &Path) -> LockError {
    let pid = signature(path).map(|signature| signature.pid);
    LockError::Held { path: path.to_owned(), pid }
}

/// The lines of the last holder in a lock file: only for messages and attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    pub pid: u32,
    pub line: Option<String>,
}

/// Returns whether a process holds the lock, without creating or taking it.
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

/// Returns `None` if the file is empty or cannot be read.
pub fn signature(path: &Path) -> Option<Signature> {
    let text = String::from_utf8(files::read(path, LONGEST).ok()?).ok()?;
    let mut lines = text.lines();
    let pid = lines.next()?.trim().parse().ok()?;
    Some(Signature { pid, line: lines.next().map(str::to_owned) })
}

fn failed(path: &Path, source: io::Error) -> LockError {
    LockError::Io { path: path.to_owned(), source }
}
