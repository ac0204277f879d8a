//! The shim of an agent, which keeps the agent and its output while no daemon runs.
//!
//! The handle only passes on orders. A task per process ([`supervisor`]) starts or finds the shim,
//! stays connected, and sends again after each loss of the connection what the shim may have
//! missed.
//!
//! ```text
//!  start ─▶ connect ◀──── lost ────┐
//!  adopt ─▶    │ ▲                 │
//!              │ └ wait ◀ no answer│
//!              ├─────▶ talk ───────┴──▶ forgotten
//!              └ dead ▶ bury ─────────▶ forgotten
//! ```
//!
//! Architecture invariant: a process is signalled past its shim only when the shim is shown to be
//! the recorded one, or to be dead.

mod connection;
mod link;
mod output;
mod stdin;
mod supervisor;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use acpd_core::ToHost;
use acpd_core::ids::HostId;
use acpd_core::record::HostState;
use acpd_shim::frame::Status;
use acpd_shim::launch;
use tokio::sync::mpsc;

use crate::host::HostEvents;
use crate::host::reaper::Reaper;
use crate::log::BoundedLog;
use supervisor::Supervisor;
pub(super) use supervisor::{end_now, with_sources};

/// The handle of an agent, which passes orders to the supervisor of the shim.
#[derive(Debug)]
pub struct Shim {
    commands: mpsc::UnboundedSender<Command>,
}

impl Shim {
    /// Starts an agent, and reports `Started` or `Refused`. Call it on the runtime.
    pub fn spawn(host: HostId, start: Start, place: Place) -> Shim {
        let (commands, supervisor) = Supervisor::new(host, &start.launch.marker, place);
        tokio::spawn(supervisor.start(start));
        Shim { commands }
    }

    /// Takes over an agent of an earlier daemon, and reports `Adopted` or `Lost`. If the shim has a
    /// part of one of the chunks `remade`, the rest cannot be written. Call it on the runtime.
    pub fn adopt(adopt: HostState, remade: BTreeSet<u64>, marker: &str, place: Place) -> Shim {
        let (commands, supervisor) = Supervisor::new(adopt.row.host, marker, place);
        tokio::spawn(supervisor.adopt(adopt, remade));
        Shim { commands }
    }

    pub fn tell(&self, order: ToHost) {
        self.want(Command::Tell(order));
    }

    /// Lets the shim exit when its agent is gone, and leave the rest of the output to the next
    /// daemon: the end of the process cannot be put on disk, and the daemon ends. Call it after
    /// `HostEvent::Gone`, which is reported once more when the shim has exited.
    pub fn dismiss(&self) {
        self.want(Command::Dismiss);
    }

    fn want(&self, command: Command) {
        self.commands.send(command).ok();
    }
}

/// Parameters of a shim's task.
#[derive(Debug)]
pub struct Place {
    pub state: PathBuf,
    pub reaper: Reaper,
    pub events: HostEvents,
    pub log: BoundedLog,
    /// In bytes.
    pub line_limit: usize,
    /// Time for which an agent may continue without a daemon, in milliseconds; 0: no limit.
    pub idle_lease: u64,
    pub busy_lease: u64,
    /// Set for a command in a terminal, to its exit. Its output is passed on as it comes.
    pub command: Option<Arc<OnceLock<Status>>>,
}

#[derive(Debug)]
pub struct Start {
    pub exe: PathBuf,
    pub launch: launch::Launch,
    pub deadline: Duration,
    pub hint: String,
}

#[derive(Debug)]
enum Command {
    Tell(ToHost),
    /// Leaves the shim's data to the next daemon: [`Shim::dismiss`].
    Dismiss,
}
