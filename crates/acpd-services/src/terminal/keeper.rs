//! The thread of a terminal that ends its process tree, and reports when nothing of it is left.

use std::fs::File;
use std::io::Write as _;
use std::process::Child;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use acpd_sys::keeper::{Lease, dismiss};
use acpd_sys::process::ProcessId;
use acpd_sys::tree::Tree;
use tokio::sync::watch;

use super::types::Children;

/// Time between looks at a running tree, to see descendants before they hide.
const WALK: Duration = Duration::from_secs(5);

pub(super) enum Job {
    /// The leader has ended, and its exit was sent.
    Ended,
    EndTree,
}

pub(super) struct Keeper {
    pub(super) tree: Tree,
    /// The child of this process: the leader, or its keeper.
    pub(super) id: ProcessId,
    /// On Windows, the pid is not reused while this exists.
    pub(super) _child: Arc<Child>,
    pub(super) leader_is_kept: bool,
    /// The keeper process ends the tree when the lease is dropped or the daemon dies.
    pub(super) lease: Option<Lease>,
    pub(super) leader_ended: bool,
    pub(super) grace: Duration,
    pub(super) children: Arc<dyn Children>,
    /// Dropped when nothing is left.
    pub(super) alive: watch::Sender<()>,
    /// Wakes the reader of the output.
    pub(super) wake: File,
}

/// Signal that nothing of a tree is left.
#[derive(Debug, Clone)]
pub(super) struct Gone(watch::Receiver<()>);

impl Gone {
    pub(super) fn new(alive: watch::Receiver<()>) -> Gone {
        Gone(alive)
    }

    pub(super) fn is_gone(&self) -> bool {
        self.0.has_changed().is_err()
    }

    pub(super) async fn wait(&mut self) {
        // Nothing is ever sent; the wait ends when the sender is dropped.
        while self.0.changed().await.is_ok() {}
    }
}

impl Keeper {
    /// Watches the tree until nothing of it is left, then reaps the child.
    pub(super) fn run(mut self, jobs: &Receiver<Job>) {
        while !(self.leader_ended && self.tree.is_empty()) {
            match jobs.recv_timeout(WALK) {
                Ok(Job::Ended) => self.leader_ended = true,
                Err(RecvTimeoutError::Timeout) => drop(self.tree.refresh()),
                Ok(Job::EndTree) | Err(RecvTimeoutError::Disconnected) => {
                    self.tree.end(self.grace, self.leader_ended);
                    break;
                }
            }
        }
        // Reaping the child before its end is reported would lose the exit.
        while !self.leader_ended {
            match jobs.recv_timeout(self.grace) {
                Ok(Job::Ended) | Err(RecvTimeoutError::Disconnected) => self.leader_ended = true,
                // The command may have stopped its keeper, which then reports nothing.
                Err(RecvTimeoutError::Timeout) if self.leader_is_kept => dismiss(self.id),
                Ok(Job::EndTree) | Err(RecvTimeoutError::Timeout) => {}
            }
        }
        if self.leader_is_kept {
            dismiss(self.id);
        }
        self.children.reap(self.id.pid);
        drop((self.alive, self.lease));
        self.wake.write_all(b"!").ok();
    }
}
