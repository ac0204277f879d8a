//! Work of the writer while no batch is queued: removes the lines of deleted sessions, packs old
//! ones, and returns the room of both to the disk.
//!
//! ```text
//!  a session is deleted ─▶ its row goes, and PIECE bytes of lines ── all? ─▶ shrink
//!                               │ no                                          ▲
//!                               ▼                                             │
//!                      remove, piece by piece ── none is left ────────────────┤
//!  start ─▶ seek journals without a session ── found ─▶ remove                │
//!                               └───────────── none ──────────────────────────┘
//!                                                                 shrunk ─▶ cut the log, which has what was deleted
//!
//!  start, and each hour ─▶ pack, journal by journal ─▶ shrink
//! ```
//!
//! Nothing of this is on disk: a journal without a session is a deleted one, so the next daemon
//! finds it.
//!
//! While batches come all the time, a step is done between two of them now and then. It also
//! removes twice as many bytes as were written since, so that a flood cannot make the file grow. Lines
//! are packed in pauses only.
//!
//! Architecture invariant: each step is a transaction of its own that moves some hundred KiB, or a
//! few MiB if as much was just written (one longer line at most), and a batch never waits for more
//! than one step.

use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use acpd_core::ids::{SessionKey, Time};
use rusqlite::{Connection, params};

use crate::checkpoint::checkpoint;
use crate::code::{MAX_SEQ, event_key, int, number, session_of};
use crate::connection::LOCK_WAIT;
use crate::error::StoreError;
use crate::pack::pack;
use crate::state::has_session;

/// Bytes of lines that one transaction removes.
pub(crate) const PIECE: u64 = 256 << 10;
/// Bytes of lines that one transaction removes after a flood.
const MOST: u64 = 8 * PIECE;
/// Least bytes that a line counts as: short lines cost time, too.
const SHORTEST: u64 = 128;
/// Journals per step of the search.
const SEEKS: u32 = 16;
/// Free pages returned per step.
const PAGES: u32 = 64;
/// Free pages above which they are returned: 4 MiB.
const WORTH: u32 = (4 << 20) / 4096;
/// Pages that a start may write again: 256 MiB, some seconds.
const REWRITTEN: u32 = (256 << 20) / 4096;
/// Free pages that stay for the next writes.
const SPARE: u32 = (256 << 10) / 4096;
/// Time that the writer waits for a batch before the next step.
const PAUSE: Duration = Duration::from_millis(10);
/// Time between two looks for lines to pack.
const OFTEN: Duration = Duration::from_secs(1);
const SELDOM: Duration = Duration::from_hours(1);
/// Time between two steps while batches come all the time.
const PATIENCE: Duration = Duration::from_millis(50);
/// Wait after a failed step.
const LATER: Duration = Duration::from_mins(1);
/// `auto_vacuum` of a database that can return pages.
const INCREMENTAL: u32 = 2;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tidied {
    /// Bytes of removed lines.
    pub removed: u64,
    /// Lines that were packed.
    pub packed: u64,
    /// Bytes by which the database is shorter.
    pub given_back: u64,
}

#[derive(Debug)]
pub(crate) struct Chores {
    /// Deleted sessions with lines left.
    journals: BTreeSet<SessionKey>,
    /// Key behind which journals were not looked at yet.
    seek: Option<i64>,
    /// Bytes to remove because others were written.
    owed: u64,
    /// Free pages above which room is returned.
    shrink: Option<u32>,
    /// The write-ahead log may hold deleted lines.
    log: bool,
    /// Age of a line from which it is packed.
    pack_after: Duration,
    /// Key behind which journals were not looked at for old lines.
    old: Option<i64>,
    /// Time of the next look for old lines.
    next_look: Instant,
    /// Time of the last step, or of the next try after a failure.
    at: Instant,
}

impl Chores {
    pub(crate) fn new(pack_after: Duration) -> Chores {
        let now = Instant::now();
        Chores {
            journals: BTreeSet::new(),
            seek: Some(0),
            owed: 0,
            shrink: Some(WORTH),
            log: true,
            pack_after,
            old: None,
            next_look: now,
            at: now,
        }
    }

    /// Notes that sessions were deleted, and those with lines left.
    pub(crate) fn removed(&mut self, unfinished: Vec<SessionKey>) {
        self.journals.extend(unfinished);
        self.shrink.get_or_insert(WORTH);
        self.log = true;
    }

    pub(crate) fn wrote(&mut self, bytes: u64) {
        if !self.journals.is_empty() {
            self.owed += 2 * bytes;
        }
    }

    /// Returns how long to wait for a batch before the next step.
    pub(crate) fn wait(&self) -> Duration {
        let next = if self.are_done() { self.next_look } else { self.at };
        next.saturating_duration_since(Instant::now()).max(PAUSE)
    }

    fn are_done(&self) -> bool {
        !self.is_urgent() && self.old.is_none()
    }

    /// Returns whether there is work without which lines that are gone keep their room.
    fn is_urgent(&self) -> bool {
        self.shrink.is_some() || self.seek.is_some() || !self.journals.is_empty() || self.log
    }

    pub(crate) fn is_due(&mut self) -> bool {
        let now = Instant::now();
        if self.next_look <= now {
            self.old = Some(0);
            self.next_look = now + self.pack_after.clamp(OFTEN, SELDOM);
        }
        !self.are_done() && self.at <= now
    }

    /// Returns whether a step must be done between batches.
    pub(crate) fn is_overdue(&self) -> bool {
        let is_overdue = |waited| waited > PATIENCE || self.owed >= PIECE;
        let waited = Instant::now().checked_duration_since(self.at);
        self.is_urgent() && waited.is_some_and(is_overdue)
    }

    pub(crate) fn step(&mut self, conn: &mut Connection) -> Result<Tidied, StoreError> {
        let mut tidied = Tidied::default();
        if let Some(session) = self.journals.first().copied() {
            let tx = conn.transaction()?;
            let (removed, is_empty) = remove_lines(&tx, session, self.owed.clamp(PIECE, MOST))?;
            tx.commit()?;
            tidied.removed = removed;
            self.owed = self.owed.saturating_sub(removed);
            if is_empty {
                self.journals.pop_first();
            }
            if self.journals.is_empty() {
                self.owed = 0;
            }
        } else if let Some(behind) = self.seek {
            self.seek = self.look(conn, behind)?;
        } else if let Some(over) = self.shrink {
            tidied.given_back = shrink(conn, over)?;
            // A shrink continues to its end.
            self.shrink = (tidied.given_back > 0).then_some(SPARE);
        } else if self.log {
            // A batch must not wait for a reader in the way, such as a backup.
            conn.busy_timeout(Duration::ZERO)?;
            let emptied = checkpoint(conn, "TRUNCATE");
            conn.busy_timeout(LOCK_WAIT)?;
            self.log = !emptied.unwrap_or(false);
            if self.log {
                self.put_off();
                return Ok(tidied);
            }
        } else if let Some(behind) = self.old {
            tidied.packed = self.pack(conn, behind)?;
        }
        self.at = Instant::now();
        Ok(tidied)
    }

    /// Puts off a step that failed; it costs only room.
    pub(crate) fn put_off(&mut self) {
        self.at = Instant::now() + LATER;
    }

    /// Looks at some journals, and notes those without a session. Returns the key to continue
    /// behind.
    fn look(&mut self, conn: &mut Connection, mut behind: i64) -> Result<Option<i64>, StoreError> {
        let tx = conn.transaction()?;
        let mut next = tx.prepare_cached(
            "SELECT min(key) FROM (SELECT min(key) AS key FROM packs WHERE key > ?1 \
             UNION ALL SELECT min(key) FROM events WHERE key > ?1)",
        )?;
        for _ in 0..SEEKS {
            let Some(key) = next.query_row([behind], |row| row.get::<_, Option<i64>>(0))? else {
                return Ok(None);
            };
            let session = session_of(key);
            if !has_session(&tx, session)? {
                self.journals.insert(session);
            }
            behind = event_key(session, MAX_SEQ)?;
        }
        Ok(Some(behind))
    }

    /// Packs old lines of the next journal behind a key that has some. Returns their number.
    fn pack(&mut self, conn: &mut Connection, mut behind: i64) -> Result<u64, StoreError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let until = Time(now.saturating_sub(self.pack_after).as_millis() as u64);
        let tx = conn.transaction()?;
        let mut next = tx.prepare_cached("SELECT min(key) FROM events WHERE key > ?1")?;
        let mut packed = 0;
        for _ in 0..SEEKS {
            let Some(key) = next.query_row([behind], |row| row.get::<_, Option<i64>>(0))? else {
                self.old = None;
                return Ok(0);
            };
            let session = session_of(key);
            let end = event_key(session, MAX_SEQ)?;
            // A journal that cannot be packed is not in the way of the others.
            self.old = Some(end);
            packed = pack(&tx, session, until)?;
            if packed > 0 {
                break;
            }
            behind = end;
        }
        drop(next);
        tx.commit()?;
        self.old = Some(behind);
        if packed > 0 {
            self.shrink = Some(SPARE);
        }
        Ok(packed)
    }
}

/// Removes up to `most` bytes of lines from the beginning of a journal. Returns the bytes removed,
/// and whether the journal is empty.
pub(crate) fn remove_lines(
    conn: &Connection,
    session: SessionKey,
    most: u64,
) -> Result<(u64, bool), StoreError> {
    let (from, upto) = (event_key(session, 0)?, event_key(session, MAX_SEQ)?);
    let lines_at_most = most.div_ceil(SHORTEST);
    let (mut bytes, mut count) = (0, 0);
    for (find, remove) in [
        (
            "SELECT key, length(data) FROM packs WHERE key BETWEEN ?1 AND ?2 ORDER BY key LIMIT ?3",
            "DELETE FROM packs WHERE key BETWEEN ?1 AND ?2",
        ),
        (
            "SELECT key, length(line) FROM events WHERE key BETWEEN ?1 AND ?2 ORDER BY key LIMIT ?3",
            "DELETE FROM events WHERE key BETWEEN ?1 AND ?2",
        ),
    ] {
        let mut lines = conn.prepare_cached(find)?;
        let mut rows = lines.query(params![from, upto, int(lines_at_most)])?;
        let mut last = None;
        while bytes < most && count < lines_at_most {
            let Some(row) = rows.next()? else { break };
            last = Some(row.get::<_, i64>(0)?);
            bytes += number(row, 1)?;
            count += 1;
        }
        drop(rows);
        if let Some(last) = last {
            conn.prepare_cached(remove)?.execute([from, last])?;
        }
    }
    Ok((bytes, bytes < most && count < lines_at_most))
}

/// Makes a database able to return pages. SQLite takes this only before the first table and before
/// `journal_mode`, or when it writes all again: a database of acpd 0.2, once it has more free pages
/// than others.
pub(crate) fn prepare_to_shrink(conn: &Connection) -> rusqlite::Result<()> {
    let (all, free) = (pragma(conn, "page_count")?, pragma(conn, "freelist_count")?);
    let is_worth_it = free > WORTH && all - free < free.min(REWRITTEN);
    if all == 0 {
        conn.pragma_update(None, "auto_vacuum", INCREMENTAL)?;
    } else if is_worth_it && pragma(conn, "auto_vacuum")? == 0 {
        conn.pragma_update(None, "auto_vacuum", INCREMENTAL)?;
        // Without room for the copy, all stays as it is.
        conn.execute_batch("VACUUM").ok();
    }
    Ok(())
}

pub(crate) fn shrink_all(conn: &Connection) -> rusqlite::Result<()> {
    let mut over = WORTH;
    while shrink(conn, over)? > 0 {
        over = SPARE;
    }
    Ok(())
}

/// Returns some free pages to the disk if there are more than `over`. Returns the bytes.
fn shrink(conn: &Connection, over: u32) -> rusqlite::Result<u64> {
    let free = pragma(conn, "freelist_count")?;
    if free <= over || pragma(conn, "auto_vacuum")? != INCREMENTAL {
        return Ok(0);
    }
    let before = length(conn)?;
    let most = free.saturating_sub(SPARE).min(PAGES);
    let mut vacuum = conn.prepare(&format!("PRAGMA incremental_vacuum({most})"))?;
    let mut pages = vacuum.query([])?;
    while pages.next()?.is_some() {}
    drop(pages);
    Ok(before.saturating_sub(length(conn)?))
}

/// Length of the database in bytes. The file may still be longer.
pub(crate) fn length(conn: &Connection) -> rusqlite::Result<u64> {
    Ok(u64::from(pragma(conn, "page_count")?) * u64::from(pragma(conn, "page_size")?))
}

fn pragma(conn: &Connection, pragma: &str) -> rusqlite::Result<u32> {
    conn.pragma_query_value(None, pragma, |row| row.get(0))
}
