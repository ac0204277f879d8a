//! The tables, and how they became what they are.
//!
//! `PRAGMA user_version` counts the migrations that were applied. A released migration is never
//! edited: a change is a new one at the end, with a fixture of the schema before it in `tests/`.

use std::path::Path;

use rusqlite::Connection;
use rusqlite_migration::{M, Migrations};

use crate::error::{OpenError, StoreError};

/// Schema 1.
///
/// - `meta`: one row. `generation` names this journal: a random id of its own for each new file.
/// - `events`: the journals. `key` is `session << 36 | seq`, so each journal is one range of the
///   table. `kind` stands before `line`: filtering by it must not touch a long line's pages.
/// - `sessions.head`: last `seq` of the journal, moved once per transaction.
/// - `session_state`: for each slot (a state key's number) the `seq` of its last event.
/// - `turns`: those that have not ended; `sessions.last_ticket` remembers the others.
/// - `secrets`: `mcpServers` of clients, for as long as there is the session.
///
/// Numbers that do not fit a signed integer keep their bits (`last_prompt`).
const V1: &str = "
CREATE TABLE meta (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    generation TEXT NOT NULL,
    boot INTEGER NOT NULL,
    last_session INTEGER NOT NULL
) STRICT;
INSERT INTO meta VALUES (1, lower(hex(randomblob(16))), 0, 0);

CREATE TABLE agents (
    name TEXT PRIMARY KEY,
    desired TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    initialize BLOB,
    resume_lies INTEGER NOT NULL
) STRICT;

CREATE TABLE hosts (
    host INTEGER PRIMARY KEY,
    agent TEXT NOT NULL,
    pid INTEGER NOT NULL,
    start INTEGER NOT NULL,
    offset INTEGER NOT NULL,
    written INTEGER NOT NULL
) STRICT;

CREATE TABLE outbox (
    host INTEGER NOT NULL,
    chunk INTEGER NOT NULL,
    line BLOB NOT NULL,
    PRIMARY KEY (host, chunk)
) STRICT;

CREATE TABLE sessions (
    session INTEGER PRIMARY KEY,
    head INTEGER NOT NULL DEFAULT 0,
    last_ticket INTEGER NOT NULL DEFAULT 0,
    agent TEXT NOT NULL,
    public_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    name TEXT,
    cwd TEXT NOT NULL,
    params BLOB NOT NULL,
    rest TEXT NOT NULL,
    reason TEXT,
    restore TEXT,
    mode TEXT,
    options TEXT NOT NULL,
    open_tools TEXT NOT NULL,
    title TEXT,
    prompts INTEGER NOT NULL,
    last_prompt INTEGER NOT NULL,
    last_outcome TEXT,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL
) STRICT;

CREATE TABLE secrets (
    session INTEGER PRIMARY KEY,
    mcp_servers BLOB NOT NULL
) STRICT;

CREATE TABLE session_values (
    session INTEGER NOT NULL,
    key TEXT NOT NULL,
    json BLOB NOT NULL,
    PRIMARY KEY (session, key)
) STRICT;

CREATE TABLE session_state (
    session INTEGER NOT NULL,
    slot INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (session, slot)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    key INTEGER PRIMARY KEY,
    pv INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    at INTEGER NOT NULL,
    line BLOB NOT NULL
) STRICT;

CREATE TABLE turns (
    session INTEGER NOT NULL,
    ticket INTEGER NOT NULL,
    host INTEGER,
    chunk INTEGER,
    at INTEGER NOT NULL,
    line BLOB,
    PRIMARY KEY (session, ticket)
) STRICT;

CREATE TABLE interactions (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    host INTEGER NOT NULL,
    line BLOB NOT NULL,
    at INTEGER NOT NULL
) STRICT;
";

/// Schema 2: what a daemon that takes over a running process has to know of it.
///
/// - `hosts.inside`: `offset` lies inside a line that is being dropped.
/// - `parked`: lines for sessions that are not known yet, in the order of `place`: SQLite gives a new
///   row one more than the highest there is.
/// - `asked`: open requests to agents; `what` is JSON. It may hold secrets, as `outbox` may, and is
///   gone with the answer.
/// - `decisions`: what a person decided for good; `what` is JSON.
/// - `interactions.session` is 0 for a question about a request.
/// - `clients`, `replies`: who may come back, and the answers kept for them. `replies.id` is the raw
///   JSON text of the client's id; `turns.sender` is JSON.
///
/// Only `HostGone` and `Unparked` look for a host in `asked` and `parked`. Both are rare and the
/// tables are small, so an index would cost each request more than it ever gives back.
const V2: &str = "
ALTER TABLE hosts ADD COLUMN session INTEGER;
ALTER TABLE hosts ADD COLUMN ready INTEGER;
ALTER TABLE hosts ADD COLUMN stopping INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hosts ADD COLUMN inside INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN host INTEGER;
ALTER TABLE sessions ADD COLUMN heard INTEGER NOT NULL DEFAULT 1;
ALTER TABLE turns ADD COLUMN sender TEXT;
ALTER TABLE turns ADD COLUMN cancelling TEXT;
ALTER TABLE events ADD COLUMN origin TEXT;

CREATE TABLE parked (
    place INTEGER PRIMARY KEY,
    host INTEGER NOT NULL,
    session TEXT NOT NULL,
    line BLOB NOT NULL
) STRICT;

CREATE TABLE asked (
    id INTEGER PRIMARY KEY,
    host INTEGER NOT NULL,
    what TEXT NOT NULL
) STRICT;

CREATE TABLE decisions (
    id INTEGER PRIMARY KEY,
    what TEXT NOT NULL
) STRICT;

CREATE TABLE clients (
    token TEXT PRIMARY KEY,
    received INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE replies (
    token TEXT NOT NULL,
    id TEXT NOT NULL,
    session INTEGER,
    line BLOB NOT NULL,
    PRIMARY KEY (token, id)
) STRICT;
";

/// Schema 3: whether agents are logged in; `what` is JSON.
const V3: &str = "
CREATE TABLE auth (
    agent TEXT PRIMARY KEY,
    what TEXT NOT NULL
) STRICT, WITHOUT ROWID;
";

/// Schema 4: sessions of subagents; `children` is JSON. They go with the process, so no session of an
/// older database has one.
const V4: &str = "
ALTER TABLE sessions ADD COLUMN children TEXT NOT NULL DEFAULT '{}';
";

/// Schema 5: whether `session/load` is only offered.
const V5: &str = "
ALTER TABLE agents ADD COLUMN load_lies INTEGER NOT NULL DEFAULT 0;
";

/// Schema 6: titles that people gave, the archive, what agents hear of clients, and what questions are about;
/// `client_meta` and `frozen` are JSON.
const V6: &str = "
ALTER TABLE sessions ADD COLUMN own_title TEXT;
ALTER TABLE sessions ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN client_meta TEXT;
ALTER TABLE agents ADD COLUMN client_meta TEXT;
ALTER TABLE interactions ADD COLUMN frozen TEXT;
";

const MIGRATIONS: &[M<'static>] =
    &[M::up(V1), M::up(V2), M::up(V3), M::up(V4), M::up(V5), M::up(V6)];

/// Brings the schema up to date; refuses one that a newer acpd wrote.
pub(crate) fn migrate(conn: &mut Connection, path: &Path) -> Result<(), OpenError> {
    check(conn, path)?;
    Migrations::from_slice(MIGRATIONS)
        .to_latest(conn)
        .map_err(|source| OpenError::Migrate { path: path.into(), source })
}

/// Refuses a schema that a newer acpd wrote.
pub(crate) fn check(conn: &Connection, path: &Path) -> Result<(), OpenError> {
    let found = conn
        .pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0))
        .map_err(|error| OpenError::Store { path: path.into(), source: StoreError::from(error) })?;
    let known = MIGRATIONS.len() as u32;
    if found > known {
        return Err(OpenError::Newer { path: path.into(), found, known });
    }
    Ok(())
}
