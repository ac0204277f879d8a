//! The thread of a terminal that ends its process tree.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use acpd_sys::keeper::dismiss;
use acpd_sys::process::ProcessId;
use acpd_sys::tree::Tree;

/// Time between looks at a running tree, to see descendants before they hide.
const WALK: Duration = Duration::from_secs(5);

pub(super) enum Job {
    /// The leader has ended, and its exit was sent.
    Ended,
    EndTree,
}

/// Watches a tree until nothing of it is left, and the exit of its leader was sent. `keeper` is the
/// leader's keeper process, which may end then.
pub(super) fn keep(
    tree: &mut Tree,
    keeper: Option<ProcessId>,
    grace: Duration,
    jobs: &Receiver<Job>,
) {
    let mut leader_ended = false;
    while !(leader_ended && tree.is_empty()) {
        match jobs.recv_timeout(WALK) {
            Ok(Job::Ended) => leader_ended = true,
            Err(RecvTimeoutError::Timeout) => drop(tree.refresh()),
            Ok(Job::EndTree) | Err(RecvTimeoutError::Disconnected) => {
                tree.end(grace, leader_ended);
                break;
            }
        }
    }
    // Reaping the child before its end is reported would lose the exit.
    while !leader_ended {
        match jobs.recv_timeout(grace) {
            Ok(Job::Ended) | Err(RecvTimeoutError::Disconnected) => leader_ended = true,
            // The command may have stopped its keeper, which then reports nothing.
            Err(RecvTimeoutError::Timeout) => keeper.into_iter().for_each(dismiss),
            Ok(Job::EndTree) => {}
        }
    }
    keeper.into_iter().for_each(dismiss);
}
