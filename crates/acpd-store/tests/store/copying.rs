//! Copies of a journal, and what they count on from.

use std::fs;
use std::path::Path;

use acpd_core::record::{Record, Snapshot};
use acpd_store::{CopyError, back_up, restore};

use crate::running::{Running, client, session};

/// Makes a journal with this number of boots and sessions, and its backup.
fn backed_up(dir: &Path, boot: u64, sessions: u32) -> Snapshot {
    let mut store = Running::start(dir);
    let mut records = vec![Record::Boot { boot }, client("phone", 1)];
    records.extend((1..=sessions).map(session));
    store.commit(records);
    let copied = back_up(&dir.join("acpd.db"), &dir.join("backup"), |_| {}).unwrap();
    assert_eq!(copied.sessions, u64::from(sessions));
    store.close();
    opened(dir)
}

fn opened(dir: &Path) -> Snapshot {
    let store = Running::start(dir);
    let snapshot = store.snapshot.clone();
    store.close();
    snapshot
}

fn restored(dir: &Path) -> Snapshot {
    restore(&dir.join("backup"), &dir.join("acpd.db"), &dir.join("search.db"), |_| {}).unwrap();
    opened(dir)
}

#[test]
fn a_restored_journal_counts_on_from_the_later_one_under_a_name_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let first = backed_up(dir.path(), 3, 2);
    assert!(!first.clients.is_empty());
    let mut store = Running::start(dir.path());
    store.commit(vec![Record::Boot { boot: 9 }, session(3), session(4)]);
    store.close();
    let after = restored(dir.path());
    assert_eq!((after.boot, after.last_session, after.sessions.len()), (9, 4, 2));
    assert_ne!(after.generation, first.generation);
    assert!(after.clients.is_empty(), "they know it by its old name");
    assert_eq!(after.sessions, first.sessions);

    // Elsewhere there is nothing to count on from.
    let other = tempfile::tempdir().unwrap();
    fs::copy(dir.path().join("backup"), other.path().join("backup")).unwrap();
    let elsewhere = restored(other.path());
    assert_eq!((elsewhere.boot, elsewhere.last_session), (3, 2));
}

#[test]
fn in_place_of_a_journal_that_cannot_be_read_it_counts_on_far_behind_it() {
    let dir = tempfile::tempdir().unwrap();
    backed_up(dir.path(), 3, 2);
    fs::write(dir.path().join("acpd.db"), b"my novel").unwrap();
    let after = restored(dir.path());
    assert_eq!((after.boot, after.last_session), (1003, 2));
    let kept = fs::read(dir.path().join("acpd-before-restore-1.db")).unwrap();
    assert_eq!(kept, b"my novel", "also that is kept");
}

#[test]
fn two_backups_to_one_file_do_not_meet() {
    let dir = tempfile::tempdir().unwrap();
    backed_up(dir.path(), 1, 1);
    let (journal, file) = (dir.path().join("acpd.db"), dir.path().join("backup"));
    let mut other = None;
    back_up(&journal, &file, |_| {
        other.get_or_insert_with(|| back_up(&journal, &file, |_| {}));
    })
    .unwrap();
    assert!(matches!(other, Some(Err(CopyError::Busy { .. }))), "{other:?}");
}
