//! What the task of a shim is given.

use std::path::PathBuf;
use std::time::Duration;

use acpd_core::ToHost;
use acpd_shim::launch;

use crate::host::HostEvents;
use crate::host::reaper::Reaper;
use crate::log::BoundedLog;

/// What every shim's task needs.
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
    /// How long the agent may go on without a daemon.
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

/// What is needed to start one.
#[derive(Debug)]
pub struct Start {
    /// Program of the shim.
    pub exe: PathBuf,
    pub launch: launch::Launch,
    /// How long that may take.
    pub deadline: Duration,
    /// What to tell people when it fails.
    pub hint: String,
}

/// What is wanted of a shim.
#[derive(Debug)]
pub(super) enum Command {
    /// What the hub wants.
    Tell(ToHost),
    /// To leave what it keeps to the next daemon: [`Shim::dismiss`](super::handle::Shim::dismiss).
    Dismiss,
}
