//! Packs: older lines of a journal, compressed together. Nothing is lost: a pack has each line byte
//! for byte, with its number, so a cursor between two of them stays what it was.
//!
//! ```text
//!  zstd( columns as JSON · '\n' · the own bytes of all lines )
//! ```
//!
//! A line is often like the one before, except for some text in the middle. So a line has the number
//! of bytes that it shares with the one before at its beginning and at its end, and its own bytes
//! between. The texts of many chunks are then one text, which compresses as such.

use std::ops::Range;

use acpd_core::ids::{Seq, SessionKey, Time};
use acpd_core::record::{EventKind, LineForm};
use memchr::{memchr, memrchr};
use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};

use crate::code::{Line, MAX_SEQ, event_key, form_of, int, kind_code, kind_of, number};
use crate::error::StoreError;

/// Bytes of lines in a pack, and own bytes of them; the last line may exceed both. A batch waits up
/// to 2 ms for these own bytes, and twice as many would save 5 % of the room.
const PLAIN: usize = 1 << 20;
const OWN: usize = 64 << 10;
/// Compression of at most [`PLAIN`] bytes, which takes some milliseconds, and of longer ones.
const LEVEL: i32 = 9;
const FAST: i32 = 1;

/// Columns of the lines' facts. Numbers and times are the steps from the line before.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Columns {
    seq: Vec<u64>,
    pv: Vec<u8>,
    kind: Vec<i64>,
    at: Vec<i64>,
    origin: Vec<Option<String>>,
    /// Missing in the first packs.
    #[serde(default)]
    entity: Vec<Option<u64>>,
    /// Bytes as in the line before, at the beginning.
    begin: Vec<usize>,
    own: Vec<usize>,
    /// Bytes as in the line before, at the end.
    end: Vec<usize>,
}

#[derive(Debug, Default)]
struct Packer {
    columns: Columns,
    own: Vec<u8>,
    /// The last line.
    before: Vec<u8>,
    seq: u64,
    at: u64,
    plain: usize,
}

impl Packer {
    fn add(&mut self, line: &Line<'_>) {
        let (begin, end) = shared(&self.before, line.bytes);
        let own = &line.bytes[begin..line.bytes.len() - end];
        self.columns.seq.push(line.seq - self.seq);
        self.columns.pv.push(line.form as u8);
        self.columns.kind.push(kind_code(line.kind));
        self.columns.at.push(int(line.at.0.wrapping_sub(self.at)));
        self.columns.origin.push(line.origin.map(str::to_owned));
        self.columns.entity.push(line.entity);
        self.columns.begin.push(begin);
        self.columns.own.push(own.len());
        self.columns.end.push(end);
        self.own.extend(own);
        self.before.clear();
        self.before.extend(line.bytes);
        (self.seq, self.at) = (line.seq, line.at.0);
        self.plain += line.bytes.len();
    }

    fn is_full(&self) -> bool {
        self.plain >= PLAIN || self.own.len() >= OWN
    }

    fn pack(self) -> Result<Vec<u8>, StoreError> {
        let failed = |error: std::io::Error| StoreError::Other(error.to_string());
        let mut all = serde_json::to_vec(&self.columns).map_err(|error| failed(error.into()))?;
        all.push(b'\n');
        all.extend(self.own);
        let level = if all.len() > PLAIN { FAST } else { LEVEL };
        let mut compressor = zstd::bulk::Compressor::new(level).map_err(failed)?;
        compressor.include_checksum(true).map_err(failed)?;
        compressor.compress(&all).map_err(failed)
    }
}

/// Bytes that a line shares with the one before at its beginning and its end. Both stop at a quote,
/// so that texts are not cut where they happen to be alike.
fn shared(before: &[u8], line: &[u8]) -> (usize, usize) {
    let same = before.iter().zip(line).take_while(|(one, other)| one == other).count();
    let begin = memrchr(b'"', &line[..same]).map_or(0, |quote| quote + 1);
    let (before, rest) = (&before[begin..], &line[begin..]);
    let ends = before.iter().rev().zip(rest.iter().rev());
    let same = ends.take_while(|(one, other)| one == other).count();
    let end = memchr(b'"', &rest[rest.len() - same..]).map_or(0, |quote| same - quote);
    (begin, end)
}

/// The lines of a pack. A long journal is read in pieces, so a reader keeps the last one.
#[derive(Debug)]
pub(crate) struct Unpacked {
    /// The key of its last line.
    pub(crate) key: i64,
    heads: Vec<Head>,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct Head {
    seq: Seq,
    form: LineForm,
    kind: EventKind,
    at: Time,
    origin: Option<String>,
    entity: Option<u64>,
    line: Range<usize>,
}

impl Unpacked {
    pub(crate) fn new(key: i64, pack: &[u8]) -> Result<Unpacked, StoreError> {
        let all = zstd::decode_all(pack).map_err(|error| damaged(&error.to_string()))?;
        let split = memchr(b'\n', &all).ok_or_else(|| damaged("it has no columns"))?;
        let columns: Columns =
            serde_json::from_slice(&all[..split]).map_err(|error| damaged(&error.to_string()))?;
        let heads = Vec::with_capacity(columns.seq.len());
        let mut unpacked = Unpacked { key, heads, bytes: Vec::new() };
        let mut own = &all[split + 1..];
        for place in 0..columns.seq.len() {
            unpacked.add(&columns, place, &mut own)?;
        }
        Ok(unpacked)
    }

    fn add(&mut self, columns: &Columns, place: usize, rest: &mut &[u8]) -> Result<(), StoreError> {
        let (seq, at, before) = match self.heads.last() {
            Some(last) => (last.seq, last.at.0, last.line.clone()),
            None => (0, 0, 0..0),
        };
        let (begin, end) = (value(&columns.begin, place)?, value(&columns.end, place)?);
        let own = rest.split_at_checked(value(&columns.own, place)?);
        let Some((own, later)) = own.filter(|_| begin.max(end) <= before.len()) else {
            return Err(damaged("a line is cut"));
        };
        *rest = later;
        let start = self.bytes.len();
        self.bytes.extend_from_within(before.start..before.start + begin);
        self.bytes.extend(own);
        self.bytes.extend_from_within(before.end - end..before.end);
        self.heads.push(Head {
            seq: seq.wrapping_add(value(&columns.seq, place)?),
            form: form_of(value(&columns.pv, place)?)?,
            kind: kind_of(value(&columns.kind, place)?)?,
            at: Time(at.wrapping_add(value(&columns.at, place)? as u64)),
            origin: value(&columns.origin, place)?,
            entity: columns.entity.get(place).copied().flatten(),
            line: start..self.bytes.len(),
        });
        Ok(())
    }

    /// Returns whether it has one very long line, which is not to stay in memory.
    pub(crate) fn is_large(&self) -> bool {
        self.bytes.len() > 2 * PLAIN
    }

    pub(crate) fn lines(&self) -> impl DoubleEndedIterator<Item = Line<'_>> {
        self.heads.iter().map(|head| Line {
            seq: head.seq,
            form: head.form,
            kind: head.kind,
            at: head.at,
            bytes: &self.bytes[head.line.clone()],
            origin: head.origin.as_deref(),
            entity: head.entity,
        })
    }
}

fn value<T: Clone>(column: &[T], place: usize) -> Result<T, StoreError> {
    column.get(place).cloned().ok_or_else(|| damaged("a column is cut"))
}

fn damaged(what: &str) -> StoreError {
    StoreError::Damaged(format!("old lines of a journal cannot be read: {what}"))
}

/// Packs the oldest lines of a journal if they were written before a time. Returns their number.
pub(crate) fn pack(conn: &Connection, session: SessionKey, until: Time) -> Result<u64, StoreError> {
    let all = [event_key(session, 0)?, event_key(session, MAX_SEQ)?];
    let mut lines = conn.prepare_cached(
        "SELECT key, pv, kind, at, line, origin, entity FROM events WHERE key BETWEEN ?1 AND ?2 \
         ORDER BY key",
    )?;
    let mut rows = lines.query(all)?;
    let mut packer = Packer::default();
    while !packer.is_full() {
        let Some(row) = rows.next()? else { break };
        if number(row, 3)? >= until.0 {
            // A pack is whole, or the end of a journal.
            return Ok(0);
        }
        packer.add(&Line::read(row)?);
    }
    drop(rows);
    let (last, plain) = (event_key(session, packer.seq)?, packer.plain as u64);
    let count = packer.columns.seq.len() as u64;
    if count == 0 {
        return Ok(0);
    }
    conn.prepare_cached("INSERT INTO packs (key, at, bytes, data) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![last, int(packer.at), int(plain), packer.pack()?])?;
    conn.prepare_cached("DELETE FROM events WHERE key BETWEEN ?1 AND ?2")?
        .execute([all[0], last])?;
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_first_packs_have_no_entity() {
        let mut packer = Packer::default();
        let (form, kind, at) = (LineForm::default(), EventKind::Update, Time(1));
        let bytes = &b"{}"[..];
        packer.add(&Line { seq: 1, form, kind, at, bytes, origin: None, entity: Some(7) });
        let pack = packer.pack().unwrap();
        let read = |pack: &[u8]| Unpacked::new(1, pack).unwrap().lines().next().unwrap().entity;
        assert_eq!(read(&pack), Some(7));
        let old = String::from_utf8(zstd::decode_all(&*pack).unwrap()).unwrap();
        let old = old.replace("\"entity\":[7],", "");
        assert_eq!(read(&zstd::encode_all(old.as_bytes(), 1).unwrap()), None);
    }
}
