//! Pages of a journal.

use acp_wire::StateKey;
use acpd_core::ids::{Seq, SessionKey};
use acpd_core::record::{EventKind, EventRow, Forked, Record};

use crate::running::{Running, event, session};

fn seqs(rows: &[EventRow]) -> Vec<Seq> {
    rows.iter().map(|row| row.seq).collect()
}

fn ten_lines(store: &mut Running) -> SessionKey {
    let mut batch = vec![session(1), session(2)];
    for seq in 1..=10 {
        batch.push(event(1, seq, EventKind::Update, vec![b'x'; 100]));
        batch.push(event(2, seq, EventKind::Update, vec![b'y'; 100]));
    }
    store.commit(batch);
    SessionKey(1)
}

#[test]
fn a_page_holds_what_is_after_one_position_up_to_another() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Running::start(dir.path());
    let session = ten_lines(&mut store);
    let page = |store: &mut Running, after, upto, bytes| {
        seqs(&store.reader.events(session, after, upto, bytes).unwrap())
    };
    assert!(page(&mut store, 0, Seq::MAX, usize::MAX).into_iter().eq(1..=10));
    assert_eq!(page(&mut store, 3, 6, usize::MAX), [4, 5, 6]);
    assert!(page(&mut store, 6, 6, usize::MAX).is_empty());
    assert!(page(&mut store, 10, Seq::MAX, usize::MAX).is_empty());
    assert!(page(&mut store, Seq::MAX, Seq::MAX, usize::MAX).is_empty());
    store.close();
}

#[test]
fn a_page_ends_with_the_line_that_fills_it_and_has_at_least_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Running::start(dir.path());
    let session = ten_lines(&mut store);
    assert_eq!(seqs(&store.reader.events(session, 0, 10, 0).unwrap()), [1]);
    assert_eq!(seqs(&store.reader.events(session, 0, 10, 200).unwrap()), [1, 2]);
    assert_eq!(seqs(&store.reader.events(session, 0, 10, 201).unwrap()), [1, 2, 3]);
    store.close();
}

#[test]
fn a_reader_sees_a_batch_as_soon_as_it_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Running::start(dir.path());
    store.commit(vec![session(1)]);
    for seq in 1..50 {
        store.commit(vec![event(1, seq, EventKind::Update, "line")]);
        assert_eq!(store.journal(SessionKey(1)).len() as u64, seq);
    }
    store.close();
}

#[test]
fn a_fork_begins_with_the_last_lines_of_another_journal() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Running::start(dir.path());
    let line = |id: &str, n: u64| format!(r#"{{"params":{{"sessionId":"{id}","n":{n}}}}}"#);
    let of = |seq| event(1, seq, EventKind::State(StateKey::Plan), line("public-1", seq));
    store.commit(vec![session(1), of(1), of(2)]);
    let fork = |session, upto, most| {
        Record::Forked(Forked {
            session: SessionKey(session),
            public_id: format!("public-{session}"),
            from: SessionKey(1),
            upto,
            most,
            left_out: "some".into(),
        })
    };
    let two = 2 * line("public-1", 1).len() as u64;
    // Also what was written in the same transaction.
    store.commit(vec![of(3), session(2), fork(2, 2, two), session(3), fork(3, 3, two), of(4)]);
    let lines = |store: &mut Running, session| {
        let rows = store.journal(SessionKey(session)).into_iter();
        rows.map(|row| (row.seq, String::from_utf8_lossy(&row.line).into_owned()))
            .collect::<Vec<_>>()
    };
    let copied = |id: &str, n| (n, line(id, n));
    assert_eq!(lines(&mut store, 2), [copied("public-2", 1), copied("public-2", 2)]);
    let cut = [(1, "some".to_owned()), copied("public-3", 2), copied("public-3", 3)];
    assert_eq!(lines(&mut store, 3), cut);
    let state = &store.reader.states(SessionKey(3), Seq::MAX).unwrap()[0];
    assert_eq!((state.seq, store.journal(SessionKey(1)).len()), (3, 4));
    store.close();
}
