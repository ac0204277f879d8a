//! Journals, read in pages.
//!
//! Each page is one short read transaction: a transaction that stays open while its reader waits
//! for a socket would keep the write-ahead log from being emptied.

use std::ops::ControlFlow;
use std::path::Path;

use acpd_core::ids::{Seq, SessionKey, Time};
use acpd_core::record::{EventKind, EventRow, Row, ValueKey};
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, params};

use crate::code::{Line, STATE_KEYS, event_key, number};
use crate::connection::{LOCK_WAIT, connect};
use crate::error::StoreError;
use crate::lines::{Lines, Order};
use crate::pack::Unpacked;
use crate::state::{self, kind};

/// A connection that only reads. Blocks for a disk access: keep it off an async thread.
#[derive(Debug)]
pub struct Reader {
    pub(crate) conn: Connection,
    unpacked: Option<Unpacked>,
}

impl Reader {
    pub(crate) fn open(path: &Path) -> Result<Reader, StoreError> {
        let conn = connect(path, LOCK_WAIT, 512)?;
        conn.pragma_update(None, "query_only", "ON")?;
        Ok(Reader { conn, unpacked: None })
    }

    pub(crate) fn generation(&self) -> Result<String, StoreError> {
        Ok(self.conn.query_row("SELECT generation FROM meta", [], |row| row.get(0))?)
    }

    pub(crate) fn time_of(
        &mut self,
        session: SessionKey,
        seq: Seq,
    ) -> Result<Option<Time>, StoreError> {
        let known = self
            .conn
            .prepare_cached(
                "SELECT at FROM events WHERE key = ?1 \
                 UNION ALL SELECT at FROM packs WHERE key = ?1",
            )?
            .query_row([event_key(session, seq)?], |row| number(row, 0))
            .optional()?;
        let mut at = known.map(Time);
        if at.is_none() {
            let bounds = (seq.saturating_sub(1), seq);
            self.visit(
                session,
                bounds,
                Order::Forward,
                |_| true,
                |line| {
                    at = Some(line.at);
                    Ok(ControlFlow::Break(()))
                },
            )?;
        }
        Ok(at)
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
        self.page(session, (after, upto), max_bytes, |_| true)
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
        self.page(session, (after, upto), max_bytes, is_lasting)
    }

    /// The last event of each state key at position `upto`, in the order of the keys.
    pub fn states(&mut self, session: SessionKey, upto: Seq) -> Result<Vec<EventRow>, StoreError> {
        let mut rows = Vec::with_capacity(STATE_KEYS.len());
        let Some(journal) = state::journal(&self.conn, session)? else { return Ok(rows) };
        for (state_key, last) in STATE_KEYS.into_iter().zip(journal.states) {
            if last == 0 {
                continue;
            }
            // The row has the present only. If that is past `upto`, search the journal.
            let bounds = if last <= upto { (last - 1, last) } else { (0, upto) };
            let is_state = |kind| kind == EventKind::State(state_key);
            self.visit(session, bounds, Order::Backward, is_state, |line| {
                rows.push(line.row(session));
                Ok(ControlFlow::Break(()))
            })?;
        }
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
        &mut self,
        session: SessionKey,
        bounds: (Seq, Seq),
        max_bytes: usize,
        wanted: impl Fn(EventKind) -> bool,
    ) -> Result<Vec<EventRow>, StoreError> {
        let (mut rows, mut size) = (Vec::new(), 0);
        self.visit(session, bounds, Order::Forward, wanted, |line| {
            rows.push(line.row(session));
            size += line.bytes.len();
            Ok(if size < max_bytes { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        Ok(rows)
    }

    /// Calls `take` with the lines of these kinds until it breaks. A deleted session has none.
    pub(crate) fn visit(
        &mut self,
        session: SessionKey,
        (after, upto): (Seq, Seq),
        order: Order,
        wanted: impl Fn(EventKind) -> bool,
        take: impl FnMut(&Line<'_>) -> Result<ControlFlow<()>, StoreError>,
    ) -> Result<(), StoreError> {
        let tx = self.conn.transaction()?;
        if state::has_session(&tx, session)? {
            let unpacked = &mut self.unpacked;
            Lines { conn: &tx, unpacked, session, after, upto }.visit(order, wanted, take)?;
        }
        Ok(tx.commit()?)
    }
}

/// Returns whether a full replay has lines of a kind. See [`Reader::replay`].
pub(crate) fn is_lasting(kind: EventKind) -> bool {
    !matches!(kind, EventKind::State(_) | EventKind::Live)
}
