//! Sizes of sessions: lines and bytes of their journals.

use std::collections::BTreeMap;
use std::path::Path;

use acpd_core::ids::{Seq, SessionKey};
use rusqlite::params;

use crate::code::{MAX_SEQ, event_key, number, seq_of};
use crate::error::{OpenError, StoreError};
use crate::reader::Reader;

/// Lines per transaction.
const LINES: u32 = 4096;

/// Measures journals. A journal only grows, so each line is measured once. Blocks while it works:
/// keep it off an async thread.
#[derive(Debug)]
pub struct Sizes {
    journal: Reader,
    known: BTreeMap<SessionKey, Measured>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Measured {
    upto: Seq,
    bytes: u64,
}

impl Sizes {
    pub fn open(journal: &Path) -> Result<Sizes, OpenError> {
        let failed = |source| OpenError::Store { path: journal.into(), source };
        let journal = Reader::open(journal).map_err(failed)?;
        Ok(Sizes { journal, known: BTreeMap::new() })
    }

    /// Bytes of the lines of each of these sessions.
    pub fn of(
        &mut self,
        sessions: impl IntoIterator<Item = SessionKey>,
    ) -> Result<BTreeMap<SessionKey, u64>, StoreError> {
        let mut known = BTreeMap::new();
        for session in sessions {
            let before = self.known.get(&session).copied().unwrap_or_default();
            known.insert(session, self.go_on(session, before)?);
        }
        let sizes = known.iter().map(|(session, measured)| (*session, measured.bytes)).collect();
        self.known = known;
        Ok(sizes)
    }

    fn go_on(&mut self, session: SessionKey, mut sum: Measured) -> Result<Measured, StoreError> {
        let (from, upto) = (event_key(session, 0)?, event_key(session, MAX_SEQ)?);
        // Lines move to packs between two transactions.
        let tx = self.journal.conn.transaction()?;
        let (last, bytes) = tx
            .prepare_cached(
                "SELECT ifnull(max(key), 0), ifnull(sum(bytes), 0) FROM packs \
                 WHERE key BETWEEN ?1 AND ?2",
            )?
            .query_row([from, upto], |row| Ok((row.get(0)?, number(row, 1)?)))?;
        if seq_of(last) >= sum.upto {
            sum = Measured { upto: seq_of(last), bytes };
        }
        // The inner query reads lengths only, not lines.
        let mut piece = tx.prepare_cached(
            "SELECT count(*), max(key), sum(bytes) FROM \
             (SELECT key, length(line) AS bytes FROM events WHERE key > ?1 AND key <= ?2 \
             ORDER BY key LIMIT ?3)",
        )?;
        loop {
            let bounds =
                params![event_key(session, sum.upto)?, event_key(session, MAX_SEQ)?, LINES];
            let (count, last, bytes) = piece.query_row(bounds, |row| {
                let (last, bytes): (Option<i64>, Option<i64>) = (row.get(1)?, row.get(2)?);
                Ok((row.get::<_, u32>(0)?, last.unwrap_or(0), bytes.unwrap_or(0) as u64))
            })?;
            if count > 0 {
                sum = Measured { upto: seq_of(last), bytes: sum.bytes + bytes };
            }
            if count < LINES {
                return Ok(sum);
            }
        }
    }
}
