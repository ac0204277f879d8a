//! Which connections may stay when there are many.

use acpd_core::ids::ClientId;
use acpd_core::{ClientEvent, ClientOrigin, Input};
use serde_json::{Value, json};

use crate::bench::{Bench, client_oversized};
use crate::steps::reason;
use crate::survival::token;

/// Beside the clients that the configuration allows.
const MANAGERS: usize = 16;

/// A hub with a limit of clients.
fn bench(clients: u32) -> Bench {
    let mut bench = Bench::new();
    bench.configure(|config| config.max_clients = clients);
    bench
}

/// A connection and its first line.
fn says(bench: &mut Bench, line: &Value) -> ClientId {
    let client = bench.open();
    bench.say(client, line);
    client
}

fn manager(bench: &mut Bench) -> ClientId {
    bench.now += 1;
    let client = says(bench, &json!({"id":1,"method":"_acpd/session/list","params":{}}));
    assert!(bench.got(client)[0]["result"].is_object());
    client
}

/// Returns whether a connection was told that it goes, and closed.
fn is_gone(bench: &mut Bench, client: ClientId) -> bool {
    let told = bench.got(client).last().is_some_and(|line| reason(line) == "too_many");
    assert_eq!(told, bench.closed.contains(&client), "it is told why");
    told
}

#[test]
fn m9_clients_that_are_too_many_are_told_under_their_own_id_and_managers_still_come() {
    let mut bench = bench(3);
    let clients: Vec<_> = (0..3).map(|_| bench.plain()).collect();
    let one_more = bench.connect(&json!({}));
    let refusal = bench.got(one_more);
    assert_eq!((reason(&refusal[0]), &refusal[0]["id"]), ("too_many", &json!("init")));
    assert_eq!(bench.closed, [one_more]);
    // Nothing more is heard of it.
    bench.say(one_more, &json!({"id":2,"method":"_acpd/session/list"}));
    bench.leave(one_more);
    assert!(bench.got(one_more).is_empty());

    for _ in 0..2 * MANAGERS {
        manager(&mut bench);
    }
    for client in clients {
        assert!(!is_gone(&mut bench, client), "who has said `initialize` stays");
    }
}

#[test]
fn m9_a_manager_has_the_place_of_one_that_is_idle_for_the_longest() {
    let mut bench = bench(2);
    let mut managers: Vec<_> = (0..MANAGERS + 2).map(|_| manager(&mut bench)).collect();
    bench.now += 1;
    // The first one is heard again.
    bench.say(managers[0], &json!({"id":2,"method":"_acpd/session/list"}));
    bench.got(managers[0]);
    let newest = manager(&mut bench);
    let gone: Vec<_> = managers.iter().copied().filter(|one| is_gone(&mut bench, *one)).collect();
    assert_eq!(gone, [managers[1]]);

    // Those that wait for something or follow something go last, and they do go.
    managers.remove(1);
    managers.push(newest);
    bench.capabilities = None;
    for busy in &managers[..=MANAGERS] {
        bench.ask(*busy, 3, "_acpd/agent/start", &json!({"agent":"gem"}));
    }
    bench.now += 1;
    let idle = manager(&mut bench);
    assert!(is_gone(&mut bench, managers[MANAGERS + 1]));
    bench.ask(idle, 3, "_acpd/agent/start", &json!({"agent":"gem"}));
    manager(&mut bench);
    assert!(is_gone(&mut bench, managers[0]), "all are busy, and this one for the longest");
}

#[test]
fn m9_a_manager_becomes_a_client_if_there_is_a_place() {
    let mut bench = bench(1);
    let (first, second) = (manager(&mut bench), manager(&mut bench));
    let hello = json!({"id":2,"method":"initialize","params":{"protocolVersion":1}});
    bench.say(first, &hello);
    assert!(bench.got(first)[0]["result"].is_object());
    bench.say(second, &hello);
    assert_eq!(bench.got(second)[0]["id"], 2);
    assert_eq!(bench.closed, [second]);
}

#[test]
fn m9_the_places_of_managers_are_not_for_what_does_not_manage() {
    let mut bench = bench(1);
    for _ in 0..=MANAGERS {
        says(&mut bench, &json!({"id":1,"method":"session/prompt"}));
    }
    let late = says(&mut bench, &json!({"id":7,"method":"session/prompt"}));
    assert_eq!((bench.got(late)[0]["id"].as_i64(), &bench.closed[..]), (Some(7), &[late][..]));
    let garbled = bench.open();
    bench.say_raw(garbled, "{oops");
    let head = bytes::Bytes::from_static(b"{");
    let huge = bench.open();
    bench.feed(client_oversized(huge, head, 1 << 30));
    assert_eq!(bench.closed, [late, garbled, huge]);
    manager(&mut bench);
    assert_eq!(bench.closed.len(), 4, "one of them has made room");
}

#[test]
fn m9_room_is_made_while_the_journal_cannot_be_written() {
    let mut bench = bench(1);
    let first = manager(&mut bench);
    for _ in 0..MANAGERS {
        manager(&mut bench);
    }
    bench.feed(Input::StoreFailing { reason: "disk full".to_owned(), hint: None });
    bench.commits = false;
    manager(&mut bench);
    assert!(is_gone(&mut bench, first));
}

#[test]
fn l10_a_connection_whose_token_another_one_brings_is_told_and_closed() {
    let (mut bench, first) = Bench::new().with_client_of(&token());
    let second = bench.client(&token());
    let last = bench.got(first);
    assert_eq!((reason(&last[0]), &last[0]["id"]), ("replaced", &Value::Null));
    assert_eq!((last.len(), &bench.closed[..]), (1, &[first][..]));
    bench.leave(first);
    assert!(bench.call(second, "session/list", &json!({}))["result"].is_object());
}

/// A tool of an agent says `initialize`.
fn tool(bench: &mut Bench, number: u64) -> ClientId {
    let client = ClientId(200 + number);
    bench.now += 1;
    bench.feed(Input::Client(client, ClientEvent::Opened(ClientOrigin::Agent(None))));
    bench.ask(client, "init", "initialize", &json!({"protocolVersion":1}));
    client
}

#[test]
fn tools_of_agents_have_half_of_the_places_and_give_theirs_to_people() {
    let mut bench = bench(4);
    let first = tool(&mut bench, 1);
    bench.session(first, "s");
    let second = tool(&mut bench, 2);
    let third = tool(&mut bench, 3);
    let refusal = bench.got(third);
    assert_eq!((reason(&refusal[0]), &refusal[0]["id"]), ("too_many", &json!("init")));
    assert!(refusal[0]["error"]["message"].as_str().unwrap().contains("under an agent"));
    assert_eq!(bench.closed, [third]);

    let mut people: Vec<_> = (0..2).map(|_| bench.plain()).collect();
    // One more person: the tool goes that has no session, though it was heard later.
    people.push(bench.plain());
    assert!(is_gone(&mut bench, second) && !is_gone(&mut bench, first));
    people.push(bench.plain());
    assert!(is_gone(&mut bench, first));
    let late = tool(&mut bench, 4);
    assert!(is_gone(&mut bench, late), "a tool takes nobody's place");
    let late = bench.connect(&json!({}));
    assert!(is_gone(&mut bench, late));
    for person in people {
        assert!(!is_gone(&mut bench, person));
    }
}

#[test]
fn a_tool_may_connect_where_there_is_one_place() {
    let mut bench = bench(1);
    let tool = tool(&mut bench, 1);
    assert!(bench.got(tool)[0]["result"].is_object());
    let person = bench.connect(&json!({}));
    assert!(bench.got(person)[0]["result"].is_object());
    assert!(is_gone(&mut bench, tool));
}
