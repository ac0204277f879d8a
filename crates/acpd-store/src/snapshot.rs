//! Reads the state that all records so far add up to.

use std::collections::BTreeMap;

use acpd_core::ids::{HostId, InteractionId, SessionKey, Time};
use acpd_core::record::{
    AgentRow, AskedRow, AuthRow, ClientState, HostRow, HostState, InteractionRow, PromptKeyRow,
    Remembered, ReplyRow, Sender, SessionRow, SessionState, Snapshot, Spent, TurnRow, TurnStage,
};
use bytes::Bytes;
use rusqlite::{Connection, Row};

use crate::code::{json_of, unknown, word_of};
use crate::error::StoreError;

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
        agents: agents(&tx)?,
        auth: auth(&tx)?,
        hosts: hosts(&tx)?,
        sessions: sessions(&tx)?,
        turns: turns(&tx)?,
        prompt_keys: prompt_keys(&tx)?,
        interactions: interactions(&tx)?,
        asked: asked(&tx)?,
        clients: clients(&tx)?,
        remembered: decisions(&tx)?,
        spent: spent(&tx)?,
        last_session,
    };
    tx.commit()?;
    Ok(snapshot)
}

/// An unsigned number, stored with its bits.
pub(crate) fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(|value| value as u64)
}

fn optional_number(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<u64>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(|value| value as u64))
}

fn optional_session(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<SessionKey>> {
    Ok(row.get::<_, Option<u32>>(column)?.map(SessionKey))
}

pub(crate) fn bytes(row: &Row<'_>, column: usize) -> Result<Bytes, StoreError> {
    optional_bytes(row, column)?.ok_or_else(|| unknown("value in a line's place", "NULL"))
}

fn optional_bytes(row: &Row<'_>, column: usize) -> Result<Option<Bytes>, StoreError> {
    let value = row.get_ref(column)?;
    let blob = value.as_blob_or_null().map_err(|error| StoreError::Damaged(error.to_string()))?;
    Ok(blob.map(Bytes::copy_from_slice))
}

fn entries<K: Ord, V>(
    conn: &Connection,
    sql: &str,
    entry: impl Fn(&Row<'_>) -> Result<(K, V), StoreError>,
) -> Result<BTreeMap<K, V>, StoreError> {
    let mut statement = conn.prepare(sql)?;
    statement.query_and_then([], entry)?.collect()
}

fn agents(conn: &Connection) -> Result<BTreeMap<String, AgentRow>, StoreError> {
    let sql = "SELECT name, desired, fingerprint, initialize, resume_lies, load_lies, client_meta \
               FROM agents";
    entries(conn, sql, |row| {
        let name: String = row.get(0)?;
        let agent = AgentRow {
            name: name.clone(),
            desired: word_of("desired state", &row.get::<_, String>(1)?)?,
            fingerprint: row.get(2)?,
            initialize: optional_bytes(row, 3)?,
            resume_lies: row.get(4)?,
            load_lies: row.get(5)?,
            client_meta: row.get(6)?,
        };
        Ok((name, agent))
    })
}

fn auth(conn: &Connection) -> Result<BTreeMap<String, AuthRow>, StoreError> {
    entries(conn, "SELECT agent, what FROM auth", |row| {
        Ok((row.get(0)?, json_of("login state", &row.get::<_, String>(1)?)?))
    })
}

fn hosts(conn: &Connection) -> Result<BTreeMap<HostId, HostState>, StoreError> {
    let sql = "SELECT host, agent, pid, start, session, ready, stopping, offset, inside, written \
               FROM hosts";
    let mut hosts = entries(conn, sql, |row| {
        let host = HostId(number(row, 0)?);
        let state = HostState {
            row: HostRow {
                host,
                agent: row.get(1)?,
                pid: row.get(2)?,
                start: number(row, 3)?,
                session: optional_session(row, 4)?,
                ready: optional_number(row, 5)?.map(Time),
                stopping: row.get(6)?,
            },
            offset: number(row, 7)?,
            inside: row.get(8)?,
            parked: Vec::new(),
            outbox: BTreeMap::new(),
            written: number(row, 9)?,
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
    let sql = "SELECT session, agent, public_id, agent_id, name, cwd, params, rest, reason, \
               restore, mode, options, title, prompts, last_prompt, last_outcome, created, \
               updated, head, last_ticket, mcp_servers, open_tools, host, heard, children, \
               own_title, archived, client_meta, usage, removed, replayable, info \
               FROM sessions LEFT JOIN secrets USING (session)";
    entries(conn, sql, |row| {
        let key = SessionKey(row.get(0)?);
        let restore: Option<String> = row.get(9)?;
        let facts = SessionRow {
            key,
            agent: row.get(1)?,
            public_id: row.get(2)?,
            agent_id: row.get(3)?,
            name: row.get(4)?,
            cwd: row.get(5)?,
            params: bytes(row, 6)?,
            host: optional_number(row, 22)?.map(HostId),
            rest: word_of("session state", &row.get::<_, String>(7)?)?,
            reason: row.get(8)?,
            restore: restore.map(|word| word_of("restore level", &word)).transpose()?,
            mode: row.get(10)?,
            options: json_of("session options", &row.get::<_, String>(11)?)?,
            open_tools: json_of("open tool calls", &row.get::<_, String>(21)?)?,
            children: json_of("sessions of subagents", &row.get::<_, String>(24)?)?,
            title: row.get(12)?,
            own_title: row.get(25)?,
            info: row.get(31)?,
            archived: row.get(26)?,
            removed: optional_number(row, 29)?.map(Time),
            client_meta: row.get(27)?,
            prompts: number(row, 13)?,
            heard: row.get(23)?,
            last_prompt: number(row, 14)?,
            replayable: json_of("prompts to replay", &row.get::<_, String>(30)?)?,
            last_outcome: row.get(15)?,
            usage: json_of("usage of a session", &row.get::<_, String>(28)?)?,
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
    let sql = "SELECT session, ticket, host, chunk, at, sender, cancelling, line FROM turns";
    entries(conn, sql, |row| {
        let session = SessionKey(row.get(0)?);
        let ticket = number(row, 1)?;
        let sender: Option<String> = row.get(5)?;
        let cancelling: Option<String> = row.get(6)?;
        let turn = TurnRow {
            session,
            ticket,
            state: match optional_number(row, 2)? {
                None => TurnStage::Queued,
                Some(host) => TurnStage::Dispatched { host: HostId(host), chunk: number(row, 3)? },
            },
            at: Time(number(row, 4)?),
            senders: sender.as_deref().map(senders_of).transpose()?.unwrap_or_default(),
            cancelling: cancelling.map(|word| word_of("canceller", &word)).transpose()?,
            line: optional_bytes(row, 7)?,
        };
        Ok(((session, ticket), turn))
    })
}

/// Reads the clients that wait for a turn. Schema 1 had one client per turn.
fn senders_of(json: &str) -> Result<Vec<Sender>, StoreError> {
    let what = "sender of a turn";
    if json.starts_with('[') { json_of(what, json) } else { Ok(vec![json_of(what, json)?]) }
}

fn prompt_keys(
    conn: &Connection,
) -> Result<BTreeMap<(SessionKey, String), PromptKeyRow>, StoreError> {
    entries(conn, "SELECT session, key, turn, outcome FROM prompt_keys", |row| {
        let (session, key): (_, String) = (SessionKey(row.get(0)?), row.get(1)?);
        let (turn, outcome) = (number(row, 2)?, bytes(row, 3)?);
        Ok(((session, key.clone()), PromptKeyRow { session, key, turn, outcome }))
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

fn interactions(conn: &Connection) -> Result<BTreeMap<InteractionId, InteractionRow>, StoreError> {
    entries(conn, "SELECT id, session, host, line, at, frozen FROM interactions", |row| {
        let frozen: Option<String> = row.get(5)?;
        let id = InteractionId(number(row, 0)?);
        let interaction = InteractionRow {
            id,
            session: Some(SessionKey(row.get(1)?)).filter(|session| session.0 != 0),
            host: HostId(number(row, 2)?),
            line: bytes(row, 3)?,
            at: Time(number(row, 4)?),
            frozen: frozen.map(|text| json_of("question", &text)).transpose()?,
        };
        Ok((id, interaction))
    })
}

fn asked(conn: &Connection) -> Result<BTreeMap<u64, AskedRow>, StoreError> {
    entries(conn, "SELECT id, host, what FROM asked", |row| {
        let id = number(row, 0)?;
        let what = json_of("open request", &row.get::<_, String>(2)?)?;
        Ok((id, AskedRow { id, host: HostId(number(row, 1)?), what }))
    })
}

fn decisions(conn: &Connection) -> Result<BTreeMap<i64, Remembered>, StoreError> {
    entries(conn, "SELECT id, what FROM decisions", |row| {
        Ok((row.get(0)?, json_of("remembered decision", &row.get::<_, String>(1)?)?))
    })
}

fn clients(conn: &Connection) -> Result<BTreeMap<String, ClientState>, StoreError> {
    let mut clients = entries(conn, "SELECT token, received FROM clients", |row| {
        Ok((row.get(0)?, ClientState { received: number(row, 1)?, replies: BTreeMap::new() }))
    })?;
    let replies = entries(conn, "SELECT token, id, session, line FROM replies", |row| {
        let reply = ReplyRow {
            token: row.get(0)?,
            id: json_of("request id", &row.get::<_, String>(1)?)?,
            line: bytes(row, 3)?,
            session: optional_session(row, 2)?,
        };
        Ok(((reply.token.clone(), reply.id.clone()), reply))
    })?;
    for ((token, id), reply) in replies {
        if let Some(client) = clients.get_mut(&token) {
            client.replies.insert(id, reply);
        }
    }
    Ok(clients)
}
