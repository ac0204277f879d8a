//! Shims that the database does not know: their dismissal was lost, or the database was replaced.
//! The daemon ends those of its own journal. Those of another journal, which may come back, stay
//! until the user stops the daemon.

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use acpd_core::ids::HostId;
use acpd_core::record::{HostRow, HostState};
use acpd_shim::shim_dir::{self, Identity, ShimDir};
use acpd_sys::socket::clear_stale_socket;
use tokio::sync::mpsc;

use super::hosts::Hosts;
use super::launcher::Agents;
use super::shim::{Shim, end_now, with_sources};
use crate::log::BoundedLog;

/// From SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_secs(7);
/// Time after which the daemon gives up; the next one finds the shim again.
const GIVE_UP: Duration = Duration::from_secs(30);

impl Agents {
    /// Begins to end every shim of this journal, except those of `known` hosts.
    pub fn end_orphan_shims(&self, known: &BTreeSet<HostId>) {
        self.remove_lost_sockets();
        let mut orphans = Vec::new();
        for (host, is_own, shim_dir) in self.shims() {
            let dir = shim_dir.path().display();
            if !is_own {
                tracing::warn!(%dir, "leaving a shim of another journal alone");
            } else if !known.contains(&host) {
                tracing::warn!(%dir, "ending a shim that nobody knows of");
                orphans.push(shim_dir);
            }
        }
        tokio::spawn(self.end_shims(orphans));
    }

    /// Ends every shim of other journals, and waits for that.
    pub async fn end_others(&self) {
        let mut others = Vec::new();
        for (_, _, shim_dir) in self.shims().filter(|(_, is_own, _)| !is_own) {
            tracing::warn!(dir = %shim_dir.path().display(), "ending a shim of another journal");
            others.push(shim_dir);
        }
        self.end_shims(others).await;
    }

    /// Ends shims with their agents, and drops all output.
    fn end_shims(&self, shim_dirs: Vec<ShimDir>) -> impl Future<Output = ()> + use<> {
        // Shims of two journals may have the same number. This one's have none of these.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let (events, mut said) = mpsc::channel(4);
        let mut hosts = Hosts::default();
        for shim_dir in shim_dirs.iter().filter(|shim_dir| shim_dir.verify() != Identity::Dead) {
            let host = HostId(NEXT.fetch_add(1, Ordering::Relaxed));
            let size = self.config.daemon.log_max_bytes;
            let mut place = self.place(BoundedLog::open(&self.paths.agent_log("strays"), size));
            (place.events, place.reaper.events) = (events.clone(), events.clone());
            let row = HostRow { host, ..HostRow::default() };
            let adopt = HostState { row, inside: true, ..HostState::default() };
            hosts.insert(host, Shim::adopt(adopt, BTreeSet::new(), shim_dir.marker(), place));
        }
        async move {
            hosts.end_all(&mut said, GRACE, GIVE_UP, true).await;
            for shim_dir in shim_dirs {
                tokio::task::spawn_blocking(move || end_now(&shim_dir)).await.ok();
            }
        }
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
            let (is_own, host) = (generation == self.generation, HostId(host.parse().ok()?));
            Some((host, is_own, shim_dir))
        })
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
