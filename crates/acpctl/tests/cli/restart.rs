//! A daemon that goes away and comes back under a command.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use acpd_api::method;
use serde_json::{Value, json};

use crate::support::{Client, Home, capable, run_against, status};

#[test]
fn an_editor_that_terminates_its_agent_does_not_come_back() {
    let (home, listener) = Home::listening();
    let mut child = home.acpctl(["acp"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut client = Client::accept(&listener);
    let initialize = json!({"id": 0, "method": "initialize", "params": {"protocolVersion": 1}});
    writeln!(child.stdin.as_mut().unwrap(), "{initialize}").unwrap();
    let mut welcome = capable();
    welcome["agentCapabilities"]["_meta"]["_acpd"] =
        json!({"api": 1, "agent": "demo", "generation": "g-1", "received": 0, "again": []});
    client.answer("initialize", welcome);
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut String::new()).unwrap();
    crate::run::signal(child.id(), "TERM");
    assert_eq!(client.expect(method::CLIENT_LEAVE)["id"], Value::Null);
    client.closed();
    let done = home.wait(child);
    assert_eq!((done.code, done.err.as_str()), (None, ""), "the signal has ended it");
}

#[test]
fn restart_takes_a_daemon_that_dies_as_it_is_asked_for_one_that_has_ended() {
    let (home, listener) = Home::listening();
    let child = home.acpctl(["daemon", "restart"]).spawn().unwrap();
    // The first request is made once more, of a daemon that dies as well.
    for _ in 0..2 {
        Client::accept(&listener).expect(method::STATUS);
    }
    Client::accept(&listener).answer(method::STATUS, status(4711, 3));
    let done = home.wait(child);
    assert_eq!((done.code, done.err.as_str()), (Some(0), "acpd restarted (pid 4711)\n"));
}

#[test]
fn stop_waits_for_the_daemon_that_was_asked_and_not_for_its_successor() {
    let (home, listener) = Home::listening();
    let child = home.acpctl(["daemon", "stop"]).spawn().unwrap();
    let mut client = Client::accept(&listener);
    client.answer(method::STATUS, status(4711, 1));
    std::fs::create_dir_all(home.path("state")).unwrap();
    let mut lock = File::create(home.path("state").join("acpd.lock")).unwrap();
    writeln!(lock, "4712").unwrap();
    lock.lock().unwrap();
    client.answer(method::DAEMON_STOP, json!({}));
    drop(client);
    let done = home.wait(child);
    assert_eq!((done.code, done.err.as_str()), (Some(0), "acpd stopped\n"));
}

#[test]
fn a_daemon_that_was_started_again_while_it_was_to_stop_is_stopped_under_the_same_pid() {
    let home = Home::new();
    std::fs::create_dir_all(home.path("state").join("shims").join("g-1")).unwrap();
    let listener = home.listen();
    let child = home.acpctl(["daemon", "stop"]).spawn().unwrap();
    let mut client = Client::accept(&listener);
    client.answer(method::STATUS, status(4711, 1));
    client.expect(method::DAEMON_STOP);
    drop(client);
    let mut client = Client::accept(&listener);
    client.answer(method::STATUS, status(4711, 2));
    drop(client);
    let mut client = Client::accept(&listener);
    client.answer(method::STATUS, status(4711, 2));
    client.answer(method::DAEMON_STOP, json!({}));
    drop(client);
    let done = home.wait(child);
    assert_eq!((done.code, done.err.as_str()), (Some(0), "acpd stopped\n"));
}

#[test]
fn a_daemon_is_started_to_end_the_agents_of_one_that_is_gone() {
    let home = Home::new();
    std::fs::create_dir_all(home.path("state").join("shims").join("g-1")).unwrap();
    for args in [&["daemon", "stop", "--detach"][..], &["--no-spawn", "daemon", "stop"]] {
        let done = home.run(args);
        assert_eq!((done.code, done.err.as_str()), (Some(0), "acpd is not running\n"));
    }

    let listening = home.path("listening");
    assert!(Command::new("mkfifo").arg(&listening).status().unwrap().success());
    home.install_daemon(&format!("cat {} >&\"$ACPD_STARTUP_FD\"", listening.display()));
    let child = home.acpctl(["daemon", "stop"]).spawn().unwrap();
    let mut daemon = File::create(&listening).unwrap();
    let listener = home.listen();
    writeln!(daemon, "ready").unwrap();
    drop(daemon);
    let mut client = Client::accept(&listener);
    client.answer(method::STATUS, status(4711, 1));
    assert_eq!(client.answer(method::DAEMON_STOP, json!({}))["params"]["detach"], false);
    drop(client);
    let done = home.wait(child);
    assert_eq!((done.code, done.err.as_str()), (Some(0), "acpd stopped\n"));
}

/// A daemon of another version.
fn other_version(boot: u64) -> Value {
    let mut status = status(4711, boot);
    status["daemon"]["version"] = "0.0.1".into();
    status
}

#[test]
fn a_daemon_that_does_not_know_a_method_is_of_another_version_and_the_way_out_is_a_restart() {
    let (home, listener) = Home::listening();
    let child = home.acpctl(["policy", "ls"]).spawn().unwrap();
    let mut client = Client::accept(&listener);
    let asked = client.expect(method::POLICY_LIST);
    let text = "acpd has no method `_acpd/policy/list`";
    client.send(json!({"jsonrpc": "2.0", "id": asked["id"], "error":
        {"code": -32601, "message": text, "data": {"_acpd": {"reason": "invalid"}}}}));
    Client::accept(&listener).answer(method::STATUS, other_version(3));
    let done = home.wait(child);
    let expected = format!(
        "error: the running acpd is 0.0.1, too different from acpctl {} for this\n\nhint: run the installed acpd: \
         `acpctl daemon restart`; agents and turns continue\n",
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!((done.code, done.err), (Some(2), expected));
}

#[test]
fn a_restart_says_which_version_has_taken_the_place_of_which() {
    let (home, listener) = Home::listening();
    let child = home.acpctl(["daemon", "restart"]).spawn().unwrap();
    let mut client = Client::accept(&listener);
    client.answer(method::STATUS, status(4711, 3));
    client.answer(method::DAEMON_RESTART, json!({}));
    drop(client);
    Client::accept(&listener).answer(method::STATUS, other_version(4));
    let done = home.wait(child);
    let own = env!("CARGO_PKG_VERSION");
    let expected = format!(
        "acpd restarted (pid 4711): version 0.0.1, was {own}\n\
         the installed acpd is 0.0.1, but this is acpctl {own}: install both again\n"
    );
    assert_eq!((done.code, done.err), (Some(0), expected));
}

#[test]
fn a_daemon_that_dies_in_the_middle_is_told() {
    let done = run_against(&["run", "hello"], |mut client| {
        client.begins();
        client.says("half");
    });
    assert_eq!((done.code, done.out.as_str()), (Some(8), "half\n"));
    assert!(
        done.err.starts_with("error: acpd closed the connection during the turn\n\nhint: "),
        "{done:?}"
    );
}
