//! How many processes are started at the same time, and in which order.

use acpd_core::{HostEvent, Input, SpawnError};
use serde_json::json;

use crate::bench::{Bench, methods};

const AGENTS: [&str; 8] = ["a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8"];

/// All agents were up and have died together, so that two are being started again and the others
/// wait for that.
fn all_died() -> Bench {
    let mut bench = Bench::with_agents(&AGENTS);
    for agent in AGENTS {
        start(&mut bench, agent);
    }
    all_die(&mut bench);
    bench
}

/// A person wants this agent up.
fn start(bench: &mut Bench, agent: &str) {
    let started = bench.command("_acpd/agent/start", &json!({"agent":agent}));
    assert_eq!(started["result"]["state"], "ready");
}

fn all_die(bench: &mut Bench) {
    bench.pass(20_000);
    bench.capabilities = None;
    bench.started.clear();
    let hosts = std::mem::take(&mut bench.spawned);
    for host in hosts.clone() {
        let (ending, stderr) = ("was killed (SIGKILL)".to_owned(), String::new());
        bench.feed(Input::Host(host, HostEvent::Exited { ending, stderr }));
    }
    for host in hosts {
        bench.feed(Input::Host(host, HostEvent::Gone));
    }
}

/// The start of a process is over: it cannot be made.
fn one_start_is_over(bench: &mut Bench) {
    let host = bench.spawned.remove(0);
    let error = SpawnError { message: "gone".to_owned(), hint: None, permanent: true };
    bench.feed(Input::Host(host, HostEvent::Refused(error)));
}

fn wants_a_session(bench: &mut Bench, agent: &str) {
    let client = bench.client(&json!({"agent":agent}));
    bench.ask(client, 1, "session/new", &json!({"cwd":"/w","mcpServers":[]}));
}

fn state(bench: &mut Bench, agent: &str) -> (String, String) {
    let shown = bench.command("_acpd/agent/show", &json!({"agent":agent}));
    let word = |key: &str| shown["result"][key].as_str().unwrap_or_default().to_owned();
    (word("state"), word("reason"))
}

#[test]
fn agents_that_die_together_are_started_a_few_at_a_time() {
    let mut bench = all_died();
    assert_eq!(bench.started, ["a1", "a2"]);
    let (is, why) = state(&mut bench, "a3");
    assert_eq!(is, "starting");
    assert_eq!(why, "waits for its turn: 2 agents are being started");
    for over in 0..AGENTS.len() {
        assert_eq!(bench.started.len(), (over + 2).min(AGENTS.len()));
        one_start_is_over(&mut bench);
    }
    assert_eq!(bench.started, AGENTS);
}

#[test]
fn an_agent_that_is_ready_makes_room_for_the_next() {
    let mut bench = all_died();
    bench.capabilities = Some(json!({}));
    one_start_is_over(&mut bench);
    // Each one that comes after it is ready at once.
    assert_eq!(bench.started, AGENTS);
}

#[test]
fn who_is_waited_for_goes_first_and_nobody_waits_for_ever() {
    for (wanted, starts, expected) in [
        (&AGENTS[6..7], 1, "a1 a2 a7"),
        (&AGENTS[6..7], 2, "a1 a2 a7 a3"),
        (&AGENTS[3..], 4, "a1 a2 a4 a5 a6 a3"),
    ] {
        let mut bench = all_died();
        for agent in wanted {
            wants_a_session(&mut bench, agent);
        }
        for _ in 0..starts {
            one_start_is_over(&mut bench);
        }
        assert_eq!(bench.started.join(" "), expected);
    }
}

#[test]
fn an_agent_that_is_stopped_while_it_waits_is_never_started() {
    let mut bench = all_died();
    let stopped = bench.command("_acpd/agent/stop", &json!({"agent":"a3"}));
    assert_eq!(stopped["result"]["state"], "stopped");
    one_start_is_over(&mut bench);
    assert_eq!(bench.started, ["a1", "a2", "a4"]);
}

#[test]
fn an_agent_that_is_restarted_while_it_waits_keeps_its_turn_and_who_waits_for_it() {
    let mut bench = all_died();
    let client = bench.plain();
    bench.ask(client, 1, "_acpd/agent/restart", &json!({"agent":"a3"}));
    bench.capabilities = Some(json!({}));
    one_start_is_over(&mut bench);
    assert_eq!(bench.got(client)[0]["result"]["state"], "ready");
}

#[test]
fn an_agent_that_nobody_wants_any_more_gives_up_its_turn() {
    let mut bench = Bench::with_agents(&AGENTS[..3]);
    start(&mut bench, "a1");
    start(&mut bench, "a2");
    let client = bench.client(&json!({"agent":"a3"}));
    bench.used_session(client, "s");
    all_die(&mut bench);
    assert_eq!(bench.started, ["a1", "a2"]);
    assert_eq!(state(&mut bench, "a3").0, "starting");
    bench.ask(client, 1, "_acpd/session/remove", &json!({"session":"s"}));
    one_start_is_over(&mut bench);
    assert_eq!(bench.started, ["a1", "a2"]);
    assert_eq!(state(&mut bench, "a3").0, "stopped");
}

#[test]
fn sessions_that_somebody_waits_for_come_back_first_then_those_that_are_open() {
    let mut bench = Bench::new();
    let gone = bench.plain();
    for id in ["unattended", "watched", "prompted"] {
        bench.used_session(gone, id);
    }
    bench.leave(gone);
    let a = bench.plain();
    bench.ask(a, 1, "session/load", &json!({"sessionId":"watched","cwd":"/w","mcpServers":[]}));
    bench.pass(20_000);
    bench.heard();
    bench.leader_ends();
    bench.prompt(a, &json!(2), "prompted", "go");
    bench.end_process();
    let awaited = bench.heard_one("session/resume");
    assert_eq!(awaited["params"]["sessionId"], "prompted");
    bench.agent_answers(&awaited, &json!({}));
    let heard = bench.heard();
    assert_eq!(methods(&heard), ["session/prompt", "session/resume", "session/resume"]);
    let order: Vec<_> = heard.iter().map(|line| &line["params"]["sessionId"]).collect();
    assert_eq!(order, ["prompted", "watched", "unattended"]);
}
