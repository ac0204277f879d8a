//! Rows for a client that watches.

use acpd_api::{
    Changed, Doing, DoingKind, InteractionInfo, Question, Removed, SessionInfo, SessionRowKey,
    SessionState, TurnInfo, TurnState, Watched,
};
use serde_json::json;

fn session(id: &str) -> SessionInfo {
    SessionInfo {
        session_id: id.into(),
        agent: "demo".into(),
        name: None,
        title: None,
        cwd: "/src".into(),
        parent: None,
        state: SessionState::Live,
        pid: None,
        archived: false,
        reason: None,
        hint: None,
        restore: None,
        turn: TurnInfo { state: TurnState::Working, since: 5, last: None, reason: None },
        limited_until: None,
        queued: 0,
        clients: 0,
        prompts: 1,
        seq: 4,
        created: 1,
        updated: 2,
        last_line: Some(8),
        doing: Some(Doing { kind: DoingKind::Starting, text: "".into(), since: 5 }),
        usage: None,
    }
}

fn question(id: &str) -> InteractionInfo {
    InteractionInfo {
        id: id.into(),
        agent: "demo".into(),
        session_id: Some("s-1".into()),
        name: None,
        cwd: Some("/src".into()),
        parent: None,
        at: 9,
        question: Question::Url { message: "log in".into(), url: "https://a.example/".into() },
    }
}

fn key(id: &str) -> SessionRowKey {
    session(id).row_key()
}

#[test]
fn a_changed_row_takes_the_place_of_the_old_one() {
    let mut rows = Watched {
        sessions: vec![session("s-1"), session("s-2")],
        agents: Vec::new(),
        interactions: vec![question("1-1")],
    };
    let other = SessionInfo { seq: 5, ..session("s-2") };
    // With another agent, the same id is another session.
    let elsewhere = SessionInfo { agent: "other".into(), ..session("s-1") };
    rows.apply(Changed {
        sessions: vec![other.clone(), elsewhere.clone()],
        removed: Removed {
            sessions: vec![key("s-1")],
            interactions: vec!["1-1".into()],
            ..Removed::default()
        },
        ..Changed::default()
    });
    assert_eq!(rows.sessions, [other, elsewhere]);
    assert!(rows.interactions.is_empty());
}

#[test]
fn work_of_a_kind_that_a_newer_daemon_knows_is_still_work() {
    let doing: Doing = serde_json::from_value(json!({ "kind": "dreaming", "since": 1 })).unwrap();
    assert_eq!(doing, Doing { kind: DoingKind::Other, text: "".into(), since: 1 });
}
