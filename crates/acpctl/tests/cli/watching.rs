//! `acpctl wait`, `acpctl cancel`, `acpctl attach --until-idle`, and Ctrl-\ in `acpctl run`.

use std::thread::JoinHandle;

use acpd_api::method;
use serde_json::{Value, json};

use crate::run::signal;
use crate::support::{Client, Home, capable, exactly, run_against, session};
use crate::terminal::Person;
use crate::terminal::in_turn;

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

fn ended(client: &mut Client, outcome: Value) {
    client.notice(
        method::TURN_ENDED,
        json!({"turn": 1, "startedAt": 1, "at": 2, "outcome": outcome}),
    );
}

fn stopped(reason: &str) -> Value {
    json!({"kind": "stopped", "stopReason": reason})
}

/// Serves everything up to the first question how session `s-1` is.
fn watched(client: &mut Client, session: &Value) {
    client.finds(session);
    client.answer("initialize", capable());
    let attach = client.answer(method::SESSION_ATTACH, json!({"session": session}));
    assert_eq!(attach["params"], json!({"ref": exactly(), "role": "observer"}));
    client.answer(method::SESSION_SHOW, session.clone());
}

#[test]
fn wait_for_what_is_idle_returns_at_once_and_tells_of_what_is_blocked() {
    let done = run_against(&["wait", "-"], |mut client| {
        client.finds(&idle("max_tokens"));
        client.closed();
    });
    assert_eq!((done.out.as_str(), done.code), ("fix max_tokens\n", Some(0)));

    let done = run_against(&["wait", "fix"], |mut client| {
        let mut blocked = idle("end_turn");
        blocked["state"] = json!("blocked");
        blocked["reason"] = json!("the directory `/w` does not exist");
        blocked["hint"] = json!("put it back");
        client.finds(&blocked);
        client.closed();
    });
    assert_eq!((done.out.as_str(), done.code), ("fix blocked\n", Some(1)));
    let err = "fix: the session is blocked: the directory `/w` does not exist\nhint: put it back\n";
    assert_eq!(done.err, err);
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
            client.notice(
                method::SESSION_STATE,
                json!({"state": "live", "turn": "needs_action", "queued": 0}),
            );
            let mut asks = working();
            asks["turn"]["state"] = json!("needs_action");
            client.answer(method::SESSION_SHOW, asks);
        }
        ended(&mut client, stopped("end_turn"));
        client.answer(method::SESSION_SHOW, idle("end_turn"));
        client.closed();
    });
    assert_eq!((done.out.as_str(), done.code), ("fix end_turn\n", Some(0)));
    assert_eq!(done.err, "fix is waiting for you: `acpctl pending fix`\n");
}

#[test]
fn wait_gives_up_when_its_time_is_over() {
    let done = run_against(&["wait", "fix", "--timeout", "300ms"], |mut client| {
        watched(&mut client, &working());
        client.closed();
    });
    assert_eq!((done.out.as_str(), done.code), ("", Some(124)));
    assert!(done.err.starts_with("error: timed out after "), "{}", done.err);
    assert!(done.err.contains("; still working: fix\n"), "{}", done.err);
    let done = Home::new().run(&["wait", "fix", "--timeout", "10"]);
    assert_eq!(done.code, Some(2));
    assert!(done.err.contains("`10` has no unit: 10s, 10m, 10h or 10d"), "{}", done.err);
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

/// A daemon in which a cancel with these parameters ends the turn of a session.
fn cancels(home: &Home, session: Value, taken_back: u32, params: Value) -> JoinHandle<()> {
    home.daemon(move |mut client| {
        client.finds(&session);
        client.answer("initialize", capable());
        client.answer(method::SESSION_ATTACH, json!({"session": session}));
        let result = json!({"session": session, "running": true, "takenBack": taken_back});
        let asked = client.answer(method::SESSION_CANCEL, result);
        assert_eq!(asked["params"], params);
        client.answer(method::SESSION_SHOW, working());
        ended(&mut client, stopped("cancelled"));
        client.expect(method::SESSION_SHOW);
        client.closed();
    })
}

#[test]
fn cancel_on_a_terminal_asks_for_queued_prompts() {
    let mut queued = working();
    queued["queued"] = json!(2);
    for (args, question, answer, params) in [
        (&["cancel", "fix"][..], true, "y\r", json!({"session": "s-1", "agent": "demo"})),
        (
            &["cancel", "fix"],
            true,
            "n\r",
            json!({"session": "s-1", "agent": "demo", "turnOnly": true}),
        ),
        (&["cancel", "fix", "--queued"], false, "", json!({"session": "s-1", "agent": "demo"})),
    ] {
        let home = Home::new();
        let daemon = cancels(&home, queued.clone(), 0, params);
        let (mut person, child) = Person::start(&home, "dumb", args);
        if question {
            person.sees("also remove the 2 queued prompts? y/n > ");
            person.types(answer);
        }
        person.sees("cancelled the turn of fix");
        assert_eq!(home.wait(child).code, Some(0));
        assert_eq!(person.seen.contains("y/n"), question);
        daemon.join().unwrap();
    }
}

#[test]
fn cancel_does_not_wait_for_the_turn_that_came_after() {
    let done = run_against(&["cancel", "--turn", "fix"], |mut client| {
        client.finds(&working());
        client.answer("initialize", capable());
        client.answer(method::SESSION_ATTACH, json!({"session": working()}));
        let cancel = client.expect(method::SESSION_CANCEL);
        // The end of the turn came before the answer.
        ended(&mut client, stopped("cancelled"));
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
        ended(&mut client, stopped("cancelled"));
        client.says("Hel");
        client.notice(method::CAUGHT_UP, json!({"seq": 2}));
        client.answer(method::SESSION_SHOW, working());
        client.says("lo");
        ended(&mut client, stopped("refusal"));
        client.answer(method::SESSION_SHOW, idle("refusal"));
        client.closed();
    });
    assert!(done.out.contains("Hello\n"), "{}", done.out);
    assert_eq!(done.code, Some(5), "{done:?}");
}

#[test]
fn ctrl_backslash_leaves_a_turn_that_goes_on() {
    let (home, mut person, child, mut client, _prompt) = in_turn("xterm");
    client.says("half an ans");
    person.sees("session s-1");
    // The signal of Ctrl-\.
    signal(child.id(), "QUIT");
    person.sees("the turn continues in the background; come back with: acpctl attach s-1\r\n");
    // Nothing is cancelled.
    client.closed();
    assert_eq!(home.wait(child).code, Some(0));
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
