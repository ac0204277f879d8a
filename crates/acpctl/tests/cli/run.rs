//! `acpctl run` against a daemon that a thread of the test plays.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Command;

use crate::support::{Client, Home, about, capable, exactly, run_against, session};
use acpd_api::method;
use serde_json::json;

#[test]
fn a_new_name_begins_a_session_and_a_lost_race_joins_the_winner() {
    let home = Home::new();
    let daemon = home.daemon(|mut client| {
        // A prefix is not enough.
        let mut other = session("s-1");
        other["name"] = json!("fixes");
        client.finds(&other);
        client.answer("initialize", capable());
        let new = client.fail(
            "session/new",
            "taken",
            json!({"reason": "name_taken", "sessionId": "s-9"}),
        );
        assert_eq!(new["params"]["_meta"]["_acpd"]["name"], "fix");
        let attach = client.answer(method::SESSION_ATTACH, json!({"session": session("s-9")}));
        assert_eq!(attach["params"]["ref"], json!({"session": "s-9", "agent": "demo"}));
        let prompt = client.expect("session/prompt");
        assert_eq!(prompt["params"]["sessionId"], "s-9");
        client.result(&prompt, json!({"stopReason": "end_turn"}));
    });
    assert_eq!(home.run(&["run", "-s", "fix", "more"]).code, Some(0));
    daemon.join().unwrap();
}

#[test]
fn a_detached_prompt_that_is_not_on_disk_is_an_error() {
    let done = run_against(&["run", "--detach", "hello"], |mut client| {
        let prompt = client.begins();
        assert_eq!(client.expect(method::SESSION_SHOW)["params"], exactly());
        client.error(&prompt, "the journal cannot be written", json!({"reason": "store_failed"}));
    });
    assert_eq!((done.out.as_str(), done.code), ("", Some(1)));
    assert!(done.err.starts_with("error: the journal cannot be written"), "{}", done.err);
}

/// Ctrl-C, as the terminal sends it.
pub(crate) fn interrupt(pid: u32) {
    signal(pid, "INT");
}

/// Sends a signal by its name, as a key of the terminal does.
pub(crate) fn signal(pid: u32, name: &str) {
    let sent = Command::new("/bin/kill").args([&format!("-{name}"), &pid.to_string()]).status();
    assert!(sent.unwrap().success());
}

#[test]
fn without_a_terminal_a_permission_is_held_and_can_be_withdrawn() {
    let (home, listener) = Home::listening();
    let mut child = home.acpctl(["run", "hello"]).spawn().unwrap();
    let mut client = Client::accept(&listener);
    let prompt = client.begins();
    let ask = json!({"sessionId": "s-1", "toolCall": {"toolCallId": "t", "title": "rm -rf /"},
        "_meta": about("rm -rf /", &[]), "options": [{"optionId": "o", "name": "Allow", "kind": "allow_once"}]});
    client.send(json!({"jsonrpc": "2.0", "id": "q1", "method": "session/request_permission",
        "params": ask}));
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    err.read_line(&mut line).unwrap();
    assert_eq!(line, "waiting for permission: $ rm -rf /\n");
    client.has_questions(&[("codex", "1-4")]);
    client.send(json!({"jsonrpc": "2.0", "method": "$/cancel_request",
        "params": {"requestId": "q1"}}));
    client.result(&prompt, json!({"stopReason": "end_turn"}));
    // Nothing may have been answered.
    client.closed();
    let mut rest = String::new();
    err.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("withdrawn: no answer is needed") && !rest.contains("1-4"), "{rest}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_turn_goes_on_without_its_command() {
    for (end, code) in [("nobody reads", 8), ("TERM", 128 + 15), ("QUIT", 0)] {
        let (home, listener) = Home::listening();
        let mut child = home.acpctl(["run", "hello"]).spawn().unwrap();
        let mut client = Client::accept(&listener);
        client.begins();
        if end == "nobody reads" {
            drop(child.stdout.take());
            client.says("is anybody there?");
        } else {
            signal(child.id(), end);
        }
        // Nothing is cancelled.
        client.closed();
        let done = home.wait(child);
        let told = "the turn continues in the background; come back with: acpctl attach s-1\n";
        assert_eq!((done.code, done.err.as_str()), (Some(code), told), "{end}");
    }
}
