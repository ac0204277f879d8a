//! Shims that the database does not know: their dismissal was lost, or the database was replaced.
//! The daemon ends those of its own journal. Those of another journal, which may come back, stay
//! until the user stops the daemon.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use acpd_core::ids::HostId;
use acpd_core::{Adopt, HostEvent, StopStep, ToHost};
use acpd_shim::shim_dir::{self, Identity, ShimDir};
use acpd_sys::socket::clear_stale_socket;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::handle::Shim;
use super::place::Place;
use super::supervisor::{end_now, with_sources};

/// From SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_secs(7);
/// Time after which the daemon gives up; the next one finds the shim again.
const GIVE_UP: Duration = Duration::from_secs(30);

/// Ends every shim of the journal `generation`, except those of `known` hosts. `place` makes the
/// parameters of a shim's task; its events are replaced.
pub(in crate::host) fn end_orphan_shims(
    state: &Path,
    generation: &str,
    known: &BTreeSet<HostId>,
    place: impl Fn() -> Place,
) {
    let found = shim_dir::list(state).unwrap_or_else(|error| {
        tracing::error!(error = with_sources(&error), "the shims cannot be listed");
        Vec::new()
    });
    for shim_dir in found {
        let dir = shim_dir.path().display().to_string();
        let host =
            shim_dir.marker().strip_prefix(generation).and_then(|rest| rest.strip_prefix('-'));
        match host.and_then(|host| host.parse().ok()).map(HostId) {
            None => tracing::warn!(dir, "leaving a shim of another journal alone"),
            Some(host) if known.contains(&host) => {}
            Some(host) => {
                tracing::warn!(dir, "ending a shim that nobody knows of");
                tokio::spawn(end_orphan_shim(host, shim_dir, place()));
            }
        }
    }
}

/// Ends every shim of other journals than `generation`, and waits for that.
pub(in crate::host) async fn end_others(state: &Path, generation: &str, place: impl Fn() -> Place) {
    let own = format!("{generation}-");
    let mut ending = JoinSet::new();
    // A failed listing was logged at the start.
    for shim_dir in shim_dir::list(state).unwrap_or_default() {
        let host = shim_dir.marker().rsplit_once('-').and_then(|(_, host)| host.parse().ok());
        if let Some(host) = host.filter(|_| !shim_dir.marker().starts_with(&own)).map(HostId) {
            tracing::warn!(dir = %shim_dir.path().display(), "ending a shim of another journal");
            ending.spawn(end_orphan_shim(host, shim_dir, place()));
        }
    }
    ending.join_all().await;
}

/// Removes the sockets in this directory without a shim directory and without a listener.
pub(in crate::host) fn remove_lost_sockets(state: &Path, sockets: &Path) {
    // The sockets first: a shim directory names its socket before the socket exists.
    let Ok(found) = fs::read_dir(sockets) else { return };
    let found: Vec<_> = found.flatten().map(|entry| entry.path()).collect();
    let Ok(shim_dirs) = shim_dir::list(state) else { return };
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

async fn end_orphan_shim(host: HostId, shim_dir: ShimDir, mut place: Place) {
    if shim_dir.verify() != Identity::Dead {
        let (events, mut said) = mpsc::channel(4);
        place.events = events;
        // All output is dropped.
        let (offset, inside) = (0, true);
        let (agent, chunks) = (String::new(), Vec::new());
        let adopt = Adopt { host, agent, pid: 0, start: 0, offset, inside, chunks };
        let shim = Shim::adopt(adopt, BTreeSet::new(), shim_dir.marker(), place);
        shim.tell(ToHost::Stop(StopStep::Term));
        let end = async {
            let kill = tokio::time::sleep(GRACE);
            tokio::pin!(kill);
            let mut killed = false;
            loop {
                tokio::select! {
                    event = said.recv() => match event {
                        Some((_, HostEvent::Output(frames))) => {
                            if let Some(last) = frames.last() {
                                shim.tell(ToHost::Ack { offset: last.end });
                            }
                        }
                        Some((_, HostEvent::Gone)) => shim.tell(ToHost::Forget),
                        Some(_) => {}
                        None => return,
                    },
                    () = &mut kill, if !killed => {
                        killed = true;
                        shim.tell(ToHost::Stop(StopStep::Kill));
                    }
                }
            }
        };
        tokio::time::timeout(GIVE_UP, end).await.ok();
    }
    if shim_dir.verify() == Identity::Dead {
        tokio::task::spawn_blocking(move || end_now(&shim_dir)).await.ok();
    }
}
