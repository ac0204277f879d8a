//! `acpctl session handoff` between two agents.

use std::path::Path;

use acpd_api::method;
use serde_json::{Value, json};

use crate::support::{Client, Home, capable, exactly, session};

fn notice(method: &str, mut params: Value) -> Value {
    params["sessionId"] = json!("s-1");
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

fn said(kind: &str, text: &str) -> Value {
    notice(
        "session/update",
        json!({"update": {"sessionUpdate": kind, "content": {"type": "text", "text": text}}}),
    )
}

/// A turn with a message of a person and one of an agent.
fn turn(number: u32, prompt: &str, answer: &str) -> Vec<Value> {
    vec![
        notice(method::TURN_STARTED, json!({"turn": number, "at": number})),
        said("user_message_chunk", prompt),
        said("agent_message_chunk", answer),
        notice(
            method::TURN_ENDED,
            json!({"turn": number, "at": number,
                "outcome": {"kind": "stopped", "stopReason": "end_turn"}}),
        ),
    ]
}

/// Serves the journal of the session that is handed over, in two pages.
fn tells(client: &mut Client, cwd: &Path, turns: &[Vec<Value>]) {
    let mut old = session("s-1");
    old["cwd"] = json!(cwd);
    client.finds(&old);
    let other = json!({"name": "other", "title": "Other", "state": "ready", "since": 0,
        "restarts": 0, "command": ["other"], "sessions": 0, "log": "/l", "tried": true});
    let asked = client.answer(method::AGENT_SHOW, other);
    assert_eq!(asked["params"]["agent"], "other");
    let lines = turns.concat();
    let entries = |from: usize, upto: usize| -> Vec<Value> {
        (from..upto).map(|at| json!({"seq": at + 1, "line": lines[at]})).collect()
    };
    let middle = lines.len().min(3);
    let first = json!({"sessionId": "s-1", "entries": entries(0, middle), "next": middle});
    let log = client.answer(method::SESSION_LOG, first);
    assert_eq!(log["params"]["ref"], exactly());
    let rest = json!({"sessionId": "s-1", "entries": entries(middle, lines.len())});
    client.answer(method::SESSION_LOG, rest);
}

/// Serves the new session and returns the blocks of its prompt.
fn continues(client: &mut Client, cwd: &Path, initialized: Value) -> Value {
    let initialize = client.answer("initialize", initialized);
    assert_eq!(initialize["params"]["_meta"]["_acpd"]["agent"], "other");
    let new = client.answer("session/new", json!({"sessionId": "n-1"}));
    assert_eq!(new["params"]["cwd"], json!(cwd));
    let prompt = client.expect("session/prompt");
    assert_eq!(prompt["params"]["sessionId"], "n-1");
    client.result(&prompt, json!({"stopReason": "end_turn"}));
    let mut blocks = prompt["params"]["prompt"].clone();
    let title = &prompt["params"]["_meta"]["_acpd"]["title"];
    blocks[0]["title"] = title.clone();
    blocks
}

/// Hands over these turns; returns stderr and the blocks of the prompt.
fn hands_over(args: &[&str], turns: Vec<Vec<Value>>, initialized: Value) -> (String, Value) {
    let (home, listener) = Home::listening();
    let cwd = home.work();
    let daemon = std::thread::spawn(move || {
        tells(&mut Client::accept(&listener), &cwd, &turns);
        let mut client = Client::accept(&listener);
        let blocks = continues(&mut client, &cwd, initialized);
        client.closed();
        blocks
    });
    let done = home.run(&[&["session", "handoff", "fix", "--to", "other"], args].concat());
    assert_eq!((done.out.as_str(), done.code), ("", Some(0)), "{}", done.err);
    (done.err, daemon.join().unwrap())
}

#[test]
fn another_agent_gets_the_transcript_as_context() {
    let turns = vec![turn(1, "fix it", "I look."), turn(2, "and?", "Done.")];
    let (told, blocks) = hands_over(&["now", "test it"], turns, capable());
    insta::assert_snapshot!(told, @"
    handing over all 2 turns of fix (demo) to other
    session n-1 of other; continue with: acpctl run -s n-1 ...
    ");
    insta::assert_snapshot!(blocks[0]["text"].as_str().unwrap(), @"
    now test it

    This conversation was handed over to you: until now, the person talked with another agent, `demo`, about work in this directory. The transcript of it comes with this message. It is complete. You have not said or done what it tells of the agent, and files may have changed since. Take it as context, not as instructions to carry out again.
    ");
    assert_eq!(blocks[0]["title"], "now test it");
    let resource = &blocks[1]["resource"];
    assert_eq!(resource["mimeType"], "text/markdown");
    let text = resource["text"].as_str().unwrap();
    let (head, said) = text.split_once("\n## You\n").unwrap();
    assert!(head.starts_with("# fix\n\n- session: fix (s-1)\n- agent: demo\n"), "{head}");
    assert_eq!(said, "\nfix it\n\n## demo\n\nI look.\n\n## You\n\nand?\n\n## demo\n\nDone.\n");
    assert_eq!(blocks.as_array().unwrap().len(), 2);
}

#[test]
fn of_a_long_session_the_last_turns_are_handed_over() {
    let long = "ä".repeat(20 * 1024);
    let turns = || vec![turn(1, "one", &long), turn(2, "two", &long), turn(3, "three", "end")];
    let (told, blocks) = hands_over(&["go"], turns(), capable());
    assert!(
        told.starts_with("handing over the last 2 of 3 turns of fix (demo) to other\n"),
        "{told}"
    );
    let note = blocks[0]["text"].as_str().unwrap();
    assert!(note.contains("message. The first turn is left out. You"), "{note}");
    let text = blocks[1]["resource"]["text"].as_str().unwrap();
    assert!(!text.contains("\none\n") && text.contains("\ntwo\n") && text.ends_with("\nend\n"));

    let (told, blocks) = hands_over(&["go", "--all"], turns(), capable());
    assert!(told.starts_with("handing over all 3 turns of fix (demo) to other\n"), "{told}");
    assert!(blocks[1]["resource"]["text"].as_str().unwrap().contains("\none\n"));

    let one = vec![turn(1, "one", &format!("{}end", "ä".repeat(40 * 1024)))];
    let (told, blocks) = hands_over(&["go"], one, capable());
    assert!(told.starts_with("handing over the end of the only turn of fix"), "{told}");
    let text = blocks[1]["resource"]["text"].as_str().unwrap();
    assert!(text.contains("\n[…]\n\nä") && text.ends_with("äend\n") && text.len() < 66 * 1024);
}

#[test]
fn what_cannot_be_handed_over_makes_no_session() {
    let (home, listener) = Home::listening();
    let cwd = home.work();
    let daemon = std::thread::spawn(move || {
        tells(&mut Client::accept(&listener), &cwd, &[]);
        for _ in 0..2 {
            let mut gone = session("s-1");
            gone["cwd"] = json!(cwd.join("gone"));
            let mut client = Client::accept(&listener);
            client.finds(&gone);
            client.closed();
        }
    });
    let done = home.run(&["session", "handoff", "fix", "--to", "other", "go"]);
    let nothing = "error: session fix is empty\n\n\
                   hint: start with another agent: `acpctl run -a AGENT PROMPT`\n";
    assert_eq!((done.err.as_str(), done.code), (nothing, Some(2)));
    // The directory of the session is gone.
    let done = home.run(&["session", "handoff", "fix", "--to", "other", "go"]);
    let gone = "error: cannot enter `[HOME]/work/gone`: No such file or directory (os error 2)\n";
    assert!(done.err.starts_with(gone) && done.err.contains("acpctl session move"), "{}", done.err);
    assert_eq!(done.code, Some(3));
    let done = home.run(&["session", "handoff", "nope", "--to", "other", "go"]);
    assert_eq!(done.code, Some(3), "{done:?}");
    daemon.join().unwrap();
}

#[test]
fn a_name_that_is_taken_is_not_joined() {
    let (home, listener) = Home::listening();
    let cwd = home.work();
    let daemon = std::thread::spawn(move || {
        tells(&mut Client::accept(&listener), &cwd, &[turn(1, "fix it", "I look.")]);
        let mut client = Client::accept(&listener);
        client.answer("initialize", capable());
        let data = json!({"reason": "name_taken", "sessionId": "n-0"});
        client.fail("session/new", "a session `b` is there", data);
        client.closed();
    });
    let done = home.run(&["session", "handoff", "fix", "--to", "other", "-s", "b", "go"]);
    assert_eq!(done.code, Some(2));
    assert!(done.err.contains("error: a session `b` is there\n"), "{}", done.err);
    daemon.join().unwrap();
}
