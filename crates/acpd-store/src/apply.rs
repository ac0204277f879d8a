//! Records in SQL, with the meaning of [`acpd_core::record::Snapshot::apply`]. The writer thread
//! runs them, one `Apply` per transaction.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::ControlFlow;

use acpd_api::Tokens;
use acpd_core::ids::SessionKey;
use acpd_core::record::{EventKind, EventRow, Forked, JournalRow, Record, Row, UsageRow};
use rusqlite::{CachedStatement, Connection, Params, params};

use crate::chores::{PIECE, remove_lines};
use crate::code::{event_key, int, kind_code};
use crate::error::StoreError;
use crate::lines::{Lines, Order};
use crate::state;

pub(crate) struct Apply<'c> {
    conn: &'c Connection,
    /// Outside of the statement cache: nearly all records are events.
    insert_event: CachedStatement<'c>,
    /// Ends of the journals with new events.
    journals: BTreeMap<SessionKey, JournalRow>,
    removed: Removed,
    /// Bytes of lines added to journals.
    written: u64,
    /// Bytes of lines that this transaction may still remove.
    room: u64,
}

/// Deleted sessions in this transaction.
#[derive(Debug, Default)]
pub(crate) struct Removed {
    pub(crate) any: bool,
    /// Bytes of removed lines.
    pub(crate) bytes: u64,
    /// Sessions with lines left.
    pub(crate) unfinished: Vec<SessionKey>,
}

impl<'c> Apply<'c> {
    pub(crate) fn new(conn: &'c Connection) -> Result<Apply<'c>, StoreError> {
        let insert_event = conn.prepare_cached(
            "INSERT INTO events (key, pv, kind, at, line, origin, entity) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?;
        let (journals, removed) = (BTreeMap::new(), Removed::default());
        Ok(Apply { conn, insert_event, journals, removed, written: 0, room: PIECE })
    }

    pub(crate) fn record(&mut self, record: &Record) -> Result<(), StoreError> {
        match record {
            Record::Boot { boot } => self.run("UPDATE meta SET boot = ?1", [int(*boot)]),
            Record::Put(row) => {
                state::put(self.conn, row)?;
                let Row::Session(row) = row else { return Ok(()) };
                let sql = "UPDATE meta SET last_session = ?1 WHERE last_session < ?1";
                self.run(sql, [row.key.0])
            }
            Record::Delete(id) => state::delete(self.conn, id),
            Record::HostGone { host } => state::delete_host(self.conn, *host),
            Record::ClientGone { token } => state::delete_client(self.conn, token),
            Record::SessionRemoved { session } => self.session_removed(*session),
            Record::Event(row) => self.event(row),
            Record::Forked(fork) => self.forked(fork),
            Record::Usage(row) => self.usage(row),
        }
    }

    /// Moves the ends of the journals with new events. Returns the deletions and the number of
    /// bytes added to journals.
    pub(crate) fn finish(self) -> Result<(Removed, u64), StoreError> {
        for row in self.journals.into_values() {
            state::put(self.conn, &Row::Journal(row))?;
        }
        Ok((self.removed, self.written))
    }

    fn run(&self, sql: &str, params: impl Params) -> Result<(), StoreError> {
        self.conn.prepare_cached(sql)?.execute(params)?;
        Ok(())
    }

    fn session_removed(&mut self, session: SessionKey) -> Result<(), StoreError> {
        self.journals.remove(&session);
        // The key is never used again, so no other session gets these lines.
        self.removed.any = true;
        let (bytes, is_empty) = remove_lines(self.conn, session, self.room)?;
        self.room = self.room.saturating_sub(bytes);
        self.removed.bytes += bytes;
        if !is_empty {
            self.removed.unfinished.push(session);
        }
        state::delete_session(self.conn, session)
    }

    /// Copies the newest `fork.most` bytes of another journal; one line stands for the older ones.
    /// The copy reads and writes at the same time, in two ranges of one table.
    fn forked(&mut self, fork: &Forked) -> Result<(), StoreError> {
        let conn = self.conn;
        if !state::has_session(conn, fork.from)? || self.journal(fork.session)?.head != 0 {
            return Ok(());
        }
        let (session, upto) = (fork.from, fork.upto);
        let (mut after, mut bytes, mut instead) = (0, 0, None);
        Lines { conn, unpacked: &mut None, session, after, upto }.visit(
            Order::Backward,
            |_| true,
            |line| {
                bytes += line.bytes.len() as u64;
                if bytes <= fork.most {
                    return Ok(ControlFlow::Continue(()));
                }
                (after, instead) = (line.seq, Some(fork.instead(line.seq, line.at)));
                Ok(ControlFlow::Break(()))
            },
        )?;
        if let Some(line) = instead {
            self.event(&line)?;
        }
        Lines { conn, unpacked: &mut None, session, after, upto }.visit(
            Order::Forward,
            |_| true,
            |line| {
                self.event(&fork.line(line.row(fork.from)))?;
                Ok(ControlFlow::Continue(()))
            },
        )
    }

    /// Returns the end of a session's journal, with the records so far.
    fn journal(&mut self, session: SessionKey) -> Result<&mut JournalRow, StoreError> {
        Ok(match self.journals.entry(session) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let row = state::journal(self.conn, session)?;
                place.insert(row.unwrap_or(JournalRow { session, ..JournalRow::default() }))
            }
        })
    }

    fn event(&mut self, row: &EventRow) -> Result<(), StoreError> {
        let key = event_key(row.session, row.seq)?;
        let journal = self.journal(row.session)?;
        journal.head = row.seq;
        if let EventKind::State(state_key) = row.kind {
            let (states, place) = (&mut journal.states, state_key as usize);
            states.resize(states.len().max(place + 1), 0);
            states[place] = row.seq;
        }
        self.insert_event.execute(params![
            key,
            row.form as u8,
            kind_code(row.kind),
            int(row.at.0),
            row.line.as_ref(),
            row.origin,
            row.entity.map(int)
        ])?;
        self.written += row.line.len() as u64;
        Ok(())
    }

    fn usage(&self, row: &UsageRow) -> Result<(), StoreError> {
        let UsageRow { at, day, agent, session, cwd, turn, tokens, cost } = row;
        let Tokens { total, input, output, thought, cached_read, cached_write } = *tokens;
        let [total, input, output] = [total, input, output].map(|count| count.map(int));
        let [thought, read, write] =
            [thought, cached_read, cached_write].map(|count| count.map(int));
        let currency = cost.as_ref().map(|cost| cost.currency.raw());
        let parts = cost.as_ref().map(|cost| int(cost.amount.parts()));
        self.run(
            "INSERT INTO usage (at, day, agent, session, cwd, turn, total, input, output, thought, \
             cached_read, cached_write, currency, parts, place) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, \
             max(ifnull((SELECT max(place) FROM usage), 0) + 1, ?1 << 10))",
            params![
                int(at.0),
                int(day.0),
                agent,
                session,
                cwd,
                turn.map(int),
                total,
                input,
                output,
                thought,
                read,
                write,
                currency,
                parts
            ],
        )
    }
}
