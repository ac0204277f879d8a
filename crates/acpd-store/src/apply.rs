//! Records in SQL, with the meaning of [`acpd_core::record::Snapshot::apply`]. The writer thread
//! runs them, one `Apply` per transaction.

use std::collections::HashMap;

use acpd_api::Tokens;
use acpd_core::ids::{HostId, Seq, SessionKey, Time};
use acpd_core::record::{
    EventKind, EventRow, Forked, InteractionRow, Record, SessionRow, TurnRow, TurnStage, UsageRow,
};
use rusqlite::{CachedStatement, Connection, Params, params};

use crate::chores::{PIECE, remove_lines};
use crate::code::{STATE_KEYS, event_key, int, kind_code, seq_of};
use crate::error::StoreError;
use crate::reader::{event, head};
use crate::table::{
    AUTH, CLIENTS, Column, DECISIONS, OUTBOX, PARKED, SECRETS, Stored, TURN_LINES, TURNS, Table,
    USAGE, VALUES, number,
};

pub(crate) struct Apply<'c> {
    conn: &'c Connection,
    /// Outside of the statement cache: nearly all records are events.
    insert_event: CachedStatement<'c>,
    /// Sessions with new events; `None` if the session does not exist.
    tails: HashMap<SessionKey, Option<Tail>>,
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

/// New head and last states of a session after this transaction; 0 = unchanged.
#[derive(Debug, Default)]
struct Tail {
    head: Seq,
    /// In the order of [`STATE_KEYS`].
    states: [Seq; STATE_KEYS.len()],
}

impl<'c> Apply<'c> {
    pub(crate) fn new(conn: &'c Connection) -> Result<Apply<'c>, StoreError> {
        let insert_event = conn.prepare_cached(
            "INSERT INTO events (key, pv, kind, at, line, origin) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        let (tails, removed) = (HashMap::new(), Removed::default());
        Ok(Apply { conn, insert_event, tails, removed, written: 0, room: PIECE })
    }

    pub(crate) fn record(&mut self, record: &Record) -> Result<(), StoreError> {
        match record {
            Record::Boot { boot } => self.run("UPDATE meta SET boot = ?1", [int(*boot)]),
            Record::Agent(row) => self.put_row(row),
            Record::Auth(row) => self.put(&AUTH, &[&row.agent, row]),
            Record::Host(row) => self.put_row(row),
            Record::HostGone { host } => self.host_gone(*host),
            Record::HostOffset { host, offset, inside } => self.run(
                "UPDATE hosts SET offset = ?2, inside = ?3 WHERE host = ?1",
                params![int(host.0), int(*offset), inside],
            ),
            Record::Parked { host, session, line } => self.put(&PARKED, &[host, session, line]),
            Record::Unparked { host, session } => self.run(
                "DELETE FROM parked WHERE host = ?1 AND (?2 IS NULL OR session = ?2)",
                params![int(host.0), session],
            ),
            Record::Asked(row) => self.put_row(row),
            Record::Answered { id } => self.run("DELETE FROM asked WHERE id = ?1", [int(*id)]),
            Record::Outbox { host, chunk, line } => self.put(&OUTBOX, &[host, chunk, line]),
            Record::Written { host, chunk } => {
                let place = [int(host.0), int(*chunk)];
                self.run("DELETE FROM outbox WHERE host = ?1 AND chunk <= ?2", place)?;
                self.run("UPDATE hosts SET written = ?2 WHERE host = ?1", place)
            }
            Record::Session(row) => self.session(row),
            Record::Secret { session, mcp_servers } => self.put(&SECRETS, &[session, mcp_servers]),
            Record::Value { session, key, json } => {
                self.put(&VALUES, &[session, &key.as_str().to_owned(), json])
            }
            Record::SessionRemoved { session } => self.session_removed(*session),
            Record::Event(row) => self.event(row),
            Record::Forked(fork) => self.forked(fork),
            Record::Turn(row) => self.turn(row),
            Record::PromptKey(row) => self.put_row(row),
            Record::Usage(row) => self.usage(row),
            Record::Interaction(row) => {
                let InteractionRow { id, session, host, line, at, frozen } = row;
                // Row numbers begin at 1.
                let session = session.unwrap_or_default();
                self.put(&InteractionRow::TABLE, &[id, &session, host, line, at, frozen])
            }
            Record::InteractionGone { id } => {
                self.run("DELETE FROM interactions WHERE id = ?1", [int(id.0)])
            }
            Record::Client { token, received } => self.put(&CLIENTS, &[token, received]),
            Record::ClientGone { token } => {
                self.run("DELETE FROM clients WHERE token = ?1", [token])?;
                self.run("DELETE FROM replies WHERE token = ?1", [token])
            }
            Record::Remembered(row) => self.put(&DECISIONS, &[&row.id, row]),
            Record::Unremembered { id } => self.run("DELETE FROM decisions WHERE id = ?1", [id]),
            Record::Reply(row) => self.put_row(row),
            Record::ReplyGone { token, id } => {
                self.run("DELETE FROM replies WHERE token = ?1 AND id = ?2", [token, id.raw()])
            }
        }
    }

    /// Moves the heads and last states of the sessions with new events. Returns the deletions and
    /// the number of bytes added to journals.
    pub(crate) fn finish(self) -> Result<(Removed, u64), StoreError> {
        for (session, tail) in &self.tails {
            let Some(tail) = tail else { continue };
            if tail.head != 0 {
                self.run(
                    "UPDATE sessions SET head = ?2 WHERE session = ?1",
                    params![session.0, int(tail.head)],
                )?;
            }
            for (state_key, seq) in STATE_KEYS.into_iter().zip(tail.states) {
                if seq != 0 {
                    self.run(
                        "INSERT OR REPLACE INTO session_state (session, slot, seq) \
                         VALUES (?1, ?2, ?3)",
                        params![session.0, state_key as i64, int(seq)],
                    )?;
                }
            }
        }
        Ok((self.removed, self.written))
    }

    fn run(&self, sql: &str, params: impl Params) -> Result<(), StoreError> {
        self.conn.prepare_cached(sql)?.execute(params)?;
        Ok(())
    }

    fn put(&self, table: &Table, values: &[&dyn Column]) -> Result<(), StoreError> {
        table.put(self.conn, values)
    }

    fn put_row<R: Stored>(&self, row: &R) -> Result<(), StoreError> {
        self.put(&R::TABLE, &row.values())
    }

    fn host_gone(&self, host: HostId) -> Result<(), StoreError> {
        for sql in [
            "DELETE FROM hosts WHERE host = ?1",
            "DELETE FROM outbox WHERE host = ?1",
            "DELETE FROM parked WHERE host = ?1",
            "DELETE FROM asked WHERE host = ?1",
            "DELETE FROM interactions WHERE host = ?1",
        ] {
            self.run(sql, [int(host.0)])?;
        }
        Ok(())
    }

    fn session(&mut self, row: &SessionRow) -> Result<(), StoreError> {
        if let Some(None) = self.tails.get(&row.key) {
            self.tails.remove(&row.key);
        }
        self.put_row(row)?;
        self.run("UPDATE meta SET last_session = ?1 WHERE last_session < ?1", [row.key.0])
    }

    fn session_removed(&mut self, session: SessionKey) -> Result<(), StoreError> {
        self.tails.insert(session, None);
        // The key is never used again, so no other session gets these lines.
        self.removed.any = true;
        let (bytes, is_empty) = remove_lines(self.conn, session, self.room)?;
        self.room = self.room.saturating_sub(bytes);
        self.removed.bytes += bytes;
        if !is_empty {
            self.removed.unfinished.push(session);
        }
        for sql in [
            "DELETE FROM sessions WHERE session = ?1",
            "DELETE FROM secrets WHERE session = ?1",
            "DELETE FROM session_values WHERE session = ?1",
            "DELETE FROM session_state WHERE session = ?1",
            "DELETE FROM turns WHERE session = ?1",
            "DELETE FROM prompt_keys WHERE session = ?1",
            "DELETE FROM interactions WHERE session = ?1",
        ] {
            self.run(sql, [session.0])?;
        }
        Ok(())
    }

    /// Copies the newest `fork.most` bytes of another journal; one line stands for the older ones.
    /// The copy reads and writes at the same time, in two ranges of one table.
    fn forked(&mut self, fork: &Forked) -> Result<(), StoreError> {
        let begins = self.head(fork.session)? == Some(0);
        if !begins || self.head(fork.from)?.is_none() {
            return Ok(());
        }
        self.tails.insert(fork.session, Some(Tail { head: fork.upto, ..Tail::default() }));
        let conn = self.conn;
        let upto = event_key(fork.from, fork.upto)?;
        let mut from = event_key(fork.from, 0)?;
        let mut bytes = 0;
        let mut back = conn.prepare_cached(
            "SELECT key, length(line), at FROM events WHERE key BETWEEN ?1 AND ?2 \
             ORDER BY key DESC",
        )?;
        let mut lines = back.query([from, upto])?;
        while let Some(line) = lines.next()? {
            bytes += number(line, 1)?;
            if bytes > fork.most {
                let key: i64 = line.get(0)?;
                self.event(&fork.instead(seq_of(key), Time(number(line, 2)?)))?;
                from = key + 1;
                break;
            }
        }
        let mut copied = conn.prepare_cached(
            "SELECT key, pv, kind, at, line, origin FROM events WHERE key BETWEEN ?1 AND ?2 \
             ORDER BY key",
        )?;
        let mut rows = copied.query([from, upto])?;
        while let Some(row) = rows.next()? {
            self.event(&fork.line(event(fork.from, row)?))?;
        }
        Ok(())
    }

    /// Last position of a session's journal with the records so far; `None` if there is no session.
    fn head(&self, session: SessionKey) -> Result<Option<Seq>, StoreError> {
        match self.tails.get(&session) {
            Some(None) => Ok(None),
            Some(Some(tail)) if tail.head != 0 => Ok(Some(tail.head)),
            Some(Some(_)) | None => head(self.conn, session),
        }
    }

    fn event(&mut self, row: &EventRow) -> Result<(), StoreError> {
        let key = event_key(row.session, row.seq)?;
        if !self.tails.contains_key(&row.session) {
            let exists = head(self.conn, row.session)?.is_some();
            self.tails.insert(row.session, exists.then(Tail::default));
        }
        let Some(Some(tail)) = self.tails.get_mut(&row.session) else { return Ok(()) };
        tail.head = row.seq;
        if let EventKind::State(state_key) = row.kind {
            tail.states[state_key as usize] = row.seq;
        }
        self.insert_event.execute(params![
            key,
            row.pv,
            kind_code(row.kind),
            int(row.at.0),
            row.line.as_ref(),
            row.origin
        ])?;
        self.written += row.line.len() as u64;
        Ok(())
    }

    fn turn(&self, row: &TurnRow) -> Result<(), StoreError> {
        let place = params![row.session.0, int(row.ticket)];
        let sql = "UPDATE sessions SET last_ticket = max(last_ticket, ?2) WHERE session = ?1";
        if self.conn.prepare_cached(sql)?.execute(place)? == 0 {
            return Ok(());
        }
        let (host, chunk) = match row.state {
            TurnStage::Ended => {
                return self.run("DELETE FROM turns WHERE session = ?1 AND ticket = ?2", place);
            }
            TurnStage::Queued => (None, None),
            TurnStage::Dispatched { host, chunk } => (Some(host), Some(chunk)),
        };
        let TurnRow { session, ticket, at, senders, cancelling, .. } = row;
        let senders = (!senders.is_empty()).then(|| senders.clone());
        let columns: [&dyn Column; 7] = [session, ticket, &host, &chunk, at, &senders, cancelling];
        match &row.line {
            Some(line) => self.put(&TURN_LINES, &[&columns[..], &[line]].concat()),
            None => self.put(&TURNS, &columns),
        }
    }

    fn usage(&self, row: &UsageRow) -> Result<(), StoreError> {
        let UsageRow { at, day, agent, session, cwd, turn, tokens, cost } = row;
        let Tokens { total, input, output, thought, cached_read: read, cached_write: write } =
            tokens;
        let currency = cost.as_ref().map(|cost| cost.currency.raw().to_owned());
        let parts = cost.as_ref().map(|cost| cost.amount.parts());
        let columns: [&dyn Column; 14] = [
            at, day, agent, session, cwd, turn, total, input, output, thought, read, write,
            &currency, &parts,
        ];
        self.put(&USAGE, &columns)
    }
}
