//! The table `state`, which has one row for each [`Row`].

use acpd_core::ids::{HostId, SessionKey, Time};
use acpd_core::record::{JournalRow, Row, RowId, Snapshot, Spent};
use bytes::Bytes;
use rusqlite::types::{ToSqlOutput, Value};
use rusqlite::{Connection, params};

use crate::code::int;
use crate::error::StoreError;

/// Kinds of rows. The numbers are on disk. A snapshot is read in their order, owners first. Rows
/// that live for seconds are next to each other, so that a transaction changes few pages.
pub(crate) mod kind {
    pub(crate) const CLIENT: u8 = 1;
    pub(crate) const REPLY: u8 = 2;
    pub(crate) const HOST: u8 = 3;
    pub(crate) const OUTBOX: u8 = 4;
    pub(crate) const PARKED: u8 = 5;
    pub(crate) const ASKED: u8 = 6;
    pub(crate) const INTERACTION: u8 = 7;
    pub(crate) const TURN: u8 = 8;
    pub(crate) const PROMPT: u8 = 9;
    pub(crate) const SESSION: u8 = 10;
    pub(crate) const SECRET: u8 = 11;
    pub(crate) const VALUE: u8 = 12;
    pub(crate) const PROMPT_KEY: u8 = 13;
    pub(crate) const AGENT: u8 = 14;
    pub(crate) const AUTH: u8 = 15;
    pub(crate) const REMEMBERED: u8 = 16;
}

/// A number or a text.
type Part<'r> = ToSqlOutput<'r>;

/// The key of an owner's only row of a kind.
const ONE: Part<'_> = Part::Owned(Value::Integer(0));
/// The key of the [`JournalRow`] of a session, in one page with the session's row.
pub(crate) const JOURNAL: Part<'_> = Part::Owned(Value::Integer(1));

/// Returns the kind of a row, its owner, and its key there.
fn place(row: &Row) -> (u8, Part<'_>, Part<'_>) {
    match row {
        Row::Client { token, .. } => (kind::CLIENT, text(token), ONE),
        Row::Reply(row) => (kind::REPLY, text(&row.token), text(row.id.raw())),
        Row::Host(row) => (kind::HOST, number(row.host.0), ONE),
        Row::Outbox { host, chunk, .. } => (kind::OUTBOX, number(host.0), number(*chunk)),
        Row::Parked { host, place, .. } => (kind::PARKED, number(host.0), number(*place)),
        Row::Asked(row) => (kind::ASKED, number(row.id), ONE),
        Row::Interaction(row) => (kind::INTERACTION, number(row.id.0), ONE),
        Row::Turn(row) => (kind::TURN, number(row.session.0), number(row.ticket)),
        Row::Prompt { session, ticket, .. } => (kind::PROMPT, number(session.0), number(*ticket)),
        Row::Session(row) => (kind::SESSION, number(row.key.0), ONE),
        Row::Journal(row) => (kind::SESSION, number(row.session.0), JOURNAL),
        Row::Secret { session, .. } => (kind::SECRET, number(session.0), ONE),
        Row::Value { session, key, .. } => (kind::VALUE, number(session.0), text(key.as_str())),
        Row::PromptKey(row) => (kind::PROMPT_KEY, number(row.session.0), text(&row.key)),
        Row::Agent(row) => (kind::AGENT, text(&row.name), ONE),
        Row::Auth(row) => (kind::AUTH, text(&row.agent), ONE),
        Row::Remembered(row) => (kind::REMEMBERED, number(row.id as u64), ONE),
    }
}

fn number<'r>(value: impl Into<u64>) -> Part<'r> {
    int(value.into()).into()
}

fn text(value: &str) -> Part<'_> {
    value.into()
}

pub(crate) fn put(conn: &Connection, row: &Row) -> Result<(), StoreError> {
    let (kind, owner, key) = place(row);
    let value = serde_json::to_string(row).map_err(|error| StoreError::Other(error.to_string()))?;
    let line = row.line().map(Bytes::as_ref);
    conn.prepare_cached("INSERT OR REPLACE INTO state VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![kind, owner, key, value, line])?;
    Ok(())
}

pub(crate) fn delete(conn: &Connection, id: &RowId) -> Result<(), StoreError> {
    let (kind, owner, key) = match id {
        RowId::Reply(token, id) => (kind::REPLY, text(token), text(id.raw())),
        RowId::Outbox(host, chunk) => (kind::OUTBOX, number(host.0), number(*chunk)),
        RowId::Parked(host, place) => (kind::PARKED, number(host.0), number(*place)),
        RowId::Asked(id) => (kind::ASKED, number(*id), ONE),
        RowId::Interaction(id) => (kind::INTERACTION, number(id.0), ONE),
        RowId::Turn(session, ticket) => (kind::TURN, number(session.0), number(*ticket)),
        RowId::Remembered(id) => (kind::REMEMBERED, number(*id as u64), ONE),
    };
    let mut delete =
        conn.prepare_cached("DELETE FROM state WHERE kind = ?1 AND owner = ?2 AND key = ?3")?;
    delete.execute(params![kind, owner, key])?;
    if kind == kind::TURN {
        delete.execute(params![kind::PROMPT, owner, key])?;
    }
    Ok(())
}

pub(crate) fn delete_host(conn: &Connection, host: HostId) -> Result<(), StoreError> {
    delete_owned(conn, &[kind::HOST, kind::OUTBOX, kind::PARKED], &number(host.0))
}

pub(crate) fn delete_client(conn: &Connection, token: &str) -> Result<(), StoreError> {
    delete_owned(conn, &[kind::CLIENT, kind::REPLY], &text(token))
}

pub(crate) fn delete_session(conn: &Connection, session: SessionKey) -> Result<(), StoreError> {
    use kind::{PROMPT, PROMPT_KEY, SECRET, SESSION, TURN, VALUE};
    let kinds = [SESSION, SECRET, VALUE, TURN, PROMPT, PROMPT_KEY];
    delete_owned(conn, &kinds, &number(session.0))
}

fn delete_owned(conn: &Connection, kinds: &[u8], owner: &Part<'_>) -> Result<(), StoreError> {
    let mut delete = conn.prepare_cached("DELETE FROM state WHERE kind = ?1 AND owner = ?2")?;
    for kind in kinds {
        delete.execute(params![kind, owner])?;
    }
    Ok(())
}

/// Returns where a session's journal ends; `None` if the session has no journal.
pub(crate) fn journal(
    conn: &Connection,
    session: SessionKey,
) -> Result<Option<JournalRow>, StoreError> {
    let mut found = conn.prepare_cached(
        "SELECT kind, value, line FROM state WHERE kind = ?1 AND owner = ?2 AND key = ?3",
    )?;
    let mut rows = found.query(params![kind::SESSION, session.0, JOURNAL])?;
    match rows.next()?.map(read).transpose()? {
        Some(Row::Journal(row)) => Ok(Some(row)),
        _ => Ok(None),
    }
}

pub(crate) fn has_session(conn: &Connection, session: SessionKey) -> Result<bool, StoreError> {
    let mut found =
        conn.prepare_cached("SELECT 1 FROM state WHERE kind = ?1 AND owner = ?2 AND key = 0")?;
    Ok(found.exists(params![kind::SESSION, session.0])?)
}

/// Reads a row of the columns `kind, value, line`. The error does not show what it has, which may
/// be secret.
pub(crate) fn read(found: &rusqlite::Row<'_>) -> Result<Row, StoreError> {
    let value = found.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?;
    let row = serde_json::from_str(value).or_else(|_| {
        let kind: u8 = found.get(0)?;
        Err(StoreError::Damaged(format!("unknown form of a row of kind {kind}")))
    });
    Ok(match found.get_ref(2)?.as_blob_or_null().map_err(rusqlite::Error::from)? {
        Some(line) => Row::with_line(row?, Bytes::copy_from_slice(line)),
        None => row?,
    })
}

/// Reads the state that all records so far add up to, in one transaction.
pub(crate) fn snapshot(conn: &mut Connection) -> Result<Snapshot, StoreError> {
    let tx = conn.transaction()?;
    let mut snapshot =
        tx.query_row("SELECT generation, boot, last_session FROM meta", [], |row| {
            Ok(Snapshot {
                generation: row.get(0)?,
                boot: row.get::<_, i64>(1)? as u64,
                last_session: row.get(2)?,
                ..Snapshot::default()
            })
        })?;
    // Two ranges: the rows between them have many pages.
    for others in ["<", ">"] {
        let sql =
            format!("SELECT kind, value, line FROM state WHERE kind {others} ?1 ORDER BY kind");
        let mut some = tx.prepare(&sql)?;
        let mut rows = some.query([kind::VALUE])?;
        while let Some(row) = rows.next()? {
            snapshot.put(read(row)?);
        }
    }
    snapshot.spent = spent(&tx)?;
    tx.commit()?;
    Ok(snapshot)
}

fn spent(conn: &Connection) -> Result<Spent, StoreError> {
    // `total` instead of `sum`: no figure of an agent overflows it. Usage of the last day is found
    // within the last 48 hours, also where a day has 25.
    let mut found = conn.prepare(
        "WITH recent AS (SELECT * FROM usage \
         WHERE place >= (SELECT max(place) FROM usage) - (48 * 3600000 << 10)) \
         SELECT day, currency, total(parts) FROM recent \
         WHERE day = (SELECT max(day) FROM recent) GROUP BY currency",
    )?;
    let mut spent = Spent::default();
    let mut rows = found.query([])?;
    while let Some(row) = rows.next()? {
        spent.day = Time(row.get::<_, i64>(0)? as u64);
        if let Some(currency) = row.get(1)? {
            spent.parts.insert(currency, row.get::<_, f64>(2)? as u64);
        }
    }
    Ok(spent)
}
