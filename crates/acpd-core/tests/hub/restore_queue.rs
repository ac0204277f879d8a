//! Many sessions of a process that come back: whose turn it is, and who is given up.

use acpd_core::ids::ClientId;
use acpd_core::profile::Profile;
use serde_json::{Value, json};

use crate::bench::{AGENT, Bench};
use crate::steps::reason;

/// An agent that can only load and holds this many sessions, used in this order: one client for all of them.
fn holding(count: usize, change: impl FnOnce(&mut Profile)) -> (Bench, ClientId) {
    let mut bench = Bench::with(change);
    bench.capabilities = Some(json!({"loadSession":true}));
    let client = bench.plain();
    for n in 1..=count {
        bench.used_session(client, &format!("s{n}"));
        bench.pass(10);
    }
    (bench, client)
}

/// Like [`holding`], when the agent has died and was started again.
fn died_with(count: usize) -> (Bench, ClientId) {
    let (mut bench, client) = holding(count, |_| {});
    bench.agent_dies();
    bench.got(client);
    bench.pass(1_000);
    (bench, client)
}

/// The sessions whose load is asked for in these lines.
fn loaded(lines: &[Value]) -> Vec<&str> {
    let loads = lines.iter().filter(|line| line["method"] == "session/load");
    loads.map(|line| line["params"]["sessionId"].as_str().unwrap()).collect()
}

/// The agent loads all of these sessions.
fn load_all(bench: &mut Bench, loads: &[Value]) {
    for load in loads {
        bench.loads(load, &json!({}));
    }
}

#[test]
fn of_many_sessions_a_few_come_back_at_a_time_those_used_last_first() {
    let (mut bench, _) = died_with(7);
    let mut open = bench.heard();
    assert_eq!(loaded(&open), ["s7", "s6", "s5", "s4"]);
    let mut rest = vec!["s1", "s2", "s3"];
    while !open.is_empty() {
        let load = open.remove(0);
        bench.loads(&load, &json!({}));
        let next = bench.heard();
        assert_eq!(loaded(&next), rest.pop().map_or(Vec::new(), |next| vec![next]));
        open.extend(next);
    }
    assert_eq!(bench.hub.unsettled(), Vec::<String>::new());
}

#[test]
fn whom_somebody_waits_for_comes_back_at_once_and_alone() {
    let (mut bench, client) = died_with(7);
    let open = bench.heard();
    bench.prompt(client, &json!(9), "s1", "go");
    let awaited = bench.heard();
    assert_eq!(loaded(&awaited), ["s1"]);
    load_all(&mut bench, &open);
    assert_eq!(loaded(&bench.heard()), Vec::<&str>::new(), "the agent has one thing to do");
    bench.loads(&awaited[0], &json!({}));
    let next = bench.heard();
    assert_eq!(loaded(&next), ["s3", "s2"]);
    assert!(next.iter().any(|line| line["method"] == "session/prompt"), "{next:?}");
}

#[test]
fn a_place_is_free_whatever_becomes_of_who_had_it() {
    let (mut bench, client) = died_with(7);
    let open = bench.heard();
    bench.agent_refuses(&open[0], -32002);
    assert_eq!(loaded(&bench.heard()), ["s3"]);
    bench.ask(client, 5, "session/delete", &json!({"sessionId":"s6"}));
    assert_eq!(loaded(&bench.heard()), ["s2"]);
    bench.pass(60_000);
    assert!(loaded(&bench.heard()).contains(&"s1"), "who does not answer has a place for a time");
}

#[test]
fn a_session_over_which_the_agent_ends_again_and_again_is_given_up_and_others_go_on() {
    let mut bench = Bench::with(|profile| profile.restart.budget = 3);
    let (a, _) = bench.loading("s");
    bench.prompt(a, &json!(9), "s", "go");
    for _ in 1..3 {
        // Such a run is forgiven: the agent itself has not failed.
        bench.pass(11_000);
        bench.agent_dies();
        assert_eq!(bench.got(a), Vec::<Value>::new());
        bench.pass(1_000);
        bench.heard_one("session/load");
    }
    bench.pass(11_000);
    bench.agent_dies();
    let got = bench.expect(a, ["error 9"]);
    assert_eq!(reason(&got[0]), "agent_crash_loop");
    let text = got[0]["error"]["message"].as_str().unwrap();
    assert!(text.contains("ended 3 times in a row while it loaded it"), "{text}");
    assert_eq!(bench.state("s"), "blocked");

    bench.session(a, "t");
    assert_eq!(bench.agent_state(), "ready");
    // A client that wants it anyway does not wait.
    bench.prompt(a, &json!(10), "s", "go");
    bench.heard_one("session/load");
}

#[test]
fn an_agent_that_is_never_started_again_is_not_started_for_who_waits_for_a_place() {
    let (mut bench, client) = holding(6, |profile| profile.restart.on_failure = false);
    bench.ask(client, 5, "_acpd/agent/restart", &json!({"agent":AGENT}));
    bench.agent_dies();
    assert_eq!(loaded(&bench.heard()).len(), 4, "two wait for a place");
    bench.agent_dies();
    bench.pass(60_000);
    assert_eq!((bench.spawned.len(), bench.agent_state()), (2, "stopped".to_owned()));
    // A prompt starts it, for that session alone.
    bench.prompt(client, &json!(6), "s1", "go");
    bench.bring_back("session/load");
}

#[test]
fn who_opens_a_session_while_the_agent_goes_to_sleep_finds_it_awake() {
    let (mut bench, client) = holding(1, |profile| profile.restart.on_failure = false);
    bench.ask(client, 5, "_acpd/session/close", &json!({"session":"s1"}));
    bench.leave(client);
    while bench.stops.is_empty() {
        bench.pass(60_000);
    }
    let other = bench.plain();
    bench.ask(other, 1, "session/resume", &json!({"sessionId":"s1","cwd":"/w"}));
    bench.agent_dies();
    assert_eq!(loaded(&bench.heard()), ["s1"]);
}

/// The agent dies late enough to be forgiven, and is there again.
fn dies_late(bench: &mut Bench) {
    bench.pass(11_000);
    bench.restart_agent();
}

/// The agent is asked to load this one session and nothing else.
#[track_caller]
fn loads_alone(bench: &mut Bench, session: &str) -> Value {
    let heard = bench.heard();
    assert_eq!(loaded(&heard), [session], "{heard:?}");
    heard.into_iter().find(|line| line["method"] == "session/load").unwrap()
}

/// Like [`loads_alone`], and the agent loads it.
#[track_caller]
fn load_alone(bench: &mut Bench, session: &str) {
    let load = loads_alone(bench, session);
    bench.loads(&load, &json!({}));
}

#[test]
fn who_was_loaded_beside_the_session_over_which_the_agent_ends_is_not_given_up_for_it() {
    let (mut bench, _) = holding(4, |profile| profile.restart.budget = 2);
    bench.restart_agent();
    assert_eq!(loaded(&bench.heard()), ["s4", "s3", "s2", "s1"]);
    dies_late(&mut bench);
    for session in ["s4", "s3", "s2"] {
        load_alone(&mut bench, session);
    }
    loads_alone(&mut bench, "s1");
    dies_late(&mut bench);
    let open = bench.heard();
    assert_eq!(loaded(&open), ["s4", "s3", "s2"], "nobody else is suspected any more");
    load_all(&mut bench, &open);
    assert_eq!(bench.heard(), Vec::<Value>::new());
    let states = ["s1", "s2", "s3", "s4"].map(|session| bench.state(session));
    assert_eq!(states, ["blocked", "live", "live", "live"]);
}

#[test]
fn one_end_is_not_enough_to_give_up_several_sessions() {
    let (mut bench, _) = holding(2, |profile| profile.restart.budget = 1);
    dies_late(&mut bench);
    assert_eq!(loaded(&bench.heard()), ["s2", "s1"]);
    dies_late(&mut bench);
    load_alone(&mut bench, "s2");
    loads_alone(&mut bench, "s1");
    dies_late(&mut bench);
    assert_eq!(bench.state("s1"), "blocked");
    loads_alone(&mut bench, "s2");
}

#[test]
fn who_comes_back_alone_keeps_out_those_that_are_awaited_and_waits_for_them() {
    let (mut bench, client) = died_with(7);
    assert_eq!(loaded(&bench.heard()), ["s7", "s6", "s5", "s4"]);
    dies_late(&mut bench);
    let load = loads_alone(&mut bench, "s7");
    bench.prompt(client, &json!(3), "s3", "go");
    assert_eq!(loaded(&bench.heard()), Vec::<&str>::new());
    bench.loads(&load, &json!({}));
    let load = loads_alone(&mut bench, "s3");
    bench.prompt(client, &json!(5), "s5", "go");
    assert_eq!(loaded(&bench.heard()), Vec::<&str>::new());
    bench.loads(&load, &json!({}));
    for next in ["s5", "s6", "s4"] {
        load_alone(&mut bench, next);
    }
    assert_eq!(loaded(&bench.heard()), ["s2", "s1"]);
}

#[test]
fn who_is_awaited_and_comes_back_alone_is_not_overtaken_by_those_that_nobody_waits_for() {
    let (mut bench, client) = died_with(9);
    bench.heard();
    dies_late(&mut bench);
    for session in ["s9", "s8", "s7"] {
        load_alone(&mut bench, session);
    }
    loads_alone(&mut bench, "s6");
    dies_late(&mut bench);
    let open = bench.heard();
    assert_eq!(loaded(&open), ["s9", "s8", "s7", "s5"]);
    bench.prompt(client, &json!(6), "s6", "go");
    for load in &open {
        assert_eq!(bench.heard(), Vec::<Value>::new());
        bench.loads(load, &json!({}));
    }
    load_alone(&mut bench, "s6");
    assert_eq!(loaded(&bench.heard()), ["s4", "s3", "s2", "s1"]);
}

#[test]
fn the_end_of_an_agent_that_is_asked_for_nothing_is_not_the_fault_of_a_session_that_waits_to_be_loaded()
 {
    let (mut bench, _) = holding(1, |profile| profile.restart.budget = 1);
    dies_late(&mut bench);
    bench.pass(11_000);
    bench.refuses("session/load", -32602);
    bench.agent_dies();
    loads_alone(&mut bench, "s1");
}

#[test]
fn when_nobody_waits_for_a_restore_any_more_the_others_go_on() {
    let (mut bench, client) = died_with(7);
    let open = bench.heard();
    bench.prompt(client, &json!(9), "s1", "go");
    load_all(&mut bench, &open);
    assert_eq!(loaded(&bench.heard()), ["s1"]);
    bench.cancel(client, "s1");
    assert_eq!(loaded(&bench.heard()), ["s3", "s2"]);
}

#[test]
fn who_waits_for_a_place_when_the_daemon_starts_again_comes_back_with_a_prompt_or_who_opens_it() {
    let (mut bench, _) = holding(7, |_| {});
    bench.shims = true;
    bench.restart_agent();
    assert_eq!(loaded(&bench.heard()), ["s7", "s6", "s5", "s4"]);
    bench.reboot();
    let open = bench.heard();
    assert_eq!(loaded(&open), ["s7", "s6", "s5", "s4"], "each begins anew");
    load_all(&mut bench, &open);
    assert_eq!(bench.heard(), Vec::<Value>::new());
    let client = bench.plain();
    bench.prompt(client, &json!(1), "s3", "go");
    bench.ask(client, 2, "session/resume", &json!({"sessionId":"s2","cwd":"/w"}));
    load_alone(&mut bench, "s3");
    assert_eq!(loaded(&bench.heard()), ["s2"]);
    assert_eq!(bench.state("s1"), "parked");
}
