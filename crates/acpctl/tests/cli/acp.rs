//! `acpctl acp`: the editor's door.

use std::io::Write as _;
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
