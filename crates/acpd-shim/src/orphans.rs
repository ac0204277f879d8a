//! Processes of an agent whose shim was killed, or that had none.

use acpd_sys::process::{ProcessId, StopSignal};
use acpd_sys::tree::Tree;

use crate::cgroup::Cgroup;
use crate::shim_dir::ShimDir;

/// The processes of an agent without a shim: those in its cgroup, the recorded ones, the marked
/// ones, and all their descendants. Only for a shim that is dead by [`ShimDir::verify`].
///
/// On Windows nothing is left of an agent whose shim was killed: the system ends its Job.
///
/// The caller takes the steps of the [stop ladder](acpd_sys::ladder), because its thread has other
/// work.
#[derive(Debug)]
pub struct Orphans {
    tree: Tree,
    cgroup: Option<Cgroup>,
}

impl Orphans {
    /// Finds the processes. If the directory cannot be read, only marked ones are found.
    pub fn of(shim_dir: &ShimDir) -> Orphans {
        let record = shim_dir.record().ok().flatten();
        let leader = record.as_ref().and_then(|record| record.agent).unwrap_or_default();
        let recorded = shim_dir.tree().unwrap_or_default();
        let marker = shim_dir.marker();
        let tree = Tree::leftovers(marker, leader, &recorded);
        let dir = record.and_then(|record| record.cgroup);
        let cgroup = dir.map(|dir| Cgroup { dir, marker: marker.to_owned() });
        Orphans { tree, cgroup }
    }

    /// Finds the processes of an agent without a shim, a child of an earlier daemon.
    pub fn marked(marker: &str, leader: ProcessId) -> Orphans {
        Orphans { tree: Tree::leftovers(marker, leader, &[]), cgroup: None }
    }

    pub fn signal(&mut self, signal: StopSignal) {
        if signal == StopSignal::Kill {
            self.cgroup.iter().for_each(Cgroup::kill);
        }
        self.tree.stop(signal, true);
    }

    pub fn alive(&mut self) -> Vec<ProcessId> {
        self.tree.alive()
    }

    /// Returns whether no process is left, and then removes the cgroup.
    pub fn is_gone(&mut self) -> bool {
        let is_gone = self.tree.is_empty() && self.cgroup.iter().all(Cgroup::is_empty);
        if is_gone {
            self.cgroup.iter().for_each(Cgroup::remove);
        }
        is_gone
    }
}
