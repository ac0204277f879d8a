//! The lines of a journal, in order.
//!
//! ```text
//!  events: a row for each line ── older than `compress_after`, in pauses ─▶ packs: see `pack.rs`
//! ```
//!
//! The lines in packs are before those in `events`.

use std::ops::ControlFlow;

use acpd_core::ids::{Seq, SessionKey};
use acpd_core::record::EventKind;
use rusqlite::{Connection, StatementStatus};

use crate::code::{Line, MAX_SEQ, event_key, kind_of};
use crate::error::StoreError;
use crate::pack::Unpacked;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Forward,
    Backward,
}

/// Reads lines after one number and up to another.
///
/// Needs a transaction: lines move to packs between two.
pub(crate) struct Lines<'c> {
    pub(crate) conn: &'c Connection,
    /// The pack that was read last.
    pub(crate) unpacked: &'c mut Option<Unpacked>,
    pub(crate) session: SessionKey,
    pub(crate) after: Seq,
    pub(crate) upto: Seq,
}

type Taken = Result<ControlFlow<()>, StoreError>;

impl Lines<'_> {
    /// Calls `take` with the lines of these kinds until it breaks.
    pub(crate) fn visit(
        &mut self,
        order: Order,
        wanted: impl Fn(EventKind) -> bool,
        mut take: impl FnMut(&Line<'_>) -> Taken,
    ) -> Result<(), StoreError> {
        let flow = match order {
            Order::Forward => self.packed(order, &wanted, &mut take)?,
            Order::Backward => self.plain(order, &wanted, &mut take)?,
        };
        match order {
            _ if flow.is_break() => Ok(()),
            Order::Forward => self.plain(order, &wanted, &mut take).map(drop),
            Order::Backward => self.packed(order, &wanted, &mut take).map(drop),
        }
    }

    fn plain(
        &self,
        order: Order,
        wanted: &impl Fn(EventKind) -> bool,
        take: &mut impl FnMut(&Line<'_>) -> Taken,
    ) -> Taken {
        let sql = match order {
            Order::Forward => {
                "SELECT key, pv, kind, at, line, origin, entity FROM events \
                 WHERE key > ?1 AND key <= ?2 ORDER BY key"
            }
            Order::Backward => {
                "SELECT key, pv, kind, at, line, origin, entity FROM events \
                 WHERE key > ?1 AND key <= ?2 ORDER BY key DESC"
            }
        };
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query([self.key(self.after)?, self.key(self.upto)?])?;
        let mut flow = ControlFlow::Continue(());
        while flow.is_continue()
            && let Some(row) = rows.next()?
        {
            // A line may have many pages: it is read after its kind.
            if wanted(kind_of(row.get(2)?)?) {
                flow = take(&Line::read(row)?)?;
            }
        }
        drop(rows);
        debug_assert_eq!(statement.get_status(StatementStatus::Sort), 0, "each page sorts all");
        Ok(flow)
    }

    fn packed(
        &mut self,
        order: Order,
        wanted: &impl Fn(EventKind) -> bool,
        take: &mut impl FnMut(&Line<'_>) -> Taken,
    ) -> Taken {
        let (after, upto) = (self.key(self.after)?, self.key(self.upto)?);
        let mut next = match order {
            Order::Forward => self.pack_after(after)?,
            Order::Backward => match self.pack_after((upto - 1).max(after))? {
                Some(key) => Some(key),
                None => self.pack_before(upto)?,
            },
        };
        while let Some(key) = next {
            let pack = match self.unpacked.take() {
                Some(pack) if pack.key == key => pack,
                _ => self.unpack(key)?,
            };
            let (mut lines, mut flow) = (pack.lines(), ControlFlow::Continue(()));
            while flow.is_continue()
                && let Some(line) = match order {
                    Order::Forward => lines.next(),
                    Order::Backward => lines.next_back(),
                }
            {
                let inside = line.seq > self.after && line.seq <= self.upto;
                if inside && wanted(line.kind) {
                    flow = take(&line)?;
                }
            }
            drop(lines);
            *self.unpacked = Some(pack).filter(|pack| !pack.is_large());
            if flow.is_break() {
                return Ok(flow);
            }
            next = match order {
                Order::Forward if key < upto => self.pack_after(key)?,
                Order::Forward => None,
                Order::Backward => self.pack_before(key)?,
            };
        }
        Ok(ControlFlow::Continue(()))
    }

    fn unpack(&self, key: i64) -> Result<Unpacked, StoreError> {
        let mut data = self.conn.prepare_cached("SELECT data FROM packs WHERE key = ?1")?;
        let mut found = data.query([key])?;
        let row = found.next()?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
        Unpacked::new(key, row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?)
    }

    /// Returns the key of the first pack that ends behind this one.
    fn pack_after(&self, key: i64) -> Result<Option<i64>, StoreError> {
        let mut first =
            self.conn.prepare_cached("SELECT min(key) FROM packs WHERE key > ?1 AND key <= ?2")?;
        Ok(first.query_row([key, self.key(MAX_SEQ)?], |row| row.get(0))?)
    }

    /// Returns the key of the last pack with wanted lines that ends before this one.
    fn pack_before(&self, key: i64) -> Result<Option<i64>, StoreError> {
        let mut last =
            self.conn.prepare_cached("SELECT max(key) FROM packs WHERE key < ?1 AND key > ?2")?;
        Ok(last.query_row([key, self.key(self.after)?], |row| row.get(0))?)
    }

    fn key(&self, seq: Seq) -> Result<i64, StoreError> {
        event_key(self.session, seq.min(MAX_SEQ))
    }
}
