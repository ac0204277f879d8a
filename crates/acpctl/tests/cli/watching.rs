//! `acpctl wait`, `acpctl cancel`, `acpctl attach --until-idle`, and signals before a prompt.

use acpd_api::method;
use serde_json::{Value, json};

use crate::run::signal;
use crate::support::{Client, Home, capable, exactly, run_against, session};

/// Session `s-1` at work, or idle after its last turn ended so.
fn working() -> Value {
    let mut working = session("s-1");
    working["turn"] = json!({"state": "working", "since": 5});
    working
}

fn idle(last: &str) -> Value {
    let mut idle = session("s-1");
    idle["turn"] = json!({"state": "idle", "since": 9, "last": last});
    idle
}

fn ended(client: &mut Client, reason: &str) {
    let outcome = json!({"kind": "stopped", "stopReason": reason});
    let ended = json!({"turn": 1, "startedAt": 1, "at": 2, "outcome": outcome});
    client.notice(method::TURN_ENDED, ended);
}

/// Serves everything up to the first question how session `s-1` is.
fn watched(client: &mut Client, session: &Value) {
    let attach = client.follows(session);
    assert_eq!(attach["params"], json!({"ref": exactly(), "role": "observer"}));
    client.answer(method::SESSION_SHOW, session.clone());
}

#[test]
fn wait_for_any_returns_with_the_first_and_a_question_is_told_once() {
    let done = run_against(&["wait", "--any", "docs", "fix"], |mut client| {
        let mut other = working();
        other["sessionId"] = json!("s-2");
        other["name"] = json!("docs");
        client.lists(&[&working(), &other]);
        client.lists(&[&working(), &other]);
        client.answer("initialize", capable());
        client.answer(method::SESSION_ATTACH, json!({"session": working()}));
        client.answer(method::SESSION_ATTACH, json!({"session": other}));
        client.answer(method::SESSION_SHOW, working());
        client.answer(method::SESSION_SHOW, other);
        for _ in 0..2 {
            let now = json!({"state": "live", "turn": "needs_action", "queued": 0});
            client.notice(method::SESSION_STATE, now);
            let mut asks = working();
            asks["turn"]["state"] = json!("needs_action");
            client.answer(method::SESSION_SHOW, asks);
        }
        ended(&mut client, "end_turn");
        client.answer(method::SESSION_SHOW, idle("end_turn"));
        client.closed();
    });
    assert_eq!((done.out.as_str(), done.code), ("fix end_turn\n", Some(0)));
    assert_eq!(done.err, "fix is waiting for you: `acpctl pending fix`\n");
}

#[test]
fn wait_refuses_sessions_of_two_agents_with_one_id() {
    let done = run_against(&["wait", "fix", "fix", "docs"], |mut client| {
        let mut other = working();
        other["agent"] = json!("codex");
        other["name"] = json!("docs");
        (0..3).for_each(|_| drop(client.lists(&[&working(), &other])));
        assert_eq!(client.read(), None);
    });
    let refused = "error: `fix` of demo and `docs` of codex have the same id\n\n\
                   hint: wait for each on its own: `acpctl wait --agent AGENT SESSION`\n";
    assert_eq!((done.err.as_str(), done.code), (refused, Some(2)));
}

#[test]
fn wait_ends_when_the_session_is_deleted() {
    let done = run_against(&["wait", "fix"], |mut client| {
        watched(&mut client, &working());
        client.notice(method::SESSION_REMOVED, json!({}));
        client.closed();
    });
    assert_eq!((done.out.as_str(), done.code), ("fix removed\n", Some(3)));
}

#[test]
fn cancel_does_not_wait_for_the_turn_that_came_after() {
    let done = run_against(&["cancel", "--turn", "fix"], |mut client| {
        client.follows(&working());
        let cancel = client.expect(method::SESSION_CANCEL);
        // The end of the turn came before the answer.
        ended(&mut client, "cancelled");
        client.result(&cancel, json!({"session": working(), "running": true, "takenBack": 0}));
        let mut next = working();
        next["turn"] = json!({"state": "working", "since": 7, "last": "cancelled"});
        client.answer(method::SESSION_SHOW, next);
        client.closed();
    });
    assert_eq!((done.err.as_str(), done.code), ("cancelled the turn of fix\n", Some(0)));
}

#[test]
fn attach_until_idle_shows_the_rest_and_ends_as_the_turn_does() {
    let done = run_against(&["attach", "fix", "--until-idle"], |mut client| {
        client.follows(&working());
        // Turns of the history are no end of the present one.
        ended(&mut client, "cancelled");
        client.says("Hel");
        client.notice(method::CAUGHT_UP, json!({"seq": 2}));
        client.answer(method::SESSION_SHOW, working());
        client.says("lo");
        ended(&mut client, "refusal");
        client.answer(method::SESSION_SHOW, idle("refusal"));
        client.closed();
    });
    assert!(done.out.contains("Hello\n"), "{}", done.out);
    assert_eq!(done.code, Some(5), "{done:?}");
}

#[test]
fn a_signal_before_the_prompt_sends_none() {
    let (home, listener) = Home::listening();
    let child = home.acpctl(["run", "hello"]).spawn().unwrap();
    let mut client = Client::accept(&listener);
    client.expect("initialize");
    signal(child.id(), "QUIT");
    client.closed();
    let done = home.wait(child);
    assert_eq!(done.err, "error: cancelled before the prompt was sent\n");
    assert_eq!(done.code, Some(130));
}
