//! `acpctl run` on a terminal.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};

use nix::pty::openpty;
use nix::sys::termios::{LocalFlags, tcgetattr};
use serde_json::json;

use crate::support::{Client, Home, capable};

/// The person's side of a terminal.
pub(crate) struct Person {
    side: File,
    seen: String,
    /// Keeps the terminal open after the command.
    terminal: OwnedFd,
}

impl Person {
    /// Starts `acpctl` with stdin and stderr on a new terminal of this kind.
    pub(crate) fn start(home: &Home, term: &str, args: &[&str]) -> (Person, Child) {
        let pty = openpty(None, None).unwrap();
        let end = || Stdio::from(pty.slave.try_clone().unwrap());
        let child = home.acpctl(args).env("TERM", term).stdin(end()).stderr(end()).spawn();
        let side = File::from(pty.master);
        (Person { side, seen: String::new(), terminal: pty.slave }, child.unwrap())
    }

    pub(crate) fn types(&mut self, keys: &str) {
        self.side.write_all(keys.as_bytes()).unwrap();
    }

    /// Reads until this is on the screen.
    pub(crate) fn sees(&mut self, text: &str) {
        while !self.seen.contains(text) {
            self.reads();
        }
    }

    /// Reads until this is the last thing on the screen.
    fn sees_at_the_end(&mut self, text: &str) {
        while !self.seen.ends_with(text) {
            self.reads();
        }
    }

    fn reads(&mut self) {
        let mut bytes = [0; 4096];
        let count = self.side.read(&mut bytes).unwrap();
        self.seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
}

#[test]
fn one_key_answers_a_permission_and_what_was_typed_before_does_not() {
    let home = Home::new();
    let listener = home.listen();
    let (mut person, child) = Person::start(&home, "xterm", &["run", "hello"]);
    let mut client = Client::accept(&listener);
    client.answer("initialize", capable());
    client.answer("session/new", json!({"sessionId": "s-1"}));
    let prompt = client.expect("session/prompt");
    person.sees("session s-1; go on with: acpctl run -s s-1 ...");
    // The echo shows that the terminal has taken the key.
    person.types("~y");
    person.sees("~y");

    client.send(json!({"jsonrpc": "2.0", "id": 1, "method": "session/request_permission",
    "params": {"sessionId": "s-1", "toolCall": {"toolCallId": "t", "title": "rm -rf build"},
        "options": [
            {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
            {"optionId": "no", "name": "Reject", "kind": "reject_once"}]}}));
    person.sees("rm -rf build");
    person.sees("Reject\r\n");
    person.types("xn");
    let answer = client.read().unwrap();
    assert_eq!(
        answer,
        json!({"jsonrpc": "2.0", "id": 1,
            "result": {"outcome": {"outcome": "selected", "optionId": "no"}}})
    );
    client.result(&prompt, json!({"stopReason": "end_turn"}));
    client.closed();
    assert_eq!(home.wait(child).code, Some(0));
    let flags = tcgetattr(&person.terminal).unwrap().local_flags;
    assert!(flags.contains(LocalFlags::ICANON | LocalFlags::ECHO), "{flags:?}");
}

#[test]
fn ctrl_c_while_a_question_is_open_cancels_and_restores_the_terminal() {
    let home = Home::new();
    let listener = home.listen();
    let (mut person, child) = Person::start(&home, "xterm", &["run", "hello"]);
    let mut client = Client::accept(&listener);
    client.answer("initialize", capable());
    client.answer("session/new", json!({"sessionId": "s-1"}));
    let prompt = client.expect("session/prompt");
    client.send(json!({"jsonrpc": "2.0", "id": 1, "method": "session/request_permission",
    "params": {"sessionId": "s-1", "toolCall": {"toolCallId": "t", "title": "cc"},
        "options": [{"optionId": "yes", "name": "Allow", "kind": "allow_once"}]}}));
    person.sees("Allow\r\n");
    crate::run::interrupt(child.id());
    client.expect("session/cancel");
    let answer = client.read().unwrap();
    assert_eq!(answer["result"], json!({"outcome": {"outcome": "cancelled"}}));
    client.result(&prompt, json!({"stopReason": "cancelled"}));
    client.closed();
    assert_eq!(home.wait(child).code, Some(130));
    let flags = tcgetattr(&person.terminal).unwrap().local_flags;
    assert!(flags.contains(LocalFlags::ICANON | LocalFlags::ECHO), "{flags:?}");
}

#[test]
fn a_second_ctrl_c_leaves_the_terminal_on_an_empty_line() {
    let home = Home::new();
    let listener = home.listen();
    let (mut person, child) = Person::start(&home, "xterm", &["run", "hello"]);
    let mut client = Client::accept(&listener);
    client.answer("initialize", capable());
    client.answer("session/new", json!({"sessionId": "s-1"}));
    client.expect("session/prompt");
    crate::run::interrupt(child.id());
    client.expect("session/cancel");
    person.sees("Ctrl-C leaves at once");
    crate::run::interrupt(child.id());
    client.closed();
    assert_eq!(home.wait(child).code, Some(130));
    person.sees_at_the_end("\r\u{1b}[K");
}

#[test]
fn a_dumb_terminal_gets_no_spinner_and_no_escape_codes() {
    let home = Home::new();
    let listener = home.listen();
    let (mut person, child) = Person::start(&home, "dumb", &["run", "hello"]);
    let mut client = Client::accept(&listener);
    client.answer("initialize", capable());
    client.answer("session/new", json!({"sessionId": "s-1"}));
    let prompt = client.expect("session/prompt");
    client.result(&prompt, json!({"stopReason": "refusal"}));
    assert_eq!(home.wait(child).code, Some(5));
    person.sees("the agent refused");
    assert!(!person.seen.contains('\u{1b}'), "{:?}", person.seen);
}
