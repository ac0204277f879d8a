//! The daemon dies, or its store fails.

use acp_wire::Id;
use acpd_core::record::Desired;
use acpd_core::{HostEvent, Input};
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::steps::{prompt_text, reason};

#[test]
fn leftovers_are_gone_before_the_next_process_starts() {
    let (mut bench, a) = Bench::used();
    bench.start_turn(a, 2, "s", "go");
    let old = bench.host();
    bench.reboot();
    assert_eq!(bench.swept, [old]);
    let b = bench.plain();
    bench.prompt(b, &json!(1), "s", "more");
    assert_eq!(bench.spawned.len(), 1);
    bench.feed(Input::Host(old, HostEvent::Gone));
    assert_eq!(bench.spawned.len(), 2);
    assert_eq!(prompt_text(&bench.bring_back("session/resume")), "more");
}

#[test]
fn a_written_prompt_was_interrupted_and_otherwise_the_outcome_is_unknown() {
    for (writes, outcome) in [(true, "interrupted"), (false, "outcome_unknown")] {
        let (mut bench, a) = Bench::begun();
        bench.writes = writes;
        bench.prompt(a, &json!(1), "s", "go");
        bench.pass(500);
        bench.writes = true;
        bench.heard();
        bench.reboot();
        assert_eq!(bench.last_outcome()["kind"], outcome);
        bench.end_process();
        bench.answers("session/resume", &json!({}));
        assert_eq!(bench.heard(), Vec::<Value>::new(), "it is never sent again by itself");
    }
}

#[test]
fn a_prompt_in_line_for_an_agent_that_was_stopped_does_not_wait_for_ever() {
    let (mut bench, a) = Bench::used();
    bench.agent_dies();
    bench.prompt(a, &json!(2), "s", "go");
    bench.snapshot.agents.get_mut("gem").expect("known").desired = Desired::Down;
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
    bench.reboot();
    bench.end_process();
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
    assert_eq!(reason(&got[0]), "store_failed");
    bench.say(a, &json!({"id":2,"method":"_acpd/status"}));
    assert_eq!(bench.got(a)[0]["result"]["daemon"]["store"]["state"], "failing");
    bench.say(a, &json!({"id":3,"method":"session/list"}));
    bench.expect(a, ["result 3"]);
    bench.feed(Input::StoreWorks);
    bench.start_turn(a, 4, "s", "go");
}

#[test]
fn nobody_is_late_while_the_store_fails() {
    let (mut bench, a) = Bench::begun();
    bench.prompt(a, &json!(1), "s", "go");
    bench.cancel(a, "s");
    bench.pass(5_000);
    bench.feed(Input::StoreFailing { reason: "disk full".to_owned(), hint: None });
    bench.pass(3_600_000);
    bench.feed(Input::StoreWorks);
    bench.pass(4_999);
    assert_eq!(bench.stops, []);
    bench.pass(1);
    assert_eq!(bench.stops.len(), 1);
}
