//! Records in SQL, with the meaning of [`acpd_core::record::Snapshot::apply`]. The writer thread
//! runs them, one `Apply` per transaction.

use std::collections::HashMap;

use acpd_api::Tokens;
use acpd_core::ids::{HostId, Seq, SessionKey, Time};
use acpd_core::record::{
    AgentRow, EventKind, EventRow, Forked, HostRow, InteractionRow, Record, ReplyRow, SessionRow,
    TurnRow, TurnStage, UsageRow,
};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, params};

use crate::chores::{PIECE, remove_lines};
use crate::code::{STATE_KEYS, event_key, int, json_code, kind_code, seq_of, word_code};
use crate::error::StoreError;
use crate::reader::event;
use crate::snapshot::number;

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
            Record::Agent(row) => self.agent(row),
            Record::Auth(row) => self.run(
                "INSERT OR REPLACE INTO auth (agent, what) VALUES (?1, ?2)",
                params![row.agent, json_code(row)?],
            ),
            Record::Host(row) => self.host(row),
            Record::HostGone { host } => self.host_gone(*host),
            Record::HostOffset { host, offset, inside } => self.run(
                "UPDATE hosts SET offset = ?2, inside = ?3 WHERE host = ?1",
                params![int(host.0), int(*offset), inside],
            ),
            Record::Parked { host, session, line } => self.run(
                "INSERT INTO parked (host, session, line) \
                 SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM hosts WHERE host = ?1)",
                params![int(host.0), session, line.as_ref()],
            ),
            Record::Unparked { host, session } => self.run(
                "DELETE FROM parked WHERE host = ?1 AND (?2 IS NULL OR session = ?2)",
                params![int(host.0), session],
            ),
            Record::Asked(row) => self.run(
                "INSERT OR REPLACE INTO asked (id, host, what) \
                 SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM hosts WHERE host = ?2)",
                params![int(row.id), int(row.host.0), json_code(&row.what)?],
            ),
            Record::Answered { id } => self.run("DELETE FROM asked WHERE id = ?1", [int(*id)]),
            Record::Outbox { host, chunk, line } => self.run(
                "INSERT OR REPLACE INTO outbox (host, chunk, line) \
                 SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM hosts WHERE host = ?1)",
                params![int(host.0), int(*chunk), line.as_ref()],
            ),
            Record::Written { host, chunk } => {
                let place = [int(host.0), int(*chunk)];
                self.run("DELETE FROM outbox WHERE host = ?1 AND chunk <= ?2", place)?;
                self.run("UPDATE hosts SET written = ?2 WHERE host = ?1", place)
            }
            Record::Session(row) => self.session(row),
            Record::Secret { session, mcp_servers } => self.run(
                "INSERT OR REPLACE INTO secrets (session, mcp_servers) \
                 SELECT ?1, ?2 WHERE EXISTS (SELECT 1 FROM sessions WHERE session = ?1)",
                params![session.0, mcp_servers.as_ref()],
            ),
            Record::Value { session, key, json } => self.run(
                "INSERT OR REPLACE INTO session_values (session, key, json) \
                 SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM sessions WHERE session = ?1)",
                params![session.0, key.as_str(), json.as_ref()],
            ),
            Record::SessionRemoved { session } => self.session_removed(*session),
            Record::Event(row) => self.event(row),
            Record::Forked(fork) => self.forked(fork),
            Record::Turn(row) => self.turn(row),
            Record::PromptKey(row) => self.run(
                "INSERT OR REPLACE INTO prompt_keys (session, key, turn, outcome) \
                 SELECT ?1, ?2, ?3, ?4 WHERE EXISTS (SELECT 1 FROM sessions WHERE session = ?1)",
                params![row.session.0, row.key, int(row.turn), row.outcome.as_ref()],
            ),
            Record::Usage(row) => self.usage(row),
            Record::Interaction(row) => self.interaction(row),
            Record::InteractionGone { id } => {
                self.run("DELETE FROM interactions WHERE id = ?1", [int(id.0)])
            }
            Record::Client { token, received } => self.run(
                "INSERT INTO clients (token, received) VALUES (?1, ?2) \
                 ON CONFLICT (token) DO UPDATE SET received = ?2",
                params![token, int(*received)],
            ),
            Record::ClientGone { token } => {
                self.run("DELETE FROM clients WHERE token = ?1", [token])?;
                self.run("DELETE FROM replies WHERE token = ?1", [token])
            }
            Record::Remembered(row) => self.run(
                "INSERT OR REPLACE INTO decisions (id, what) VALUES (?1, ?2)",
                params![row.id, json_code(row)?],
            ),
            Record::Unremembered { id } => self.run("DELETE FROM decisions WHERE id = ?1", [id]),
            Record::Reply(row) => self.reply(row),
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

    fn agent(&self, row: &AgentRow) -> Result<(), StoreError> {
        self.run(
            "INSERT OR REPLACE INTO agents \
             (name, desired, fingerprint, initialize, resume_lies, load_lies, client_meta) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                row.name,
                word_code(&row.desired)?,
                row.fingerprint,
                row.initialize.as_deref(),
                row.resume_lies,
                row.load_lies,
                row.client_meta,
            ],
        )
    }

    fn host(&self, row: &HostRow) -> Result<(), StoreError> {
        // Named columns instead of OR REPLACE keep the `offset` and `written` of a known host.
        self.run(
            "INSERT INTO hosts (host, agent, pid, start, session, ready, stopping, offset, written) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, 0) \
             ON CONFLICT (host) DO UPDATE SET agent = ?2, pid = ?3, start = ?4, session = ?5, \
             ready = ?6, stopping = ?7",
            params![
                int(row.host.0),
                row.agent,
                row.pid,
                int(row.start),
                row.session.map(|session| session.0),
                row.ready.map(|ready| int(ready.0)),
                row.stopping,
            ],
        )
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
        // Named columns instead of OR REPLACE keep `head` and `last_ticket`.
        self.run(
            "INSERT INTO sessions (session, agent, public_id, agent_id, name, cwd, params, rest, \
             reason, restore, mode, options, title, prompts, last_prompt, last_outcome, created, \
             updated, open_tools, host, heard, children, own_title, archived, client_meta, usage, \
             removed, replayable, info) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, \
             ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29) \
             ON CONFLICT (session) DO UPDATE SET agent = ?2, public_id = ?3, agent_id = ?4, \
             name = ?5, cwd = ?6, params = ?7, rest = ?8, reason = ?9, restore = ?10, mode = ?11, \
             options = ?12, title = ?13, prompts = ?14, last_prompt = ?15, last_outcome = ?16, \
             created = ?17, updated = ?18, open_tools = ?19, host = ?20, \
             heard = ?21, children = ?22, own_title = ?23, archived = ?24, client_meta = ?25, \
             usage = ?26, removed = ?27, replayable = ?28, info = ?29",
            params![
                row.key.0,
                row.agent,
                row.public_id,
                row.agent_id,
                row.name,
                row.cwd,
                row.params.as_ref(),
                word_code(&row.rest)?,
                row.reason,
                row.restore.as_ref().map(word_code).transpose()?,
                row.mode,
                json_code(&row.options)?,
                row.title,
                int(row.prompts),
                int(row.last_prompt),
                row.last_outcome,
                int(row.created.0),
                int(row.updated.0),
                json_code(&row.open_tools)?,
                row.host.map(|host| int(host.0)),
                row.heard,
                json_code(&row.children)?,
                row.own_title,
                row.archived,
                row.client_meta,
                json_code(&row.usage)?,
                row.removed.map(|at| int(at.0)),
                json_code(&row.replayable)?,
                row.info,
            ],
        )?;
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
            Some(Some(_)) | None => {
                let mut known =
                    self.conn.prepare_cached("SELECT head FROM sessions WHERE session = ?1")?;
                Ok(known.query_row([session.0], |row| number(row, 0)).optional()?)
            }
        }
    }

    fn event(&mut self, row: &EventRow) -> Result<(), StoreError> {
        let key = event_key(row.session, row.seq)?;
        if !self.tails.contains_key(&row.session) {
            let exists = self
                .conn
                .prepare_cached("SELECT 1 FROM sessions WHERE session = ?1")?
                .exists([row.session.0])?;
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
            TurnStage::Dispatched { host, chunk } => (Some(int(host.0)), Some(int(chunk))),
        };
        let senders = Some(&row.senders).filter(|senders| !senders.is_empty());
        self.run(
            "INSERT INTO turns (session, ticket, host, chunk, at, sender, cancelling, line) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) \
             ON CONFLICT (session, ticket) DO UPDATE SET host = ?3, chunk = ?4, at = ?5, \
             sender = ?6, cancelling = ?7, line = coalesce(?8, line)",
            params![
                row.session.0,
                int(row.ticket),
                host,
                chunk,
                int(row.at.0),
                senders.map(json_code).transpose()?,
                row.cancelling.as_ref().map(word_code).transpose()?,
                row.line.as_deref(),
            ],
        )
    }

    fn usage(&self, row: &UsageRow) -> Result<(), StoreError> {
        let Tokens { total, input, output, thought, cached_read, cached_write } = row.tokens;
        let count = |count: Option<u64>| count.map(int);
        self.run(
            "INSERT INTO usage (at, day, agent, session, cwd, turn, total, input, output, thought, \
             cached_read, cached_write, currency, parts) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
            params![
                int(row.at.0),
                int(row.day.0),
                row.agent,
                row.session,
                row.cwd,
                count(row.turn),
                count(total),
                count(input),
                count(output),
                count(thought),
                count(cached_read),
                count(cached_write),
                row.cost.as_ref().map(|cost| cost.currency.raw()),
                row.cost.as_ref().map(|cost| int(cost.amount.parts())),
            ],
        )
    }

    fn interaction(&self, row: &InteractionRow) -> Result<(), StoreError> {
        self.run(
            "INSERT OR REPLACE INTO interactions (id, session, host, line, at, frozen) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                int(row.id.0),
                // Row numbers begin at 1.
                row.session.map_or(0, |session| session.0),
                int(row.host.0),
                row.line.as_ref(),
                int(row.at.0),
                row.frozen.as_ref().map(json_code).transpose()?
            ],
        )
    }

    fn reply(&self, row: &ReplyRow) -> Result<(), StoreError> {
        self.run(
            "INSERT OR REPLACE INTO replies (token, id, session, line) \
             SELECT ?1, ?2, ?3, ?4 WHERE EXISTS (SELECT 1 FROM clients WHERE token = ?1)",
            params![
                row.token,
                row.id.raw(),
                row.session.map(|session| session.0),
                row.line.as_ref()
            ],
        )
    }
}
