//! Processes: who they are, how they start detached, how they end.

use std::io;

use crate::os;

pub use crate::child::{
    Hold, adopt, become_program, close_inherited, detach_child, detach_child_alone,
    detach_child_into, discard, drop_stdio, ends_by, hold, ignore_term, reap, reap_orphans,
    running_program, signal_one, start, try_wait_leader, wait_leader,
};
pub use crate::process_table::{Condition, ExitKind, Liveness, ProcessId, StopSignal};

/// Returns the state of the process with this pid; `None` if there is none or the system does not report it.
pub fn condition(pid: u32) -> Option<Condition> {
    Some(os::look_up(pid).ok()??.condition)
}

impl ProcessId {
    /// The process that has this pid now, or `None` if there is none or the system does not say.
    pub fn of(pid: u32) -> Option<ProcessId> {
        Some(os::look_up(pid).ok()??.id)
    }

    /// Looks whether this very process still runs. A zombie does not.
    pub fn is_alive(&self) -> Liveness {
        match os::look_up(self.pid) {
            Err(_) => Liveness::Unverifiable,
            Ok(Some(found)) if found.id == *self && !found.is_zombie() => Liveness::Alive,
            Ok(_) => Liveness::Gone,
        }
    }
}

/// Makes this process, and not init, the parent of orphans below it, so that none gets out of sight. Only
/// Linux can do that; elsewhere nothing happens.
pub fn become_subreaper() -> io::Result<()> {
    os::become_subreaper()
}

/// The name that a process gives itself, which it may choose; `None` if the system does not report it.
pub fn name_of(pid: u32) -> Option<String> {
    os::name_of(pid).filter(|name| !name.is_empty())
}

/// The memory of one process that is in RAM, in bytes; shared pages count in full.
pub fn rss_bytes(pid: u32) -> io::Result<u64> {
    os::rss_bytes(pid)
}

/// The memory of one process in bytes that stands for no file: what it has allocated, and what it has changed of its
/// program. Where the system does not count so, the same as [`rss_bytes`].
pub fn anonymous_bytes(pid: u32) -> io::Result<u64> {
    os::anonymous_bytes(pid)
}

/// The memory of one process in bytes, shared pages divided among their users. Where the
/// system does not count so, the same as [`rss_bytes`].
pub fn pss_bytes(pid: u32) -> io::Result<u64> {
    os::pss_bytes(pid)
}
