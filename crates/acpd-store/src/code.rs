//! Lines, enums and numbers in columns. Codes are part of the schema: never reuse one.

use acp_wire::StateKey;
use acpd_core::ids::{Seq, SessionKey, Time};
use acpd_core::record::{EventKind, EventRow, LineForm};
use bytes::Bytes;
use rusqlite::RowIndex;

use crate::error::StoreError;

/// Bits of an event key for the position; the session is above them.
pub(crate) const SEQ_BITS: u32 = 36;
/// Bits left for the session in a positive 64-bit integer.
const SESSION_BITS: u32 = 63 - SEQ_BITS;
pub(crate) const MAX_SEQ: Seq = (1 << SEQ_BITS) - 1;

/// Returns `session << 36 | seq`: a journal is one range of the table's tree and needs no index.
pub(crate) fn event_key(session: SessionKey, seq: Seq) -> Result<i64, StoreError> {
    if session.0 >> SESSION_BITS != 0 || seq > MAX_SEQ {
        return Err(StoreError::Range { session: session.0, seq });
    }
    Ok(i64::from(session.0) << SEQ_BITS | int(seq))
}

pub(crate) fn seq_of(key: i64) -> Seq {
    key as u64 & MAX_SEQ
}

pub(crate) fn session_of(key: i64) -> SessionKey {
    SessionKey((key >> SEQ_BITS) as u32)
}

/// A 64-bit number as SQLite has it: the same bits, signed.
pub(crate) fn int(value: u64) -> i64 {
    value as i64
}

/// State keys in the order in which their last values are sent.
pub(crate) const STATE_KEYS: [StateKey; 6] = StateKey::ALL;

/// Kinds from this code on are state; the place of the key among all is added.
pub(crate) const STATE: i64 = 16;
pub(crate) const LIVE: i64 = 1;

pub(crate) fn kind_code(kind: EventKind) -> i64 {
    match kind {
        EventKind::Update => 0,
        EventKind::Live => LIVE,
        EventKind::Notice => 2,
        EventKind::Extension => 3,
        EventKind::Imported => 4,
        EventKind::Banner => 5,
        EventKind::Child => 6,
        EventKind::State(key) => STATE + key as i64,
    }
}

pub(crate) fn kind_of(code: i64) -> Result<EventKind, StoreError> {
    use EventKind::{Banner, Child, Extension, Imported, Live, Notice, State, Update};
    let kinds = [Update, Live, Notice, Extension, Imported, Banner, Child];
    let mut kinds = kinds.into_iter().chain(STATE_KEYS.map(State));
    let kind = kinds.find(|kind| kind_code(*kind) == code);
    kind.ok_or_else(|| unknown("event kind", &code.to_string()))
}

pub(crate) fn form_of(code: u8) -> Result<LineForm, StoreError> {
    let form = LineForm::ALL.into_iter().find(|form| *form as u8 == code);
    form.ok_or_else(|| unknown("form of a line", &code.to_string()))
}

/// A line of a journal where it was read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'r> {
    pub(crate) seq: Seq,
    pub(crate) form: LineForm,
    pub(crate) kind: EventKind,
    pub(crate) at: Time,
    pub(crate) bytes: &'r [u8],
    pub(crate) origin: Option<&'r str>,
    pub(crate) entity: Option<u64>,
}

impl<'r> Line<'r> {
    /// Reads a row of the columns `key, pv, kind, at, line, origin, entity`.
    pub(crate) fn read(row: &'r rusqlite::Row<'_>) -> Result<Line<'r>, StoreError> {
        Ok(Line {
            seq: seq_of(row.get(0)?),
            form: form_of(row.get(1)?)?,
            kind: kind_of(row.get(2)?)?,
            at: Time(number(row, 3)?),
            bytes: row.get_ref(4)?.as_blob().map_err(rusqlite::Error::from)?,
            origin: row.get_ref(5)?.as_str_or_null().map_err(rusqlite::Error::from)?,
            entity: row.get::<_, Option<i64>>(6)?.map(|value| value as u64),
        })
    }

    pub(crate) fn row(&self, session: SessionKey) -> EventRow {
        EventRow {
            session,
            seq: self.seq,
            form: self.form,
            kind: self.kind,
            at: self.at,
            line: Bytes::copy_from_slice(self.bytes),
            origin: self.origin.map(str::to_owned),
            entity: self.entity,
        }
    }
}

/// An unsigned number, stored with its bits.
pub(crate) fn number(row: &rusqlite::Row<'_>, column: impl RowIndex) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(|value| value as u64)
}

/// The error of a code that no acpd with this schema writes.
pub(crate) fn unknown(what: &str, code: &str) -> StoreError {
    StoreError::Damaged(format!("unknown {what} {code:?}"))
}
