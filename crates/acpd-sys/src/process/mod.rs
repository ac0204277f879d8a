//! Processes: identity, start, end and memory, and the programs that they run.
//!
//! Children start in their own group, and inherit nothing but the environment ([`detach_child`],
//! [`start`]). A child that has ended keeps its pid until it is reaped: on Unix as a zombie, on
//! Windows while its [`Child`] exists.

use std::process::Child;
use std::{fmt, io};

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;
#[cfg_attr(target_os = "linux", path = "linux.rs")]
#[cfg_attr(target_os = "macos", path = "macos.rs")]
#[cfg(unix)]
mod table;

#[cfg(windows)]
pub(crate) mod jobs;
#[cfg(windows)]
use system as table;

pub use system::*;
#[cfg(unix)]
pub use table::*;

/// A process, distinct from every other one that has or had its pid. The default is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId {
    pub pid: u32,
    /// Start time, as an opaque number that fits in an `i64`. On Linux: 23 bits of a hash of the boot id,
    /// then 40 bits of clock ticks since boot, so that the same pid at the same uptime of another boot
    /// is another process. On macOS: microseconds since 1970. On Windows: units of 100 ns since 1601.
    pub start: u64,
}

impl ProcessId {
    /// Returns `None` if there is no such process, or the system does not say.
    pub fn of(pid: u32) -> Option<ProcessId> {
        Some(look_up(pid).ok()??.id)
    }

    /// The child must not have been reaped.
    pub fn of_child(child: &Child) -> io::Result<ProcessId> {
        let id = ProcessId::of(child.id());
        id.ok_or_else(|| io::Error::other("its start time cannot be read"))
    }

    /// A zombie is not alive.
    pub fn is_alive(&self) -> Liveness {
        match look_up(self.pid) {
            Err(_) => Liveness::Unverifiable,
            Ok(Some(found)) if found.id == *self && !found.is_zombie() => Liveness::Alive,
            Ok(_) => Liveness::Gone,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    Alive,
    /// Ended, a zombie, or another process has the pid.
    Gone,
    /// The system does not say: neither kill nor forget it.
    Unverifiable,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopSignal {
    Term,
    Kill,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    Running,
    /// Waits for a disk or the like, uninterruptibly.
    Blocked,
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

/// Returns `None` if there is no such process, or the system does not say.
pub fn condition(pid: u32) -> Option<Condition> {
    Some(look_up(pid).ok()??.condition)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitKind {
    Code(i32),
    Signal(i32),
}

impl ExitKind {
    /// Returns `ended with exit code 3`, `was killed (SIGKILL)`.
    pub fn predicate(self) -> String {
        match self {
            ExitKind::Code(_) => format!("ended with {self}"),
            ExitKind::Signal(number) => format!("was killed ({})", signal_name(number)),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) id: ProcessId,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) session: u32,
    /// Belongs to the user of this process.
    pub(crate) is_ours: bool,
    pub(crate) condition: Condition,
}

impl Entry {
    pub(crate) fn is_zombie(&self) -> bool {
        self.condition == Condition::Ended
    }
}

/// Returns the name of a process, which the process can choose.
pub fn name_of(pid: u32) -> Option<String> {
    table::name_of(pid).filter(|name| !name.is_empty())
}
