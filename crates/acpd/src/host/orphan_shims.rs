//! Shims that the database does not know: their dismissal was lost, or the database was replaced.
//! The daemon ends those of its own journal. Those of another journal, which may come back, stay
//! until the user stops the daemon.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use acpd_core::ids::HostId;
use acpd_core::record::{HostRow, HostState};
use acpd_core::{HostEvent, StopStep, ToHost};
use acpd_shim::shim_dir::{self, Identity, ShimDir};
use acpd_sys::socket::clear_stale_socket;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::launcher::{Agents, COMMAND};
use super::shim::{Place, Shim, end_now, with_sources};
use crate::log::BoundedLog;

/// From SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_secs(7);
/// Time from SIGKILL until the daemon gives up; the next one finds the shim again.
const GIVE_UP: Duration = Duration::from_secs(30);

impl Agents {
    /// Begins to end every shim of this journal, except those of `known` hosts.
    pub fn end_orphan_shims(&self, known: &BTreeSet<HostId>) {
        self.remove_lost_sockets();
        for (host, is_own, shim_dir) in self.shims() {
            let dir = shim_dir.path().display();
            if !is_own {
                tracing::warn!(%dir, "leaving a shim of another journal alone");
            } else if !known.contains(&host) {
                tracing::warn!(%dir, "ending a shim that nobody knows of");
                tokio::spawn(end_orphan_shim(host, shim_dir, self.orphan_shims_place()));
            }
        }
    }

    /// Ends every shim of other journals, and waits for that.
    pub async fn end_others(&self) {
        let mut ending = JoinSet::new();
        for (host, _, shim_dir) in self.shims().filter(|(_, is_own, _)| !is_own) {
            tracing::warn!(dir = %shim_dir.path().display(), "ending a shim of another journal");
            ending.spawn(end_orphan_shim(host, shim_dir, self.orphan_shims_place()));
        }
        ending.join_all().await;
    }

    /// Returns the shims in the state directory, each with its host in its journal, and whether that
    /// is the journal of this daemon.
    fn shims(&self) -> impl Iterator<Item = (HostId, bool, ShimDir)> {
        let found = shim_dir::list(&self.paths.state).unwrap_or_else(|error| {
            tracing::error!(error = with_sources(&error), "the shims cannot be listed");
            Vec::new()
        });
        found.into_iter().filter_map(|shim_dir| {
            let (generation, host) = shim_dir.marker().rsplit_once('-')?;
            let number = host.strip_prefix(COMMAND).unwrap_or(host);
            let (is_own, host) = (generation == self.generation, HostId(number.parse().ok()?));
            Some((host, is_own, shim_dir))
        })
    }

    fn orphan_shims_place(&self) -> Place {
        let size = self.config.daemon.log_max_bytes;
        self.place(BoundedLog::open(&self.paths.agent_log("strays"), size))
    }

    /// Removes the sockets without a shim directory and without a listener.
    fn remove_lost_sockets(&self) {
        // The sockets first: a shim directory names its socket before the socket exists.
        let Ok(found) = fs::read_dir(self.paths.shim_sockets()) else { return };
        let found: Vec<_> = found.flatten().map(|entry| entry.path()).collect();
        let Ok(shim_dirs) = shim_dir::list(&self.paths.state) else { return };
        let named: BTreeSet<_> = shim_dirs.iter().filter_map(ShimDir::socket).collect();
        for socket in found.iter().filter(|socket| !named.contains(*socket)) {
            if let Err(error) = clear_stale_socket(socket) {
                tracing::warn!(
                    error = with_sources(&error),
                    "cannot remove a socket that belongs to no shim"
                );
            }
        }
    }
}

async fn end_orphan_shim(host: HostId, shim_dir: ShimDir, mut place: Place) {
    if shim_dir.verify() != Identity::Dead {
        let (events, mut said) = mpsc::channel(4);
        place.events = events;
        // Like that of a command, its output need not be acknowledged. It is dropped.
        place.command = Some(Arc::default());
        let row = HostRow { host, inside: true, ..HostRow::default() };
        let adopt = HostState { row, ..HostState::default() };
        let shim = Shim::adopt(adopt, BTreeSet::new(), shim_dir.marker(), place);
        shim.tell(ToHost::Stop(StopStep::Term));
        let end = async {
            while let Some((_, event)) = said.recv().await {
                if matches!(event, HostEvent::Gone) {
                    shim.tell(ToHost::Forget);
                }
            }
        };
        tokio::pin!(end);
        if tokio::time::timeout(GRACE, &mut end).await.is_err() {
            shim.tell(ToHost::Stop(StopStep::Kill));
            tokio::time::timeout(GIVE_UP, end).await.ok();
        }
    }
    if shim_dir.verify() == Identity::Dead {
        tokio::task::spawn_blocking(move || end_now(&shim_dir)).await.ok();
    }
}
