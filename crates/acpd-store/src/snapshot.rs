//! Reads the state that all records so far add up to.

use std::collections::BTreeMap;

use acpd_core::ids::{HostId, SessionKey, Time};
use acpd_core::record::{
    AgentRow, AskedRow, ClientState, HostRow, HostState, InteractionRow, PromptKeyRow, ReplyRow,
    Sender, SessionRow, SessionState, Snapshot, Spent, TurnRow, TurnStage,
};
use rusqlite::{Connection, Row};

use crate::error::StoreError;
use crate::table::{Column, Stored, bytes, number};

const QUESTIONS: &str = "SELECT id, nullif(session, 0) AS session, host, line, at, frozen \
                         FROM interactions";

/// Reads everything but the journals, in one read transaction.
pub(crate) fn read(conn: &mut Connection) -> Result<Snapshot, StoreError> {
    let tx = conn.transaction()?;
    let (generation, boot, last_session) =
        tx.query_row("SELECT generation, boot, last_session FROM meta", [], |row| {
            Ok((row.get(0)?, number(row, 1)?, row.get(2)?))
        })?;
    let snapshot = Snapshot {
        generation,
        boot,
        agents: rows(&tx, |row: &AgentRow| row.name.clone())?,
        auth: entries(&tx, "SELECT * FROM auth", |row| {
            Ok((row.get("agent")?, Column::read(row, "what")?))
        })?,
        hosts: hosts(&tx)?,
        sessions: sessions(&tx)?,
        turns: turns(&tx)?,
        prompt_keys: rows(&tx, |row: &PromptKeyRow| (row.session, row.key.clone()))?,
        interactions: entries(&tx, QUESTIONS, |row| {
            let row = InteractionRow::read(row)?;
            Ok((row.id, row))
        })?,
        asked: rows(&tx, |row: &AskedRow| row.id)?,
        clients: clients(&tx)?,
        remembered: entries(&tx, "SELECT * FROM decisions", |row| {
            Ok((row.get("id")?, Column::read(row, "what")?))
        })?,
        spent: spent(&tx)?,
        last_session,
    };
    tx.commit()?;
    Ok(snapshot)
}

fn entries<K: Ord, V>(
    conn: &Connection,
    sql: &str,
    entry: impl Fn(&Row<'_>) -> Result<(K, V), StoreError>,
) -> Result<BTreeMap<K, V>, StoreError> {
    let mut statement = conn.prepare(sql)?;
    statement.query_and_then([], entry)?.collect()
}

/// The rows of a table that hold all of their facts.
fn rows<K: Ord, R: Stored>(
    conn: &Connection,
    key: impl Fn(&R) -> K,
) -> Result<BTreeMap<K, R>, StoreError> {
    entries(conn, &format!("SELECT * FROM {}", R::TABLE.0), |row| {
        let row = R::read(row)?;
        Ok((key(&row), row))
    })
}

fn hosts(conn: &Connection) -> Result<BTreeMap<HostId, HostState>, StoreError> {
    let mut hosts = entries(conn, "SELECT * FROM hosts", |row| {
        let state = HostState {
            row: HostRow::read(row)?,
            offset: Column::read(row, "offset")?,
            inside: Column::read(row, "inside")?,
            written: Column::read(row, "written")?,
            ..HostState::default()
        };
        Ok((state.row.host, state))
    })?;
    let lines = entries(conn, "SELECT host, chunk, line FROM outbox", |row| {
        Ok(((HostId(number(row, 0)?), number(row, 1)?), bytes(row, 2)?))
    })?;
    for ((host, chunk), line) in lines {
        if let Some(state) = hosts.get_mut(&host) {
            state.outbox.insert(chunk, line);
        }
    }
    let parked = entries(conn, "SELECT place, host, session, line FROM parked", |row| {
        Ok((number(row, 0)?, (HostId(number(row, 1)?), row.get(2)?, bytes(row, 3)?)))
    })?;
    for (host, session, line) in parked.into_values() {
        if let Some(state) = hosts.get_mut(&host) {
            state.parked.push((session, line));
        }
    }
    Ok(hosts)
}

fn sessions(conn: &Connection) -> Result<BTreeMap<SessionKey, SessionState>, StoreError> {
    entries(conn, "SELECT * FROM sessions LEFT JOIN secrets USING (session)", |row| {
        let state = SessionState {
            row: SessionRow::read(row)?,
            head: Column::read(row, "head")?,
            last_ticket: Column::read(row, "last_ticket")?,
            mcp_servers: Column::read(row, "mcp_servers")?,
        };
        Ok((state.row.key, state))
    })
}

fn turns(conn: &Connection) -> Result<BTreeMap<(SessionKey, u64), TurnRow>, StoreError> {
    // Schema 1 had one client per turn.
    let senders = "iif(sender LIKE '[%', sender, '[' || sender || ']')";
    entries(conn, &format!("SELECT *, {senders} AS senders FROM turns"), |row| {
        let senders: Option<Vec<Sender>> = Column::read(row, "senders")?;
        let turn = TurnRow {
            session: Column::read(row, "session")?,
            ticket: Column::read(row, "ticket")?,
            state: match Column::read(row, "host")? {
                None => TurnStage::Queued,
                Some(host) => TurnStage::Dispatched { host, chunk: Column::read(row, "chunk")? },
            },
            at: Column::read(row, "at")?,
            senders: senders.unwrap_or_default(),
            cancelling: Column::read(row, "cancelling")?,
            line: Column::read(row, "line")?,
        };
        Ok(((turn.session, turn.ticket), turn))
    })
}

fn spent(conn: &Connection) -> Result<Spent, StoreError> {
    let day =
        conn.query_row("SELECT coalesce(max(day), 0) FROM usage", [], |row| number(row, 0))?;
    // `total` instead of `sum`: no figure of an agent overflows it.
    let sql = "SELECT currency, total(parts) FROM usage \
               WHERE day = (SELECT max(day) FROM usage) AND parts IS NOT NULL \
               GROUP BY currency";
    let parts = entries(conn, sql, |row| Ok((row.get(0)?, row.get::<_, f64>(1)? as u64)))?;
    Ok(Spent { day: Time(day), parts })
}

fn clients(conn: &Connection) -> Result<BTreeMap<String, ClientState>, StoreError> {
    let mut clients = entries(conn, "SELECT token, received FROM clients", |row| {
        Ok((row.get(0)?, ClientState { received: number(row, 1)?, replies: BTreeMap::new() }))
    })?;
    let replies = rows(conn, |reply: &ReplyRow| (reply.token.clone(), reply.id.clone()))?;
    for ((token, id), reply) in replies {
        if let Some(client) = clients.get_mut(&token) {
            client.replies.insert(id, reply);
        }
    }
    Ok(clients)
}
