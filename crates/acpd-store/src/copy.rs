//! Copies of a journal: made while a daemon writes it, and restored.
//!
//! ```text
//!  back up:  acpd.db ─ one read transaction ─▶ FILE.partial ─▶ whole? ─▶ synced ─▶ renamed to FILE
//!
//!  restore:  FILE ─▶ acpd.db.restored ─▶ whole? ─▶ migrated, renumbered ────▶ synced ─┐
//!            acpd.db ─▶ its log emptied ─▶ linked as acpd-before-restore-N.db ────────┴▶ renamed to acpd.db
//! ```
//!
//! Architecture invariant: a process that is killed at any instruction of this leaves the old file
//! or the new file, whole.
//!
//! Architecture invariant: no id is issued twice after a restore. A restored journal gets a new
//! `generation`, which cursors and tokens of clients and the marks of processes belong to. It
//! continues to count boots and sessions from the later of both journals.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use acpd_api::{CopyReport, Untrusted};
use acpd_sys::files::{DirError, private_target, put_in_place, stamp};
use acpd_sys::lock;
use acpd_sys::paths::Paths;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags, params};

use crate::code::number;
use crate::connection::LOCK_WAIT;
use crate::error::{OpenError, StoreError};
use crate::files::{remove_files, with_end};
use crate::state::kind;
use crate::{checkpoint, chores, schema};

const PAGES: i32 = 256;
/// Wait for a lock between two tries of a copy.
const WAIT: Duration = Duration::from_millis(20);
/// Boots that a restored journal skips if those of the current journal cannot be read.
const UNKNOWN_BOOTS: u64 = 1000;

/// Ends of the names of a database and of SQLite's files next to it.
const ENDS: [&str; 4] = ["", "-wal", "-shm", "-journal"];

/// Stages of a copy. `Copying` is reported many times, the others once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Pages copied so far, and of all.
    Copying { done: u32, of: u32 },
    /// The copy is whole, and has no name yet by which it could be found.
    Checked,
    /// The current journal has its second name.
    Kept,
}

/// Reasons why there is no copy. All files are as before.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("there is no file `{path}`")]
    NoFile { path: PathBuf },
    #[error("there is no journal yet: no file `{path}`")]
    NothingYet { path: PathBuf },
    #[error("there is no directory `{path}`")]
    NoDirectory { path: PathBuf },
    #[error("`{path}` is a directory")]
    Directory { path: PathBuf },
    #[error("`{path}` is no journal of acpd")]
    NoJournal { path: PathBuf },
    #[error("`{path}` is there, and is no backup of acpd")]
    InTheWay { path: PathBuf },
    #[error("`{path}` is the journal itself")]
    Itself { path: PathBuf },
    #[error("another backup to `{path}` is running")]
    Busy { path: PathBuf },
    #[error("`{path}` is damaged: {what}")]
    Damaged { path: PathBuf, what: String },
    #[error(transparent)]
    File(#[from] DirError),
    #[error("cannot {what} `{path}`: {source}")]
    Io { what: &'static str, path: PathBuf, source: io::Error },
}

impl CopyError {
    pub fn is_missing(&self) -> bool {
        matches!(
            self,
            CopyError::NoFile { .. } | CopyError::NothingYet { .. } | CopyError::NoDirectory { .. }
        )
    }

    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            CopyError::Open(OpenError::Newer { .. }) => {
                "install the acpd that wrote it, or a newer one"
            }
            CopyError::Open(OpenError::Unreleased { .. }) => "no acpd of today can read it",
            CopyError::Open(OpenError::Store { source: StoreError::Io(_), .. }) => {
                "check the disk and the permissions of that file"
            }
            CopyError::Open(error) => return error.hint(),
            CopyError::NoFile { .. } => "give the file that `acpctl backup` has written",
            CopyError::NothingYet { .. } => "`acpctl daemon start` begins one",
            CopyError::NoDirectory { .. } => "create it, or choose another place",
            CopyError::Directory { .. } => "give the name of a file in it",
            CopyError::NoJournal { .. } => "`acpctl backup FILE` makes one",
            CopyError::InTheWay { .. } | CopyError::Itself { .. } => {
                "give another name, or move that file away"
            }
            CopyError::Busy { .. } => "wait for its end, or give another name",
            CopyError::Damaged { .. } => "take another backup",
            CopyError::File(error) => return error.hint(),
            CopyError::Io { .. } => "check the free space and the permissions there",
        };
        Some(hint.to_owned())
    }
}

/// Copies the journal as of this moment into a file, even while a daemon writes it.
pub fn back_up(
    journal: &Path,
    to: &Path,
    mut tell: impl FnMut(Stage),
) -> Result<CopyReport, CopyError> {
    let from = read(journal).map_err(|error| match error {
        CopyError::NoFile { path } => CopyError::NothingYet { path },
        other => other,
    })?;
    if to.is_dir() {
        return Err(CopyError::Directory { path: to.into() });
    }
    if is_same(to, journal) {
        return Err(CopyError::Itself { path: to.into() });
    }
    if to.symlink_metadata().is_ok() && read(to).is_err() {
        return Err(CopyError::InTheWay { path: to.into() });
    }
    let partial = with_end(to, ".partial");
    let file = target(&partial, to)?;
    // Held until the file has its name. The lock of a killed process is free.
    lock::hold(&file).map_err(|_| CopyError::Busy { path: to.into() })?;
    let copied = copy(&from, &partial, &file, &mut tell).and_then(|copied| {
        tell(Stage::Checked);
        rename(&partial, to)?;
        Ok(CopyReport { file: name(to), ..copied })
    });
    if copied.is_err() {
        remove(&partial, &ENDS).ok();
    }
    copied
}

pub fn look(from: &Path) -> Result<CopyReport, CopyError> {
    contents(&read(from)?, from)
}

/// Replaces the journal by a copy, and keeps the old one next to it. No process may have the
/// journal open: the caller holds the daemon's lock.
pub fn restore(
    from: &Path,
    journal: &Path,
    index: &Path,
    mut tell: impl FnMut(Stage),
) -> Result<CopyReport, CopyError> {
    if is_same(from, journal) {
        return Err(CopyError::Itself { path: from.into() });
    }
    let source = read(from)?;
    let new = with_end(journal, ".restored");
    remove(&new, &ENDS)?;
    let file = private_target(&new)?;
    let restored = copy(&source, &new, &file, &mut tell).and_then(|_| {
        let old = journal.exists().then(|| numbers(journal));
        let copied = continue_from(&new, old.flatten(), journal.exists())?;
        file.sync_all().map_err(failed("write", &new))?;
        tell(Stage::Checked);
        let kept = keep(journal)?;
        tell(Stage::Kept);
        // The next daemon makes the index again.
        remove(index, &ENDS)?;
        rename(&new, journal)?;
        Ok(CopyReport { file: name(journal), kept: kept.as_deref().map(name), ..copied })
    });
    if restored.is_err() {
        remove(&new, &ENDS).ok();
    }
    restored
}

/// Opens a journal for reading, if this acpd can read it.
fn read(path: &Path) -> Result<Connection, CopyError> {
    if stamp(path).map_err(failed("read", path))?.is_none() {
        return Err(CopyError::NoFile { path: path.into() });
    }
    if path.is_dir() {
        return Err(CopyError::Directory { path: path.into() });
    }
    // Opening a pipe would block.
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        return Err(CopyError::NoJournal { path: path.into() });
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || -> rusqlite::Result<(Connection, u32)> {
        let conn = Connection::open_with_flags(path, flags)?;
        conn.busy_timeout(LOCK_WAIT)?;
        let version = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
        Ok((conn, version))
    };
    match open().map_err(StoreError::from) {
        Ok((_, 0)) => Err(CopyError::NoJournal { path: path.into() }),
        Ok((conn, _)) => match schema::check(&conn, path) {
            Err(OpenError::Unreleased { .. }) => Err(CopyError::NoJournal { path: path.into() }),
            checked => Ok(checked.map(|_| conn)?),
        },
        Err(StoreError::Damaged(_)) => Err(CopyError::NoJournal { path: path.into() }),
        Err(source) => Err(OpenError::Store { path: path.into(), source }.into()),
    }
}

/// Copies all of a journal into the open file `to`, checks it and syncs it.
fn copy(
    from: &Connection,
    to: &Path,
    file: &File,
    tell: &mut impl FnMut(Stage),
) -> Result<CopyReport, CopyError> {
    file.set_len(0).map_err(failed("write", to))?;
    // Leftovers of a killed process would be rolled back into the new file.
    remove(to, &ENDS[1..])?;
    let failed_store = store_failed(to);
    let mut copied = || -> rusqlite::Result<(Connection, String)> {
        // One transaction: else each commit of a daemon would restart the copy.
        from.execute_batch("BEGIN")?;
        from.query_row("SELECT boot FROM meta", [], |_| Ok(()))?;
        let mut conn = Connection::open(to)?;
        // Half a copy is not continued, and no process finds the file before all of it is synced.
        conn.pragma_update_and_check(None, "journal_mode", "MEMORY", |_| Ok(()))?;
        conn.pragma_update(None, "synchronous", "OFF")?;
        let backup = Backup::new(from, &mut conn)?;
        loop {
            let step = backup.step(PAGES)?;
            let progress = backup.progress();
            let of = progress.pagecount.max(0) as u32;
            tell(Stage::Copying { done: of.saturating_sub(progress.remaining.max(0) as u32), of });
            match step {
                StepResult::Done => break,
                StepResult::More => {}
                _ => thread::sleep(WAIT),
            }
        }
        drop(backup);
        from.execute_batch("COMMIT")?;
        // One file, for any settings of later connections.
        conn.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))?;
        let whole = conn.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
        Ok((conn, whole))
    };
    let (conn, whole) = copied().map_err(failed_store)?;
    if whole != "ok" {
        return Err(CopyError::Damaged { path: to.into(), what: whole });
    }
    let copied = contents(&conn, to)?;
    conn.close().map_err(|(_, error)| store_failed(to)(error))?;
    file.sync_all().map_err(failed("write", to))?;
    Ok(copied)
}

fn contents(conn: &Connection, path: &Path) -> Result<CopyReport, CopyError> {
    let read = || -> rusqlite::Result<CopyReport> {
        let bytes = chores::length(conn)?;
        conn.query_row(schema::sessions(conn)?, [], |row| {
            Ok(CopyReport {
                file: name(path),
                bytes,
                sessions: number(row, 0)?,
                updated: row.get::<_, Option<i64>>(1)?.map(|at| at as u64),
                kept: None,
            })
        })
    };
    read().map_err(store_failed(path))
}

fn name(path: &Path) -> Untrusted {
    path.display().to_string().into()
}

/// Numbers of boots and sessions of a journal; `None` if it cannot be read.
fn numbers(journal: &Path) -> Option<(u64, u32)> {
    let conn = read(journal).ok()?;
    let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)? as u64, row.get(1)?));
    conn.query_row("SELECT boot, last_session FROM meta", [], row).ok()
}

/// Migrates the new journal, and lets its numbers continue behind those of the old one.
fn continue_from(
    new: &Path,
    old: Option<(u64, u32)>,
    there_was_one: bool,
) -> Result<CopyReport, CopyError> {
    let mut conn = Connection::open(new).map_err(store_failed(new))?;
    schema::migrate(&mut conn, new)?;
    let (boots, sessions) = old.unwrap_or_default();
    let unknown = if there_was_one && old.is_none() { UNKNOWN_BOOTS } else { 0 };
    let mut number = || -> rusqlite::Result<()> {
        let tx = conn.transaction()?;
        tx.execute(
            "UPDATE meta SET generation = lower(hex(randomblob(16))), \
             boot = max(boot + ?1, ?2), last_session = max(last_session, ?3)",
            params![unknown as i64, boots as i64, sessions],
        )?;
        // Clients know this journal by its old name. Its processes may still serve the daemon that
        // it was copied from.
        tx.execute("DELETE FROM state WHERE kind IN (?1, ?2)", [kind::CLIENT, kind::REPLY])?;
        tx.execute(
            "UPDATE state SET value = json_set(value, '$.host.pid', 0, '$.host.start', 0) \
             WHERE kind = ?1",
            [kind::HOST],
        )?;
        tx.commit()
    };
    number().map_err(store_failed(new))?;
    let copied = contents(&conn, new)?;
    conn.close().map_err(|(_, error)| store_failed(new)(error))?;
    Ok(copied)
}

/// Links the current journal under a second name. Returns that path.
fn keep(journal: &Path) -> Result<Option<PathBuf>, CopyError> {
    if !journal.exists() {
        return Ok(None);
    }
    let (dir, name) = (journal.parent().unwrap_or(Path::new(".")), Paths::KEPT_ASIDE);
    let kept = |number: u32, end: &str| dir.join(format!("{name}{number}.db{end}"));
    // The link of a killed process is the journal itself.
    let free = (1..=u32::MAX)
        .find(|n| !kept(*n, "").exists() || is_same(&kept(*n, ""), journal))
        .unwrap_or(1);
    let to = kept(free, "");
    let is_linked = is_same(&to, journal);
    if !is_linked {
        remove(&to, &ENDS)?;
    }
    // After emptying its log, the file is complete. The log of a damaged journal is kept next to
    // it.
    if emptied(journal).is_err() {
        for end in ["-wal", "-shm"] {
            let from = with_end(journal, end);
            if from.exists() {
                fs::rename(&from, kept(free, end)).map_err(failed("rename", &from))?;
            }
        }
    }
    if !is_linked {
        fs::hard_link(journal, &to).map_err(failed("link", journal))?;
    }
    Ok(Some(to))
}

/// Writes the log of a journal into the journal, and removes the log.
fn emptied(journal: &Path) -> rusqlite::Result<()> {
    let conn = Connection::open_with_flags(
        journal,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    conn.busy_timeout(LOCK_WAIT)?;
    checkpoint::checkpoint(&conn, "TRUNCATE")?;
    conn.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))?;
    conn.close().map_err(|(_, error)| error)
}

/// Creates the file for the copy. The error names `to`, the path that the user knows.
fn target(partial: &Path, to: &Path) -> Result<File, CopyError> {
    private_target(partial).map_err(|error| match (error, to.parent()) {
        (DirError::Open { source, .. }, Some(dir)) if source.kind() == io::ErrorKind::NotFound => {
            CopyError::NoDirectory { path: dir.into() }
        }
        (DirError::Open { source, .. }, _) => failed("write", to)(source),
        (error, _) => error.into(),
    })
}

fn rename(from: &Path, to: &Path) -> Result<(), CopyError> {
    put_in_place(from, to).map_err(failed("rename", from))
}

fn remove(path: &Path, ends: &[&str]) -> Result<(), CopyError> {
    remove_files(path, ends).map_err(|(file, error)| failed("remove", &file)(error))
}

fn is_same(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| {
        let path = path.canonicalize().ok()?;
        stamp(&path).ok().flatten().map(|found| found.id)
    };
    id(one).is_some_and(|found| id(other) == Some(found))
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CopyError {
    let path = path.to_owned();
    move |source| CopyError::Io { what, path, source }
}

fn store_failed(path: &Path) -> impl Fn(rusqlite::Error) -> CopyError {
    let path = path.to_owned();
    move |error| OpenError::Store { path: path.clone(), source: error.into() }.into()
}
