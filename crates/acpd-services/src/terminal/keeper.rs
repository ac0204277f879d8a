//! The thread of a terminal that ends its process tree, and tells when nothing of it is left.

use std::process::Child;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use acpd_sys::keeper::{Lease, dismiss};
use acpd_sys::ladder::{Ladder, Pauses};
use acpd_sys::process::ProcessId;
use acpd_sys::tree::Tree;
use acpd_sys::wait::Rope;
use tokio::sync::watch;

use super::types::Children;

/// How often a tree that is going down is looked at.
const LOOK: Pauses = Pauses { first: Duration::from_millis(1), longest: Duration::from_millis(50) };
/// How often a tree that runs is looked at, to know what it starts before that hides.
const WALK: Duration = Duration::from_secs(5);

pub(super) enum Job {
    /// The leader has ended, and all waiting parties are notified.
    Ended,
    /// The tree is to end.
    End,
}

pub(super) struct Keeper {
    pub(super) tree: Tree,
    /// The child of this process: the leader, or its keeper.
    pub(super) id: ProcessId,
    /// On Windows, the pid is not reused while this exists.
    pub(super) _child: Arc<Child>,
    /// The child is a keeper.
    pub(super) is_kept: bool,
    /// The keeper ends the tree when this is dropped, also because the daemon has died.
    pub(super) lease: Option<Lease>,
    /// The leader has ended.
    pub(super) ended: bool,
    pub(super) grace: Duration,
    pub(super) children: Arc<dyn Children>,
    /// Dropped when nothing is left.
    pub(super) alive: watch::Sender<()>,
    /// Wakes the reader of the output.
    pub(super) wake: Rope,
}

/// Tells when nothing of a tree is left.
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
        // Nothing is ever sent: only the sender's end is waited for.
        while self.0.changed().await.is_ok() {}
    }
}

impl Keeper {
    /// Looks after the tree until nothing of it is left; then the leader is let go.
    pub(super) fn run(mut self, jobs: &Receiver<Job>) {
        while !(self.ended && self.tree.is_empty()) {
            match jobs.recv_timeout(WALK) {
                Ok(Job::Ended) => self.ended = true,
                Err(RecvTimeoutError::Timeout) => drop(self.tree.refresh()),
                Ok(Job::End) | Err(RecvTimeoutError::Disconnected) => {
                    self.end();
                    break;
                }
            }
        }
        // Reaped before that, its exit would be lost.
        while !self.ended {
            match jobs.recv_timeout(self.grace) {
                Ok(Job::Ended) | Err(RecvTimeoutError::Disconnected) => self.ended = true,
                // The command may have stopped its keeper, which then reports nothing.
                Err(RecvTimeoutError::Timeout) if self.is_kept => dismiss(self.id),
                Ok(Job::End) | Err(RecvTimeoutError::Timeout) => {}
            }
        }
        if self.is_kept {
            dismiss(self.id);
        }
        self.children.reap(self.id.pid);
        drop((self.alive, self.lease));
        self.wake.pull();
    }

    fn end(&mut self) {
        let Keeper { tree, ended, .. } = self;
        Ladder::term_first(self.grace, LOOK.longest).climb(LOOK, |signal| {
            if let Some(signal) = signal {
                tree.stop(signal, *ended);
            }
            tree.is_empty()
        });
    }
}
