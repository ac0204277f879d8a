//! An index of conversations by words.
//!
//! ```text
//!  acpd.db ── turn by turn, behind a cursor per session ──▶ search.db
//! ```
//!
//! The index is a file with a connection of its own, so no commit of the journal waits for it. It
//! has nothing that the journal lacks: a file that is damaged, of another journal or of another
//! version is deleted and made again.
//!
//! The index has no texts: those of the hits are read from the journal again.
//!
//! Each turn is indexed as a whole and by itself, so the result is the same whether it was indexed
//! at its end, after a restart, or with the whole journal.

mod turn;

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use acpd_api::{Part, Speaker};
use acpd_core::ids::{Seq, SessionKey, Time};
use rusqlite::{Connection, OptionalExtension, Params, params};

use crate::checkpoint::checkpoint;
use crate::chores;
use crate::code::{MAX_SEQ, SEQ_BITS, event_key, int, number, seq_of, session_of, unknown};
use crate::connection::{LOCK_WAIT, connect};
use crate::error::{OpenError, StoreError};
use crate::files::remove_files;
use crate::lines::Order;
use crate::reader::{Reader, is_lasting};
use crate::state::{self, JOURNAL, kind};
use turn::{Document, Turn};

/// Version of the file; an index of another version is made again.
const VERSION: u32 = 3;
/// - `journal`: one row, the generation of the journal. `stale` is 1 while words of deleted sessions
///   are in the file.
/// - `cursors`: the line that ended a session's last indexed turn, and its time. If the journal has
///   another line there, it is another journal (a backup, say).
/// - `documents`: a row for each message and call. `key` is that of the first line in the journal,
///   `last` the number of the last one. `who` is a place in [`SPEAKERS`].
/// - `words`: the index of their texts; `rowid` is `key`.
const SCHEMA: &str = "
CREATE TABLE journal (generation TEXT NOT NULL, stale INTEGER NOT NULL) STRICT;
CREATE TABLE cursors (
    session INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL
) STRICT;
CREATE TABLE documents (
    key INTEGER PRIMARY KEY,
    last INTEGER NOT NULL,
    at INTEGER NOT NULL,
    who INTEGER NOT NULL
) STRICT;
CREATE VIRTUAL TABLE words USING fts5(
    text,
    content = '',
    contentless_delete = 1,
    tokenize = \"unicode61 remove_diacritics 2\"
);
";

/// The text of one hit, in memory, for its snippet. The tokenizer is that of `words`.
const HIT: &str = "
PRAGMA temp_store = MEMORY;
CREATE VIRTUAL TABLE IF NOT EXISTS temp.hit USING fts5(
    text,
    tokenize = \"unicode61 remove_diacritics 2\"
);
";
/// Maximum number of hits that are ranked: a word that is everywhere would take seconds.
const RANKED: u32 = 2_000;
/// Bytes of lines read at once.
const PIECE: usize = 256 << 10;
const AROUND: u32 = 24;
/// Their places are codes on disk.
const SPEAKERS: [Speaker; 3] = [Speaker::User, Speaker::Agent, Speaker::Tool];
/// Marks around a hit in a text; both are removed from every text before.
const MARKS: [char; 2] = ['\u{2}', '\u{3}'];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub session: SessionKey,
    /// First line in the journal.
    pub seq: Seq,
    pub at: Time,
    pub by: Speaker,
    pub snippet: Vec<Part>,
}

/// The index. Blocks while it works: keep it off an async thread.
#[derive(Debug)]
pub struct Index {
    journal: Reader,
    conn: Connection,
    path: PathBuf,
}

impl Index {
    /// Opens the index of an open journal; makes a new one if none fits. The index may be behind:
    /// see [`Index::catch_up`].
    pub fn open(journal: &Path, index: &Path) -> Result<Index, OpenError> {
        let failed = |source| OpenError::Store { path: journal.into(), source };
        let journal = Reader::open(journal).map_err(failed)?;
        let generation = journal.generation().map_err(failed)?;
        let conn = match fitting(index, &generation) {
            Err(OpenError::Store { source: StoreError::Damaged(_), .. }) => {
                discard(index)?;
                fitting(index, &generation)?
            }
            conn => conn?,
        };
        Ok(Index { journal, conn, path: index.into() })
    }

    pub fn discard(self) -> Result<(), OpenError> {
        drop(self.conn);
        discard(&self.path)
    }

    /// Indexes new turns of all sessions, and forgets deleted sessions.
    pub fn catch_up(&mut self) -> Result<(), StoreError> {
        let heads =
            "SELECT owner, value ->> '$.journal.head' FROM state WHERE kind = ?1 AND key = ?2";
        let heads = ends(&self.journal.conn, heads, params![kind::SESSION, JOURNAL])?;
        let indexed = ends(&self.conn, "SELECT session, seq FROM cursors", [])?;
        let differ = heads.symmetric_difference(&indexed).map(|(session, _)| *session);
        self.update(differ.collect::<BTreeSet<_>>())
    }

    /// Indexes the new turns of sessions that have ended, and forgets those that were deleted.
    pub fn update(
        &mut self,
        sessions: impl IntoIterator<Item = SessionKey>,
    ) -> Result<(), StoreError> {
        sessions.into_iter().try_for_each(|session| self.update_one(session))?;
        // The next update tries again: without room on the disk the index still answers.
        self.purge().ok();
        Ok(())
    }

    fn update_one(&mut self, session: SessionKey) -> Result<(), StoreError> {
        let mut indexed = self.cursor(session)?;
        let Some(journal) = state::journal(&self.journal.conn, session)? else {
            return if indexed.is_some() { self.forget(session) } else { Ok(()) };
        };
        if let Some((seq, at)) = indexed
            && self.journal.time_of(session, seq)? != Some(at)
        {
            self.forget(session)?;
            indexed = None;
        }
        let mut after = indexed.map_or(0, |(seq, _)| seq);
        let mut turn = Turn::default();
        loop {
            let mut ended = Vec::new();
            let (mut last, mut size) = (None, 0);
            let bounds = (after, journal.head);
            let read = self.journal.visit(session, bounds, Order::Forward, is_lasting, |line| {
                if turn.line(line) {
                    let documents = std::mem::take(&mut turn).documents;
                    ended.push((documents, (line.seq, line.at)));
                }
                last = Some(line.seq);
                size += line.bytes.len();
                Ok(if size < PIECE { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
            });
            // A damaged journal is reported by its readers, and is no fault of the index.
            if matches!(read, Err(StoreError::Damaged(_))) {
                return Ok(());
            }
            read?;
            // A failure ends the transaction with the connection: the index is opened again.
            self.conn.execute_batch("BEGIN")?;
            for (documents, end) in ended {
                self.add(session, documents, end)?;
            }
            self.conn.execute_batch("COMMIT")?;
            let Some(last) = last else { return Ok(()) };
            after = last;
        }
    }

    /// The best hits of all these words in these sessions; of equal hits the newest first. If there
    /// are more than `RANKED`, the newest hits of the newest sessions. A word may be a phrase, and
    /// `*` at its end stands for any ending.
    pub fn find(
        &mut self,
        words: &[String],
        sessions: impl IntoIterator<Item = SessionKey>,
        limit: u32,
    ) -> Result<Vec<Found>, StoreError> {
        const { assert!(SEQ_BITS == 36, "the query has this in its text") };
        // FTS5 refuses an empty expression.
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let words = expression(words);
        let sessions: Vec<String> =
            sessions.into_iter().map(|session| session.0.to_string()).collect();
        let sessions = format!("[{}]", sessions.join(","));
        let mut newest = self.conn.prepare_cached(
            "SELECT rowid FROM words \
             WHERE words MATCH ?1 AND rowid >> 36 IN (SELECT value FROM json_each(?2)) \
             ORDER BY rowid DESC LIMIT 1 OFFSET ?3",
        )?;
        let too_old = newest.query_row(params![words, sessions, RANKED], |row| row.get(0));
        let too_old: Option<i64> = too_old.optional()?;
        drop(newest);
        let mut best = self.conn.prepare_cached(
            "SELECT key, last, at, who FROM words JOIN documents ON key = words.rowid \
             WHERE words MATCH ?1 AND key >> 36 IN (SELECT value FROM json_each(?2)) \
             AND words.rowid > ifnull(?4, -1) \
             ORDER BY iif(?4 IS NULL, words.rank, 0), at DESC LIMIT ?3",
        )?;
        self.conn.execute_batch(HIT)?;
        let mut rows = best.query(params![words, sessions, limit, too_old])?;
        let mut hits = Vec::new();
        while let Some(row) = rows.next()? {
            let (key, code): (i64, i64) = (row.get(0)?, row.get(3)?);
            let by = SPEAKERS.get(code as usize).copied();
            let by = by.ok_or_else(|| unknown("speaker", &code.to_string()))?;
            let (session, seq, at) = (session_of(key), seq_of(key), Time(number(row, 2)?));
            let found = Found { session, seq, at, by, snippet: Vec::new() };
            hits.push((hits.len(), number(row, 1)?, found));
        }
        drop(rows);
        drop(best);
        // In the order of the journals: a reader keeps the pack that it has read last.
        hits.sort_by_key(|(_, _, found)| (found.session, found.seq));
        for (_, last, found) in &mut hits {
            // A session that was just deleted has no text, and one that is damaged none to read.
            let text = text_of(&mut self.journal, found.session, found.seq, *last);
            found.snippet = snippet(&self.conn, &words, &text.unwrap_or_default())?;
        }
        hits.retain(|(_, _, found)| !found.snippet.is_empty());
        hits.sort_by_key(|(place, _, _)| *place);
        Ok(hits.into_iter().map(|(_, _, found)| found).collect())
    }

    fn cursor(&self, session: SessionKey) -> Result<Option<(Seq, Time)>, StoreError> {
        let mut statement =
            self.conn.prepare_cached("SELECT seq, at FROM cursors WHERE session = ?1")?;
        let cursor = |row: &rusqlite::Row<'_>| Ok((number(row, 0)?, Time(number(row, 1)?)));
        Ok(statement.query_row([session.0], cursor).optional()?)
    }

    /// Adds a turn that ended with this line.
    fn add(
        &mut self,
        session: SessionKey,
        documents: Vec<Document>,
        (seq, at): (Seq, Time),
    ) -> Result<(), StoreError> {
        let conn = &self.conn;
        for Document { seq, last, at, by, text } in documents {
            let (text, key) = (plain(&text), event_key(session, seq)?);
            if !text.trim().is_empty() {
                let who = SPEAKERS.iter().position(|one| *one == by).map(|code| code as i64);
                conn.prepare_cached("INSERT INTO documents VALUES (?1, ?2, ?3, ?4)")?
                    .execute(params![key, int(last), int(at.0), who])?;
                conn.prepare_cached("INSERT INTO words (rowid, text) VALUES (?1, ?2)")?
                    .execute(params![key, text])?;
            }
        }
        let cursor = "INSERT OR REPLACE INTO cursors (session, seq, at) VALUES (?1, ?2, ?3)";
        conn.prepare_cached(cursor)?.execute(params![session.0, int(seq), int(at.0)])?;
        Ok(())
    }

    fn forget(&mut self, session: SessionKey) -> Result<(), StoreError> {
        let tx = self.conn.transaction()?;
        let journal = [event_key(session, 0)?, event_key(session, MAX_SEQ)?];
        tx.execute(
            "DELETE FROM words WHERE rowid IN \
             (SELECT key FROM documents WHERE key BETWEEN ?1 AND ?2)",
            journal,
        )?;
        tx.execute("DELETE FROM documents WHERE key BETWEEN ?1 AND ?2", journal)?;
        tx.execute("DELETE FROM cursors WHERE session = ?1", [session.0])?;
        tx.execute("UPDATE journal SET stale = 1", [])?;
        Ok(tx.commit()?)
    }

    /// Removes the words of deleted sessions from the file, which is written again without them.
    fn purge(&mut self) -> Result<(), StoreError> {
        let stale = "SELECT stale FROM journal";
        if !self.conn.query_row(stale, [], |row| row.get::<_, bool>(0))? {
            return Ok(());
        }
        self.conn.execute("INSERT INTO words (words) VALUES ('optimize')", [])?;
        chores::shrink_all(&self.conn)?;
        // Deleted text must leave the write-ahead log, too.
        if checkpoint(&self.conn, "TRUNCATE")? {
            self.conn.execute("UPDATE journal SET stale = 0", [])?;
        }
        Ok(())
    }
}

/// Returns the text of a message or a call; empty if its session was deleted.
fn text_of(
    journal: &mut Reader,
    session: SessionKey,
    seq: Seq,
    last: Seq,
) -> Result<String, StoreError> {
    let mut turn = Turn::default();
    let bounds = (seq.saturating_sub(1), last);
    journal.visit(session, bounds, Order::Forward, is_lasting, |line| {
        turn.line(line);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(turn.documents.into_iter().next().map(|found| plain(&found.text)).unwrap_or_default())
}

/// Returns a part of a text with these words in it; empty if the text has not all of them.
fn snippet(conn: &Connection, words: &str, text: &str) -> Result<Vec<Part>, StoreError> {
    let [begin, end] = MARKS.map(String::from);
    conn.prepare_cached("INSERT INTO hit (rowid, text) VALUES (1, ?1)")?.execute([text])?;
    let found = conn
        .prepare_cached("SELECT snippet(hit, 0, ?2, ?3, '…', ?4) FROM hit WHERE hit MATCH ?1")?
        .query_row(params![words, begin, end, AROUND], |row| row.get(0))
        .optional();
    conn.prepare_cached("DELETE FROM hit")?.execute([])?;
    Ok(found?.map(|text: String| parts(&text)).unwrap_or_default())
}

/// Returns a text without characters that have another meaning here.
fn plain(text: &str) -> String {
    text.replace([MARKS[0], MARKS[1], '\0'], " ")
}

/// Opens the index if it fits this journal; otherwise makes a new one.
fn fitting(path: &Path, generation: &str) -> Result<Connection, OpenError> {
    drop(acpd_sys::files::private_file(path)?);
    begin(path, generation).map_err(|source| OpenError::Store { path: path.into(), source })
}

/// Opens or creates an index. One that does not fit counts as damaged.
fn begin(path: &Path, generation: &str) -> Result<Connection, StoreError> {
    let mut conn = connect(path, LOCK_WAIT, 512)?;
    chores::prepare_to_shrink(&conn)?;
    conn.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    // Turns lost with the power are indexed again.
    conn.pragma_update(None, "synchronous", "NORMAL")?;
    conn.pragma_update_and_check(None, "wal_autocheckpoint", 256, |_| Ok(()))?;
    conn.pragma_update(None, "secure_delete", "ON")?;
    let version: u32 = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
    match version {
        VERSION => {}
        0 => {
            let tx = conn.transaction()?;
            tx.execute_batch(SCHEMA)?;
            tx.execute("INSERT INTO journal VALUES (?1, 0)", [generation])?;
            tx.pragma_update(None, "user_version", VERSION)?;
            tx.commit()?;
        }
        _ => return Err(StoreError::Damaged(format!("search index has version {version}"))),
    }
    let found: String = conn.query_row("SELECT generation FROM journal", [], |row| row.get(0))?;
    if found == generation {
        Ok(conn)
    } else {
        Err(StoreError::Damaged("search index is of another journal".to_owned()))
    }
}

/// Removes an index and SQLite's files next to it.
fn discard(path: &Path) -> Result<(), OpenError> {
    remove_files(path, &["", "-wal", "-shm"]).map_err(|(_, error)| {
        let source = StoreError::Io(error.to_string());
        OpenError::Store { path: path.into(), source }
    })
}

/// Returns sessions and positions in their journals.
fn ends(
    conn: &Connection,
    sql: &str,
    params: impl Params,
) -> Result<BTreeSet<(SessionKey, Seq)>, StoreError> {
    let mut statement = conn.prepare(sql)?;
    let ends = statement.query_map(params, |row| Ok((SessionKey(row.get(0)?), number(row, 1)?)))?;
    Ok(ends.collect::<Result<_, _>>()?)
}

/// Quotes each word as a string of FTS5, so that no operator is read.
fn expression(words: &[String]) -> String {
    let quoted = words.iter().map(|word| {
        let (word, star) = match word.strip_suffix('*') {
            Some(beginning) => (beginning, "*"),
            None => (word.as_str(), ""),
        };
        format!("\"{}\"{star}", word.replace('\0', " ").replace('"', "\"\""))
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// Cuts a text at its marks.
fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut hit = false;
    for piece in text.split(MARKS) {
        if !piece.is_empty() {
            parts.push(Part { text: piece.into(), hit });
        }
        hit = !hit;
    }
    parts
}
