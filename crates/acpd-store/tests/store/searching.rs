//! The index of what was said.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use acpd_api::Speaker;
use acpd_core::ids::{Seq, SessionKey};
use acpd_core::record::{EventKind, Record};
use acpd_store::{Found, Index};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::running::{Running, event, session};

fn index_file(dir: &Path) -> PathBuf {
    dir.join("search.db")
}

fn index(dir: &Path) -> Index {
    Index::open(&dir.join("acpd.db"), &index_file(dir)).expect("the index opens")
}

fn caught_up(dir: &Path) -> Index {
    let mut index = index(dir);
    index.catch_up().unwrap();
    index
}

fn line(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
}

fn said(session: u32, seq: Seq, by: &str, text: &str) -> Record {
    let update = json!({"sessionUpdate": format!("{by}_message_chunk"),
        "content": {"type": "text", "text": text}});
    let params = json!({"sessionId": "s", "update": update});
    event(session, seq, EventKind::Update, line("session/update", &params))
}

fn ended(session: u32, seq: Seq) -> Record {
    let params = json!({"sessionId": "s", "turn": 1, "at": 1});
    event(session, seq, EventKind::Notice, line("_acpd/turn_ended", &params))
}

fn find(index: &mut Index, words: &[&str]) -> Vec<Found> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let mut found = index.find(&words, (1..=3).map(SessionKey), 1000).expect("a search");
    found.sort_by_key(|found| (found.session, found.seq));
    found
}

#[test]
fn of_a_common_word_the_newest_hits_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Running::start(dir.path());
    let said_once = |key, seq, text| [said(key, seq, "agent", text), ended(key, seq + 1)];
    let often = (0..1999).flat_map(|n| said_once(2, 2 * n + 1, "parser"));
    store.commit([session(1), session(2)].into_iter().chain(often).collect());
    store.commit(said_once(1, 1, "parser parser").into());
    let mut index = caught_up(dir.path());
    let best = |index: &mut Index| {
        let found = index.find(&["parser".to_owned()], [1, 2].map(SessionKey), 1).unwrap();
        (found[0].session.0, found[0].seq)
    };
    assert_eq!(best(&mut index), (1, 1));
    store.commit(said_once(2, 3999, "parser").into());
    index.catch_up().unwrap();
    assert_eq!(best(&mut index), (2, 3999));
    store.close();
}

fn texts(found: &[Found]) -> Vec<String> {
    let text = |found: &Found| found.snippet.iter().map(|part| part.text.raw()).collect();
    found.iter().map(text).collect()
}

/// A session of two turns, the second of which has not ended.
fn two_turns(store: &mut Running) {
    store.commit(vec![
        session(1),
        said(1, 1, "user", "Why does the Parser fail?"),
        said(1, 2, "agent", "The par"),
        said(1, 3, "agent", "ser reads \"naïve\" words."),
        ended(1, 4),
        said(1, 5, "user", "then mend the parser"),
    ]);
}

#[test]
fn a_message_is_found_by_its_words_when_its_turn_has_ended() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Running::start(dir.path());
    two_turns(&mut store);
    let mut index = caught_up(dir.path());
    let found = find(&mut index, &["parser"]);
    let places: Vec<_> = found.iter().map(|found| (found.seq, found.at.0, found.by)).collect();
    assert_eq!(places, [(1, 1, Speaker::User), (2, 2, Speaker::Agent)]);
    let hits: Vec<_> = found[1].snippet.iter().filter(|part| part.hit).collect();
    assert_eq!((hits.len(), hits[0].text.raw()), (1, "parser"));
    assert_eq!(texts(&found)[1], "The parser reads \"naïve\" words.");

    assert_eq!(find(&mut index, &["PARSER", "naive"]).len(), 1, "all words");
    assert_eq!(find(&mut index, &["pars*"]).len(), 2, "the beginning of a word");
    assert_eq!(find(&mut index, &["pars"]).len(), 0);
    assert_eq!(find(&mut index, &["parser fail"]).len(), 1, "words that follow each other");
    assert_eq!(find(&mut index, &["fail parser"]).len(), 0);
    assert_eq!(index.find(&["parser".to_owned()], [SessionKey(2)], 9).unwrap(), []);
    assert_eq!(index.find(&["parser".to_owned()], [SessionKey(1)], 1).unwrap().len(), 1);

    store.commit(vec![ended(1, 6)]);
    index.update([SessionKey(1)]).unwrap();
    assert_eq!(find(&mut index, &["parser"]).len(), 3);
    store.close();
}

#[test]
fn a_deleted_session_is_forgotten_to_the_last_byte() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Running::start(dir.path());
    two_turns(&mut store);
    store.commit(vec![session(2), said(2, 1, "user", "xyzzyplugh parser"), ended(2, 2)]);
    let mut index = caught_up(dir.path());
    assert_eq!(find(&mut index, &["xyzzyplugh"]).len(), 1);
    store.commit(vec![Record::SessionRemoved { session: SessionKey(2) }]);
    index.update([SessionKey(2)]).unwrap();
    assert_eq!(find(&mut index, &["parser"]).len(), 2);
    assert_eq!(find(&mut index, &["xyzzyplugh"]).len(), 0);
    for file in ["search.db", "search.db-wal"] {
        let bytes = std::fs::read(dir.path().join(file)).unwrap();
        let word: &[u8] = b"xyzzyplugh";
        assert!(!bytes.windows(word.len()).any(|window| window == word), "it is in {file}");
    }
    store.close();
}

#[test]
fn an_index_that_is_damaged_or_of_another_journal_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Running::start(dir.path());
    two_turns(&mut store);
    std::fs::write(index_file(dir.path()), "this is no database, though it is long ".repeat(999))
        .unwrap();
    assert_eq!(find(&mut caught_up(dir.path()), &["parser"]).len(), 2);
    store.close();

    let other = tempfile::tempdir().unwrap();
    let mut store = Running::start(other.path());
    store.commit(vec![session(1), said(1, 1, "user", "another"), ended(1, 2)]);
    std::fs::copy(index_file(dir.path()), index_file(other.path())).unwrap();
    let mut index = caught_up(other.path());
    assert_eq!(find(&mut index, &["parser"]).len(), 0);
    assert_eq!(find(&mut index, &["another"]).len(), 1);
    acpd_sys::files::secret_file(&index_file(other.path())).expect("nobody else's");
    index.discard().unwrap();
    assert!(!index_file(other.path()).exists());
    store.close();
}

#[test]
fn a_journal_that_was_put_back_is_indexed_as_it_is_now() {
    let dir = tempfile::tempdir().unwrap();
    let backup = dir.path().join("backup.db");
    let mut store = Running::start(dir.path());
    two_turns(&mut store);
    store.close();
    std::fs::copy(dir.path().join("acpd.db"), &backup).unwrap();

    let mut store = Running::start(dir.path());
    store.commit(vec![said(1, 6, "agent", "forgotten"), ended(1, 7)]);
    assert_eq!(find(&mut caught_up(dir.path()), &["forgotten"]).len(), 1);
    store.close();
    std::fs::copy(&backup, dir.path().join("acpd.db")).unwrap();

    let mut store = Running::start(dir.path());
    let mut index = caught_up(dir.path());
    assert_eq!(find(&mut index, &["forgotten"]).len(), 0);
    assert_eq!(find(&mut index, &["parser"]).len(), 2);
    store.commit(vec![said(1, 6, "agent", "otherwise"), ended(1, 7)]);
    index.update([SessionKey(1)]).unwrap();
    assert_eq!(find(&mut index, &["otherwise"]).len(), 1);
    store.close();
}

/// A change of a journal and its index.
#[derive(Debug, Clone)]
enum Step {
    Say { session: u32, by: &'static str, text: String },
    End { session: u32 },
    Remove { session: u32 },
    Update { session: u32 },
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let session = 1..=3u32;
    let by = prop_oneof![Just("user"), Just("agent")];
    prop_oneof![
        6 => (session.clone(), by, "[a-z \u{2}\u{3}\"*]{0,12}")
            .prop_map(|(session, by, text)| Step::Say { session, by, text }),
        3 => session.clone().prop_map(|session| Step::End { session }),
        1 => session.clone().prop_map(|session| Step::Remove { session }),
        2 => session.prop_map(|session| Step::Update { session }),
        1 => Just(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn an_index_that_was_kept_is_the_one_that_would_be_made(
        steps in prop::collection::vec(step(), 0..60),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Running::start(dir.path());
        let mut kept = index(dir.path());
        let mut heads = [0; 4];
        let mut live = BTreeSet::new();
        for step in steps {
            match step {
                Step::Say { session: key, by, text } => {
                    if live.insert(key) {
                        heads[key as usize] = 0;
                        store.commit(vec![session(key)]);
                    }
                    heads[key as usize] += 1;
                    store.commit(vec![said(key, heads[key as usize], by, &format!("every {text}"))]);
                }
                Step::End { session } if live.contains(&session) => {
                    heads[session as usize] += 1;
                    store.commit(vec![ended(session, heads[session as usize])]);
                }
                // The daemon never uses a key again, so it is told of each deletion in time.
                Step::Remove { session } if live.remove(&session) => {
                    store.commit(vec![Record::SessionRemoved { session: SessionKey(session) }]);
                    kept.update([SessionKey(session)]).unwrap();
                }
                Step::End { .. } | Step::Remove { .. } => {}
                Step::Update { session } => kept.update([SessionKey(session)]).unwrap(),
                Step::Reopen => kept = index(dir.path()),
            }
        }
        kept.catch_up().unwrap();
        let found = find(&mut kept, &["every"]);
        kept.discard().unwrap();
        prop_assert_eq!(found, find(&mut caught_up(dir.path()), &["every"]));
        store.close();
    }
}

#[test]
fn no_words_are_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Running::start(dir.path());
    two_turns(&mut store);
    let index = RefCell::new(caught_up(dir.path()));
    let word = prop_oneof![
        any::<String>(),
        "[\"*^+(){}:\\- \0]{0,6}",
        Just("NEAR".to_owned()),
        "par.?\\*"
    ];
    let words = prop::collection::vec(word, 0..64);
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    let searched = TestRunner::new(config).run(&words, |words| {
        let found = index.borrow_mut().find(&words, [SessionKey(1)], 9);
        prop_assert!(found.is_ok(), "{:?}", found);
        Ok(())
    });
    searched.unwrap();
    store.close();
}
