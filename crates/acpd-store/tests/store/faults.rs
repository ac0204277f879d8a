//! A disk without room, and files that are gone.

use std::path::Path;
use std::sync::mpsc::{Sender, channel};

use acpd_core::ids::{Seq, SessionKey};
use acpd_core::record::{EventKind, Record};
use acpd_store::{Report, StoreError};

use crate::running::{NEVER, Running, commits_in_log, event, pin_log, session};

const ONE: SessionKey = SessionKey(1);

/// Does not fit into the pages that an almost empty database has.
fn big(seq: Seq) -> Record {
    event(1, seq, EventKind::Update, vec![b'x'; 200_000])
}

fn small(seq: Seq) -> Record {
    event(1, seq, EventKind::Update, "small")
}

fn fails_for_lack_of_room(report: &Report) -> bool {
    matches!(report, Report::Failing(StoreError::DiskFull(_)))
}

#[test]
fn a_batch_is_written_whole_or_not_at_all_wherever_the_room_ends() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Running::start(dir.path());
    store.commit(vec![session(1)]);
    let conn = rusqlite::Connection::open(dir.path().join("acpd.db")).unwrap();
    let mut failures = 0;
    for round in 0..12 {
        let pages: u32 = conn.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
        store.writer.limit_pages(Some(pages + round));
        let before = store.journal(ONE).len() as Seq;
        let lines = (1..=8).map(|n| event(1, before + n, EventKind::Update, vec![b'x'; 3000]));
        let tag = store.send(lines.collect());
        let mut report = store.report();
        if fails_for_lack_of_room(&report) {
            failures += 1;
            assert_eq!(store.journal(ONE).len() as Seq, before);
            store.writer.limit_pages(None);
            report = store.report();
        }
        assert_eq!(report, Report::Committed { tag });
        assert_eq!(store.journal(ONE).len() as Seq, before + 8);
    }
    assert!((1..12).contains(&failures), "{failures} of the limits were felt");
    drop(conn);
    store.close();
}

#[test]
fn closing_a_store_that_fails_says_why_and_leaves_what_was_committed() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Running::start(dir.path());
    store.commit(vec![session(1), small(1)]);
    store.writer.limit_pages(Some(1));
    store.send(vec![small(2), big(3)]);
    assert!(fails_for_lack_of_room(&store.report()));
    store.send(vec![small(4)]);
    assert!(matches!(store.writer.close(), Err(StoreError::DiskFull(_))));
    drop(store.reader);

    let mut store = Running::start(dir.path());
    assert_eq!(store.snapshot.sessions[&ONE].head, 1);
    assert_eq!(store.journal(ONE).len(), 1);
    store.close();
}

/// A store whose writer, when it has committed this batch, takes nothing more until it is told to.
fn held(dir: &Path, first: Vec<Record>) -> (Running, Sender<()>) {
    let ((came, at_gate), (go, gate)) = (channel(), channel());
    let mut store = Running::open_with(dir, NEVER, move |report| {
        if *report == (Report::Committed { tag: 1 }) {
            came.send(()).ok();
            gate.recv().ok();
        }
    })
    .unwrap();
    store.send(first);
    at_gate.recv().unwrap();
    (store, go)
}

#[test]
fn batches_that_wait_are_committed_together_and_reported_in_order() {
    let dir = tempfile::tempdir().unwrap();
    Running::start(dir.path()).close();
    let pin = pin_log(&dir.path().join("acpd.db"));
    let (mut store, go) = held(dir.path(), vec![session(1)]);
    for seq in 1..=50 {
        store.send(vec![small(seq)]);
    }
    go.send(()).unwrap();
    for tag in 1..=51 {
        assert_eq!(store.report(), Report::Committed { tag });
    }
    assert!(store.journal(ONE).iter().map(|row| row.seq).eq(1..=50));
    let commits = commits_in_log(&std::fs::read(dir.path().join("acpd.db-wal")).unwrap());
    assert!(commits <= 3, "51 batches took {commits} transactions");
    drop(pin);
    store.close();
}

#[test]
fn of_batches_that_wait_together_only_the_one_that_fails_and_those_after_it_are_held_back() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, go) = held(dir.path(), vec![session(1)]);
    store.writer.limit_pages(Some(1));
    for records in [vec![small(1)], vec![small(2), big(3)], vec![small(4)]] {
        store.send(records);
    }
    go.send(()).unwrap();
    for tag in 1..=2 {
        assert_eq!(store.report(), Report::Committed { tag });
    }
    assert!(fails_for_lack_of_room(&store.report()));
    assert_eq!(store.journal(ONE).len(), 1);
    store.writer.limit_pages(None);
    for tag in 3..=4 {
        assert_eq!(store.report(), Report::Committed { tag });
    }
    assert_eq!(store.journal(ONE).len(), 4);
    store.close();
}

#[test]
fn l14_files_that_are_gone_are_noticed_while_nothing_is_written_and_nothing_goes_into_the_void() {
    let dir = tempfile::tempdir().unwrap();
    let aside = dir.path().join("aside");
    for (file, what) in
        [("acpd.db", "removed"), ("acpd.db-wal", "removed"), ("acpd.db", "replaced")]
    {
        let path = dir.path().join(file);
        let mut store = Running::start(dir.path());
        store.commit(vec![session(1)]);
        let moved = std::fs::rename(&path, &aside);
        if cfg!(windows) {
            // The system itself keeps the name of a file that SQLite has open.
            moved.expect_err("it is open");
            store.commit(vec![session(2)]);
            store.close();
            std::fs::remove_file(dir.path().join("acpd.db")).unwrap();
            continue;
        }
        moved.unwrap();
        if what == "replaced" {
            std::fs::copy(&aside, &path).unwrap();
        }
        let told = store.report();
        let Report::Failing(reason @ StoreError::Gone(_)) = &told else {
            panic!("{told:?}");
        };
        assert_eq!(reason.to_string(), format!("`{}` was {what} while acpd runs", path.display()));
        let before = std::fs::metadata(&aside).unwrap().len();
        let tag = store.send(vec![event(1, 1, EventKind::Update, vec![b'x'; 100_000])]);

        std::fs::rename(&aside, &path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), before);
        assert_eq!(store.report(), Report::Works);
        assert_eq!(store.report(), Report::Committed { tag });
        assert_eq!(store.journal(ONE).len(), 1);
        store.close();
        std::fs::remove_file(dir.path().join("acpd.db")).unwrap();
    }
}
