//! `acpctl acp`: the editor's door.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Stdio};

use crate::support::{Client, Home};
use serde_json::{Value, json};

fn bridge(home: &Home, args: &[&str]) -> Child {
    let args = ["acp"].iter().chain(args);
    home.acpctl(args).stdin(Stdio::piped()).spawn().unwrap()
}

fn type_line(child: &mut Child, line: &str) {
    let stdin = child.stdin.as_mut().unwrap();
    stdin.write_all(line.as_bytes()).unwrap();
    stdin.write_all(b"\n").unwrap();
}

/// Says `initialize` as an editor, and answers as a daemon that cannot be come back to.
fn greet_plainly(child: &mut Child, client: &mut Client) {
    type_line(child, r#"{"jsonrpc":"2.0","id":"hello","method":"initialize"}"#);
    client.answer("initialize", json!({}));
}

#[test]
fn bytes_pass_as_they_are_both_ways_and_the_end_of_stdin_ends_it() {
    let (home, listener) = Home::listening();
    let mut child = bridge(&home, &[]);
    let mut client = Client::accept(&listener);
    let odd = r#"{ "id":"a\u0062" ,"method":"initialize", "x":[1.0]}"#;
    type_line(&mut child, odd);
    assert_eq!(client.expect("initialize")["id"], "ab");
    let answer = "{ \"id\":\"a\\u0062\" , \"result\":{\"y\": 1.00}}\n{\"second\":1}\n";
    client.raw(answer.as_bytes());
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut read = String::new();
    stdout.read_line(&mut read).unwrap();
    stdout.read_line(&mut read).unwrap();
    assert_eq!(read, answer);

    drop(child.stdin.take());
    client.closed();
    let done = home.wait(child);
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""));
}

#[test]
fn answers_to_open_requests_still_arrive_after_stdin_has_ended() {
    let (home, listener) = Home::listening();
    let mut child = bridge(&home, &[]);
    let mut client = Client::accept(&listener);
    type_line(&mut child, r#"{"jsonrpc":"2.0","id":0,"method":"initialize"}"#);
    type_line(&mut child, r#"{"jsonrpc":"2.0","id":1,"method":"session/list"}"#);
    drop(child.stdin.take());
    client.answer("initialize", json!({}));
    let list = client.expect("session/list");
    client.says("between");
    client.result(&list, json!({"sessions": []}));
    client.closed();
    let done = home.wait(child);
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""));
    let last: Value = serde_json::from_str(done.out.lines().nth(2).unwrap()).unwrap();
    assert_eq!(last["id"], 1);
}

#[test]
fn a_daemon_that_dies_leaves_whole_lines_only_and_a_word_on_stderr() {
    let (home, listener) = Home::listening();
    let mut child = bridge(&home, &[]);
    let mut client = Client::accept(&listener);
    greet_plainly(&mut child, &mut client);
    let _open = child.stdin.take();
    client.raw(b"{\"whole\":1}\n{\"cut off");
    drop(client);
    let done = home.wait(child);
    assert!(done.out.ends_with("}\n{\"whole\":1}\n"), "{}", done.out);
    assert_eq!(done.out.lines().count(), 2);
    assert_eq!(done.code, Some(1));
    assert!(done.err.starts_with("error: acpd closed the connection\n"), "{}", done.err);
}

#[test]
fn an_editor_that_closes_stdout_ends_it() {
    let (home, listener) = Home::listening();
    let mut child = bridge(&home, &[]);
    drop(child.stdout.take());
    let _open = child.stdin.take();
    let mut client = Client::accept(&listener);
    client.raw(b"{\"nobody\":\"reads\"}\n");
    client.closed();
    let done = home.wait(child);
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""));
}
