//! The handle of an agent with a shim: it passes on to the supervisor what is wanted.

use std::collections::BTreeSet;

use acpd_core::ids::HostId;
use acpd_core::{Adopt, ToHost};
use tokio::sync::mpsc;

use super::place::{Command, Place, Start};
use super::supervisor::Supervisor;
use crate::host::agent_host::AgentHost;

/// The handle of an agent with a shim.
#[derive(Debug)]
pub struct Shim {
    commands: mpsc::UnboundedSender<Command>,
}

impl Shim {
    /// Starts an agent. It reports `Started` or `Refused`; call it on the runtime.
    pub fn spawn(host: HostId, start: Start, place: Place) -> Shim {
        Shim::supervise(place, |place, commands| {
            let supervisor = Supervisor::new(host, &start.launch.marker, place, commands);
            tokio::spawn(supervisor.start(start));
        })
    }

    /// Takes over an agent that an earlier daemon started. It reports `Adopted` or `Lost`; call it on
    /// the runtime. If the shim has a part of one of the chunks `remade`, nobody can write the rest.
    pub fn adopt(adopt: Adopt, remade: BTreeSet<u64>, marker: &str, place: Place) -> Shim {
        Shim::supervise(place, |place, commands| {
            let supervisor = Supervisor::new(adopt.host, marker, place, commands);
            tokio::spawn(supervisor.adopt(adopt, remade));
        })
    }

    fn supervise(
        place: Place,
        start: impl FnOnce(Place, mpsc::UnboundedReceiver<Command>),
    ) -> Shim {
        let (commands, wanted) = mpsc::unbounded_channel();
        start(place, wanted);
        Shim { commands }
    }

    fn want(&self, command: Command) {
        // The task is gone when nothing is left to be done.
        self.commands.send(command).ok();
    }
}

impl AgentHost for Shim {
    fn tell(&mut self, order: ToHost) {
        self.want(Command::Tell(order));
    }

    fn dismiss(&mut self) -> bool {
        self.want(Command::Dismiss);
        true
    }
}
