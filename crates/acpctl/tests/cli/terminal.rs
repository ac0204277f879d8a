//! `acpctl run` and `acpctl attach` on a terminal.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};

use acpd_api::method;
use nix::pty::{Winsize, openpty};
use nix::sys::termios::{LocalFlags, tcgetattr};
use serde_json::{Value, json};

use crate::support::{Client, Home, about, capable, session};

/// The person's side of a terminal.
pub(crate) struct Person {
    side: File,
    /// All that was on the screen so far.
    pub(crate) seen: String,
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

    /// Starts `acpctl` with all that it reads and writes on a new terminal of this kind and width.
    pub(crate) fn start_as(
        home: &Home,
        term: &str,
        columns: u16,
        args: &[&str],
        pager: &str,
    ) -> (Person, Child) {
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(Some(&size), None).unwrap();
        let end = || Stdio::from(pty.slave.try_clone().unwrap());
        let mut command = home.acpctl(args);
        command.env("TERM", term).env("ACPCTL_PAGER", pager);
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn();
        let side = File::from(pty.master);
        (Person { side, seen: String::new(), terminal: pty.slave }, child.unwrap())
    }

    /// The lines that are there in the end: what was written again is there once.
    fn lines(&self) -> Vec<&str> {
        let last = |line: &'_ str| line.rfind("\r\u{1b}[K").map_or(0, |at| at + 4);
        self.seen.split("\r\n").map(|line| &line[last(line)..]).collect()
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
    pub(crate) fn sees_at_the_end(&mut self, text: &str) {
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

/// A yes and a no.
const OPTIONS: [(&str, &str, &str); 2] =
    [("yes", "Allow", "allow_once"), ("no", "Reject", "reject_once")];

/// A person at a turn that `acpctl run` has begun on a terminal of this kind, and the daemon's side of it:
/// the prompt.
pub(crate) fn in_turn(term: &str) -> (Home, Person, Child, Client, Value) {
    let (home, listener) = Home::listening();
    let (person, child) = Person::start(&home, term, &["run", "hello"]);
    let mut client = Client::accept_on_terminal(&listener);
    let prompt = client.begins();
    (home, person, child, client, prompt)
}

/// A person who attends to session `s-1`.
fn attended() -> (Home, Person, Child, Client) {
    let (home, listener) = Home::listening();
    let (person, child) = Person::start(&home, "xterm", &["attach", "fix", "--control", "--tail"]);
    let mut client = Client::accept(&listener);
    client.finds(&session("s-1"));
    let initialize = client.answer("initialize", capable());
    assert_eq!(initialize["params"]["_meta"]["_acpd"]["role"], "controller");
    let attach = client.answer(method::SESSION_ATTACH, json!({"session": session("s-1")}));
    assert_eq!(attach["params"]["role"], "controller");
    (home, person, child, client)
}

/// The person leaves with Ctrl-C; nothing is answered or cancelled on the way out.
fn leaves(home: &Home, child: Child, client: Client) {
    crate::run::interrupt(child.id());
    client.closed();
    assert_eq!(home.wait(child).code, Some(0));
}

/// A question about the call in `_meta`.
fn asks_about(client: &mut Client, id: u64, meta: &Value) {
    client.asks(id, &json!({"toolCallId": "t"}), meta, &OPTIONS);
}

/// A question about a call with this title.
fn asks(client: &mut Client, id: u64, title: &str) {
    let mut meta = about(title, &[]);
    meta["_acpd"]["id"] = json!(format!("3-{id}"));
    client.asks(id, &json!({"toolCallId": "t", "title": title}), &meta, &OPTIONS);
}

fn chosen(id: u64, option: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id,
        "result": {"outcome": {"outcome": "selected", "optionId": option}}})
}

/// The terminal is as it was before single keys were read.
fn is_as_before(person: &Person) {
    let flags = tcgetattr(&person.terminal).unwrap().local_flags;
    assert!(flags.contains(LocalFlags::ICANON | LocalFlags::ECHO), "{flags:?}");
}

#[test]
fn on_a_terminal_an_answer_is_markdown_and_wrapped_at_words() {
    for term in ["dumb", "xterm"] {
        let (home, listener) = Home::listening();
        let args = ["--color", "never", "run", "hello"];
        let (mut person, child) = Person::start_as(&home, term, 30, &args, "");
        let mut client = Client::accept_on_terminal(&listener);
        let prompt = client.begins();
        client.says("**Two** words of a paragraph that go");
        // A row is there as soon as nothing changes it.
        person.sees("Two words of a paragraph that\r\n");
        client.says("es on and on\n\n1. see [the docs](https://a.example/)\n");
        client.says("2. `\u{1b}[2J`");
        client.update(json!({"sessionUpdate": "tool_call", "toolCallId": "t", "kind": "read",
            "title": "Read x", "status": "completed"}));
        client.says("First.");
        client.update(json!({"sessionUpdate": "agent_message_chunk", "messageId": "m",
            "content": {"type": "text", "text": "Second"}}));
        client.result(&prompt, json!({"stopReason": "end_turn"}));
        assert_eq!(home.wait(child).code, Some(0));
        person.sees("Second\r\n");
        let lines = person.lines();
        let from = lines.iter().position(|line| line.starts_with("Two")).unwrap();
        assert_eq!(
            lines[from..],
            [
                "Two words of a paragraph that",
                "goes on and on",
                "",
                "1. see the docs",
                "   (https://a.example/)",
                "2. <U+001B>[2J",
                "✓ Read x",
                "First.",
                "",
                "Second",
                "",
            ],
            "{:?}",
            person.seen
        );
    }
}

#[test]
fn one_key_answers_a_permission_and_what_was_typed_before_does_not() {
    let (home, mut person, child, mut client, prompt) = in_turn("xterm");
    person.sees("session s-1; continue with: acpctl run -c ...");
    // The echo shows that the terminal has taken the key.
    person.types("~y");
    person.sees("~y");

    asks(&mut client, 1, "rm -rf build");
    person.sees("rm -rf build");
    person.sees("Reject\r\n");
    person.types("xn");
    assert_eq!(client.read().unwrap(), chosen(1, "no"));
    client.result(&prompt, json!({"stopReason": "end_turn"}));
    client.closed();
    assert_eq!(home.wait(child).code, Some(0));
    is_as_before(&person);
}

#[test]
fn attach_with_control_answers_with_one_key_and_ctrl_c_leaves_the_turn_alone() {
    let (home, mut person, child, mut client) = attended();

    asks(&mut client, 1, "make clean");
    person.sees("make clean");
    person.sees("Reject\r\n");
    asks(&mut client, 2, "rm -rf build");
    // Answered by another client: the next one is on the screen.
    let option = json!({"optionId": "no", "name": "Reject", "kind": "reject_once"});
    let answered = json!({"id": "3-1", "answer": {"kind": "option", "option": option},
        "by": {"name": "zed", "title": "Zed", "place": "phone"}, "at": 1});
    client.notice(method::ANSWERED, answered);
    client.send(json!({"jsonrpc": "2.0", "method": "$/cancel_request",
        "params": {"requestId": 1}}));
    person.sees("answered elsewhere, by Zed, phone: Reject");
    person.sees("rm -rf build");
    person.sees_at_the_end("Reject\r\n");
    person.types("y");
    assert_eq!(client.read().unwrap(), chosen(2, "yes"));
    client.has_questions(&[("codex", "1-4"), ("demo", "1-5")]);
    person.sees("acpctl answer 1-5");
    assert!(!person.seen.contains("1-4"), "another agent's: {}", person.seen);
    asks(&mut client, 3, "git push");
    person.sees("git push");
    person.sees_at_the_end("Reject\r\n");
    leaves(&home, child, client);
    is_as_before(&person);
}

#[test]
fn ctrl_c_while_a_question_is_open_cancels_and_restores_the_terminal() {
    let (home, mut person, child, mut client, prompt) = in_turn("xterm");
    asks(&mut client, 1, "cc");
    person.sees("Reject\r\n");
    crate::run::interrupt(child.id());
    client.expect("session/cancel");
    let answer = client.read().unwrap();
    assert_eq!(answer["result"], json!({"outcome": {"outcome": "cancelled"}}));
    client.result(&prompt, json!({"stopReason": "cancelled"}));
    client.closed();
    assert_eq!(home.wait(child).code, Some(130));
    is_as_before(&person);
}

#[test]
fn a_second_ctrl_c_leaves_the_terminal_on_an_empty_line() {
    let (home, mut person, child, mut client, _prompt) = in_turn("xterm");
    crate::run::interrupt(child.id());
    client.expect("session/cancel");
    person.sees("Ctrl-C exits now");
    crate::run::interrupt(child.id());
    client.closed();
    assert_eq!(home.wait(child).code, Some(130));
    person.sees_at_the_end("\r\u{1b}[K");
}

#[test]
fn m3_a_call_that_is_not_understood_is_shown_raw_and_no_single_key_allows_it() {
    let (home, mut person, child, mut client) = attended();
    let mut meta = about("x", &[]);
    meta["_acpd"]["shown"]["unclear"] = json!([{"member": "locations", "why": "cannot be read"}]);
    meta["_acpd"]["shown"]["raw"] = json!({"text": "{\"locations\":\"\u{202e}\"}", "leftOut": 9});
    asks_about(&mut client, 1, &meta);
    person.sees("not understood: `locations` cannot be read");
    person.sees("{\"locations\":\"<U+202E>\"}");
    person.sees("and 9 bytes more, which are not shown");
    person.sees("Reject\r\n");
    person.types("yallwo\n");
    person.sees("yallwo");
    person.sees_at_the_end("Reject\r\n");
    person.types("allox\u{7f}w\n");
    assert_eq!(client.read().unwrap(), chosen(1, "yes"));
    // A daemon of another version does not describe the call.
    asks_about(&mut client, 2, &json!({}));
    person.sees("comes from a daemon of another version");
    person.sees_at_the_end("Reject\r\n");
    person.types("yn\u{7f}\u{7f}n");
    assert_eq!(client.read().unwrap(), chosen(2, "no"));
    leaves(&home, child, client);
}

#[test]
fn h2_a_key_for_the_old_question_does_not_allow_the_one_that_takes_its_place() {
    let (home, mut person, child, mut client) = attended();
    asks_about(&mut client, 1, &about("t", &["ls"]));
    person.sees("Reject\r\n");
    client.send(json!({"jsonrpc": "2.0", "method": "$/cancel_request",
        "params": {"requestId": 1}}));
    let mut meta = about("t", &["rm -rf ~"]);
    meta["_acpd"]["changed"] = json!(1);
    asks_about(&mut client, 2, &meta);
    person.sees("changed while you looked: this is another call");
    person.sees("rm -rf ~");
    person.sees_at_the_end("Reject\r\n");
    person.types("y\n");
    person.sees_at_the_end("Reject\r\n");
    person.types("n");
    assert_eq!(client.read().unwrap(), chosen(2, "no"));
    leaves(&home, child, client);
}

#[test]
fn m7_what_is_hidden_of_a_long_command_is_counted_and_shown_with_a_key() {
    let (home, mut person, child, mut client) = attended();
    let lines: Vec<String> = (1..=200).map(|n| format!("echo line-{n}.")).collect();
    asks_about(&mut client, 1, &about("t", &[&lines.join("\n")]));
    person.sees("[v]");
    person.sees_at_the_end("show all of it\r\n");
    let seen = |person: &Person, n: u32| person.seen.contains(&format!("line-{n}."));
    assert!(seen(&person, 1) && seen(&person, 200) && !seen(&person, 100));
    assert!(person.seen.contains("lines are hidden here"), "{}", person.seen);
    person.seen.clear();
    person.types("v");
    person.sees("show all of it\r\n");
    assert!((1..=200).all(|n| seen(&person, n)));
    person.types("y");
    assert_eq!(client.read().unwrap(), chosen(1, "yes"));
    leaves(&home, child, client);
}
