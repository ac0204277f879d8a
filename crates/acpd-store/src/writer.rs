//! The one thread that writes.
//!
//! The writer applies all queued batches in one transaction, reports each, and waits again. A
//! failed transaction changes nothing. It is retried batch by batch, and the failing batch is kept:
//! no later one is applied before it.
//!
//! While no batch is queued, the writer runs [`crate::chores`], and checks every [`LOOK`] that its
//! files are still there.
//!
//! A log longer than [`LONG`] is emptied between two transactions. That is the back-pressure of a
//! flood, and keeps the next start short: a start reads a killed daemon's log from its beginning.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SendError, Sender, SyncSender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use acpd_core::record::Record;
use rusqlite::{Connection, TransactionBehavior};

use crate::apply::Apply;
use crate::checkpoint::{checkpoint, pages_in_log, turn_of};
use crate::chores::{self, Chores, Tidied};
use crate::error::StoreError;
use crate::files::Files;

/// Maximum number of batches that one transaction takes from the queue.
const TOGETHER: usize = 256;
/// Wait after a first failure; it doubles with each further one.
const FIRST_DELAY: Duration = Duration::from_millis(100);
const LAST_DELAY: Duration = Duration::from_secs(2);
/// Time between two checks of the files by an idle writer.
const LOOK: Duration = Duration::from_secs(2);
/// Pages of a log above which it is emptied before the next transaction: 64 MiB.
pub(crate) const LONG: u32 = (64 << 20) / 4096;
/// SQLite's number for "no limit".
const ALL_PAGES: u32 = 0xffff_fffe;

/// Records that become visible together or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitBatch {
    pub records: Vec<Record>,
    /// Must survive a loss of power, not only the end of the process.
    pub durable: bool,
    /// The caller's number for the batch, returned in reports.
    pub tag: u64,
}

/// Result of a batch. Called on the writer's thread, in the order of the batches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    Committed {
        tag: u64,
    },
    /// Nothing can be written: a batch is kept and retried. Reported once per reason.
    Failing(StoreError),
    /// After a failure with nothing to write: writes succeed again.
    Works,
    Tidied(Tidied),
}

/// The handle of the writer's thread.
///
/// After a drop the thread still writes the queued batches, but nothing reports the end of that;
/// see [`Writer::close`].
#[derive(Debug)]
pub struct Writer {
    pub(crate) batches: Sender<CommitBatch>,
    /// For tests: most pages that the database may have. Dropped when the store is closed.
    pub(crate) limits: Sender<Option<u32>>,
    pub(crate) thread: JoinHandle<Result<Connection, StoreError>>,
    pub(crate) checkpoints: JoinHandle<()>,
}

impl Writer {
    /// Hands a batch to the writer's thread. Never waits: the caller reads no agents while too many
    /// batches wait. An error means that the thread has died.
    pub fn commit(&self, batch: CommitBatch) -> Result<(), SendError<CommitBatch>> {
        self.batches.send(batch)
    }

    /// Waits until all batches are committed, empties the log and ends the threads.
    ///
    /// A failing store tries once more and gives up. The error has the reason; the batch reported
    /// as failing and all later ones are not written.
    pub fn close(self) -> Result<(), StoreError> {
        let Writer { batches, limits, thread, checkpoints } = self;
        drop((batches, limits));
        let end = thread.join();
        // Only a panic makes it fail, which the panic hook has reported.
        checkpoints.join().ok();
        let died = |_| StoreError::Other("the writer's thread died".to_owned());
        checkpoint(&end.map_err(died)??, "TRUNCATE")?;
        Ok(())
    }

    /// For tests of a full disk: lets the database have at most `pages` pages (4 KiB each). `None`
    /// removes the limit and retries a failing batch at once.
    ///
    /// Holds from the next transaction on. A limit below the current size counts as the current
    /// size.
    #[doc(hidden)]
    pub fn limit_pages(&self, limit: Option<u32>) {
        self.limits.send(limit).ok();
    }
}

pub(crate) struct Work<F> {
    pub(crate) conn: Connection,
    /// Held by a thread that copies from the log.
    pub(crate) copying: Arc<Mutex<()>>,
    /// Wakes the checkpoint thread.
    pub(crate) commits: SyncSender<()>,
    /// Dropped when this thread ends, and the checkpoint thread with it.
    pub(crate) _end: Sender<()>,
    pub(crate) limits: Receiver<Option<u32>>,
    pub(crate) files: Files,
    pub(crate) chores: Chores,
    pub(crate) report: F,
    /// Pages of the log above which it is emptied.
    pub(crate) log_limit: u32,
    /// `synchronous` is FULL at the moment.
    pub(crate) full: bool,
}

/// Attempts that failed in a row.
struct Trouble {
    delay: Duration,
    /// The last reported reason.
    reported: Option<StoreError>,
}

const NO_TROUBLE: Trouble = Trouble { delay: FIRST_DELAY, reported: None };

impl<F: Fn(Report)> Work<F> {
    /// Runs until the handle is dropped and everything is written, or until it has to give up.
    pub(crate) fn run(mut self, batches: &Receiver<CommitBatch>) -> Result<Connection, StoreError> {
        self.serve(batches)?;
        Ok(self.conn)
    }

    /// Reports a commit to the checkpoint thread, unless it has not taken the last report yet.
    pub(crate) fn committed(&self) {
        self.commits.try_send(()).ok();
    }

    fn serve(&mut self, batches: &Receiver<CommitBatch>) -> Result<(), StoreError> {
        let mut waiting = Vec::new();
        loop {
            match batches.recv_timeout(self.chores.wait().min(LOOK)) {
                Ok(batch) => {
                    waiting.push(batch);
                    waiting.extend(batches.try_iter().take(TOGETHER));
                    self.commit_all(&mut waiting)?;
                    if self.chores.is_overdue() {
                        self.do_chore();
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.look()?;
                    // A batch must not wait for a copy from the log.
                    if self.chores.is_due() && self.copying.try_lock().is_ok() {
                        self.do_chore();
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }

    /// Commits the queued batches: all at once, or if that fails, the first alone and then the
    /// others.
    fn commit_all(&mut self, waiting: &mut Vec<CommitBatch>) -> Result<(), StoreError> {
        let mut size = waiting.len();
        let mut trouble = NO_TROUBLE;
        while !waiting.is_empty() {
            match self.commit(&waiting[..size]) {
                Ok(()) => {
                    for batch in waiting.drain(..size) {
                        (self.report)(Report::Committed { tag: batch.tag });
                    }
                    self.committed();
                    size = waiting.len();
                    trouble = NO_TROUBLE;
                }
                Err(_) if size > 1 => size = 1,
                Err(reason) => self.wait_out(&mut trouble, reason)?,
            }
        }
        Ok(())
    }

    /// Checks the files; waits until later batches can be written.
    fn look(&mut self) -> Result<(), StoreError> {
        let mut trouble = NO_TROUBLE;
        while let Err(reason) = self.files.check() {
            self.wait_out(&mut trouble, reason)?;
        }
        if trouble.reported.is_some() {
            (self.report)(Report::Works);
        }
        Ok(())
    }

    /// Does one step of the chores. A failed step is put off: the next batch reports a full disk.
    fn do_chore(&mut self) {
        let done = self.prepare().and_then(|()| {
            self.sync(false)?;
            let _turn = turn_of(&self.copying);
            let tidied = self.chores.step(&mut self.conn)?;
            if tidied.given_back > 0 {
                self.files.gets_shorter(chores::length(&self.conn)?);
            }
            Ok(tidied)
        });
        match done {
            Ok(tidied) if tidied == Tidied::default() => {}
            Ok(tidied) => {
                (self.report)(Report::Tidied(tidied));
                self.committed();
            }
            Err(_) => self.chores.put_off(),
        }
    }

    /// Reports a failure and waits for the next try. Returns the reason if the store is closed.
    fn wait_out(&self, trouble: &mut Trouble, reason: StoreError) -> Result<(), StoreError> {
        if trouble.reported.as_ref() != Some(&reason) {
            (self.report)(Report::Failing(reason.clone()));
            trouble.reported = Some(reason.clone());
        }
        match self.limits.recv_timeout(trouble.delay) {
            Err(RecvTimeoutError::Disconnected) => return Err(reason),
            Err(RecvTimeoutError::Timeout) => {}
            Ok(limit) => drop(self.limit_pages(limit)),
        }
        trouble.delay = (trouble.delay * 2).min(LAST_DELAY);
        Ok(())
    }

    fn commit(&mut self, batches: &[CommitBatch]) -> Result<(), StoreError> {
        self.prepare()?;
        self.sync(batches.iter().any(|batch| batch.durable))?;
        let tx = self.conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut apply = Apply::new(&tx)?;
        for record in batches.iter().flat_map(|batch| &batch.records) {
            apply.record(record)?;
        }
        let (removed, written) = apply.finish()?;
        tx.commit()?;
        self.chores.wrote(written);
        if removed.any {
            self.chores.removed(removed.unfinished);
            if removed.bytes > 0 {
                (self.report)(Report::Tidied(Tidied {
                    removed: removed.bytes,
                    ..Tidied::default()
                }));
            }
        }
        Ok(())
    }

    /// Sets whether the next transaction must survive a loss of power.
    fn sync(&mut self, full: bool) -> Result<(), StoreError> {
        if full != self.full {
            // SQLite ignores this within a transaction.
            self.conn.pragma_update(None, "synchronous", if full { "FULL" } else { "NORMAL" })?;
            self.full = full;
        }
        Ok(())
    }

    /// Does what is due between two transactions.
    fn prepare(&mut self) -> Result<(), StoreError> {
        self.files.check()?;
        // A thread that copies from the log may be about to cut the file.
        if self.files.is_cut_expected()
            && let Ok(_turn) = self.copying.try_lock()
        {
            self.files.has_length(chores::length(&self.conn)?)?;
        }
        let length = pages_in_log(&self.conn)?;
        if length > self.log_limit {
            let _turn = turn_of(&self.copying);
            let emptied = checkpoint(&self.conn, "RESTART").unwrap_or(false);
            // A reader that stays in the way must not slow down every commit.
            self.log_limit = if emptied { LONG } else { length + LONG };
        }
        while let Ok(limit) = self.limits.try_recv() {
            self.limit_pages(limit)?;
        }
        Ok(())
    }

    fn limit_pages(&self, limit: Option<u32>) -> Result<(), StoreError> {
        let pages = limit.unwrap_or(ALL_PAGES);
        Ok(self.conn.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?)
    }
}
