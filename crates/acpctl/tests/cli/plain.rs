//! `acpctl chat --plain` in a pipe.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{ChildStderr, Stdio};
use std::thread;

use acpd_api::method;
use serde_json::json;

use crate::support::{Client, Home, capable, session};

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
        // The first connection looks for a session.
        drop(Client::accept(&listener));
        let mut client = Client::accept(&listener);
        client.answer("initialize", capable());
        client.answer("session/new", json!({"sessionId": "s-1"}));
        client.answer(method::SESSION_ATTACH, json!({"session": asks}));
        client.answer(method::INTERACTION_LIST, open.clone());
        client.fail(method::INTERACTION_ANSWER, "the journal cannot be written", json!({}));
        client.answer(method::INTERACTION_LIST, open);
        let answered = client.answer(method::INTERACTION_ANSWER, json!({}));
        assert_eq!(answered["params"]["id"], "1-5");
        // The session stays as long as a client is connected.
        client
    });
    let mut chat = home.acpctl(["chat", "--plain", "--new", "--agent", "demo"]);
    let mut chat = chat.stdin(Stdio::piped()).spawn().unwrap();
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
