//! A daemon that goes away and comes back under a command.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixListener;
use std::process::{Child, ChildStdout, Command, Stdio};

use acpd_api::method;
use serde_json::{Value, json};

use crate::support::{Client, Home, about, capable, session};
use crate::terminal::Person;

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
fn lines_that_are_not_safe_are_sent_again_and_answered_ones_do_not_run_twice() {
    let (home, listener, mut editor, mut client) = Editor::begun();
    editor.say(&json!({"id": 2, "method": "session/set_mode", "params": {"sessionId": "s-1"}}));
    client.answer("session/set_mode", json!({}));
    editor.hear();
    answered(&mut client, &json!(2));
    editor.say(&json!({"id": "p", "method": "session/prompt", "params": {"sessionId": "s-1"}}));
    client.expect("session/prompt");
    drop(client);

    // The first two of five lines were committed.
    let mut client = Client::accept(&listener);
    let resume = take_back(&mut client, 2, &json!(["p"]));
    assert_eq!(resume["open"], json!(["p"]));
    assert_eq!(client.expect(method::CLIENT_ANSWERED)["params"]["ids"], json!([]));
    answered(&mut client, &json!(2));
    let prompt = client.expect("session/prompt");
    client.result(&prompt, json!({"stopReason": "end_turn"}));
    assert_eq!(editor.hear()["id"], "p");
    answered(&mut client, &json!("p"));
    editor.leave(&home, client);
}

#[test]
fn requests_that_acpd_knows_nothing_of_are_sent_as_new_lines() {
    let (home, listener, mut editor, mut client) = Editor::begun();
    editor.say(&json!({"id": 2, "method": "session/list"}));
    client.expect("session/list");
    editor.say(&json!({"id": 3, "method": "session/prompt", "params": {"sessionId": "s-1"}}));
    client.expect("session/prompt");
    drop(client);

    let mut client = Client::accept(&listener);
    take_back(&mut client, 3, &json!([2, 3]));
    client.expect("session/prompt");
    client.answer("session/list", json!({"sessions": []}));
    assert_eq!(editor.hear()["id"], 2);
    answered(&mut client, &json!(2));
    drop(client);

    // All three were lines of their own: 4, 5 and 6.
    let mut client = Client::accept(&listener);
    take_back(&mut client, 6, &json!([]));
    client.send(json!({"id": 3, "result": {"stopReason": "end_turn"}}));
    assert_eq!(editor.hear()["id"], 3);
    answered(&mut client, &json!(3));
    editor.leave(&home, client);
}

#[test]
fn a_question_stays_on_the_screen_and_its_answer_arrives() {
    let (home, listener, mut editor, mut client) = Editor::begun();
    for id in [70, 71] {
        let params = json!({"sessionId": "s-1"});
        client.send(json!({"id": id, "method": "session/request_permission", "params": params}));
        assert_eq!(editor.hear()["id"], id);
    }
    drop(client);

    let mut client = Client::accept(&listener);
    assert_eq!(take_back(&mut client, 2, &json!([]))["asked"], json!([70, 71]));
    client.send(json!({"method": "$/cancel_request", "params": {"requestId": 71}}));
    assert_eq!(editor.hear()["params"]["requestId"], 71);
    editor.say(&json!({"id": 70, "result": {"outcome": {"outcome": "cancelled"}}}));
    assert_eq!(client.read().unwrap()["id"], 70);
    drop(client);

    // As long as the answer is not safe, acpd need not ask again.
    let mut client = Client::accept(&listener);
    assert_eq!(take_back(&mut client, 2, &json!([]))["asked"], json!([70]));
    assert_eq!(client.read().unwrap()["id"], 70);
    editor.leave(&home, client);
}

#[test]
fn a_load_goes_on_where_it_was_cut_off() {
    let (home, listener, mut editor, mut client) = Editor::begun();
    editor.say(&json!({"id": 2, "method": "session/load", "params": {"sessionId": "s-1"}}));
    client.expect("session/load");
    received(&mut client, 3);
    for seq in [1, 2] {
        numbered(&mut client, seq, "old");
        editor.hear();
    }
    drop(client);

    let mut client = Client::accept(&listener);
    let resume = take_back(&mut client, 3, &json!([2]));
    assert_eq!(resume["sessions"], json!({}));
    let load = client.expect("session/load");
    assert_eq!(load["params"]["_meta"]["_acpd"], json!({"after": 2}));
    numbered(&mut client, 3, "last");
    client.result(&load, json!({}));
    assert_eq!(editor.heard_text(), "last");
    assert_eq!(editor.hear()["id"], 2);
    answered(&mut client, &json!(2));
    editor.leave(&home, client);
}

#[test]
fn a_greeting_without_an_answer_is_repeated_and_what_follows_it_waits() {
    let (home, listener) = Home::listening();
    let mut editor = Editor::new(&home);
    drop(Client::accept(&listener));
    let mut client = Client::accept(&listener);
    editor.say(&json!({"id": 0, "method": "initialize"}));
    editor.say(&json!({"id": 1, "method": "session/list"}));
    client.expect("initialize");
    drop(client);

    let mut client = Client::accept(&listener);
    assert_eq!(take_back(&mut client, 0, &json!([])), Value::Null);
    assert_eq!(editor.hear()["id"], 0);
    client.answer("session/list", json!({}));
    assert_eq!(editor.hear()["id"], 1);
    answered(&mut client, &json!(1));
    editor.leave(&home, client);
}

#[test]
fn a_daemon_that_cannot_take_its_clients_back_yet_is_tried_again() {
    let (home, listener, mut editor, client) = Editor::begun();
    drop(client);

    let mut client = Client::accept(&listener);
    client.fail("initialize", "acpd is shutting down", json!({"reason": "shutting_down"}));
    client.closed();
    let mut client = Client::accept(&listener);
    take_back(&mut client, 2, &json!([]));
    numbered(&mut client, 1, "hello");
    assert_eq!(editor.heard_text(), "hello");
    editor.leave(&home, client);
}

#[test]
fn a_daemon_that_has_no_room_yet_is_tried_again_without_a_word_to_the_editor() {
    let (home, listener, editor, client) = Editor::begun();
    drop(client);

    let mut client = Client::accept(&listener);
    client.send(json!({"id": null, "error": {"code": -32603, "message": "8 are connected"}}));
    // The client may have sent its first line before it read that.
    let _ = client.read();
    client.closed();
    let mut client = Client::accept(&listener);
    take_back(&mut client, 2, &json!([]));
    editor.leave(&home, client);
}

#[test]
fn an_editor_comes_back_to_its_agent_whatever_is_the_default_by_then() {
    let (home, listener, editor, client) = Editor::begun();
    drop(client);

    let mut client = Client::accept(&listener);
    let initialize = client.answer("initialize", welcome(2, &json!([])));
    assert_eq!(initialize["params"]["_meta"]["_acpd"]["agent"], "demo");
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
fn a_session_that_is_being_closed_is_not_followed_again() {
    let (home, listener, mut editor, mut client) = Editor::begun();
    let close = json!({"id": 2, "method": "session/close", "params": {"sessionId": "s-1"}});
    editor.say(&close);
    client.expect("session/close");
    drop(client);

    let mut client = Client::accept(&listener);
    let resume = take_back(&mut client, 2, &json!([]));
    assert_eq!((&resume["sessions"], &resume["open"]), (&json!({}), &json!([2])));
    client.answer("session/close", json!({}));
    assert_eq!(editor.hear()["id"], 2);
    answered(&mut client, &json!(2));
    editor.leave(&home, client);
}

#[test]
fn a_daemon_that_was_stopped_is_not_started_for_an_editor_that_waits_for_nothing() {
    let (home, listener) = Home::listening();
    home.install_daemon(&format!("echo yes > {}", home.path("started").display()));
    let mut editor = Editor::new(&home);
    let mut client = Client::accept(&listener);
    editor.begin(&mut client);
    std::fs::remove_file(home.path("run").join("acpd.sock")).unwrap();
    drop(listener);
    drop(client);

    let listener = home.listen();
    let mut client = Client::accept(&listener);
    take_back(&mut client, 2, &json!([]));
    editor.leave(&home, client);
    assert!(!home.path("started").exists());
}

#[test]
fn after_a_goodbye_nobody_comes_back() {
    let (home, listener, mut editor, mut client) = Editor::begun();
    client.send(json!({"method":"_acpd/daemon/stopped","params":{}}));
    drop(client);
    let _open = editor.child.stdin.take();
    assert_eq!(home.wait(editor.child).code, Some(1));
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "nobody has connected again");
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

#[test]
fn attach_with_control_is_asked_again_by_the_next_daemon() {
    let (home, listener) = Home::listening();
    let (mut person, child) =
        Person::start(&home, "dumb", &["attach", "fix", "--control", "--tail"]);
    let mut client = Client::accept(&listener);
    client.finds(&session("s-1"));
    client.answer("initialize", welcome(0, &json!([])));
    client.answer(method::SESSION_ATTACH, json!({"session": session("s-1")}));
    answered(&mut client, &json!(3));
    drop(client);

    let mut client = Client::accept(&listener);
    let initialize = client.answer("initialize", welcome(2, &json!([])));
    assert_eq!(initialize["params"]["_meta"]["_acpd"]["role"], "controller");
    client.send(json!({"jsonrpc": "2.0", "id": 7, "method": "session/request_permission",
    "params": {"sessionId": "s-1", "toolCall": {"toolCallId": "t", "title": "rm -rf build"},
        "_meta": about("rm -rf build", &[]), "options": [{"optionId": "yes", "name": "Allow", "kind": "allow_once"}]}}));
    person.sees("[y] Allow\r\n");
    person.types("y");
    let answer = client.read().unwrap();
    assert_eq!(
        (&answer["id"], &answer["result"]["outcome"]["optionId"]),
        (&json!(7), &json!("yes"))
    );
    client.notice(method::SESSION_REMOVED, json!({}));
    leaves(client);
    assert_eq!(home.wait(child).code, Some(0));
}

fn status(boot: u64) -> Value {
    json!({"daemon": {"version": env!("CARGO_PKG_VERSION"), "api": 1, "pid": 4711, "boot": boot, "since": 1,
        "clients": 1, "store": {"state": "ok"}, "defaultAgent": "demo", "socket": "/s",
        "database": "/d", "log": "/l", "config": "/c"}, "agents": [], "sessions": []})
}

/// A `daemon restart` that the daemon has taken up: it is gone, and what comes next is not there yet.
fn restarting() -> (Home, UnixListener, Child) {
    let (home, listener) = Home::listening();
    let child = home.acpctl(["daemon", "restart"]).spawn().unwrap();
    let mut client = Client::accept(&listener);
    client.answer(method::STATUS, status(3));
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
    Client::accept(&listener).answer(method::STATUS, status(3));
    let done = home.wait(child);
    assert_eq!((done.code, done.err.as_str()), (Some(0), "acpd restarted (pid 4711)\n"));
}

#[test]
fn stop_waits_for_the_daemon_that_was_asked_and_not_for_its_successor() {
    let (home, listener) = Home::listening();
    let child = home.acpctl(["daemon", "stop"]).spawn().unwrap();
    let mut client = Client::accept(&listener);
    client.answer(method::STATUS, status(1));
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
    client.answer(method::STATUS, status(1));
    client.expect(method::DAEMON_STOP);
    drop(client);
    let mut client = Client::accept(&listener);
    client.answer(method::STATUS, status(2));
    drop(client);
    let mut client = Client::accept(&listener);
    client.answer(method::STATUS, status(2));
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
    client.answer(method::STATUS, status(1));
    assert_eq!(client.answer(method::DAEMON_STOP, json!({}))["params"]["detach"], false);
    drop(client);
    let done = home.wait(child);
    assert_eq!((done.code, done.err.as_str()), (Some(0), "acpd stopped\n"));
}

/// A daemon of another version.
fn other_version(boot: u64) -> Value {
    let mut status = status(boot);
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
    let home = Home::new();
    let daemon = home.daemon(|mut client| {
        client.begins();
        client.says("half");
    });
    let done = home.run(&["run", "hello"]);
    assert_eq!((done.code, done.out.as_str()), (Some(8), "half\n"));
    assert!(
        done.err.starts_with("error: acpd closed the connection during the turn\n\nhint: "),
        "{done:?}"
    );
    daemon.join().unwrap();
}
