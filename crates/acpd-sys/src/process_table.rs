//! What the system tells of a process: the types that Linux and macOS have in common.

use std::fmt;

use nix::sys::signal::Signal;
use nix::sys::wait::WaitStatus;

/// A process, told apart from every other that has or had its pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId {
    /// The pid.
    pub pid: u32,
    /// When the kernel started it, as an opaque number that fits in an `i64`. On Linux: 23 bits
    /// of a hash of the boot id, then 40 bits of clock ticks since boot, so that the same pid
    /// at the same uptime of another boot is another process. On macOS: microseconds since 1970.
    pub start: u64,
}

/// What a process does, as far as the system tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// It runs, or waits for something to do.
    Running,
    /// It waits for a disk or the like, and cannot be interrupted.
    Blocked,
    /// A signal or a debugger has stopped it.
    Stopped,
    /// It has ended.
    Ended,
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Condition::Running => "running",
            Condition::Blocked => "waiting for a disk",
            Condition::Stopped => "stopped",
            Condition::Ended => "ended",
        })
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitKind {
    /// It exited with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

impl From<std::process::ExitStatus> for ExitKind {
    fn from(status: std::process::ExitStatus) -> ExitKind {
        use std::os::unix::process::ExitStatusExt as _;
        match (status.code(), status.signal()) {
            (Some(code), _) => ExitKind::Code(code),
            (None, signal) => ExitKind::Signal(signal.unwrap_or_default()),
        }
    }
}

impl fmt::Display for ExitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExitKind::Code(code) => write!(f, "exit code {code}"),
            ExitKind::Signal(number) => match Signal::try_from(*number) {
                Ok(signal) => write!(f, "signal {number} ({signal})"),
                Err(_) => write!(f, "signal {number}"),
            },
        }
    }
}

/// The process at the other end of a connection, as the kernel saw it when it connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its effective user id: what access is decided by.
    pub uid: u32,
    /// Its pid, where the system tells. For logs: pids are used again.
    pub pid: Option<u32>,
}

/// The effective user id of this process.
pub fn own_uid() -> u32 {
    nix::unistd::geteuid().as_raw()
}

/// A line of the process table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) id: ProcessId,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) session: u32,
    pub(crate) uid: u32,
    pub(crate) condition: Condition,
}

impl Entry {
    /// Returns whether it has ended and waits only to be reaped.
    pub(crate) fn is_zombie(&self) -> bool {
        self.condition == Condition::Ended
    }
}

pub(crate) fn exit_kind(status: WaitStatus) -> Option<ExitKind> {
    match status {
        WaitStatus::Exited(_, code) => Some(ExitKind::Code(code)),
        WaitStatus::Signaled(_, signal, _) => Some(ExitKind::Signal(signal as i32)),
        _ => None,
    }
}
