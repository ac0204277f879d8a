//! A power loss, where SQLite defines it: the end of the write-ahead log is missing or wrong.

use std::fs;
use std::path::Path;

use acpd_core::record::{EventKind, Record, RowId};
use rusqlite::Connection;

use crate::model::Model;
use crate::running::{
    Running, asked, client, event, host, interaction, offset, parked, prompt, reply, secret,
    session, turn,
};

const LOG_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
const PAGE: usize = 4096;
const FRAME: usize = FRAME_HEADER + PAGE;
/// One of this number of frames is tried: Wine takes minutes for all.
const EVERY: usize = if cfg!(windows) { 16 } else { 1 };

/// Keeps the log as it grows: with a reader at its start nothing is copied from it. The log must be
/// empty.
pub(crate) fn pin_log(path: &Path) -> Connection {
    let conn = Connection::open(path).unwrap();
    conn.execute_batch("BEGIN").unwrap();
    let _: i64 = conn.query_row("SELECT boot FROM meta", [], |row| row.get(0)).unwrap();
    conn
}

/// Transactions that end within these bytes of a log.
pub(crate) fn commits_in_log(log: &[u8]) -> usize {
    let frames = log.get(LOG_HEADER..).unwrap_or_default().chunks_exact(FRAME);
    // The size of the database after the commit; 0 in all other frames.
    frames.filter(|frame| frame[4..8] != [0; 4]).count()
}

/// A database file, its log, and what should be there after each transaction in the log.
struct Wreck {
    database: Vec<u8>,
    log: Vec<u8>,
    states: Vec<Model>,
}

impl Wreck {
    fn make() -> Wreck {
        let dir = tempfile::tempdir().unwrap();
        Running::start(dir.path()).close();
        let mut store = Running::start(dir.path());
        let pin = pin_log(&dir.path().join("acpd.db"));
        let mut model = Model { snapshot: store.snapshot.clone(), ..Model::default() };
        let mut states = vec![model.clone()];
        for mut batch in story() {
            model.apply(&mut batch);
            store.commit(batch);
            states.push(model.clone());
        }
        let read = |name| fs::read(dir.path().join(name)).unwrap();
        let wreck = Wreck { database: read("acpd.db"), log: read("acpd.db-wal"), states };
        drop(pin);
        store.close();
        assert_eq!(commits_in_log(&wreck.log) + 1, wreck.states.len());
        wreck
    }

    fn frames(&self) -> usize {
        (self.log.len() - LOG_HEADER) / FRAME
    }

    /// Opens the database with this log; it must have the state after this number of transactions.
    fn check(&self, log: &[u8], commits: usize) {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("acpd.db"), &self.database).unwrap();
        fs::write(dir.path().join("acpd.db-wal"), log).unwrap();
        let mut store = Running::start(dir.path());
        self.states[commits].check(&mut store);
        store.close();
        let conn = Connection::open(dir.path().join("acpd.db")).unwrap();
        let verdict: String =
            conn.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(verdict, "ok");
    }
}

/// Batches that touch every table.
fn story() -> Vec<Vec<Record>> {
    let mut batches = vec![
        vec![Record::Boot { boot: 1 }, host(1), session(1)],
        vec![session(2), turn(2, 1), interaction(1, 2, 1)],
        vec![secret(1, b"[{}]"), turn(1, 1), prompt(1, 1, "{}")],
        vec![parked(1, 1, "agent-9", "{}"), asked(1, 1, "{}"), client("token-1", 1)],
        vec![reply("token-1", "7", Some(1)), Record::Delete(RowId::Asked(1))],
    ];
    for n in 0..12_usize {
        let key = 1 + n as u32 % 2;
        let mut batch: Vec<Record> =
            (0..n).map(|_| event(key, 0, EventKind::Update, vec![b'x'; 300 * n])).collect();
        batch.push(offset(1, n as u64));
        batch.push(client("token-1", n as u64));
        batch.push(turn(key, n as u64));
        batches.push(batch);
    }
    batches.push(vec![Record::SessionRemoved { session: acpd_core::ids::SessionKey(1) }]);
    batches
}

#[test]
fn a_log_that_is_cut_anywhere_leaves_whole_batches() {
    let wreck = Wreck::make();
    wreck.check(&wreck.log, wreck.states.len() - 1);
    wreck.check(&[], 0);
    wreck.check(&wreck.log[..LOG_HEADER / 2], 0);
    for frame in (0..wreck.frames()).step_by(EVERY) {
        let boundary = LOG_HEADER + frame * FRAME;
        let commits = commits_in_log(&wreck.log[..boundary]);
        for more in [0, FRAME_HEADER / 2, FRAME_HEADER + PAGE / 2] {
            wreck.check(&wreck.log[..boundary + more], commits);
        }
    }
}

#[test]
fn a_log_with_a_wrong_byte_leaves_the_whole_batches_before_it() {
    let wreck = Wreck::make();
    for frame in (0..wreck.frames()).step_by(EVERY) {
        let boundary = LOG_HEADER + frame * FRAME;
        let commits = commits_in_log(&wreck.log[..boundary]);
        // Page number, database size, salt, checksum, and the page itself.
        for place in [3, 7, 9, 17, FRAME_HEADER, FRAME_HEADER + PAGE / 2, FRAME - 1] {
            let mut log = wreck.log.clone();
            log[boundary + place] ^= 0x10;
            wreck.check(&log, commits);
        }
    }
}
