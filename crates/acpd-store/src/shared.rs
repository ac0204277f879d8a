//! Signals between the writer's handle, the writer's thread and the checkpoint thread.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// Words between the threads.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    signs: Mutex<Signs>,
    /// The checkpoint thread waits for commits or the end.
    committed: Condvar,
    /// The writer waits out a failure.
    retry: Condvar,
    /// Held by a thread that copies from the log: SQLite refuses a second one, it does not wait.
    copying: Mutex<()>,
}

#[derive(Debug, Default)]
struct Signs {
    /// Commits that no checkpoint has looked at.
    fresh: bool,
    /// The checkpoint thread sleeps until there is a commit, and wants to be woken by it.
    idle: bool,
    /// The store is closed.
    closed: bool,
    /// For tests: most pages that the database may have.
    page_limit: Option<u32>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Signs> {
        // No code runs under the lock that could leave it half changed.
        self.signs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// There is something to checkpoint.
    pub(crate) fn committed(&self) {
        let mut signs = self.lock();
        signs.fresh = true;
        if signs.idle {
            self.committed.notify_one();
        }
    }

    /// Waits for a commit, at most this long. Returns what ended the wait.
    pub(crate) fn await_commit(&self, at_most: Option<Duration>) -> Wake {
        let mut signs = self.lock();
        signs.idle = true;
        let waits = |signs: &mut Signs| !signs.fresh && !signs.closed;
        signs = match at_most {
            Some(time) => {
                let waited = self.committed.wait_timeout_while(signs, time, waits);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => self.committed.wait_while(signs, waits).unwrap_or_else(PoisonError::into_inner),
        };
        signs.idle = false;
        match (signs.closed, std::mem::take(&mut signs.fresh)) {
            (true, _) => Wake::Closed,
            (false, true) => Wake::Commit,
            (false, false) => Wake::Quiet,
        }
    }

    /// Lets commits gather for this long. Returns false when the store is closed.
    pub(crate) fn gather(&self, time: Duration) -> bool {
        let waited = self.committed.wait_timeout_while(self.lock(), time, |signs| !signs.closed);
        !waited.unwrap_or_else(PoisonError::into_inner).0.closed
    }

    /// Waits until the next attempt, or until something changes. Returns false when the store is closed.
    pub(crate) fn await_retry(&self, time: Duration, limit: Option<u32>) -> bool {
        let waited = self.retry.wait_timeout_while(self.lock(), time, |signs| {
            !signs.closed && signs.page_limit == limit
        });
        !waited.unwrap_or_else(PoisonError::into_inner).0.closed
    }

    /// Most pages that the database may have.
    pub(crate) fn page_limit(&self) -> Option<u32> {
        self.lock().page_limit
    }

    /// Waits for one's turn to copy from the log.
    pub(crate) fn copying(&self) -> MutexGuard<'_, ()> {
        self.copying.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does the same without waiting; `None` while another thread copies.
    pub(crate) fn try_copying(&self) -> Option<MutexGuard<'_, ()>> {
        match self.copying.try_lock() {
            Ok(turn) => Some(turn),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The store is closed.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.committed.notify_all();
        self.retry.notify_all();
    }

    /// Sets the most pages that the database may have.
    pub(crate) fn limit_pages(&self, limit: Option<u32>) {
        self.lock().page_limit = limit;
        self.retry.notify_all();
    }
}

/// Ends of a wait for commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wake {
    /// There was a commit.
    Commit,
    /// There was none in all that time.
    Quiet,
    /// The store is closed.
    Closed,
}
