use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// Signals between the writer's handle, the writer's thread and the checkpoint thread.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    signs: Mutex<Signs>,
    /// Wakes the checkpoint thread: a commit, or the end.
    committed: Condvar,
    /// Wakes a writer that waits out a failure.
    retry: Condvar,
    /// Held by a thread that copies from the log: SQLite refuses a second one instead of waiting.
    copying: Mutex<()>,
}

#[derive(Debug, Default)]
struct Signs {
    /// Commits after the last checkpoint.
    fresh: bool,
    /// The checkpoint thread sleeps until the next commit wakes it.
    idle: bool,
    closed: bool,
    /// For tests: most pages that the database may have.
    page_limit: Option<u32>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Signs> {
        // No code under the lock can leave the signs half changed.
        self.signs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports a commit to the checkpoint thread.
    pub(crate) fn committed(&self) {
        let mut signs = self.lock();
        signs.fresh = true;
        if signs.idle {
            self.committed.notify_one();
        }
    }

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

    /// Lets commits gather for this long. Returns `false` when the store is closed.
    pub(crate) fn gather(&self, time: Duration) -> bool {
        let waited = self.committed.wait_timeout_while(self.lock(), time, |signs| !signs.closed);
        !waited.unwrap_or_else(PoisonError::into_inner).0.closed
    }

    /// Waits until the next try, or until something changes. Returns `false` when the store is
    /// closed.
    pub(crate) fn await_retry(&self, time: Duration, limit: Option<u32>) -> bool {
        let waited = self.retry.wait_timeout_while(self.lock(), time, |signs| {
            !signs.closed && signs.page_limit == limit
        });
        !waited.unwrap_or_else(PoisonError::into_inner).0.closed
    }

    pub(crate) fn page_limit(&self) -> Option<u32> {
        self.lock().page_limit
    }

    /// Waits for the right to copy from the log.
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

    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.committed.notify_all();
        self.retry.notify_all();
    }

    pub(crate) fn limit_pages(&self, limit: Option<u32>) {
        self.lock().page_limit = limit;
        self.retry.notify_all();
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wake {
    Commit,
    /// No commit in all that time.
    Quiet,
    Closed,
}
