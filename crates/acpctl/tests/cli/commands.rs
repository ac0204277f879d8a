//! Everything but `acpctl run` and `acpctl acp`.

use std::io::{BufRead as _, BufReader, Write as _};

use acpd_api::method;
use serde_json::{Value, json};

use crate::support::{Client, Home, capable, run_against, session};

fn agent(state: &str, log: &str) -> Value {
    json!({"name": "demo", "title": "Demo", "state": state, "since": 0, "restarts": 0,
        "command": ["demo"], "sessions": 0, "log": log, "tried": true})
}

#[test]
fn what_is_left_of_an_agent_is_told_and_a_restart_by_force_does_not_wait_for_it() {
    let (home, listener) = Home::listening();
    let daemon = std::thread::spawn(move || {
        let hint = "`acpctl agent restart demo --force` starts the agent beside it";
        let data = json!({"reason": "agent_leftovers", "hint": hint});
        let text = "agent `demo`: process 7 (`cat`) of its last run does not end";
        Client::accept(&listener).fail(method::AGENT_RESTART, text, data);
        Client::accept(&listener).answer(method::AGENT_RESTART, agent("ready", "/l"))["params"]
            .clone()
    });
    let done = home.run(&["agent", "restart", "demo"]);
    assert_eq!(done.code, Some(1));
    assert!(done.err.contains("process 7 (`cat`)"), "{}", done.err);
    assert!(done.err.contains("acpctl agent restart demo --force"), "{}", done.err);
    let done = home.run(&["agent", "restart", "demo", "--force"]);
    assert_eq!((done.code, done.err.as_str()), (Some(0), "demo is ready\n"));
    assert_eq!(daemon.join().unwrap(), json!({"agent": "demo", "force": true}));
}

#[test]
fn a_followed_log_goes_on_with_what_is_written_later() {
    let home = Home::new();
    let logs = home.path("state/log");
    std::fs::create_dir_all(&logs).unwrap();
    let log = logs.join("acpd.log");
    std::fs::write(&log, "one\n").unwrap();
    let mut child = home.acpctl(["daemon", "logs", "-f"]).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut next = || {
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        line
    };
    assert_eq!(next(), "one\n");
    let mut file = std::fs::File::options().append(true).open(&log).unwrap();
    file.write_all(b"two\n").unwrap();
    assert_eq!(next(), "two\n");
    // The last lines of the old file are not lost when another takes its place.
    std::fs::rename(&log, logs.join("acpd.log.1")).unwrap();
    file.write_all(b"three\n").unwrap();
    std::fs::write(&log, "four\n").unwrap();
    assert_eq!((next(), next()), ("three\n".to_owned(), "four\n".to_owned()));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn times_are_those_of_the_persons_clock() {
    let home = Home::new();
    let daemon = home.daemon(|mut client| {
        client.finds(&session("s-1"));
    });
    let done = home.acpctl(["session", "show", "fix"]).env("TZ", "JST-9").output().unwrap();
    let shown = String::from_utf8(done.stdout).unwrap();
    assert!(shown.contains("created    1970-01-01 09:00:01\n"), "{shown}");
    daemon.join().unwrap();
}

#[test]
fn a_message_that_the_agent_does_not_take_is_told() {
    let done = run_against(&["run", "--steer", "fix", "more"], |mut client| {
        client.finds(&session("s-1"));
        client.answer("initialize", capable());
        client.answer("_session/steering", json!({"outcome": "failed", "reason": "busy"}));
        client.closed();
    });
    let told = "error: demo did not accept the message: busy\n\n\
                hint: send it as a prompt: `acpctl run -s fix …`\n";
    assert_eq!((done.err.as_str(), done.code), (told, Some(1)));
}

#[test]
fn an_agent_that_does_not_answer_is_told_while_it_is_waited_for() {
    let done = run_against(&["session", "mode", "fix", "auto"], |mut client| {
        client.finds(&session("s-1"));
        client.answer("initialize", capable());
        let modes = json!([{"id": "ask", "name": "Ask"}, {"id": "auto", "name": "Do it"}]);
        let modes = json!({"modes": {"currentModeId": "ask", "availableModes": modes}});
        let resume = client.answer("session/resume", modes);
        let params = json!({"sessionId": "s-1", "cwd": "/work", "mcpServers": []});
        assert_eq!(resume["params"], params);
        let set = client.expect("session/set_mode");
        let params = json!({"agent": "demo", "method": "session/set_mode", "sessionId": "s-1",
            "waited": 120_000});
        client.send(json!({"jsonrpc": "2.0", "method": method::UNANSWERED, "params": params}));
        client.result(&set, json!({}));
        client.closed();
    });
    insta::assert_snapshot!(done.err, @"
    agent `demo` has not answered `session/set_mode` for 2m; Ctrl-C stops waiting, `acpctl agent restart demo` restarts the agent
    fix is now in mode `auto`
    ");
}
