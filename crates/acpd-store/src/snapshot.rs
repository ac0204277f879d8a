//! Reading back what the records so far add up to.

use std::collections::BTreeMap;

use acpd_core::ids::{HostId, InteractionId, SessionKey, Time};
use acpd_core::record::{
    AgentRow, HostRow, HostState, InteractionRow, SessionRow, SessionState, Snapshot, TurnRest,
    TurnRow,
};
use bytes::Bytes;
use rusqlite::{Connection, Row};

use crate::code::{desired_of, rest_of, restore_of, unknown};
use crate::error::StoreError;

/// Reads all but the journals, in one read transaction.
pub(crate) fn read(conn: &mut Connection) -> Result<Snapshot, StoreError> {
    let tx = conn.transaction()?;
    let (generation, boot, last_session) =
        tx.query_row("SELECT generation, boot, last_session FROM meta", [], |row| {
            Ok((row.get(0)?, number(row, 1)?, row.get(2)?))
        })?;
    let snapshot = Snapshot {
        generation,
        boot,
        agents: agents(&tx)?,
        hosts: hosts(&tx)?,
        sessions: sessions(&tx)?,
        turns: turns(&tx)?,
        interactions: interactions(&tx)?,
        last_session,
    };
    tx.commit()?;
    Ok(snapshot)
}

/// An unsigned number, stored with its bits.
pub(crate) fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(|value| value as u64)
}

/// A blob, copied once.
pub(crate) fn bytes(row: &Row<'_>, column: usize) -> Result<Bytes, StoreError> {
    optional_bytes(row, column)?.ok_or_else(|| unknown("value in a line's place", "NULL"))
}

fn optional_bytes(row: &Row<'_>, column: usize) -> Result<Option<Bytes>, StoreError> {
    let value = row.get_ref(column)?;
    let blob = value.as_blob_or_null().map_err(|error| StoreError::Damaged(error.to_string()))?;
    Ok(blob.map(Bytes::copy_from_slice))
}

/// Runs a query without parameters and turns each row into an entry.
fn entries<K: Ord, V>(
    conn: &Connection,
    sql: &str,
    entry: impl Fn(&Row<'_>) -> Result<(K, V), StoreError>,
) -> Result<BTreeMap<K, V>, StoreError> {
    let mut statement = conn.prepare(sql)?;
    statement.query_and_then([], entry)?.collect()
}

fn agents(conn: &Connection) -> Result<BTreeMap<String, AgentRow>, StoreError> {
    let sql = "SELECT name, desired, fingerprint, initialize, resume_lies FROM agents";
    entries(conn, sql, |row| {
        let name: String = row.get(0)?;
        let agent = AgentRow {
            name: name.clone(),
            desired: desired_of(&row.get::<_, String>(1)?)?,
            fingerprint: row.get(2)?,
            initialize: optional_bytes(row, 3)?,
            resume_lies: row.get(4)?,
        };
        Ok((name, agent))
    })
}

fn hosts(conn: &Connection) -> Result<BTreeMap<HostId, HostState>, StoreError> {
    let sql = "SELECT host, agent, pid, start, offset, written FROM hosts";
    let mut hosts = entries(conn, sql, |row| {
        let host = HostId(number(row, 0)?);
        let state = HostState {
            row: HostRow { host, agent: row.get(1)?, pid: row.get(2)?, start: number(row, 3)? },
            offset: number(row, 4)?,
            outbox: BTreeMap::new(),
            written: number(row, 5)?,
        };
        Ok((host, state))
    })?;
    let lines = entries(conn, "SELECT host, chunk, line FROM outbox", |row| {
        Ok(((HostId(number(row, 0)?), number(row, 1)?), bytes(row, 2)?))
    })?;
    for ((host, chunk), line) in lines {
        if let Some(state) = hosts.get_mut(&host) {
            state.outbox.insert(chunk, line);
        }
    }
    Ok(hosts)
}

fn sessions(conn: &Connection) -> Result<BTreeMap<SessionKey, SessionState>, StoreError> {
    let sql = "SELECT session, agent, public_id, agent_id, name, cwd, params, rest, reason, \
               restore, mode, options, title, prompts, last_prompt, last_outcome, created, \
               updated, head, last_ticket, mcp_servers, open_tools \
               FROM sessions LEFT JOIN secrets USING (session)";
    entries(conn, sql, |row| {
        let key = SessionKey(row.get(0)?);
        let restore: Option<String> = row.get(9)?;
        let options: String = row.get(11)?;
        let open_tools: String = row.get(21)?;
        let facts = SessionRow {
            key,
            agent: row.get(1)?,
            public_id: row.get(2)?,
            agent_id: row.get(3)?,
            name: row.get(4)?,
            cwd: row.get(5)?,
            params: bytes(row, 6)?,
            rest: rest_of(&row.get::<_, String>(7)?)?,
            reason: row.get(8)?,
            restore: restore.as_deref().map(restore_of).transpose()?,
            mode: row.get(10)?,
            options: serde_json::from_str(&options)
                .map_err(|_| unknown("form of session options", &options))?,
            open_tools: serde_json::from_str(&open_tools)
                .map_err(|_| unknown("form of open tool calls", &open_tools))?,
            title: row.get(12)?,
            prompts: number(row, 13)?,
            last_prompt: number(row, 14)?,
            last_outcome: row.get(15)?,
            created: Time(number(row, 16)?),
            updated: Time(number(row, 17)?),
        };
        let state = SessionState {
            row: facts,
            head: number(row, 18)?,
            last_ticket: number(row, 19)?,
            mcp_servers: optional_bytes(row, 20)?,
        };
        Ok((key, state))
    })
}

fn turns(conn: &Connection) -> Result<BTreeMap<(SessionKey, u64), TurnRow>, StoreError> {
    entries(conn, "SELECT session, ticket, host, chunk, at, line FROM turns", |row| {
        let session = SessionKey(row.get(0)?);
        let ticket = number(row, 1)?;
        let state = match row.get::<_, Option<i64>>(2)? {
            None => TurnRest::Queued,
            Some(host) => {
                TurnRest::Dispatched { host: HostId(host as u64), chunk: number(row, 3)? }
            }
        };
        let at = Time(number(row, 4)?);
        let line = optional_bytes(row, 5)?;
        Ok(((session, ticket), TurnRow { session, ticket, state, at, line }))
    })
}

fn interactions(conn: &Connection) -> Result<BTreeMap<InteractionId, InteractionRow>, StoreError> {
    entries(conn, "SELECT id, session, host, line, at FROM interactions", |row| {
        let id = InteractionId(number(row, 0)?);
        let interaction = InteractionRow {
            id,
            session: SessionKey(row.get(1)?),
            host: HostId(number(row, 2)?),
            line: bytes(row, 3)?,
            at: Time(number(row, 4)?),
        };
        Ok((id, interaction))
    })
}
