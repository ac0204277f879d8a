//! `acpctl ps --watch`, which prints changes as they come.

use std::io::{BufRead as _, BufReader};
use std::os::unix::net::UnixListener;

use acpd_api::method;
use serde_json::{Value, json};

use crate::support::{Client, Home, session, status};
use crate::terminal::Person;

fn working(id: &str, name: &str) -> Value {
    let mut working = session(id);
    working["name"] = json!(name);
    working["turn"] = json!({"state": "working", "since": 0});
    working["doing"] = json!({"kind": "command", "text": "cargo test", "since": 0});
    working
}

/// The daemon's end of a command that watches these rows.
fn watched(listener: &UnixListener, rows: Value) -> Client {
    Client::accept(listener).answer(method::STATUS, status(7, 1));
    let mut client = Client::accept(listener);
    client.answer(method::WATCH, rows);
    client
}

fn changed(client: &mut Client, rows: &Value) {
    client.send(json!({"jsonrpc": "2.0", "method": method::CHANGED, "params": rows}));
}

#[test]
fn ps_watch_as_json_is_all_rows_and_then_those_that_change() {
    let (home, listener) = Home::listening();
    let mut ps = home.acpctl(["ps", "--watch", "--json"]).spawn().unwrap();
    let mut lines = BufReader::new(ps.stdout.take().unwrap()).lines();
    let mut shown = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let all = json!({"sessions": [session("s-1")], "agents": [], "interactions": []});
    let mut client = watched(&listener, all.clone());
    assert_eq!(shown(), all);
    let change = json!({"sessions": [working("s-1", "fix")],
        "removed": {"interactions": ["3-1"]}});
    changed(&mut client, &change);
    assert_eq!(shown(), change);
    // The next daemon is asked again, and no daemon is started for that.
    drop(client);
    Client::accept(&listener).answer(method::WATCH, all.clone());
    assert_eq!(shown(), all);
    ps.kill().unwrap();
    ps.wait().unwrap();
}

#[test]
fn ps_watch_draws_what_changes_in_the_place_of_what_was() {
    let (home, listener) = Home::listening();
    let (mut person, mut child) = Person::start_as(&home, "xterm", 80, &["ps", "--watch"], "");
    let rows = json!({"sessions": [session("s-1")], "agents": [], "interactions": []});
    let mut client = watched(&listener, rows);
    person.sees("idle");
    changed(&mut client, &json!({"sessions": [working("s-1", "fix"), working("s-2", "docs")]}));
    // Up to the first of the three lines.
    person.sees("\r\u{1b}[4A");
    person.sees("docs");
    person.sees("working");
    child.kill().unwrap();
    child.wait().unwrap();
}
