//! The handle of an agent, which passes orders to the supervisor of the shim.

use std::collections::BTreeSet;

use acpd_core::ToHost;
use acpd_core::ids::HostId;
use acpd_core::record::HostState;
use tokio::sync::mpsc;

use super::place::{Command, Place, Start};
use super::supervisor::Supervisor;

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
