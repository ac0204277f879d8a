//! Rows of tables: one list of columns is both written and read.

use std::collections::{BTreeMap, BTreeSet};

use acp_wire::Id;
use acpd_api::RestoreLevel;
use acpd_core::Frozen;
use acpd_core::ids::{HostId, InteractionId, SessionKey, Time};
use acpd_core::record::{
    AgentRow, AskedRow, AuthRow, Canceller, Child, Desired, Dormant, HostRow, InteractionRow,
    PromptKeyRow, Purpose, Remembered, Replayable, ReplyRow, Sender, SessionRow, Used,
};
use bytes::Bytes;
use rusqlite::types::{Null, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, Row, RowIndex, params_from_iter};

use crate::code::{int, json_code, json_of, word_code, word_of};
use crate::error::StoreError;

type Value<'v> = Result<ToSqlOutput<'v>, StoreError>;

/// A type of columns.
pub(crate) trait Column {
    fn value(&self) -> Value<'_>;

    fn read(row: &Row<'_>, column: &str) -> Result<Self, StoreError>
    where
        Self: Sized;
}

macro_rules! columns {
    ($($type:ty: $value:expr, $read:expr;)*) => {$(
        impl Column for $type {
            fn value(&self) -> Value<'_> {
                let value: fn(&$type) -> Value<'_> = $value;
                value(self)
            }

            fn read(row: &Row<'_>, column: &str) -> Result<$type, StoreError> {
                let read: fn(&Row<'_>, &str) -> Result<$type, StoreError> = $read;
                read(row, column)
            }
        }
    )*};
}

/// Types whose columns have a text: its code, the way back, and the name in errors.
macro_rules! texts {
    ($code:ident, $of:ident: $($type:ty = $what:literal;)*) => {
        columns! {$(
            $type: |value| Ok($code(value)?.into()), |row, at| $of($what, &text(row, at)?);
        )*}
    };
}

columns! {
    bool: |value| Ok(value.to_sql()?), |row, at| Ok(row.get(at)?);
    i64: |value| Ok(value.to_sql()?), |row, at| Ok(row.get(at)?);
    u64: |value| Ok(int(*value).into()), |row, at| Ok(number(row, at)?);
    u32: |value| Ok(value.to_sql()?), |row, at| Ok(row.get(at)?);
    String: |value| Ok(value.to_sql()?), text;
    Bytes: |value| Ok(ToSqlOutput::Borrowed(ValueRef::Blob(value))), |row, at| bytes(row, at);
    HostId: |value| value.0.value(), |row, at| Column::read(row, at).map(HostId);
    InteractionId: |value| value.0.value(), |row, at| Column::read(row, at).map(InteractionId);
    SessionKey: |value| value.0.value(), |row, at| Column::read(row, at).map(SessionKey);
    Time: |value| value.0.value(), |row, at| Column::read(row, at).map(Time);
}

texts! { word_code, word_of:
    Canceller = "canceller";
    Desired = "desired state";
    Dormant = "session state";
    RestoreLevel = "restore level";
}

texts! { json_code, json_of:
    AuthRow = "login state";
    BTreeMap<String, Child> = "sessions of subagents";
    BTreeMap<String, String> = "session options";
    BTreeSet<String> = "open tool calls";
    Box<Frozen> = "question";
    Id = "request id";
    Purpose = "open request";
    Remembered = "remembered decision";
    Replayable = "prompts to replay";
    Used = "usage of a session";
    Vec<Sender> = "sender of a turn";
}

impl<T: Column> Column for Option<T> {
    fn value(&self) -> Value<'_> {
        self.as_ref().map_or(Ok(Null.into()), T::value)
    }

    fn read(row: &Row<'_>, column: &str) -> Result<Option<T>, StoreError> {
        match row.get_ref(column)? {
            ValueRef::Null => Ok(None),
            _ => T::read(row, column).map(Some),
        }
    }
}

fn text(row: &Row<'_>, column: &str) -> Result<String, StoreError> {
    Ok(row.get(column)?)
}

/// An unsigned number, stored with its bits.
pub(crate) fn number(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(|value| value as u64)
}

pub(crate) fn bytes(row: &Row<'_>, column: impl RowIndex) -> Result<Bytes, StoreError> {
    let blob = row.get_ref(column)?.as_blob().map_err(rusqlite::Error::from)?;
    Ok(Bytes::copy_from_slice(blob))
}

const ALWAYS: &str = "TRUE";
const IF_CLIENT: &str = "EXISTS (SELECT 1 FROM clients WHERE token = :token)";
const IF_HOST: &str = "EXISTS (SELECT 1 FROM hosts WHERE host = :host)";
const IF_SESSION: &str = "EXISTS (SELECT 1 FROM sessions WHERE session = :session)";

/// Name, condition of a write, columns of the key, other columns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table(pub(crate) &'static str, &'static str, &'static str, &'static str);

pub(crate) const AUTH: Table = Table("auth", ALWAYS, "agent", "what");
pub(crate) const CLIENTS: Table = Table("clients", ALWAYS, "token", "received");
pub(crate) const DECISIONS: Table = Table("decisions", ALWAYS, "id", "what");
pub(crate) const OUTBOX: Table = Table("outbox", IF_HOST, "host, chunk", "line");
pub(crate) const PARKED: Table = Table("parked", IF_HOST, "", "host, session, line");
pub(crate) const SECRETS: Table = Table("secrets", IF_SESSION, "session", "mcp_servers");
/// Turns whose line is also new.
pub(crate) const TURN_LINES: Table =
    Table("turns", ALWAYS, "session, ticket", "host, chunk, at, sender, cancelling, line");
pub(crate) const TURNS: Table =
    Table("turns", ALWAYS, "session, ticket", "host, chunk, at, sender, cancelling");
pub(crate) const USAGE: Table = Table(
    "usage",
    ALWAYS,
    "",
    "at, day, agent, session, cwd, turn, total, input, output, thought, cached_read, cached_write, \
     currency, parts",
);
pub(crate) const VALUES: Table = Table("session_values", IF_SESSION, "session, key", "json");

impl Table {
    /// Inserts a row. Of a row with this key, only these columns change.
    pub(crate) fn put(&self, conn: &Connection, values: &[&dyn Column]) -> Result<(), StoreError> {
        let Table(name, condition, key, others) = self;
        let columns =
            if key.is_empty() { (*others).to_owned() } else { format!("{key}, {others}") };
        let marks = columns.replace(", ", ", :");
        let update = if key.is_empty() {
            String::new()
        } else {
            let set = others.split(", ").map(|column| format!("{column} = excluded.{column}"));
            format!("ON CONFLICT ({key}) DO UPDATE SET {}", set.collect::<Vec<_>>().join(", "))
        };
        let sql =
            format!("INSERT INTO {name} ({columns}) SELECT :{marks} WHERE {condition} {update}");
        let values: Vec<_> = values.iter().map(|value| value.value()).collect::<Result<_, _>>()?;
        conn.prepare_cached(&sql)?.execute(params_from_iter(values))?;
        Ok(())
    }
}

/// A row with all columns of its list.
pub(crate) trait Stored: Sized {
    const TABLE: Table;

    fn values(&self) -> Vec<&dyn Column>;

    fn read(row: &Row<'_>) -> Result<Self, StoreError>;
}

/// `[column: field]` is the key. Other columns have the names of their fields.
macro_rules! rows {
    ($($row:ident, $table:literal, $condition:ident,
        [$column:ident: $key:ident $(, $column2:ident: $key2:ident)?],
        {$first:ident $(, $other:ident)*};)*) => {$(
        impl Stored for $row {
            const TABLE: Table = Table(
                $table,
                $condition,
                concat!(stringify!($column) $(, ", ", stringify!($column2))?),
                concat!(stringify!($first) $(, ", ", stringify!($other))*),
            );

            fn values(&self) -> Vec<&dyn Column> {
                vec![&self.$key $(, &self.$key2)?, &self.$first $(, &self.$other)*]
            }

            fn read(row: &Row<'_>) -> Result<$row, StoreError> {
                Ok($row {
                    $key: Column::read(row, stringify!($column))?,
                    $($key2: Column::read(row, stringify!($column2))?,)?
                    $first: Column::read(row, stringify!($first))?,
                    $($other: Column::read(row, stringify!($other))?,)*
                })
            }
        }
    )*};
}

rows! {
    AgentRow, "agents", ALWAYS, [name: name],
        {desired, fingerprint, initialize, resume_lies, load_lies, client_meta};
    AskedRow, "asked", IF_HOST, [id: id], {host, what};
    // Without `offset`, `inside` and `written`, which other records move.
    HostRow, "hosts", ALWAYS, [host: host], {agent, pid, start, session, ready, stopping};
    InteractionRow, "interactions", ALWAYS, [id: id], {session, host, line, at, frozen};
    PromptKeyRow, "prompt_keys", IF_SESSION, [session: session, key: key], {turn, outcome};
    ReplyRow, "replies", IF_CLIENT, [token: token, id: id], {session, line};
    // Without `head` and `last_ticket`, which other records move.
    SessionRow, "sessions", ALWAYS, [session: key], {
        agent, public_id, agent_id, name, cwd, params, host, rest, reason, restore, mode, options,
        open_tools, children, title, own_title, info, archived, removed, client_meta, prompts,
        heard, last_prompt, replayable, last_outcome, usage, created, updated
    };
}
