//! Facts about a process: the types that all systems have in common.

use std::fmt;

use crate::program::signal_name;
use crate::user::{self, UserId};

/// A process, told apart from every other that has or had its pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId {
    pub pid: u32,
    /// When the kernel started it, as an opaque number that fits in an `i64`. On Linux: 23 bits
    /// of a hash of the boot id, then 40 bits of clock ticks since boot, so that the same pid
    /// at the same uptime of another boot is another process. On macOS: microseconds since 1970.
    /// On Windows: units of 100 nanoseconds since 1601.
    pub start: u64,
}

/// The fate of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    Alive,
    /// Ended, or a zombie, or its pid belongs to another process by now.
    Gone,
    /// The system does not say: neither kill nor forget it.
    Unverifiable,
}

/// The two ways to ask a process to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopSignal {
    Term,
    Kill,
}

/// The state of a process, as far as the system reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// Running, or waiting for something to do.
    Running,
    /// Waiting for a disk or the like, not interruptible.
    Blocked,
    /// A signal or a debugger has stopped it.
    Stopped,
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
    /// Exited with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

impl ExitKind {
    /// The end as a predicate: `ended with exit code 3`, `was killed (SIGKILL)`.
    pub fn predicate(self) -> String {
        match self {
            ExitKind::Code(_) => format!("ended with {self}"),
            ExitKind::Signal(number) => format!("was killed ({})", signal_name(number)),
        }
    }
}

/// The process at the other end of a connection, as the kernel saw it when it connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// The user, who decides the access.
    pub uid: UserId,
    /// The pid, where the system reports it. For logs: pids are used again.
    pub pid: Option<u32>,
}

impl Peer {
    /// Returns whether the peer is our own user; administrators are not. Other connections are sent nothing,
    /// and nothing is read from them.
    pub fn is_ours(&self) -> bool {
        self.uid == own_uid()
    }
}

/// The user of this process.
pub fn own_uid() -> UserId {
    user::own_user()
}

/// A line of the process table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) id: ProcessId,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) session: u32,
    pub(crate) uid: UserId,
    pub(crate) condition: Condition,
}

impl Entry {
    /// Returns whether it has ended and waits only to be reaped.
    pub(crate) fn is_zombie(&self) -> bool {
        self.condition == Condition::Ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_user_is_let_in() {
        let peer = |uid, pid| Peer { uid, pid };
        assert!(peer(own_uid(), None).is_ours() && peer(own_uid(), Some(1)).is_ours());
        let us = std::process::id();
        assert!(!peer(user::nobody(), None).is_ours() && !peer(user::nobody(), Some(us)).is_ours());
    }
}
