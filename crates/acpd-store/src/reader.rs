//! Journals, read in pages.
//!
//! Each call is one short read transaction: a transaction that stays open while its reader waits
//! for a socket would keep the write-ahead log from being emptied.

use std::path::Path;

use acpd_core::ids::{Seq, SessionKey, Time};
use acpd_core::record::{EventKind, EventRow, Row, ValueKey};
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, RowIndex, StatementStatus, params};

use crate::code::{LIVE, MAX_SEQ, STATE, STATE_KEYS, event_key, kind_of, seq_of};
use crate::connection::{LOCK_WAIT, connect};
use crate::error::StoreError;
use crate::state::{self, kind};

/// A connection that only reads. Blocks for a disk access: keep it off an async thread.
#[derive(Debug)]
pub struct Reader {
    pub(crate) conn: Connection,
}

impl Reader {
    pub(crate) fn open(path: &Path) -> Result<Reader, StoreError> {
        let conn = connect(path, LOCK_WAIT, 512)?;
        conn.pragma_update(None, "query_only", "ON")?;
        Ok(Reader { conn })
    }

    pub(crate) fn generation(&self) -> Result<String, StoreError> {
        Ok(self.conn.query_row("SELECT generation FROM meta", [], |row| row.get(0))?)
    }

    pub(crate) fn time_of(
        &self,
        session: SessionKey,
        seq: Seq,
    ) -> Result<Option<Time>, StoreError> {
        let mut statement = self.conn.prepare_cached("SELECT at FROM events WHERE key = ?1")?;
        let key = event_key(session, seq)?;
        Ok(statement.query_row([key], |row| number(row, 0)).optional()?.map(Time))
    }

    /// The lines after `after` up to and including `upto`, in order.
    ///
    /// Stops with the line that reaches `max_bytes`, so only the end has an empty page. A deleted
    /// session has no lines, also while the writer still removes them.
    pub fn events(
        &mut self,
        session: SessionKey,
        after: Seq,
        upto: Seq,
        max_bytes: usize,
    ) -> Result<Vec<EventRow>, StoreError> {
        self.page("", session, (after, upto), max_bytes)
    }

    /// Like [`Reader::events`], without state events and live ones, which mean nothing once the
    /// session has moved on.
    ///
    /// A full replay up to a position is all pages of this, then [`Reader::states`] of the same
    /// position. So each state value is sent once, and the current one comes last.
    pub fn replay(
        &mut self,
        session: SessionKey,
        after: Seq,
        upto: Seq,
        max_bytes: usize,
    ) -> Result<Vec<EventRow>, StoreError> {
        self.page(&lasting(), session, (after, upto), max_bytes)
    }

    /// Calls `visit` with the lines of [`Reader::replay`], without copies of them. Returns the last
    /// one's number.
    pub(crate) fn visit(
        &self,
        session: SessionKey,
        bounds: (Seq, Seq),
        max_bytes: usize,
        mut visit: impl FnMut(&Line<'_>),
    ) -> Result<Option<Seq>, StoreError> {
        let mut last = None;
        self.each(&lasting(), session, bounds, max_bytes, |row| {
            let bytes = row.get_ref(4)?.as_blob();
            let bytes = bytes.map_err(|error| StoreError::Damaged(error.to_string()))?;
            let (seq, at) = (seq_of(row.get(0)?), Time(number(row, 3)?));
            visit(&Line { seq, at, kind: kind_of(row.get(2)?)?, bytes });
            last = Some(seq);
            Ok(bytes.len())
        })?;
        Ok(last)
    }

    /// The last event of each state key at position `upto`, in the order of the keys.
    pub fn states(&mut self, session: SessionKey, upto: Seq) -> Result<Vec<EventRow>, StoreError> {
        let tx = self.conn.transaction()?;
        let mut rows = Vec::with_capacity(STATE_KEYS.len());
        let Some(journal) = state::journal(&tx, session)? else { return Ok(rows) };
        for (state_key, last) in STATE_KEYS.into_iter().zip(journal.states) {
            if last == 0 {
                continue;
            }
            // The row has the present only. If that is past `upto`, search the journal.
            let from = if last <= upto { last } else { 0 };
            let bounds = params![
                event_key(session, from)?,
                event_key(session, upto.min(MAX_SEQ))?,
                STATE + state_key as i64
            ];
            let mut statement = tx.prepare_cached(
                "SELECT key, pv, kind, at, line, origin FROM events \
                 WHERE key BETWEEN ?1 AND ?2 AND kind = ?3 ORDER BY key DESC LIMIT 1",
            )?;
            let mut found = statement.query(bounds)?;
            if let Some(row) = found.next()? {
                rows.push(event(session, row)?);
            }
        }
        tx.commit()?;
        Ok(rows)
    }

    pub fn values(&mut self, session: SessionKey) -> Result<Vec<(ValueKey, Bytes)>, StoreError> {
        let mut values = self.conn.prepare_cached(
            "SELECT kind, value, line FROM state WHERE kind = ?1 AND owner = ?2 ORDER BY key",
        )?;
        let mut rows = values.query(params![kind::VALUE, session.0])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            if let Row::Value { key, json, .. } = state::read(row)? {
                found.push((key, json));
            }
        }
        Ok(found)
    }

    fn page(
        &self,
        and: &str,
        session: SessionKey,
        bounds: (Seq, Seq),
        max_bytes: usize,
    ) -> Result<Vec<EventRow>, StoreError> {
        let mut rows = Vec::new();
        self.each(and, session, bounds, max_bytes, |row| {
            let row = event(session, row)?;
            let len = row.line.len();
            rows.push(row);
            Ok(len)
        })?;
        Ok(rows)
    }

    /// Stops after the row that reaches `max_bytes`. `and` is one more condition, in SQL; `take`
    /// returns the bytes of its row.
    fn each(
        &self,
        and: &str,
        session: SessionKey,
        (after, upto): (Seq, Seq),
        max_bytes: usize,
        mut take: impl FnMut(&rusqlite::Row<'_>) -> Result<usize, StoreError>,
    ) -> Result<(), StoreError> {
        let bounds = params![
            event_key(session, after.min(MAX_SEQ))?,
            event_key(session, upto.min(MAX_SEQ))?,
            session.0,
            kind::SESSION
        ];
        let mut statement = self.conn.prepare_cached(&format!(
            "SELECT key, pv, kind, at, line, origin FROM events \
             WHERE key > ?1 AND key <= ?2 {and} AND EXISTS \
             (SELECT 1 FROM state WHERE kind = ?4 AND owner = ?3 AND key = 0) ORDER BY key"
        ))?;
        let mut found = statement.query(bounds)?;
        let mut size = 0;
        while let Some(row) = found.next()? {
            size += take(row)?;
            if size >= max_bytes {
                break;
            }
        }
        drop(found);
        debug_assert_eq!(statement.get_status(StatementStatus::Sort), 0, "each page sorts all");
        Ok(())
    }
}

/// The condition of [`Reader::replay`].
fn lasting() -> String {
    format!("AND kind < {STATE} AND kind <> {LIVE}")
}

/// A line of a journal where it was read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'r> {
    pub(crate) seq: Seq,
    pub(crate) at: Time,
    pub(crate) kind: EventKind,
    pub(crate) bytes: &'r [u8],
}

/// A row of the columns `key, pv, kind, at, line, origin`.
pub(crate) fn event(session: SessionKey, row: &rusqlite::Row<'_>) -> Result<EventRow, StoreError> {
    Ok(EventRow {
        session,
        seq: seq_of(row.get(0)?),
        pv: row.get(1)?,
        kind: kind_of(row.get(2)?)?,
        at: Time(number(row, 3)?),
        line: bytes(row, 4)?,
        origin: row.get(5)?,
    })
}

/// An unsigned number, stored with its bits.
pub(crate) fn number(row: &rusqlite::Row<'_>, column: impl RowIndex) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(|value| value as u64)
}

fn bytes(row: &rusqlite::Row<'_>, column: usize) -> Result<Bytes, StoreError> {
    let blob = row.get_ref(column)?.as_blob().map_err(rusqlite::Error::from)?;
    Ok(Bytes::copy_from_slice(blob))
}
