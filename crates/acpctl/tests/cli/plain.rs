//! `acpctl chat --plain` in a pipe.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::os::unix::net::UnixListener;
use std::process::{ChildStderr, Stdio};
use std::thread;

use acpd_api::method;
use serde_json::{Value, json};

use crate::support::{Client, Home, capable, session};

const NEW: [&str; 5] = ["chat", "--plain", "--new", "--agent", "demo"];

/// Serves everything up to the conversation.
fn begins(listener: &UnixListener, session: &Value) -> Client {
    // The first connection looks for a session.
    drop(Client::accept(listener));
    let mut client = Client::accept(listener);
    client.answer("initialize", capable());
    client.answer("session/new", json!({"sessionId": "s-1"}));
    client.answer(method::SESSION_ATTACH, json!({"session": session}));
    client
}

#[test]
fn the_last_line_needs_no_end_and_a_refused_prompt_is_told_by_the_exit_code() {
    let (home, listener) = Home::listening();
    let daemon = thread::spawn(move || {
        let mut client = begins(&listener, &session("s-1"));
        client.answer("session/prompt", json!({"stopReason": "end_turn"}));
        let refused = client.fail("session/prompt", "the agent is away", json!({}));
        assert_eq!(refused["params"]["prompt"][0]["text"], "hello");
    });
    let mut chat = home.acpctl(NEW).stdin(Stdio::piped()).spawn().unwrap();
    chat.stdin.take().unwrap().write_all(b"one\nhello").unwrap();
    let done = home.wait(chat);
    assert!(done.err.contains("error: the agent is away"), "{done:?}");
    assert_eq!(done.code, Some(1), "{done:?}");
    daemon.join().unwrap();
}

#[test]
fn a_question_whose_answer_is_not_taken_is_asked_again() {
    let (home, listener) = Home::listening();
    let daemon = thread::spawn(move || {
        let mut asks = session("s-1");
        asks["turn"]["state"] = json!("needs_action");
        let open = json!({"interactions": [{"id": "1-5", "agent": "demo", "sessionId": "s-1",
            "name": "fix", "cwd": "/work", "at": 1, "question": {"kind": "permission",
                "title": "Push", "toolKind": "execute", "subject": "run `git push`",
                "options": [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]}}]});
        let mut client = begins(&listener, &asks);
        client.answer(method::INTERACTION_LIST, open.clone());
        client.fail(method::INTERACTION_ANSWER, "the journal cannot be written", json!({}));
        client.answer(method::INTERACTION_LIST, open);
        let answered = client.answer(method::INTERACTION_ANSWER, json!({}));
        assert_eq!(answered["params"]["id"], "1-5");
        // The session stays as long as a client is connected.
        client
    });
    let mut chat = home.acpctl(NEW).stdin(Stdio::piped()).spawn().unwrap();
    let mut keys = chat.stdin.take().unwrap();
    let mut told = BufReader::new(chat.stderr.take().unwrap()).lines();
    let asked = |told: &mut Lines<BufReader<ChildStderr>>| {
        told.any(|line| line.unwrap().starts_with("type a number, or an empty line"))
    };
    for _ in 0..2 {
        assert!(asked(&mut told));
        keys.write_all(b"1\n").unwrap();
    }
    drop(keys);
    let answered = daemon.join().unwrap();
    assert_eq!(home.wait(chat).code, Some(0));
    drop(answered);
}
