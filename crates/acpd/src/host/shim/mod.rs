//! A host whose process has a shim of its own, and outlives the daemon.
//!
//! The handle only passes on what is wanted; a task per process ([`supervisor`]) starts or finds the
//! shim, stays connected to it, and tells it again after every loss of the connection what it may
//! have missed.
//!
//! ```text
//!  start ─▶ connect ◀──── lost ────┐
//!  adopt ─▶    │ ▲                 │
//!              │ └ wait ◀ no answer│
//!              ├─────▶ talk ───────┴──▶ forgotten
//!              └ dead ▶ bury ─────────▶ forgotten
//! ```
//!
//! Architecture invariant: a process is signalled past its shim only when that shim is shown to be
//! the recorded one, or to be dead.

mod connection;
mod orphan_shims;
mod output;
mod stdin;
mod supervisor;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use acpd_core::ids::HostId;
use acpd_core::{Adopt, StopStep};
use acpd_shim::launch;
use bytes::Bytes;
use tokio::sync::mpsc;

use super::{AgentHost, HostEvents, Reaper};
use crate::log::BoundedLog;

pub(super) use orphan_shims::{end_orphan_shims, end_others, remove_lost_sockets};

/// What every shim's task needs.
#[derive(Debug)]
pub struct Place {
    /// The state directory, which the shim directories are in.
    pub state: PathBuf,
    /// Ends process trees.
    pub reaper: Reaper,
    /// Where to report to.
    pub events: HostEvents,
    /// The agent's log.
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
    /// What to start.
    pub launch: launch::Launch,
    /// How long that may take.
    pub deadline: Duration,
    /// What to tell people when it fails.
    pub hint: String,
}

/// The handle of an agent with a shim.
#[derive(Debug)]
pub struct Shim {
    commands: mpsc::UnboundedSender<Command>,
    log: BoundedLog,
    leases: Leases,
}

/// What is wanted of a shim.
#[derive(Debug)]
enum Command {
    Write(u64, Bytes),
    Ack(u64),
    Stop(StopStep),
    Lease(u64),
    Forget,
    Dismiss,
}

impl Shim {
    /// Starts an agent. It reports `Started` or `Refused`; call it on the runtime.
    pub fn spawn(host: HostId, start: Start, place: Place) -> Shim {
        Shim::supervise(place, |place, commands| {
            let supervisor =
                supervisor::Supervisor::new(host, &start.launch.marker, place, commands);
            tokio::spawn(supervisor.start(start));
        })
    }

    /// Goes on with an agent that an earlier daemon started. It reports `Adopted` or `Lost`; call
    /// it on the runtime. Of the chunks `remade` nobody can write the rest, if it has a part.
    pub fn adopt(adopt: Adopt, remade: BTreeSet<u64>, marker: &str, place: Place) -> Shim {
        Shim::supervise(place, |place, commands| {
            let supervisor = supervisor::Supervisor::new(adopt.host, marker, place, commands);
            tokio::spawn(supervisor.adopt(adopt, remade));
        })
    }

    fn supervise(
        place: Place,
        start: impl FnOnce(Place, mpsc::UnboundedReceiver<Command>),
    ) -> Shim {
        let (commands, wanted) = mpsc::unbounded_channel();
        let (log, leases) = (place.log.clone(), place.leases);
        start(place, wanted);
        Shim { commands, log, leases }
    }

    fn want(&self, command: Command) {
        // The task is gone when nothing is left to be done.
        self.commands.send(command).ok();
    }
}

impl AgentHost for Shim {
    fn write(&mut self, chunk: u64, line: Bytes) {
        self.want(Command::Write(chunk, line));
    }

    fn ack(&mut self, offset: u64) {
        self.want(Command::Ack(offset));
    }

    fn stop(&mut self, step: StopStep) {
        self.want(Command::Stop(step));
    }

    fn lease(&mut self, busy: bool) {
        self.want(Command::Lease(if busy { self.leases.busy } else { self.leases.idle }));
    }

    fn forget(&mut self) {
        self.want(Command::Forget);
    }

    fn dismiss(&mut self) -> bool {
        self.want(Command::Dismiss);
        true
    }

    fn note(&mut self, text: &str) {
        self.log.line(&format!("acpd: {text}"));
    }
}
