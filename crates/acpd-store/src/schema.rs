//! The tables and their migrations.
//!
//! `PRAGMA user_version` is the number of the schema. A released schema never changes. Between two
//! releases there is one new schema, which each change extends. `tests/fixtures/vN.sql` makes a
//! database of schema N, or what it adds to the one before, with rows of each kind.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use crate::error::OpenError;

/// `application_id` of a journal: "acpd" in ASCII. Schemas that were never released have none.
const APPLICATION: u32 = 0x6163_7064;
const VERSION: u32 = 3;

/// Schema 3.
///
/// - `meta`: one row. `generation` names this journal: a random id for each new file.
/// - `state`: rows of [`acpd_core::record::Row`]; `value` is JSON, `line` bytes of a peer. Rows of
///   kinds `OUTBOX` and `ASKED` may hold secrets, and are deleted with the write and the answer;
///   those of kind `SECRET` are deleted with the session.
/// - `events`: the journals. `key` is `session << 36 | seq`, so each journal is one range of the
///   table. `kind` stands before `line`: filtering by it must not touch a long line's pages.
///   `entity` is the message or call that a line is about.
/// - `packs`: older lines of the journals, see [`crate::pack`]. `key` and `at` are those of the last
///   line in `data`; `bytes` is the length of all these lines.
/// - `usage`: a row for each ended turn, and for each cost reported at another time. It outlives
///   its session. `place` grows, and is `at << 10` or more. `day` is when the day began; `parts`
///   are billionths of a unit. NULL means not reported.
///
/// Numbers that do not fit a signed integer keep their bits.
const TABLES: &str = "
PRAGMA application_id = 1633906788;

CREATE TABLE meta (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    generation TEXT NOT NULL,
    boot INTEGER NOT NULL,
    last_session INTEGER NOT NULL
) STRICT;
INSERT INTO meta VALUES (1, lower(hex(randomblob(16))), 0, 0);

CREATE TABLE events (
    key INTEGER PRIMARY KEY,
    pv INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    at INTEGER NOT NULL,
    line BLOB NOT NULL,
    origin TEXT
) STRICT;

CREATE TABLE usage (
    place INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    day INTEGER NOT NULL,
    agent TEXT NOT NULL,
    session TEXT NOT NULL,
    cwd TEXT NOT NULL,
    turn INTEGER,
    total INTEGER,
    input INTEGER,
    output INTEGER,
    thought INTEGER,
    cached_read INTEGER,
    cached_write INTEGER,
    currency TEXT,
    parts INTEGER
) STRICT;
";

/// Tables and the column that schema 3 adds.
const ADDED: &str = "
CREATE TABLE packs (
    key INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT;

CREATE TABLE state (
    kind INTEGER NOT NULL,
    owner ANY NOT NULL,
    key ANY NOT NULL,
    value TEXT NOT NULL,
    line BLOB,
    PRIMARY KEY (kind, owner, key)
) STRICT, WITHOUT ROWID;

ALTER TABLE events ADD COLUMN entity INTEGER;
";

/// Schema 1 was released with acpd 0.2. Schema 2 was not.
const FROM_1: &str = r#"
CREATE TABLE prompt_keys (
    session INTEGER NOT NULL,
    key TEXT NOT NULL,
    turn INTEGER NOT NULL,
    outcome BLOB NOT NULL,
    PRIMARY KEY (session, key)
) STRICT, WITHOUT ROWID;

ALTER TABLE sessions ADD COLUMN replayable TEXT NOT NULL
    DEFAULT '{"prompts":0,"last":0,"answered":false}';
ALTER TABLE sessions ADD COLUMN info TEXT;
"#;

/// Each table of schema 2 but `meta`, `events` and `usage` becomes rows of `state`. The kinds are
/// those of [`crate::state::kind`].
const FROM_2: &str = r#"
INSERT INTO state SELECT 1, token, 0,
    json_object('client', json_object('token', token, 'received', received)), NULL FROM clients;

INSERT INTO state SELECT 2, token, id, json_object('reply', json_object(
    'token', token, 'id', json(id), 'session', session)), line FROM replies;

INSERT INTO state SELECT 3, host, 0, json_object('host', json_object(
    'host', host, 'agent', agent, 'pid', pid, 'start', start, 'session', session,
    'ready', ready, 'stopping', json(iif(stopping, 'true', 'false')), 'offset', offset,
    'inside', json(iif(inside, 'true', 'false')), 'written', written)), NULL FROM hosts;

INSERT INTO state SELECT 4, host, chunk, json_object('outbox', json_object(
    'host', host, 'chunk', chunk)), line FROM outbox;

INSERT INTO state SELECT 5, host, place, json_object('parked', json_object(
    'host', host, 'place', place, 'session', session)), line FROM parked;

INSERT INTO state SELECT 6, id, 0, json_object('asked', json_object(
    'id', id, 'host', host, 'what', json(what))), NULL FROM asked;

INSERT INTO state SELECT 7, id, 0, json_object('interaction', json_object(
    'id', id, 'session', nullif(session, 0), 'host', host, 'at', at, 'frozen', json(frozen))),
    line FROM interactions;

-- Schema 1 had one sender per turn.
INSERT INTO state SELECT 8, session, ticket, json_object('turn', json_object(
    'session', session, 'ticket', ticket, 'at', at, 'cancelling', cancelling,
    'state', json(iif(host IS NULL, '"queued"',
        json_object('dispatched', json_object('host', host, 'chunk', chunk)))),
    'senders', json(iif(sender IS NULL, '[]',
        iif(sender LIKE '[%', sender, '[' || sender || ']'))))), NULL FROM turns;

INSERT INTO state SELECT 9, session, ticket, json_object('prompt', json_object(
    'session', session, 'ticket', ticket)), line FROM turns WHERE line IS NOT NULL;

INSERT INTO state SELECT 10, session, 0, json_object('session', json_object(
    'key', session, 'agent', agent, 'public_id', public_id, 'agent_id', agent_id, 'name', name,
    'cwd', cwd, 'host', host, 'rest', rest, 'reason', reason, 'restore', restore, 'mode', mode,
    'options', json(options), 'open_tools', json(open_tools), 'children', json(children),
    'title', title, 'own_title', own_title, 'info', info,
    'archived', json(iif(archived, 'true', 'false')), 'removed', removed,
    'client_meta', client_meta, 'last_ticket', last_ticket, 'prompts', prompts,
    'heard', json(iif(heard, 'true', 'false')), 'last_prompt', json(format('%u', last_prompt)),
    'replayable', json(replayable), 'last_outcome', last_outcome, 'usage', json(usage),
    'created', created, 'updated', updated)), params FROM sessions;

INSERT INTO state SELECT 10, session, 1, json_object('journal', json_object(
    'session', session, 'head', head, 'states', json_array(
        max(iif(slot = 0, seq, 0)), max(iif(slot = 1, seq, 0)), max(iif(slot = 2, seq, 0)),
        max(iif(slot = 3, seq, 0)), max(iif(slot = 4, seq, 0)), max(iif(slot = 5, seq, 0))))), NULL
    FROM sessions LEFT JOIN session_state USING (session) WHERE head > 0 GROUP BY session;

INSERT INTO state SELECT 11, session, 0,
    json_object('secret', json_object('session', session)), mcp_servers FROM secrets;

INSERT INTO state SELECT 12, session, key,
    json_object('value', json_object('session', session, 'key', key)), json FROM session_values;

INSERT INTO state SELECT 13, session, key, json_object('prompt_key', json_object(
    'session', session, 'key', key, 'turn', turn)), outcome FROM prompt_keys;

INSERT INTO state SELECT 14, name, 0, json_object('agent', json_object(
    'name', name, 'desired', desired, 'fingerprint', fingerprint, 'client_meta', client_meta,
    'resume_lies', json(iif(resume_lies, 'true', 'false')),
    'load_lies', json(iif(load_lies, 'true', 'false')))), initialize FROM agents;

INSERT INTO state SELECT 15, agent, 0, json_object('auth', json(what)), NULL FROM auth;

INSERT INTO state SELECT 16, id, 0, json_object('remembered', json(what)), NULL FROM decisions;

DROP INDEX usage_at;
DROP INDEX usage_day;
UPDATE usage SET place = (at << 10) + (place & 1023);

DROP TABLE agents;
DROP TABLE asked;
DROP TABLE auth;
DROP TABLE clients;
DROP TABLE decisions;
DROP TABLE hosts;
DROP TABLE interactions;
DROP TABLE outbox;
DROP TABLE parked;
DROP TABLE prompt_keys;
DROP TABLE replies;
DROP TABLE secrets;
DROP TABLE session_state;
DROP TABLE session_values;
DROP TABLE sessions;
DROP TABLE turns;
"#;

/// Brings the schema up to date, with all missing migrations or none; refuses one of a newer acpd.
pub(crate) fn migrate(conn: &mut Connection, path: &Path) -> Result<(), OpenError> {
    let steps: &[&str] = match check(conn, path)? {
        0 => &[TABLES, ADDED],
        1 => &[FROM_1, ADDED, FROM_2],
        2 => &[ADDED, FROM_2],
        _ => return Ok(()),
    };
    let mut run = || -> rusqlite::Result<()> {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        steps.iter().try_for_each(|step| tx.execute_batch(step))?;
        tx.pragma_update(None, "user_version", VERSION)?;
        tx.commit()
    };
    run().map_err(|source| OpenError::Migrate { path: path.into(), source })
}

/// Returns the number of the schema; 0 = no tables. Refuses one of a newer acpd, or one that was
/// never released.
pub(crate) fn check(conn: &Connection, path: &Path) -> Result<u32, OpenError> {
    let number = |pragma| {
        conn.pragma_query_value(None, pragma, |row| row.get::<_, u32>(0))
            .map_err(|error| OpenError::Store { path: path.into(), source: error.into() })
    };
    let found = number("user_version")?;
    if found > 0 && number("application_id")? != APPLICATION {
        return Err(OpenError::Unreleased { path: path.into() });
    }
    if found > VERSION {
        return Err(OpenError::Newer { path: path.into(), found, known: VERSION });
    }
    Ok(found)
}

/// Returns a query for the number of sessions and their last change, which a backup by an earlier
/// acpd answers, too.
pub(crate) fn sessions(conn: &Connection) -> rusqlite::Result<&'static str> {
    let found: u32 = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(if found < 3 {
        "SELECT count(*), max(updated) FROM sessions"
    } else {
        "SELECT count(*), max(value ->> '$.session.updated') FROM state WHERE kind = 10 AND key = 0"
    })
}
