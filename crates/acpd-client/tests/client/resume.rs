//! The memory of a client over lost connections. The simulator runs it with the hub, and loses
//! connections and daemons at any point.

use std::collections::VecDeque;

use acpd_api::LinePosition;
use acpd_client::resume::{Resumption, Unresumable, Verdict};
use bytes::Bytes;
use serde_json::{Value, json};

const SESSION: &str = "s-1";

fn line(value: &Value) -> Bytes {
    value.to_string().into()
}

fn value(line: &[u8]) -> Value {
    serde_json::from_slice(line).unwrap()
}

/// A line with its position, and the line that the user gets.
fn say(seq: u64) -> (Bytes, Result<Verdict, Unresumable>) {
    let own = line(&json!({"method": "session/update",
        "params": {"sessionId": SESSION, "update": {}, "_meta": {"x": 1}}}));
    let line = LinePosition(SESSION.into(), seq).before(&own).into();
    (line, Ok(Verdict::Own(own)))
}

/// A client that was greeted, and has sent nothing yet.
fn greeted() -> Resumption {
    let mut memory = Resumption::new("0123456789abcdef".to_owned());
    let mut out = VecDeque::new();
    memory.send(line(&json!({"id": 0, "method": "initialize", "params": {}})), &mut out);
    let sent = value(&out.pop_front().unwrap());
    assert_eq!(sent["params"]["_meta"]["_acpd"]["client"]["resume"], Value::Null);
    memory.receive(&welcome(&json!(0), "g", 0, &json!([])), &mut out).unwrap();
    assert!(out.is_empty());
    memory
}

fn welcome(id: &Value, generation: &str, received: u64, again: &Value) -> Bytes {
    let meta = json!({"generation": generation, "received": received, "again": again});
    line(&json!({"id": id, "result": {"agentCapabilities": {"_meta": {"_acpd": meta}}}}))
}

/// Loses the connection and makes a new one; the new `initialize`.
fn returning(memory: &mut Resumption) -> Value {
    assert!(memory.lost());
    let mut first = memory.back();
    assert_eq!(first.len(), 1);
    value(&first.pop_front().unwrap())
}

#[test]
fn another_journal_or_a_forgotten_client_is_the_end() {
    let mut out = VecDeque::new();
    let back = |memory: &mut Resumption, generation: &str, received: u64| {
        let again = returning(memory);
        let answer = welcome(&again["id"], generation, received, &json!([]));
        memory.receive(&answer, &mut VecDeque::new())
    };
    assert_eq!(back(&mut greeted(), "h", 0), Err(Unresumable::OtherJournal));
    assert_eq!(back(&mut greeted(), "g", 1), Err(Unresumable::Forgotten));
    let mut memory = greeted();
    memory.send(line(&json!({"method": "x"})), &mut out);
    let safe = json!({"method": "_acpd/client/received", "params": {"lines": 1}});
    assert_eq!(memory.receive(&line(&safe), &mut out), Ok(Verdict::Swallow));
    assert_eq!(back(&mut memory, "g", 0), Err(Unresumable::Forgotten));
}

#[test]
fn an_older_daemon_and_a_client_that_comes_back_by_itself_are_left_alone() {
    let mut out = VecDeque::new();
    let mut older = Resumption::new("0123456789abcdef".to_owned());
    older.send(line(&json!({"id": 0, "method": "initialize"})), &mut out);
    older.receive(&line(&json!({"id": 0, "result": {}})), &mut out).unwrap();
    assert!(!older.lost());

    let mut own = Resumption::new("0123456789abcdef".to_owned());
    let token = json!({"client": {"token": "fedcba9876543210"}});
    let initialize =
        line(&json!({"id": 0, "method": "initialize", "params": {"_meta": {"_acpd": token}}}));
    out.clear();
    own.send(initialize.clone(), &mut out);
    assert_eq!(out, [initialize]);
    let received = line(&json!({"method": "_acpd/client/received", "params": {"lines": 1}}));
    assert_eq!(own.receive(&received, &mut out), Ok(Verdict::Pass));
    assert!(!own.lost());
}

/// The memory that the next `initialize` sends to acpd.
fn has(initialize: &Value) -> &Value {
    &initialize["params"]["_meta"]["_acpd"]["client"]["resume"]
}

/// Takes the client back; what is sent then.
fn take_back(memory: &mut Resumption, received: u64, again: &Value) -> Vec<Value> {
    let mut out = VecDeque::new();
    let answer = welcome(&json!("acpd-return"), "g", received, again);
    assert_eq!(memory.receive(&answer, &mut out), Ok(Verdict::Swallow));
    out.iter().map(|line| value(line)).collect()
}

#[test]
fn the_agent_of_the_first_answer_is_the_one_to_come_back_to() {
    let mut memory = Resumption::new("0123456789abcdef".to_owned());
    let mut out = VecDeque::new();
    let meta = json!({"_acpd": {"notices": true}});
    let hello = json!({"id": 0, "method": "initialize", "params": {"_meta": meta}});
    memory.send(line(&hello), &mut out);
    assert_eq!(value(&out[0])["params"]["_meta"]["_acpd"]["agent"], Value::Null);
    let bound = |id: u64, agent: &str| {
        let meta = json!({"agent": agent, "generation": "g", "received": 0});
        line(&json!({"id": id, "result": {"agentCapabilities": {"_meta": {"_acpd": meta}}}}))
    };
    memory.receive(&bound(0, "a\"b"), &mut out).unwrap();
    for _ in 0..2 {
        let own = &returning(&mut memory)["params"]["_meta"]["_acpd"];
        assert_eq!((&own["agent"], &own["notices"]), (&json!("a\"b"), &json!(true)));
    }

    // The user may choose again.
    take_back(&mut memory, 0, &json!([]));
    memory.send(line(&json!({"id": 1, "method": "initialize", "params": {}})), &mut out);
    memory.receive(&bound(1, "other"), &mut out).unwrap();
    assert_eq!(returning(&mut memory)["params"]["_meta"]["_acpd"]["agent"], "other");
}

#[test]
fn the_last_line_says_that_nobody_comes_back() {
    let mut memory = greeted();
    let mut out = VecDeque::new();
    memory.send(line(&json!({"method": "x"})), &mut out);
    out.clear();
    memory.leave(&mut out);
    memory.leave(&mut out);
    memory.send(line(&json!({"method": "y"})), &mut out);
    assert_eq!(memory.receive(&say(1).0, &mut out), Ok(Verdict::Swallow));
    let sent: Vec<Value> = out.iter().map(|line| value(line)).collect();
    let leave = json!({"jsonrpc": "2.0", "method": "_acpd/client/leave", "params": {}});
    assert_eq!(sent, [leave]);
    assert!(!memory.lost());
}

#[test]
fn a_session_that_a_request_made_is_followed_before_its_first_line() {
    for method in ["session/new", "session/fork"] {
        let mut memory = greeted();
        let mut out = VecDeque::new();
        memory.send(line(&json!({"id": 1, "method": method, "params": {"cwd": "/"}})), &mut out);
        let made = line(&json!({"id": 1, "result": {"sessionId": SESSION}}));
        memory.receive(&made, &mut out).unwrap();
        let again = returning(&mut memory);
        assert_eq!(has(&again)["sessions"], json!({SESSION: 0}), "{method}");
    }
}

#[test]
fn turn_is_waited_for_without_an_open_request() {
    let state = |own: &str, seq: Option<u64>| {
        let update = json!({"sessionUpdate": "state_update", "state": own});
        let params = json!({"sessionId": SESSION, "update": update});
        let own = line(&json!({"method": "session/update", "params": params}));
        seq.map_or_else(|| own.clone(), |seq| LinePosition(SESSION.into(), seq).before(&own).into())
    };
    let mut out = VecDeque::new();
    let mut memory = Resumption::new("0123456789abcdef".to_owned());
    memory.send(line(&json!({"id": 0, "method": "initialize", "params": {}})), &mut out);
    let meta = json!({"_acpd": {"generation": "g", "received": 0, "again": []}});
    let known = json!({"id": 0, "result": {"capabilities": {"_meta": meta}}});
    memory.receive(&line(&known), &mut out).unwrap();
    for (say, waits) in [
        (state("running", Some(1)), true),
        (state("requires_action", None), true),
        (state("idle", Some(2)), false),
        (state("running", Some(3)), true),
    ] {
        memory.receive(&say, &mut out).unwrap();
        assert_eq!(memory.waits(), waits);
    }
    let close = json!({"id": 1, "method": "session/close", "params": {"sessionId": SESSION}});
    memory.send(line(&close), &mut out);
    memory.receive(&line(&json!({"id": 1, "result": {}})), &mut out).unwrap();
    assert!(!memory.waits());
}

#[test]
fn lines_of_a_subagent_count_for_the_session_that_they_name() {
    let mut memory = greeted();
    let mut out = VecDeque::new();
    let of_child = |seq: u64| {
        line(&json!({"method": "session/update", "params": {"sessionId": "c", "update": {},
            "_meta": {"_acpd": {"seq": seq, "session": SESSION}}}}))
    };
    memory.receive(&say(5).0, &mut out).unwrap();
    memory.receive(&of_child(7), &mut out).unwrap();
    assert_eq!(has(&returning(&mut memory))["sessions"], json!({SESSION: 7}));
    take_back(&mut memory, 0, &json!([]));
    assert_eq!(memory.receive(&of_child(7), &mut out), Ok(Verdict::Swallow));

    let load = json!({"id": 5, "method": "session/load", "params": {"sessionId": SESSION}});
    memory.send(line(&load), &mut out);
    for again in [say(5).0, of_child(6), of_child(7)] {
        assert!(matches!(memory.receive(&again, &mut out), Ok(Verdict::Own(_))));
    }
}

#[test]
fn a_session_that_is_being_left_is_told_apart() {
    for (method, key) in [
        ("session/close", "sessionId"),
        ("session/archive", "sessionId"),
        ("session/delete", "sessionId"),
        ("_acpd/session/detach", "session"),
    ] {
        let mut memory = greeted();
        let mut out = VecDeque::new();
        memory.receive(&say(3).0, &mut out).unwrap();
        let other = json!({"method": "session/update",
            "params": {"sessionId": "s-2", "_meta": {"_acpd": {"seq": 4}}}});
        memory.receive(&line(&other), &mut out).unwrap();
        memory.send(line(&json!({"id": 1, "method": method, "params": {key: SESSION}})), &mut out);
        let returns = returning(&mut memory);
        let left = has(&returns);
        assert_eq!(left["sessions"], json!({"s-2": 4}), "{method}");
        assert_eq!(left["leaving"], json!({SESSION: {"seq": 3, "requests": [1]}}), "{method}");
        take_back(&mut memory, 0, &json!([]));
        let refused = json!({"id": 1, "error": {"code": -32603, "message": "no"}});
        memory.receive(&line(&refused), &mut out).unwrap();
        let returns = returning(&mut memory);
        let followed = has(&returns);
        let all = json!({SESSION: 3, "s-2": 4});
        assert_eq!((&followed["sessions"], followed.get("leaving")), (&all, None), "{method}");
    }
}

#[test]
fn a_refused_connection_is_tried_again_and_its_words_are_kept() {
    let mut memory = greeted();
    let mut out = VecDeque::new();
    memory.send(line(&json!({"id": 1, "method": "session/list"})), &mut out);
    let first = returning(&mut memory);
    for id in [&first["id"], &Value::Null] {
        let full = json!({"id": id, "error": {"code": -32603, "message": "too many"}});
        assert_eq!(memory.receive(&line(&full), &mut out), Ok(Verdict::Refused));
        let refusal = memory.refusal().map(|refusal| refusal.message.as_str());
        assert_eq!((refusal, memory.is_up()), (Some("too many"), false));
        assert_eq!(returning(&mut memory), first);
    }
    take_back(&mut memory, 0, &json!([]));
    let malformed = json!({"id": null, "error": {"code": -32700, "message": "no JSON"}});
    assert_eq!(memory.receive(&line(&malformed), &mut out), Ok(Verdict::Pass));
}

const IN_USE: i32 = -32600;

#[test]
fn a_second_request_with_an_open_id_gets_its_error_and_the_first_its_answer() {
    let mut memory = greeted();
    let mut out = VecDeque::new();
    let prompt = json!({"id": 1, "method": "session/prompt", "params": {"sessionId": SESSION}});
    let list = json!({"id": 1, "method": "session/list"});
    memory.send(line(&prompt), &mut out);
    memory.send(line(&list), &mut out);
    assert_eq!(out.len(), 2);
    out.clear();
    let in_use = line(&json!({"id": 1, "error": {"code": IN_USE, "message": "is open already"}}));
    assert_eq!(memory.receive(&in_use, &mut out), Ok(Verdict::Pass));
    assert!(out.is_empty(), "the answer to the first is not confirmed with it");

    // The first is still waited for, and the second does not run now.
    assert_eq!(has(&returning(&mut memory))["open"], json!([1]));
    let sent = take_back(&mut memory, 0, &json!([1]));
    let methods: Vec<&Value> = sent.iter().map(|line| &line["method"]).collect();
    assert_eq!(methods, ["session/prompt", "_acpd/client/answered"]);
    let answer = line(&json!({"id": 1, "result": {}}));
    assert_eq!(memory.receive(&answer, &mut out), Ok(Verdict::Pass));
    assert_eq!(value(&out[0])["params"]["ids"], json!([1]));
    assert_eq!(memory.receive(&answer, &mut out), Ok(Verdict::Swallow));
}
