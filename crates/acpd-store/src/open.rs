use std::io::Read as _;
use std::path::Path;
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::Builder;
use std::time::Duration;

use acpd_core::record::Snapshot;
use acpd_sys::files;
use rusqlite::{Connection, OpenFlags};

use crate::chores::{self, Chores};
use crate::connection::{LOCK_WAIT, connect};
use crate::error::{OpenError, StoreError};
use crate::files::{Files, with_end};
use crate::reader::Reader;
use crate::writer::{LONG, Report, Work, Writer};
use crate::{checkpoint, schema, state};

const MAGIC: &[u8] = b"SQLite format 3\0";

/// Opens or creates the database, and starts the threads of writer and checkpoints.
///
/// Lines older than `pack_after` are compressed in pauses. The writer's thread calls `report` for every batch; it must not block for long. The snapshot is
/// the sum of all committed batches. The directory must exist. The caller lets only one daemon at a
/// time open a database (see the lock in `acpd-sys`).
pub fn open(
    path: &Path,
    pack_after: Duration,
    report: impl Fn(Report) + Send + 'static,
) -> Result<(Writer, Reader, Snapshot), OpenError> {
    // SQLite makes the log and its index with the mode of this file.
    drop(acpd_sys::files::private_file(path)?);

    let failed = |source| store_failed(path, source);
    let sql_failed = |error| failed(StoreError::from(error));

    let mut conn = connect(path, LOCK_WAIT, 512).map_err(sql_failed)?;
    chores::prepare_to_shrink(&conn).map_err(sql_failed)?;
    let mode: String = conn
        .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))
        .map_err(sql_failed)?;
    if mode != "wal" {
        return Err(OpenError::NoLog { path: path.into(), mode });
    }
    conn.pragma_update(None, "secure_delete", "ON").map_err(sql_failed)?;
    schema::migrate(&mut conn, path)?;
    let snapshot = state::snapshot(&mut conn).map_err(failed)?;

    let length = chores::length(&conn).map_err(sql_failed)?;
    let files = Files::of(path, length);

    // A checkpoint on the writer's connection would block its commits.
    let aside = connect(path, Duration::ZERO, 64).map_err(sql_failed)?;
    let reader = Reader::open(path).map_err(failed)?;

    let thread_failed = |source| OpenError::Thread { path: path.into(), source };
    let copying = Arc::new(Mutex::new(()));
    let (batches, queue) = channel();
    let (limits, limited) = channel();
    let (commits, committed) = sync_channel(1);
    let (end, ended) = channel();
    let work = Work {
        conn,
        copying: Arc::clone(&copying),
        commits,
        _end: end,
        limits: limited,
        files,
        chores: Chores::new(pack_after),
        report,
        log_limit: LONG,
        full: true,
    };
    // A killed daemon leaves a log.
    work.committed();
    let named = |name: &str| Builder::new().name(name.to_owned());
    let thread = named("store").spawn(move || work.run(&queue)).map_err(thread_failed)?;
    let log = with_end(path, "-wal");
    let copy = move || checkpoint::run(&aside, &log, &copying, &committed, &ended);
    let checkpoints = named("checkpoint").spawn(copy).map_err(thread_failed)?;
    Ok((Writer { batches, limits, thread, checkpoints }, reader, snapshot))
}

/// Checks what SQLite does not: an empty file is no new database if the index shows that it had a
/// journal. Another file is no database, even if the log next to it has all pages of the old one.
pub fn check_file(path: &Path, index: &Path) -> Result<(), OpenError> {
    // SQLite reports a file that cannot be opened.
    let Ok(file) = files::open(path) else { return Ok(()) };
    let mut head = Vec::new();
    let read = file.take(MAGIC.len() as u64).read_to_end(&mut head);
    read.map_err(|error| store_failed(path, StoreError::Io(error.to_string())))?;
    let has_index = || files::stamp(index).ok().flatten().is_some_and(|file| file.length > 0);
    if head.is_empty() && has_index() {
        return Err(OpenError::Emptied { path: path.into() });
    }
    if !head.is_empty() && head != MAGIC {
        return Err(store_failed(path, StoreError::Damaged("file is not a database".to_owned())));
    }
    Ok(())
}

fn store_failed(path: &Path, source: StoreError) -> OpenError {
    OpenError::Store { path: path.into(), source }
}

/// Checks that [`open`] could open an existing database. Changes nothing, also while a daemon has
/// it open.
pub fn check(path: &Path, index: &Path) -> Result<(), OpenError> {
    check_file(path, index)?;
    if !path.try_exists().unwrap_or(true) {
        return Ok(());
    }
    drop(acpd_sys::files::private_file(path)?);
    let failed = |error| store_failed(path, StoreError::from(error));
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags).map_err(failed)?;
    conn.busy_timeout(LOCK_WAIT).map_err(failed)?;
    schema::check(&conn, path).map(drop)
}

/// Bytes of the database and its write-ahead log on disk; `None` if there is no database.
pub fn size_on_disk(path: &Path) -> Option<u64> {
    let size = |path: &Path| path.metadata().map(|file| file.len()).ok();
    Some(size(path)? + size(&with_end(path, "-wal")).unwrap_or_default())
}
