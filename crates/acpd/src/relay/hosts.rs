//! The running agent processes, and their end when the journal can no longer be written.

use std::collections::BTreeMap;
use std::time::Duration;

use acpd_core::ids::HostId;
use acpd_core::{HostEvent, StopStep, ToHost};
use tokio::sync::mpsc;

use crate::host::Shim;

/// From SIGTERM to SIGKILL, and from one SIGKILL to the next, when the daemon is aborted.
const ABORT_KILL: Duration = Duration::from_secs(1);
/// Longest wait of an aborted daemon for the end of process trees.
const ABORT: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(super) struct Hosts(BTreeMap<HostId, Running>);

struct Running {
    shim: Shim,
    /// Nothing of it is left.
    gone: bool,
}

impl Hosts {
    pub(super) fn insert(&mut self, id: HostId, shim: Shim) {
        self.0.insert(id, Running { shim, gone: false });
    }

    /// Returns the hosts of which something is left.
    pub(super) fn there(&self) -> impl Iterator<Item = HostId> {
        self.0.iter().filter(|(_, running)| !running.gone).map(|(id, _)| *id)
    }

    pub(super) fn tell(&mut self, id: HostId, order: ToHost) {
        let is_last = order == ToHost::Forget;
        if let Some(running) = self.0.get(&id) {
            running.shim.tell(order);
        }
        if is_last {
            self.0.remove(&id);
        }
    }

    pub(super) fn refused(&mut self, id: HostId) {
        self.0.remove(&id);
    }

    pub(super) fn gone(&mut self, id: HostId) {
        if let Some(running) = self.0.get_mut(&id) {
            running.gone = true;
        }
    }

    /// Ends every process tree, without hub and store. Further output is lost.
    pub(super) async fn end_all(&mut self, events: &mut mpsc::Receiver<(HostId, HostEvent)>) {
        for running in self.0.values().filter(|running| running.gone) {
            running.shim.dismiss();
        }
        for running in self.0.values() {
            running.shim.tell(ToHost::Stop(StopStep::CloseStdin));
            running.shim.tell(ToHost::Stop(StopStep::Term));
        }
        let give_up = tokio::time::sleep(ABORT);
        tokio::pin!(give_up);
        let mut kill = tokio::time::interval(ABORT_KILL);
        kill.reset();
        while !self.0.is_empty() {
            tokio::select! {
                Some((id, event)) = events.recv() => match event {
                    HostEvent::Gone => match self.0.get_mut(&id) {
                        // The shim is gone, too.
                        Some(running) if running.gone => self.refused(id),
                        Some(running) => {
                            running.gone = true;
                            running.shim.dismiss();
                        }
                        None => {}
                    },
                    HostEvent::Refused(_) => self.refused(id),
                    HostEvent::Output(frames) => {
                        if let Some(last) = frames.last() {
                            self.tell(id, ToHost::Ack(last.end));
                        }
                    }
                    _ => {}
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
