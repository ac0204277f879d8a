//! Work in pauses of the writer: lines of deleted sessions are removed, and their room is given back.

use std::fs;
use std::path::Path;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use acpd_core::ids::{Seq, SessionKey};
use acpd_core::record::{EventKind, Record};
use acpd_store::{Report, Sizes, StoreError};
use rusqlite::Connection;

use crate::running::{NEVER, Running, check_integrity, event, pin_log, session};

const LONG: SessionKey = SessionKey(1);
const SHORT: SessionKey = SessionKey(2);
/// Lines of the long journal, and bytes of each.
const LINES: u64 = 120;
const LINE: u64 = 100_000;
/// The test is given up after this time.
const PATIENCE: Duration = Duration::from_mins(1);
/// From one look at something that does not tell to the next.
const LOOK: Duration = Duration::from_millis(20);
/// Free pages that stay, and the most that are not worth giving back.
const SPARE: u64 = 256;
const WORTH: u64 = 1024;

fn line(session: SessionKey, seq: Seq, length: u64) -> Record {
    event(session.0, seq, EventKind::Update, vec![b'x'; length as usize])
}

/// A database with a long journal, and a short one behind it.
fn fill(dir: &Path) {
    let mut store = Running::start(dir);
    store.commit(vec![session(LONG.0), session(SHORT.0)]);
    for seq in 1..=LINES {
        store.commit(vec![line(LONG, seq, LINE)]);
    }
    store.commit((1..=3).map(|seq| line(SHORT, seq, 5000)).collect());
    store.close();
}

fn number(dir: &Path, sql: &str) -> u64 {
    let conn = Connection::open(dir.join("acpd.db")).unwrap();
    conn.query_row(sql, [], |row| row.get(0).map(|number: i64| number as u64)).unwrap()
}

/// Lines of the long journal that are in the file.
fn lines_left(dir: &Path) -> u64 {
    number(dir, "SELECT count(*) FROM events WHERE key >> 36 = 1")
}

fn free_pages(dir: &Path) -> u64 {
    number(dir, "PRAGMA freelist_count")
}

fn check_whole(dir: &Path) {
    check_integrity(dir);
    assert_eq!(number(dir, "SELECT count(*) FROM events WHERE key >> 36 = 2"), 3);
}

/// Waits until all of the log is in the database file, too: no write follows before the next commit.
pub(crate) fn await_copied(dir: &Path) {
    let conn = Connection::open(dir.join("acpd.db")).unwrap();
    let begin = Instant::now();
    loop {
        let (in_log, copied): (i64, i64) = conn
            .query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| Ok((row.get(1)?, row.get(2)?)))
            .unwrap();
        if in_log == copied && in_log >= 0 {
            return;
        }
        assert!(begin.elapsed() < PATIENCE, "{copied} pages of {in_log} are copied");
        thread::sleep(LOOK);
    }
}

impl Running {
    /// Commits until the database file has at most `bytes` bytes; nothing may fail meanwhile.
    fn commit_until_cut(&mut self, dir: &Path, bytes: u64) {
        let path = dir.join("acpd.db");
        let begin = Instant::now();
        for boot in 1000.. {
            self.commit(vec![Record::Boot { boot }]);
            if fs::metadata(&path).unwrap().len() <= bytes {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "the file is not cut");
        }
    }
}

fn remove() -> Vec<Record> {
    vec![Record::SessionRemoved { session: LONG }]
}

#[test]
fn a_long_journal_goes_in_pieces_and_whoever_dies_in_between_leaves_a_whole_database() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    let pin = pin_log(&dir.path().join("acpd.db"));
    let (path, (keep, kept)) = (dir.path().to_owned(), channel());
    let mut store = Running::open_with(dir.path(), NEVER, move |_| {
        let read = |name| fs::read(path.join(name)).unwrap();
        keep.send((read("acpd.db"), read("acpd.db-wal"))).ok();
    })
    .unwrap();
    store.send(remove());
    let tidied = store.tidied(|sum| sum.removed >= LINES * LINE);
    assert_eq!(tidied.removed, LINES * LINE);
    store.tidied(|sum| sum.given_back > 0 && free_pages(dir.path()) <= SPARE);
    drop(pin);
    store.close();

    let wrecks: Vec<_> = kept.iter().collect();
    assert!(wrecks.len() > 40, "{} transactions are few", wrecks.len());
    let mut left = LINES;
    // Some, and the last one: each costs a database.
    for (database, log) in wrecks.iter().rev().step_by(15).rev() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("acpd.db"), database).unwrap();
        fs::write(dir.path().join("acpd.db-wal"), log).unwrap();
        check_whole(dir.path());
        let found = lines_left(dir.path());
        assert!(found <= left, "{found} lines after {left}");
        left = found;

        let mut again = Running::start(dir.path());
        assert_eq!(again.journal(LONG), []);
        let lines = left * LINE;
        again.tidied(|sum| sum.removed >= lines && free_pages(dir.path()) <= WORTH);
        again.commit_until_cut(dir.path(), 6 << 20);
        again.close();
        check_whole(dir.path());
        assert_eq!(lines_left(dir.path()), 0);
    }
    assert_eq!(left, 0);
}

#[test]
fn the_file_gets_shorter_under_a_daemon_that_goes_on_and_a_cut_is_still_noticed() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    let path = dir.path().join("acpd.db");
    assert!(fs::metadata(&path).unwrap().len() > LINES * LINE);
    let mut store = Running::start(dir.path());
    store.send(remove());
    store.tidied(|sum| sum.given_back > 0 && free_pages(dir.path()) <= SPARE);
    store.commit_until_cut(dir.path(), 3 << 20);
    check_whole(dir.path());

    // Longer than it was ever to be: what is not expected is a cut.
    for seq in 4..=13 {
        store.commit(vec![line(SHORT, seq, 1_000_000)]);
    }
    // A copy from the log makes a file that was cut longer again.
    await_copied(dir.path());
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(4096).unwrap();
    store.send(vec![line(SHORT, 14, 10)]);
    let told = store.report();
    let Report::Failing(StoreError::Gone(reason)) = &told else {
        panic!("{told:?}");
    };
    assert!(reason.contains("was cut"), "{reason}");
    store.writer.close().unwrap_err();
    assert_eq!(fs::metadata(&path).unwrap().len(), 4096);
}

#[test]
fn a_flood_is_not_faster_than_what_removes() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    let mut store = Running::start(dir.path());
    store.send(remove());
    let (mut written, mut removed) = (0, 0);
    for seq in 4..=60 {
        let sent = store.send(vec![line(SHORT, seq, LINE)]);
        written += LINE;
        loop {
            match store.any_report() {
                Report::Committed { tag } if tag == sent => break,
                Report::Tidied(more) => removed += more.removed,
                _ => {}
            }
        }
    }
    // The last step may be still to come.
    assert!(removed + LINE > written, "{removed} of {written}");
    store.close();
}

#[test]
fn a_journal_that_an_older_acpd_made_gets_shorter_at_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let conn = Connection::open(dir.path().join("acpd.db")).unwrap();
    conn.execute_batch(include_str!("../fixtures/v1.sql")).unwrap();
    drop(conn);
    let mut store = Running::start(dir.path());
    store.commit(vec![session(7)]);
    for seq in 1..=LINES {
        store.commit(vec![line(SessionKey(7), seq, LINE)]);
    }
    store.close();
    let length = fs::metadata(dir.path().join("acpd.db")).unwrap().len();
    let mut store = Running::start(dir.path());
    store.send(vec![Record::SessionRemoved { session: SessionKey(7) }]);
    let tidied = store.tidied(|sum| sum.removed >= LINE * LINES);
    assert_eq!(tidied.given_back, 0);
    store.close();
    assert_eq!(number(dir.path(), "SELECT count(*) FROM events WHERE key >> 36 = 7"), 0);
    assert_eq!(fs::metadata(dir.path().join("acpd.db")).unwrap().len(), length);
    Running::start(dir.path()).close();
    assert!(fs::metadata(dir.path().join("acpd.db")).unwrap().len() < length / 2);
    check_integrity(dir.path());
}

#[test]
fn a_journal_is_measured_once_and_then_only_what_is_new() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Running::start(dir.path());
    store.commit(vec![session(1), session(2)]);
    store.commit((1..=9000).map(|seq| line(LONG, seq, seq % 7)).collect());
    let bytes = (1..=9000).map(|seq| seq % 7).sum::<u64>();
    let mut sizes = Sizes::open(&dir.path().join("acpd.db")).unwrap();
    assert_eq!(sizes.of([LONG, SHORT]).unwrap(), [(LONG, bytes), (SHORT, 0)].into());
    store.commit(vec![line(LONG, 9001, 70_000), line(SHORT, 1, 5)]);
    assert_eq!(sizes.of([LONG, SHORT]).unwrap(), [(LONG, bytes + 70_000), (SHORT, 5)].into());
    assert_eq!(sizes.of([SHORT]).unwrap(), [(SHORT, 5)].into());
    drop(sizes);
    store.close();
}

#[test]
fn packs_are_measured_as_their_lines_and_go_with_their_session() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    let mut store = Running::packed(dir.path(), LINES + 3);
    let mut sizes = Sizes::open(&dir.path().join("acpd.db")).unwrap();
    assert_eq!(sizes.of([LONG, SHORT]).unwrap(), [(LONG, LINES * LINE), (SHORT, 15_000)].into());
    store.commit(remove());
    store.commit(vec![line(SHORT, 4, 10)]);
    assert_eq!(sizes.of([SHORT]).unwrap(), [(SHORT, 15_010)].into());
    drop(sizes);
    store.close();
    assert_eq!(number(dir.path(), "SELECT min(key >> 36) FROM packs"), 2);
}
