//! The end of a daemon that cannot write its journal any more.

use acpd_core::StopStep;
use acpd_core::ids::HostId;
use tokio::sync::mpsc;

use super::{ABORT, ABORT_KILL, Relay};
use crate::host::HostEvent;

impl Relay {
    /// Ends every process tree, without hub and store: what they still say is lost.
    pub(super) async fn end_hosts(&mut self, events: &mut mpsc::Receiver<(HostId, HostEvent)>) {
        self.hosts.retain(|_, running| !running.gone || running.host.dismiss());
        for running in self.hosts.values_mut() {
            running.host.stop(StopStep::CloseStdin);
            running.host.stop(StopStep::Term);
        }
        let give_up = tokio::time::sleep(ABORT);
        tokio::pin!(give_up);
        let mut kill = tokio::time::interval(ABORT_KILL);
        kill.reset();
        while !self.hosts.is_empty() {
            tokio::select! {
                Some((host, event)) = events.recv() => match event {
                    HostEvent::Gone => self.hosts.retain(|number, running| {
                        // The second time, nothing is left of it either.
                        *number != host
                            || (!std::mem::replace(&mut running.gone, true)
                                && running.host.dismiss())
                    }),
                    HostEvent::Refused(_) => drop(self.hosts.remove(&host)),
                    HostEvent::Output(frames) => {
                        if let (Some(running), Some(last)) = (self.hosts.get_mut(&host), frames.last())
                        {
                            running.host.ack(last.end);
                        }
                    }
                    _ => {}
                },
                _ = kill.tick() => {
                    for running in self.hosts.values_mut() {
                        running.host.stop(StopStep::Kill);
                    }
                }
                () = &mut give_up => {
                    tracing::error!(hosts = self.hosts.len(), "agents could not be ended");
                    return;
                }
            }
        }
    }
}
