//! The daemon dies, or its store fails.

use acp_wire::Id;
use acpd_core::record::TurnStage;
use acpd_core::{HostEvent, Input};
use serde_json::{Value, json};

use crate::bench::{Bench, words};

/// The word that the journal of the only session has for how its last turn ended.
fn outcome(bench: &Bench) -> Value {
    let rows = bench.journal.values().next().expect("a journal");
    let lines = rows.iter().rev().map(|row| serde_json::from_slice::<Value>(&row.line));
    let ended = lines.flatten().find(|line| line["method"] == "_acpd/turn_ended");
    ended.expect("a turn ended")["params"]["outcome"]["kind"].clone()
}

#[test]
fn leftovers_are_gone_before_the_next_process_starts() {
    let (mut bench, a) = Bench::used();
    bench.prompt(a, &json!(2), "s", "go");
    bench.heard();
    let old = bench.host();
    bench.reboot();
    assert_eq!(bench.swept, [old]);
    let b = bench.plain();
    bench.prompt(b, &json!(1), "s", "more");
    assert_eq!(bench.spawned.len(), 1);
    bench.feed(Input::Host(old, HostEvent::Gone));
    assert_eq!(bench.spawned.len(), 2);
    bench.answers("session/resume", &json!({}));
    let prompt = bench.heard_one("session/prompt");
    assert_eq!(prompt["params"]["prompt"][0]["text"], "more");
}

#[test]
fn a_written_prompt_was_interrupted() {
    let (mut bench, a) = Bench::begun();
    bench.prompt(a, &json!(1), "s", "go");
    bench.reboot();
    assert_eq!(outcome(&bench), "interrupted");
}

#[test]
fn of_a_prompt_that_may_not_have_been_written_the_outcome_is_unknown() {
    let (mut bench, a) = Bench::begun();
    bench.writes = false;
    bench.prompt(a, &json!(1), "s", "go");
    bench.writes = true;
    bench.reboot();
    assert_eq!(outcome(&bench), "outcome_unknown");
    let old = bench.host();
    bench.feed(Input::Host(old, HostEvent::Gone));
    bench.answers("session/resume", &json!({}));
    assert_eq!(bench.heard(), Vec::<Value>::new(), "it is never sent again by itself");
}

#[test]
fn a_prompt_in_line_is_still_in_line_for_the_next_daemon() {
    let (mut bench, a) = Bench::begun();
    bench.prompt(a, &json!(1), "s", "one");
    bench.prompt(a, &json!(2), "s", "two");
    bench.heard();
    let old = bench.host();
    bench.reboot();
    let turns: Vec<_> = bench.snapshot.turns.values().map(|turn| turn.state).collect();
    assert_eq!(turns, [TurnStage::Queued]);
    bench.feed(Input::Host(old, HostEvent::Gone));
    bench.answers("session/resume", &json!({}));
    let prompt = bench.heard_one("session/prompt");
    assert_eq!(prompt["params"]["prompt"][0]["text"], "two");
}

#[test]
fn a_prompt_in_line_for_an_agent_that_was_stopped_does_not_wait_for_ever() {
    let (mut bench, a) = Bench::used();
    bench.agent_dies();
    bench.prompt(a, &json!(2), "s", "go");
    let mut snapshot = bench.snapshot.clone();
    snapshot.agents.get_mut("gem").expect("known").desired = acpd_core::record::Desired::Down;
    bench.snapshot = snapshot;
    bench.reboot();
    for host in bench.swept.clone() {
        bench.feed(Input::Host(host, HostEvent::Gone));
    }
    assert_eq!(bench.snapshot.turns.len(), 0);
    assert_eq!(bench.hub.unsettled(), Vec::<String>::new());
}

#[test]
fn ids_of_the_next_daemon_are_not_those_of_the_last() {
    let (mut bench, a) = Bench::begun();
    bench.prompt(a, &json!(1), "s", "go");
    let issued = |line: &Value| Id::from_value(&line["id"]).and_then(|id| id.as_issued());
    let before = issued(&bench.heard_one("session/prompt")).expect("a number");
    let old = bench.host();
    bench.reboot();
    bench.feed(Input::Host(old, HostEvent::Gone));
    let after = issued(&bench.heard_one("session/resume")).expect("a number");
    assert!(after >> 32 > before >> 32);
    assert!(after < 1 << 53, "JavaScript can hold it");
}

#[test]
fn while_the_store_fails_questions_are_answered_and_work_is_refused() {
    let (mut bench, a) = Bench::begun();
    bench.feed(Input::StoreFailing { reason: "disk full".to_owned(), hint: None });
    bench.prompt(a, &json!(1), "s", "go");
    let got = bench.got(a);
    assert_eq!(got[0]["error"]["data"]["_acpd"]["reason"], "store_failed");
    bench.say(a, &json!({"id":2,"method":"_acpd/status"}));
    assert_eq!(bench.got(a)[0]["result"]["daemon"]["store"]["state"], "failing");
    bench.say(a, &json!({"id":3,"method":"session/list"}));
    assert_eq!(words(&bench.got(a)), ["result 3"]);
    bench.feed(Input::StoreWorks);
    bench.prompt(a, &json!(4), "s", "go");
    bench.heard_one("session/prompt");
}

#[test]
fn nobody_is_late_while_the_store_fails() {
    let (mut bench, a) = Bench::begun();
    bench.prompt(a, &json!(1), "s", "go");
    bench.say(a, &json!({"method":"session/cancel","params":{"sessionId":"s"}}));
    bench.pass(5_000);
    bench.feed(Input::StoreFailing { reason: "disk full".to_owned(), hint: None });
    bench.pass(3_600_000);
    bench.feed(Input::StoreWorks);
    bench.pass(4_999);
    assert_eq!(bench.stops, []);
    bench.pass(1);
    assert_eq!(bench.stops.len(), 1);
}
