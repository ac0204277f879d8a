//! Rows for a client that watches, and names of clients in notices.

use acpd_api::{
    AnswerInfo, AnswerParams, CancelParams, Changed, ClientName, CutShort, Doing, DoingKind,
    GivenAnswer, HostState, InteractionInfo, OptionInfo, Outcome, Question, QuestionAnswered,
    Removed, SessionInfo, SessionRef, SessionRowKey, SessionState, TurnEnded, TurnInfo, TurnState,
    Watched,
};
use serde_json::json;

fn session(id: &str) -> SessionInfo {
    SessionInfo {
        session_id: id.into(),
        agent: "demo".into(),
        name: None,
        title: None,
        labels: Vec::new(),
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
        background: Vec::new(),
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

fn name() -> ClientName {
    ClientName { name: "zed".into(), title: Some("Zed".into()), place: Some("pts/3".into()) }
}

#[test]
fn what_changed_looks_like_this() {
    let all = Changed {
        sessions: vec![session("s-1")],
        agents: Vec::new(),
        interactions: vec![question("1-2")],
        removed: Removed {
            sessions: vec![key("s-2")],
            agents: vec!["old".into()],
            interactions: vec!["1-1".into()],
        },
        hosts: vec![HostState { name: "box".into(), error: Some("timed out".into()) }],
    };
    insta::assert_json_snapshot!((Watched::default(), &all, Changed::default()));
    let told = serde_json::to_value(&all).unwrap();
    assert_eq!(serde_json::from_value::<Changed>(told).unwrap(), all);
}

#[test]
fn a_changed_row_takes_the_place_of_the_old_one() {
    let mut rows = Watched {
        sessions: vec![session("s-1"), session("s-2")],
        agents: Vec::new(),
        interactions: vec![question("1-1")],
        hosts: Vec::new(),
    };
    let old = rows.clone();
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
    let mut again = old.clone();
    again.apply(rows.changes_from(&old));
    assert_eq!(again, rows);
}

#[test]
fn who_did_it_looks_like_this() {
    let option =
        OptionInfo { option_id: "y".into(), name: "Yes".into(), kind: "allow_once".into() };
    let answered = |answer, by| QuestionAnswered {
        session_id: "s-1".into(),
        id: "1-1".into(),
        tool_call_id: Some("call-1".into()),
        title: Some("Run it".into()),
        subject: Some("run `make`".into()),
        answer,
        by,
        at: 7,
    };
    let ended = TurnEnded {
        session_id: "s-1".into(),
        turn: 2,
        started_at: 7,
        at: 9,
        outcome: Outcome::Stopped { stop_reason: "cancelled".into() },
        cut_short: Some(CutShort { why: "cancelled".into(), by: Some(name()) }),
        tools: None,
        files: Vec::new(),
        usage: None,
    };
    let session = SessionRef { session: "fix".to_owned(), ..SessionRef::default() };
    insta::assert_json_snapshot!((
        answered(AnswerInfo::Option { option }, name()),
        answered(AnswerInfo::Decline, ClientName::default()),
        ended,
        AnswerParams {
            id: "1-1".to_owned(),
            answer: GivenAnswer::Decline,
            by: Some(name()),
            parent: None
        },
        CancelParams { session, turn_only: true, background: false, by: Some(name()) },
    ));
}

#[test]
fn work_of_a_kind_that_a_newer_daemon_knows_is_still_work() {
    let doing: Doing = serde_json::from_value(json!({ "kind": "dreaming", "since": 1 })).unwrap();
    assert_eq!(doing, Doing { kind: DoingKind::Other, text: "".into(), since: 1 });
}
