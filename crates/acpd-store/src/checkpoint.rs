//! Emptying the write-ahead log outside of commits.
//!
//! A checkpoint inside a commit stalls it for many milliseconds, so SQLite's own is off. A checkpoint
//! copies each changed page once, however often it was written: it is put off until the log has
//! [`MANY`] pages, or no commit came for [`QUIET`]. Then a log that has grown is cut. Under a flood a
//! passive checkpoint never catches up, so the writer empties a log that is too long, see
//! [`crate::writer`].

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::Connection;

const PERIOD: Duration = Duration::from_millis(100);
/// Pages of a log from which on it is copied: 4 MiB.
const MANY: u32 = (4 << 20) / 4096;
/// Time without a commit after which the log is copied, and cut if it has grown.
const QUIET: Duration = Duration::from_secs(5);
/// Bytes of a log above which it is cut.
const GROWN: u64 = 1 << 20;

/// Runs until the writer's thread ends, which holds the senders of both channels. A failed checkpoint
/// is tried again after the next commit, and costs only room.
pub(crate) fn run(
    conn: &Connection,
    log: &Path,
    copying: &Mutex<()>,
    commits: &Receiver<()>,
    end: &Receiver<()>,
) {
    let mut patience = Duration::MAX;
    loop {
        match commits.recv_timeout(patience) {
            Err(RecvTimeoutError::Disconnected) => return,
            Ok(()) => {
                // Commits gather meanwhile.
                if end.recv_timeout(PERIOD) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
                if pages_in_log(conn).is_ok_and(|pages| pages >= MANY) {
                    let _turn = turn_of(copying);
                    checkpoint(conn, "PASSIVE").ok();
                }
                patience = QUIET;
            }
            Err(RecvTimeoutError::Timeout) => {
                let is_grown = std::fs::metadata(log).is_ok_and(|file| file.len() > GROWN);
                let _turn = turn_of(copying);
                // A reader may be in the way: the next quiet time will do.
                checkpoint(conn, if is_grown { "TRUNCATE" } else { "PASSIVE" }).ok();
                patience = Duration::MAX;
            }
        }
    }
}

/// Waits for the right to copy from the log: SQLite refuses a second thread instead of waiting.
pub(crate) fn turn_of(copying: &Mutex<()>) -> MutexGuard<'_, ()> {
    copying.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a checkpoint. Returns whether it was complete.
pub(crate) fn checkpoint(conn: &Connection, mode: &str) -> rusqlite::Result<bool> {
    conn.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| {
        row.get(0).map(|blocked: bool| !blocked)
    })
}

/// Returns the pages in the log since it was last begun again. The file may be longer.
pub(crate) fn pages_in_log(conn: &Connection) -> rusqlite::Result<u32> {
    let mut statement = conn.prepare_cached("PRAGMA wal_checkpoint(NOOP)")?;
    // -1 when there is no log yet.
    statement.query_row([], |row| row.get(1).map(|pages: i64| pages.max(0) as u32))
}
