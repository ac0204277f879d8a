use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

/// Statements kept prepared per connection; more than there are.
const STATEMENTS: usize = 64;
/// Wait of the writer and the reader for a lock. It is short, since a failed commit is retried.
pub(crate) const LOCK_WAIT: Duration = Duration::from_millis(250);

/// Opens a connection with the common settings. `cache` is in KiB.
pub(crate) fn connect(
    path: &Path,
    lock_wait: Duration,
    cache: i32,
) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(lock_wait)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    conn.pragma_update(None, "cache_size", -cache)?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    // On macOS `fsync` does not reach the disk.
    conn.execute_batch("PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON")?;
    conn.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(()))?;
    Ok(conn)
}
