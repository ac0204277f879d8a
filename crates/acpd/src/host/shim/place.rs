//! Parameters of a shim's task.

use std::path::PathBuf;
use std::time::Duration;

use acpd_core::ToHost;
use acpd_shim::launch;

use crate::host::HostEvents;
use crate::host::reaper::Reaper;
use crate::log::BoundedLog;

#[derive(Debug)]
pub struct Place {
    pub state: PathBuf,
    pub reaper: Reaper,
    pub events: HostEvents,
    pub log: BoundedLog,
    /// In bytes.
    pub line_limit: usize,
    pub leases: Leases,
}

/// Time for which an agent may continue without a daemon, in milliseconds; 0: no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leases {
    pub idle: u64,
    pub busy: u64,
}

#[derive(Debug)]
pub struct Start {
    pub exe: PathBuf,
    pub launch: launch::Launch,
    pub deadline: Duration,
    pub hint: String,
}

#[derive(Debug)]
pub(super) enum Command {
    Tell(ToHost),
    /// Leaves the shim's data to the next daemon: [`Shim::dismiss`](super::handle::Shim::dismiss).
    Dismiss,
}
