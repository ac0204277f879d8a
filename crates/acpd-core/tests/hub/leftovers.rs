//! Processes of an agent that survive SIGKILL.

use acpd_core::ids::{ClientId, HostId};
use acpd_core::{HostEvent, Input, LeftProcess};
use serde_json::{Value, json};

use crate::bench::{AGENT, Bench, methods};
use crate::steps::{hint, reason};

fn cat() -> LeftProcess {
    LeftProcess { pid: 4711, name: "cat".to_owned() }
}

/// A used session whose agent's leader died; something of its tree survives every SIGKILL.
fn held_back() -> (Bench, ClientId, HostId) {
    let (mut bench, client) = Bench::used();
    bench.survivors = Some(vec![cat()]);
    bench.leader_ends();
    let host = bench.host();
    (bench, client, host)
}

fn exited(ending: &str) -> HostEvent {
    HostEvent::Exited { ending: ending.to_owned(), stderr: String::new() }
}

fn ask(bench: &mut Bench, client: ClientId, method: &str, params: &Value) {
    bench.got(client);
    bench.ask(client, "ask", method, params);
}

fn is_held_back(line: &Value) {
    assert_eq!(reason(line), "agent_leftovers", "{line}");
    let message = line["error"]["message"].as_str().expect("a message");
    assert!(message.contains("process 4711 (`cat`)"), "{message}");
    let hint = hint(line);
    assert!(hint.contains("`acpctl agent restart gem --force`"), "{hint}");
}

#[test]
fn what_survives_sigkill_is_told_by_name_to_all_who_wait() {
    let (mut bench, a, _) = held_back();
    let b = bench.noticed();
    bench.prompt(a, &json!(2), "s", "and now?");
    ask(&mut bench, b, "_acpd/agent/start", &json!({"agent":AGENT}));
    bench.pass(10_000);
    is_held_back(&bench.answer(a, 2));
    let got = bench.got(b);
    is_held_back(got.iter().find(|line| line["id"] == "ask").expect("an answer"));
    let told = got.iter().rfind(|line| line["method"] == "_acpd/agent_state").expect("told");
    assert_eq!(told["params"]["reason"], "process 4711 (`cat`) of its last run does not end");
    let shown = bench.show_agent();
    assert_eq!(shown["state"], "stopping");
    assert_eq!(shown["reason"], told["params"]["reason"]);
    assert!(shown["hint"].as_str().expect("a hint").contains("--force"));
    // Later clients are told at once.
    bench.prompt(a, &json!(3), "s", "and now?");
    is_held_back(&bench.answer(a, 3));
    for method in ["start", "stop", "restart"] {
        ask(&mut bench, a, &format!("_acpd/agent/{method}"), &json!({"agent":AGENT}));
        is_held_back(&bench.answer(a, "ask"));
    }
}

#[test]
fn sessions_come_back_by_themselves_when_the_rest_has_ended_after_all() {
    let (mut bench, a, host) = held_back();
    bench.pass(10_000);
    assert_eq!(bench.spawned.len(), 1, "never two at a time");
    bench.feed(Input::Host(host, HostEvent::Gone));
    bench.pass(1_000);
    assert_eq!(bench.spawned.len(), 2);
    bench.answers("session/resume", &json!({}));
    bench.start_turn(a, 2, "s", "and now?");
    assert_eq!(bench.show_agent()["hint"], Value::Null);
}

#[test]
fn a_person_does_not_wait_for_what_does_not_end() {
    let (mut bench, a, host) = held_back();
    bench.pass(10_000);
    ask(&mut bench, a, "_acpd/agent/restart", &json!({"agent":AGENT,"force":true}));
    assert_eq!(bench.spawned.len(), 2);
    assert_eq!(bench.answer(a, "ask")["result"]["state"], "ready");
    bench.answers("session/resume", &json!({}));
    // Later lines of these processes belong to no session, and their end does not matter.
    bench.feed(Input::Host(host, exited("ended late")));
    bench.feed(Input::Host(host, HostEvent::Gone));
    assert_eq!(bench.state("s"), "live");
    assert_eq!(bench.agent_state(), "ready");
}

#[test]
fn force_changes_nothing_where_nothing_is_left() {
    let (mut bench, a) = Bench::used();
    ask(&mut bench, a, "_acpd/agent/restart", &json!({"agent":AGENT,"force":true}));
    assert_eq!(bench.spawned.len(), 1, "it is stopped as ever");
    bench.agent_dies();
    assert_eq!(bench.spawned.len(), 2);
}

#[test]
fn what_an_earlier_daemon_left_holds_back_its_own_agent_alone() {
    let (mut bench, _) = Bench::with_agents(&["gem", "two", "three"]).with_used();
    bench.shims = true;
    bench.adopts = false;
    bench.reboot();
    let host = bench.host();
    bench.survivors = Some(vec![cat()]);
    bench.feed(Input::Host(host, HostEvent::Lost { reason: "its host was killed".to_owned() }));
    let a = bench.plain();
    bench.prompt(a, &json!(2), "s", "and now?");
    // Others start meanwhile, as many as may at a time.
    for other in ["two", "three"] {
        ask(&mut bench, a, "_acpd/agent/start", &json!({"agent":other}));
        assert_eq!(bench.started.last().expect("started"), other);
    }
    bench.pass(10_000);
    is_held_back(&bench.answer(a, 2));
    ask(&mut bench, a, "_acpd/agent/restart", &json!({"agent":AGENT,"force":true}));
    assert_eq!(bench.started.last().expect("started"), AGENT);
    assert_eq!(methods(&bench.heard()), ["session/resume"]);
}

#[test]
fn a_daemon_that_is_told_to_stop_ends_without_what_does_not_end_and_says_so() {
    let (mut bench, a, _) = held_back();
    ask(&mut bench, a, "_acpd/daemon/stop", &json!({}));
    assert!(!bench.exited);
    bench.pass(10_000);
    let told = bench.answer(a, "ask");
    assert_eq!(reason(&told), "agent_leftovers");
    let message = told["error"]["message"].as_str().expect("a message");
    assert!(message.contains("process 4711 (`cat`)") && message.contains("acpd ends"), "{message}");
    assert!(bench.exited);
}

#[test]
fn several_are_counted_and_what_has_no_name_is_told_all_the_same() {
    let process = |pid, name: &str| LeftProcess { pid, name: name.to_owned() };
    let four = vec![cat(), process(4712, ""), process(4713, "a\nb"), process(4714, "d")];
    for (left, told) in [
        (Vec::new(), "something of its last run does not end"),
        (four[..2].to_vec(), "processes 4711 (`cat`), 4712 of its last run do not end"),
        (four, "processes 4711 (`cat`), 4712, 4713 (`ab`) and 1 more of its last run do not end"),
    ] {
        let (mut bench, ..) = held_back();
        bench.survivors = Some(left);
        bench.pass(10_000);
        assert_eq!(bench.show_agent()["reason"], told);
    }
}

#[test]
fn an_agent_that_takes_its_time_to_end_is_not_complained_about() {
    let (mut bench, _, host) = held_back();
    bench.pass(4_000);
    assert_eq!(bench.show_agent()["hint"], Value::Null);
    bench.feed(Input::Host(host, HostEvent::Gone));
    // A late answer concerns no process.
    bench.feed(Input::Host(host, HostEvent::Left(vec![cat()])));
    bench.pass(1_000);
    assert_eq!(bench.show_agent()["state"], "ready");
}

#[test]
fn a_turn_of_an_agent_that_survives_sigkill_itself_is_over() {
    let (mut bench, a) = Bench::used();
    bench.survivors = Some(vec![cat()]);
    bench.start_and_queue(a, "s", [(2, "go"), (3, "and then?")]);
    ask(&mut bench, a, "_acpd/agent/restart", &json!({"agent":AGENT}));
    bench.pass(60_000);
    let got = bench.got(a);
    let reason_of = |id: u64| reason(got.iter().find(|line| line["id"] == id).expect("an answer"));
    assert_eq!((reason_of(2), reason_of(3)), ("interrupted", "agent_leftovers"));
    is_held_back(got.iter().find(|line| line["id"] == "ask").expect("an answer"));
    assert_eq!(bench.state("s"), "parked");
    // When it ends after all, everything goes on.
    bench.feed_process(exited("was killed (SIGKILL)"));
    bench.end_process();
    bench.pass(1_000);
    assert_eq!(methods(&bench.heard()), ["session/cancel", "session/resume"]);
}
