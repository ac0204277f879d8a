//! Pages of a journal.

use acpd_api::{Amount, Cost, Tokens, UsageBy, UsageParams, UsageTotal};
use acpd_core::ids::{Seq, SessionKey, Time};
use acpd_core::record::{EventKind, Record, UsageRow};

use crate::running::{Running, event, session};

#[test]
fn a_page_ends_at_a_position_or_with_the_line_that_fills_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Running::start(dir.path());
    let lines = (1..=10).flat_map(|seq| [1, 2].map(|key| (key, seq)));
    let lines = lines.map(|(key, seq)| event(key, seq, EventKind::Update, vec![b'x'; 100]));
    store.commit([session(1), session(2)].into_iter().chain(lines).collect());
    let page = |store: &mut Running, after, upto, bytes| -> Vec<Seq> {
        let rows = store.reader.events(SessionKey(1), after, upto, bytes).unwrap();
        rows.iter().map(|row| row.seq).collect()
    };
    assert!(page(&mut store, 0, Seq::MAX, usize::MAX).into_iter().eq(1..=10));
    assert_eq!(page(&mut store, 3, 6, usize::MAX), [4, 5, 6]);
    assert!(page(&mut store, 6, 6, usize::MAX).is_empty());
    assert!(page(&mut store, 10, Seq::MAX, usize::MAX).is_empty());
    assert!(page(&mut store, Seq::MAX, Seq::MAX, usize::MAX).is_empty());
    // A page has at least one line.
    assert_eq!(page(&mut store, 0, 10, 0), [1]);
    assert_eq!(page(&mut store, 0, 10, 200), [1, 2]);
    assert_eq!(page(&mut store, 0, 10, 201), [1, 2, 3]);
    store.close();
}

#[test]
fn what_was_used_is_added_up_and_what_nobody_told_stays_unknown() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Running::start(dir.path());
    let cost = |parts, currency: &str| {
        Some(Cost { amount: Amount::from_parts(parts), currency: currency.into() })
    };
    let row = |at, session: &str, turn, total, cost| {
        let agent = if session == "c" { "mute" } else { "loud" };
        let (agent, cwd) = (agent.to_owned(), "/w".to_owned());
        let tokens = Tokens { total, ..Tokens::default() };
        let (at, day, session) = (Time(at), Time(at / 10 * 10), session.to_owned());
        Record::Usage(UsageRow { at, day, agent, session, cwd, turn, tokens, cost })
    };
    store.commit(vec![
        row(1, "a", Some(1), Some(5), cost(7, "USD")),
        row(11, "a", Some(2), Some(6), cost(8, "USD")),
        row(12, "b", Some(1), Some(7), cost(9, "EUR")),
        row(13, "b", None, None, cost(1, "EUR")),
        row(14, "c", Some(1), None, None),
        // More than a signed sum could hold.
        row(15, "b", Some(2), Some(i64::MAX as u64), cost(i64::MAX as u64, "EUR")),
        row(16, "b", Some(3), Some(i64::MAX as u64), cost(i64::MAX as u64, "EUR")),
    ]);
    let mut usage = |since, by| store.reader.usage(UsageParams { since, by }).unwrap();
    let agents = usage(0, UsageBy::Agent);
    let names: Vec<_> = agents.iter().map(|total| total.agent.as_ref().unwrap().raw()).collect();
    assert_eq!(names, ["loud", "mute"]);
    assert_eq!((agents[0].turns, agents[0].untold), (5, 0));
    assert_eq!(agents[0].costs[1], cost(15, "USD").unwrap());
    let mute = UsageTotal { agent: Some("mute".into()), ..UsageTotal::default() };
    assert_eq!(agents[1], UsageTotal { turns: 1, untold: 1, ..mute });

    let sessions = usage(2, UsageBy::Session);
    let of = |total: &UsageTotal| (total.session_id.clone().unwrap().into_raw(), total.turns);
    let told: Vec<_> = sessions.iter().map(of).collect();
    assert_eq!(told, [("a".to_owned(), 1), ("b".to_owned(), 3), ("c".to_owned(), 1)]);
    assert_eq!(sessions[0].tokens, Tokens { total: Some(6), ..Tokens::default() });
    let days: Vec<_> =
        usage(0, UsageBy::Day).iter().map(|total| (total.day, total.turns)).collect();
    assert_eq!(days, [(Some(0), 1), (Some(10), 5)]);
    let dirs = usage(0, UsageBy::Workspace);
    assert_eq!((dirs.len(), dirs[0].turns, dirs[0].untold), (1, 6, 1));
    store.close();
}
