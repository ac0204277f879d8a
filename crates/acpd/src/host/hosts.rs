//! Handles of agent processes, and their end without hub and store.

use std::collections::BTreeMap;
use std::time::Duration;

use acpd_core::ids::HostId;
use acpd_core::{HostEvent, StopStep, ToHost};
use tokio::sync::mpsc;

use super::shim::Shim;

#[derive(Default)]
pub(crate) struct Hosts(BTreeMap<HostId, Running>);

struct Running {
    shim: Shim,
    /// Nothing of it is left.
    gone: bool,
}

impl Hosts {
    pub(crate) fn insert(&mut self, id: HostId, shim: Shim) {
        self.0.insert(id, Running { shim, gone: false });
    }

    /// Returns the hosts of which something is left.
    pub(crate) fn there(&self) -> impl Iterator<Item = HostId> {
        self.0.iter().filter(|(_, running)| !running.gone).map(|(id, _)| *id)
    }

    pub(crate) fn tell(&mut self, id: HostId, order: ToHost) {
        let is_last = order == ToHost::Forget;
        if let Some(running) = self.0.get(&id) {
            running.shim.tell(order);
        }
        if is_last {
            self.0.remove(&id);
        }
    }

    pub(crate) fn refused(&mut self, id: HostId) {
        self.0.remove(&id);
    }

    pub(crate) fn gone(&mut self, id: HostId) {
        if let Some(running) = self.0.get_mut(&id) {
            running.gone = true;
        }
    }

    /// Ends every process tree, whose further output is lost: SIGKILL follows SIGTERM after `grace`,
    /// and again each time. After `give_up` they are left to the next daemon. With `forget` the ends
    /// of the processes need not be put on disk.
    pub(crate) async fn end_all(
        &mut self,
        events: &mut mpsc::Receiver<(HostId, HostEvent)>,
        grace: Duration,
        give_up: Duration,
        forget: bool,
    ) {
        for running in self.0.values().filter(|running| running.gone) {
            running.shim.dismiss();
        }
        for running in self.0.values() {
            running.shim.tell(ToHost::Stop(StopStep::CloseStdin));
            running.shim.tell(ToHost::Stop(StopStep::Term));
        }
        let give_up = tokio::time::sleep(give_up);
        tokio::pin!(give_up);
        let mut kill = tokio::time::interval(grace);
        kill.reset();
        while !self.0.is_empty() {
            tokio::select! {
                event = events.recv() => match event {
                    None => return,
                    Some((id, HostEvent::Gone)) if forget => self.tell(id, ToHost::Forget),
                    Some((id, HostEvent::Gone)) => match self.0.get_mut(&id) {
                        // The shim is gone, too.
                        Some(running) if running.gone => self.refused(id),
                        Some(running) => {
                            running.gone = true;
                            running.shim.dismiss();
                        }
                        None => {}
                    },
                    Some((id, HostEvent::Refused(_))) => self.refused(id),
                    Some((id, HostEvent::Output(frames))) => {
                        if let Some(last) = frames.last() {
                            self.tell(id, ToHost::Ack { offset: last.end });
                        }
                    }
                    Some(_) => {}
                },
                _ = kill.tick() => {
                    for running in self.0.values() {
                        running.shim.tell(ToHost::Stop(StopStep::Kill));
                    }
                }
                () = &mut give_up => {
                    tracing::error!(hosts = self.0.len(), "some agents did not end");
                    return;
                }
            }
        }
    }
}
