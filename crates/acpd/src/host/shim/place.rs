//! Parameters of a shim's task.

use std::path::PathBuf;
use std::time::Duration;

use acpd_core::ToHost;
use acpd_shim::launch;

use crate::host::HostEvents;
use crate::host::reaper::Reaper;
use crate::log::BoundedLog;

/// Surroundings that every shim's task needs.
#[derive(Debug)]
pub struct Place {
    /// The state directory, which the shim directories are in.
    pub state: PathBuf,
    pub reaper: Reaper,
    /// Where to report to.
    pub events: HostEvents,
    pub log: BoundedLog,
    /// Longest line in bytes.
    pub line_limit: usize,
    /// How long the agent may continue without a daemon.
    pub leases: Leases,
}

/// How long an agent may go on without a daemon, in milliseconds; 0: for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leases {
    /// With nothing to do.
    pub idle: u64,
    /// With something to do.
    pub busy: u64,
}

/// Parameters of a start.
#[derive(Debug)]
pub struct Start {
    pub exe: PathBuf,
    pub launch: launch::Launch,
    /// How long that may take.
    pub deadline: Duration,
    /// Hint for users when the start fails.
    pub hint: String,
}

/// A request to the task of a shim.
#[derive(Debug)]
pub(super) enum Command {
    /// A request of the hub.
    Tell(ToHost),
    /// To leave what it keeps to the next daemon: [`Shim::dismiss`](super::handle::Shim::dismiss).
    Dismiss,
}
