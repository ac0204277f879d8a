//! The thread that ends a tree, and knows when it is gone.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use acpd_sys::process::{ProcessId, StopSignal, Tree};
use tokio::sync::watch;

use super::Children;

/// How often a tree that is going down is looked at, at first and at last.
const LOOK: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));
/// How often a tree that runs is looked at, to know what it starts before that hides.
const WALK: Duration = Duration::from_secs(5);

pub(super) enum Job {
    /// The leader has ended, and everybody who needs to know has been told.
    Ended,
    /// The tree is to end.
    End,
}

pub(super) struct Keeper {
    pub(super) tree: Tree,
    pub(super) leader: ProcessId,
    /// The leader has ended.
    pub(super) ended: bool,
    pub(super) grace: Duration,
    pub(super) children: Arc<dyn Children>,
    /// Dropped when nothing is left.
    pub(super) alive: watch::Sender<()>,
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
            self.ended = !matches!(jobs.recv(), Ok(Job::End));
        }
        self.children.reap(self.leader.pid);
        drop(self.alive);
    }

    fn end(&mut self) {
        if self.ended {
            self.tree.signal_all(StopSignal::Term);
        } else {
            // In one go. It can only fail when there is nothing to signal.
            self.tree.signal_group(StopSignal::Term).ok();
        }
        let kill_at = Instant::now() + self.grace;
        let mut look = LOOK.0;
        while !self.tree.is_empty() {
            if Instant::now() >= kill_at {
                self.tree.signal_all(StopSignal::Kill);
            }
            thread::sleep(look);
            look = (look * 2).min(LOOK.1);
        }
    }
}
