//! The tables and their migrations.
//!
//! `PRAGMA user_version` counts the applied migrations. A released migration never changes. Between
//! two releases there is one migration, which each change extends. `tests/fixtures/vN.sql` has the
//! statements of migration N and rows for its tables, and changes with it.

use std::path::Path;

use rusqlite::Connection;
use rusqlite_migration::{M, Migrations};

use crate::error::OpenError;

/// `application_id` of a journal: "acpd" in ASCII. Schemas that were never released have none.
const APPLICATION: u32 = 0x6163_7064;

/// Schema 1.
///
/// - `meta`: one row. `generation` names this journal: a random id for each new file.
/// - `agents`, `sessions`: `client_meta` is JSON; so are `sessions.options`, `open_tools`,
///   `children` and `usage`.
/// - `auth`: whether agents are logged in; `what` is JSON.
/// - `hosts.inside`: `offset` lies inside a line that is being dropped.
/// - `parked`: lines for sessions that are not known yet, in the order of `place`, which SQLite
///   counts up.
/// - `asked`: open requests to agents; `what` is JSON. It may hold secrets, as `outbox` may, and is
///   deleted with the answer.
/// - `events`: the journals. `key` is `session << 36 | seq`, so each journal is one range of the
///   table. `kind` stands before `line`: filtering by it must not touch a long line's pages.
/// - `sessions.head`: last `seq` of the journal, moved once per transaction.
/// - `sessions.removed`: when the user deleted a session that can still be restored.
/// - `session_state`: for each state key (`slot` is its code) the `seq` of its last event.
/// - `turns`: those that have not ended; `sessions.last_ticket` remembers the others. `sender` is
///   JSON: an object, or since schema 2 an array of them.
/// - `secrets`: `mcpServers` of clients, until the session is deleted.
/// - `interactions`: open questions; `session` is 0 for one about a request, `frozen` is JSON.
/// - `decisions`: remembered decisions; `what` is JSON.
/// - `clients`, `replies`: clients that may reconnect, and the answers kept for them. `replies.id`
///   is the raw JSON text of the client's id.
/// - `usage`: a row for each ended turn, and for each cost reported at another time. It outlives
///   its session. `day` is when the day began; `parts` are billionths of a unit. NULL means not
///   reported.
///
/// Only `HostGone` and `Unparked` look for a host in `asked` and `parked`. Both are rare and the
/// tables are small, so an index would cost more than it saves.
///
/// Numbers that do not fit a signed integer keep their bits (`last_prompt`).
const V1: &str = "
PRAGMA application_id = 1633906788;

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
    resume_lies INTEGER NOT NULL,
    load_lies INTEGER NOT NULL,
    client_meta TEXT
) STRICT;

CREATE TABLE auth (
    agent TEXT PRIMARY KEY,
    what TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE hosts (
    host INTEGER PRIMARY KEY,
    agent TEXT NOT NULL,
    pid INTEGER NOT NULL,
    start INTEGER NOT NULL,
    session INTEGER,
    ready INTEGER,
    stopping INTEGER NOT NULL,
    offset INTEGER NOT NULL DEFAULT 0,
    inside INTEGER NOT NULL DEFAULT 0,
    written INTEGER NOT NULL DEFAULT 0
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
    host INTEGER,
    name TEXT,
    cwd TEXT NOT NULL,
    params BLOB NOT NULL,
    client_meta TEXT,
    rest TEXT NOT NULL,
    reason TEXT,
    restore TEXT,
    archived INTEGER NOT NULL,
    mode TEXT,
    options TEXT NOT NULL,
    open_tools TEXT NOT NULL,
    children TEXT NOT NULL,
    title TEXT,
    own_title TEXT,
    prompts INTEGER NOT NULL,
    heard INTEGER NOT NULL,
    last_prompt INTEGER NOT NULL,
    last_outcome TEXT,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    usage TEXT NOT NULL,
    removed INTEGER
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
    line BLOB NOT NULL,
    origin TEXT
) STRICT;

CREATE TABLE turns (
    session INTEGER NOT NULL,
    ticket INTEGER NOT NULL,
    host INTEGER,
    chunk INTEGER,
    at INTEGER NOT NULL,
    sender TEXT,
    cancelling TEXT,
    line BLOB,
    PRIMARY KEY (session, ticket)
) STRICT;

CREATE TABLE interactions (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    host INTEGER NOT NULL,
    line BLOB NOT NULL,
    at INTEGER NOT NULL,
    frozen TEXT
) STRICT;

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
CREATE INDEX usage_at ON usage (at);
CREATE INDEX usage_day ON usage (day);
";

/// Schema 2. Not released yet.
///
/// - `prompt_keys`: outcomes of prompts with an idempotency key, until the session is deleted. The
///   key of a prompt that has not ended is in `turns.line`. `outcome` is a JSON object with the
///   `result` or the `error` of the answer.
/// - `sessions.replayable` (JSON): the prompts that a replay has to show.
/// - `sessions.info` (JSON): members of `session_info_update` that are in force, without the title.
const V2: &str = r#"
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

const MIGRATIONS: &[M<'static>] = &[M::up(V1), M::up(V2)];

/// Brings the schema up to date, with all missing migrations or none; refuses one of a newer acpd.
pub(crate) fn migrate(conn: &mut Connection, path: &Path) -> Result<(), OpenError> {
    check(conn, path)?;
    let failed = |source| OpenError::Migrate { path: path.into(), source };
    Migrations::from_slice(MIGRATIONS).to_latest(conn).map_err(failed)
}

/// Refuses a schema of a newer acpd, or one that was never released.
pub(crate) fn check(conn: &Connection, path: &Path) -> Result<(), OpenError> {
    let number = |pragma| {
        conn.pragma_query_value(None, pragma, |row| row.get::<_, u32>(0))
            .map_err(|error| OpenError::Store { path: path.into(), source: error.into() })
    };
    let (found, known) = (number("user_version")?, MIGRATIONS.len() as u32);
    if found > 0 && number("application_id")? != APPLICATION {
        return Err(OpenError::Unreleased { path: path.into() });
    }
    if found > known {
        return Err(OpenError::Newer { path: path.into(), found, known });
    }
    Ok(())
}
