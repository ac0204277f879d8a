//! A daemon that goes away and comes back under a command.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixListener;
use std::process::{Child, ChildStdout, Command, Stdio};

use acpd_api::method;
use serde_json::{Value, json};

use crate::support::{Client, Home, capable, run_against, status};

/// The answer to `initialize` of a daemon that takes a client back.
fn welcome(received: u64, again: &Value) -> Value {
    let mut result = capable();
    result["agentCapabilities"]["_meta"]["_acpd"] = json!({"api": 1, "agent": "demo", "generation": "g-1", "received": received, "again": again});
    result
}

/// The next daemon's first words with a client of before: what it has.
fn take_back(client: &mut Client, received: u64, again: &Value) -> Value {
    let initialize = client.answer("initialize", welcome(received, again));
    let own = &initialize["params"]["_meta"]["_acpd"];
    assert!(own["client"]["token"].is_string(), "{initialize}");
    own["client"]["resume"].clone()
}

/// The last line of a client that ends.
fn leaves(mut client: Client) {
    assert_eq!(client.expect(method::CLIENT_LEAVE)["id"], Value::Null);
    client.closed();
}

fn numbered(client: &mut Client, seq: u64, text: &str) {
    client.send(json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s-1",
        "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}},
        "_meta": {"_acpd": {"seq": seq}}}}));
}

fn received(client: &mut Client, lines: u64) {
    client.send(json!({"method": method::CLIENT_RECEIVED, "params": {"lines": lines}}));
}

/// Expects the word that an answer has arrived.
fn answered(client: &mut Client, id: &Value) {
    assert_eq!(client.expect(method::CLIENT_ANSWERED)["params"]["ids"], json!([id]));
}

/// An editor at `acpctl acp`.
struct Editor {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Editor {
    /// An editor that has greeted and has a session, and the daemon's side of it.
    fn begun() -> (Home, UnixListener, Editor, Client) {
        let (home, listener) = Home::listening();
        let mut editor = Editor::new(&home);
        let mut client = Client::accept(&listener);
        editor.begin(&mut client);
        (home, listener, editor, client)
    }

    fn new(home: &Home) -> Editor {
        let mut child = home.acpctl(["acp"]).stdin(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Editor { child, stdout }
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("`{line}` is no message"))
    }

    fn heard_text(&mut self) -> String {
        self.hear()["params"]["update"]["content"]["text"].as_str().unwrap().to_owned()
    }

    /// Greets, and has a session.
    fn begin(&mut self, client: &mut Client) {
        self.say(&json!({"id": 0, "method": "initialize", "params": {"protocolVersion": 1}}));
        client.answer("initialize", welcome(0, &json!([])));
        self.hear();
        self.say(&json!({"id": 1, "method": "session/new", "params": {"cwd": "/w"}}));
        client.answer("session/new", json!({"sessionId": "s-1"}));
        self.hear();
        answered(client, &json!(1));
        received(client, 2);
    }

    /// Leaves with nothing open; nothing else must have come.
    fn leave(mut self, home: &Home, mut client: Client) {
        // By then it is taken back, if it was away.
        numbered(&mut client, 99, "bye");
        assert_eq!(self.heard_text(), "bye");
        drop(self.child.stdin.take());
        leaves(client);
        let mut rest = String::new();
        self.stdout.read_line(&mut rest).unwrap();
        assert_eq!(rest, "");
        let done = home.wait(self.child);
        assert_eq!((done.code, done.err.as_str()), (Some(0), ""));
    }
}

#[test]
fn an_editor_sees_one_stream_while_its_prompt_outlives_a_daemon() {
    let (home, listener, mut editor, mut client) = Editor::begun();
    editor.say(&json!({"id": 2, "method": "session/prompt", "params": {"sessionId": "s-1"}}));
    client.expect("session/prompt");
    received(&mut client, 3);
    numbered(&mut client, 1, "one");
    client.raw(b"{\"jsonrpc\":\"2.0\",\"method\":\"session/upd");
    assert_eq!(editor.heard_text(), "one");
    drop(client);

    let mut client = Client::accept(&listener);
    let resume = take_back(&mut client, 3, &json!([]));
    let has = json!({"generation": "g-1", "sessions": {"s-1": 1}, "open": [2], "asked": []});
    assert_eq!(resume, has);
    numbered(&mut client, 1, "one");
    numbered(&mut client, 2, "two");
    client.notice(method::CAUGHT_UP, json!({"seq": 2}));
    client.send(json!({"id": 2, "result": {"stopReason": "end_turn"}}));
    assert_eq!(editor.heard_text(), "two");
    assert_eq!(editor.hear()["result"]["stopReason"], "end_turn");
    answered(&mut client, &json!(2));
    // An answer that is kept for too long is not given twice.
    client.send(json!({"id": 2, "result": {"stopReason": "end_turn"}}));
    editor.leave(&home, client);
}

#[test]
fn an_editor_that_terminates_its_agent_does_not_come_back() {
    let (home, _listener, editor, client) = Editor::begun();
    let pid = editor.child.id().to_string();
    assert!(Command::new("/bin/kill").args(["-TERM", &pid]).status().unwrap().success());
    leaves(client);
    let done = home.wait(editor.child);
    assert_eq!((done.code, done.err.as_str()), (None, ""), "the signal has ended it");
}

#[test]
fn another_journal_ends_the_connection_with_a_word() {
    let (home, listener, editor, client) = Editor::begun();
    drop(client);

    let mut client = Client::accept(&listener);
    let mut other = welcome(0, &json!([]));
    other["agentCapabilities"]["_meta"]["_acpd"]["generation"] = json!("g-2");
    client.answer("initialize", other);
    client.closed();
    let done = home.wait(editor.child);
    assert_eq!(done.code, Some(1));
    assert!(done.err.starts_with("error: acpd came back with another journal"), "{}", done.err);
}

/// A `daemon restart` that the daemon has taken up: it is gone, and what comes next is not there yet.
fn restarting() -> (Home, UnixListener, Child) {
    let (home, listener) = Home::listening();
    let child = home.acpctl(["daemon", "restart"]).spawn().unwrap();
    let mut client = Client::accept(&listener);
    client.answer(method::STATUS, status(4711, 3));
    client.answer(method::DAEMON_RESTART, json!({}));
    drop(client);
    (home, listener, child)
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
    let (home, listener, child) = restarting();
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
