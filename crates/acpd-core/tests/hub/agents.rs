//! Processes: starts that fail, crash loops, idle stops, shutdown.

use acpd_core::profile::Sharing;
use acpd_core::record::Desired;
use acpd_core::{HostEvent, Input, SpawnError, StopStep};
use serde_json::{Value, json};

use crate::bench::{AGENT, Bench, words};
use crate::steps::{hint, reason};

fn not_installed(hint: Option<&str>) -> HostEvent {
    let (message, hint) = ("`gem` is not installed".to_owned(), hint.map(str::to_owned));
    HostEvent::Refused(SpawnError { message, hint, permanent: true })
}

#[test]
fn initialize_is_answered_from_memory_once_the_agent_is_known() {
    let mut bench = Bench::new();
    let a = bench.connect(&json!({}));
    let capabilities = &bench.got(a)[0]["result"]["agentCapabilities"];
    // acpd has all of these, whatever the agent has.
    for name in ["list", "resume", "close", "delete", "archive", "status", "title"] {
        assert_eq!(capabilities["sessionCapabilities"][name], json!({}));
    }
    bench.agent_dies();
    bench.capabilities = None;
    let b = bench.connect(&json!({}));
    assert_eq!(words(&bench.got(b)), ["result \"init\""]);
}

#[test]
fn who_waits_for_an_agent_that_cannot_be_started_is_told_why() {
    let (mut bench, a) = Bench::connecting();
    bench.feed_process(not_installed(Some("install it")));
    let got = bench.got(a);
    assert_eq!((reason(&got[0]), hint(&got[0])), ("agent_start_failed", "install it"));
    bench.pass(600_000);
    assert_eq!(bench.spawned.len(), 1);
    // A person's next try starts it again.
    bench.connect(&json!({}));
    assert_eq!(bench.spawned.len(), 2);
}

#[test]
fn the_way_out_of_a_refused_start_outlives_the_refusal_of_another_agent() {
    let mut bench = Bench::with_agents(&[AGENT, "other"]);
    bench.capabilities = None;
    bench.client(&json!({"agent":AGENT}));
    bench.client(&json!({"agent":"other"}));
    let hosts = std::mem::take(&mut bench.spawned).into_iter();
    for (host, hint) in hosts.zip([Some("install it"), None]) {
        bench.feed(Input::Host(host, not_installed(hint)));
    }
    let hint = "install it; the next prompt or `acpctl agent start gem` tries again";
    assert_eq!(bench.show_agent()["hint"], hint);
}

#[test]
fn an_agent_that_never_answers_initialize_is_stopped() {
    let (mut bench, a) = Bench::connecting();
    bench.process_starts();
    bench.pass(60_000);
    assert_eq!(bench.stops, [StopStep::CloseStdin]);
    // Waiting clients get its last words.
    let (ending, stderr) = ("ended with exit code 0".to_owned(), "no network".to_owned());
    bench.feed_process(HostEvent::Exited { ending, stderr });
    let error = bench.got(a)[0]["error"]["data"]["_acpd"].clone();
    assert_eq!(error["reason"], "agent_timeout");
    assert_eq!(error["stderr"], "no network");
}

#[test]
fn no_process_starts_while_anything_of_the_last_one_lives() {
    let (mut bench, a) = Bench::used();
    bench.pass(20_000);
    bench.leader_ends();
    bench.prompt(a, &json!(1), "s", "go");
    bench.pass(500);
    assert_eq!(bench.spawned.len(), 1);
    bench.pass(5_000);
    assert!(bench.stops.contains(&StopStep::Kill));
    bench.end_process();
    assert_eq!(bench.spawned.len(), 2);
}

#[test]
fn an_agent_that_crashes_again_and_again_is_given_up_until_a_person_asks() {
    let (mut bench, a) = Bench::used();
    let mut starts = 0;
    while starts < 20 && bench.agent_state() != "failed" {
        starts += 1;
        bench.agent_dies_for(5_000);
        bench.heard();
    }
    assert_eq!(starts, 5);
    let why = "it failed 5 times in a row, last: it ended with exit status 1";
    assert_eq!(bench.show_agent()["reason"], why);
    bench.got(a);
    bench.pass(3_600_000);
    assert_eq!(bench.spawned.len(), 5);
    assert_eq!(bench.hub.unsettled(), Vec::<String>::new());
    bench.prompt(a, &json!(1), "s", "try again");
    assert_eq!(bench.spawned.len(), 6);
    bench.bring_back("session/resume");
}

#[test]
fn an_agent_that_fails_slowly_is_given_up_too() {
    let (mut bench, a) = Bench::used();
    bench.ask(a, 1, "_acpd/agent/start", &json!({"agent":AGENT}));
    bench.by_hand();
    bench.agent_dies_for(5_000);
    for starts in 2..=5 {
        assert_eq!(bench.spawned.len(), starts);
        bench.process_starts();
        bench.pass(60_000);
        bench.agent_dies_for(40_000);
    }
    assert_eq!((bench.spawned.len(), bench.agent_state()), (5, "failed".into()));
}

#[test]
fn a_session_that_was_cut_off_comes_back_even_if_the_first_start_fails() {
    let (mut bench, _) = Bench::used();
    bench.pass(20_000);
    bench.capabilities = None;
    bench.agent_dies();
    bench.feed_process(HostEvent::Started { pid: 2, start: 2 });
    bench.agent_dies();
    bench.capabilities = Some(json!({"sessionCapabilities":{"resume":{}}}));
    bench.pass(10_000);
    assert_eq!(bench.heard().last().expect("something")["method"], "session/resume");
}

#[test]
fn an_agent_that_nothing_uses_is_stopped_and_the_next_prompt_brings_it_back() {
    let (mut bench, a) = Bench::with(|profile| profile.idle_timeout = 60_000).with_used();
    bench.pass(600_000);
    assert_eq!(bench.stops, [], "somebody is attached");
    bench.leave(a);
    bench.pass(60_000);
    assert_eq!(bench.stops, [StopStep::CloseStdin]);
    bench.agent_dies();
    assert_eq!((bench.agent_state(), bench.state("s")), ("stopped".into(), "parked".into()));
    let b = bench.plain();
    bench.prompt(b, &json!(1), "s", "go on");
    bench.bring_back("session/resume");
}

/// A bench whose agent closes sessions and brings them back, each idle for 15 minutes at most.
fn sleeping() -> Bench {
    let bench = Bench::with(|profile| profile.session_idle_timeout = 15 * 60_000);
    bench.with_session_capabilities(json!({"resume":{},"close":{}}))
}

#[test]
fn an_idle_session_sleeps_and_wakes_with_the_next_prompt() {
    let (mut bench, a) = sleeping().with_used();
    bench.used_session(a, "t");
    bench.pass(14 * 60_000);
    bench.run_turn(a, 7, "t", "more");
    bench.pass(2 * 60_000);
    assert_eq!(bench.heard_one("session/close")["params"]["sessionId"], "s");
    assert_eq!((bench.state("s"), bench.state("t")), ("parked".into(), "live".into()));
    assert_eq!(bench.stops, [], "the process goes on for the other session");
    bench.prompt(a, &json!(8), "s", "go on");
    let prompt = bench.bring_back("session/resume");
    bench.end_turn(&prompt);
    assert_eq!(bench.state("s"), "live");
    bench.pass(17 * 60_000);
    assert_eq!((bench.state("s"), bench.state("t")), ("parked".into(), "parked".into()));
}

#[test]
fn a_session_with_work_does_not_sleep() {
    let (mut bench, a) = sleeping().with_client();
    for name in ["turn", "asks", "tool"] {
        bench.used_session(a, name);
    }
    bench.prompt(a, &json!(7), "turn", "long");
    bench.agent(&json!({"id":7,"method":"session/request_permission","params":{
        "sessionId":"asks","toolCall":{"toolCallId":"c"},
        "options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]}}));
    let call =
        json!({"sessionUpdate":"tool_call","toolCallId":"b","title":"x","status":"in_progress"});
    bench.send_update("tool", &call);
    bench.heard();
    bench.pass(2 * 60 * 60_000);
    let heard = bench.heard();
    assert!(heard.iter().all(|line| line["method"] != "session/close"), "{heard:?}");
    let done = json!({"sessionUpdate":"tool_call_update","toolCallId":"b","status":"completed"});
    bench.send_update("tool", &done);
    bench.pass(17 * 60_000);
    assert_eq!(bench.heard_one("session/close")["params"]["sessionId"], "tool");
}

#[test]
fn session_whose_prompt_waits_for_a_login_does_not_sleep() {
    let (mut bench, a) = sleeping().with_used();
    bench.used_session(a, "t");
    let refused = bench.start_turn(a, 7, "s", "the login runs out");
    let b = bench.plain();
    bench.prompt(b, &json!(1), "s", "do not forget me");
    bench.leave(b);
    // Another turn keeps the process from being replaced.
    let long = bench.start_turn(a, 8, "t", "long");
    bench.agent_refuses(&refused, -32000);
    assert_eq!(bench.state("s"), "blocked");
    bench.pass(60 * 60_000);
    assert_eq!(bench.heard(), Vec::<Value>::new(), "it is not closed at the agent");
    let c = bench.plain();
    bench.log_in(c);
    bench.end_turn(&long);
    bench.expect_prompt("do not forget me");
}

#[test]
fn a_session_that_cannot_come_back_does_not_sleep() {
    let bench = sleeping().with_capabilities(json!({"sessionCapabilities":{"close":{}}}));
    let (mut bench, _) = bench.with_used();
    bench.pass(60 * 60_000);
    assert_eq!((bench.state("s"), bench.heard()), ("live".into(), Vec::<Value>::new()));
}

#[test]
fn an_idle_session_with_its_own_process_ends_that() {
    let bench = Bench::with(|profile| {
        profile.session_idle_timeout = 15 * 60_000;
        profile.sharing = Sharing::Session;
    });
    let (mut bench, _) = bench.with_capabilities(json!({"loadSession":true})).with_used();
    bench.pass(16 * 60_000);
    assert_eq!(bench.stops.first(), Some(&StopStep::CloseStdin));
    bench.agent_dies();
    assert_eq!(bench.state("s"), "parked");
}

#[test]
fn an_agent_is_not_idle_while_it_makes_a_session() {
    let (mut bench, a) = Bench::with(|profile| profile.idle_timeout = 60_000).with_client();
    bench.pass(59_000);
    bench.ask_session(a, 1);
    bench.pass(59_000);
    assert_eq!(bench.stops, []);
    bench.answers("session/new", &json!({"sessionId":"s"}));
    assert_eq!(words(&bench.got(a)), ["result 1"]);
}

#[test]
fn what_is_asked_while_an_agent_goes_down_waits_for_the_next_process() {
    let (mut bench, a) = Bench::with(|profile| profile.idle_timeout = 60_000).with_used();
    bench.leave(a);
    bench.pass(60_000);
    let b = bench.plain();
    bench.ask(b, 1, "session/set_mode", &json!({"sessionId":"s","modeId":"code"}));
    bench.prompt(b, &json!(2), "s", "go");
    assert_eq!(bench.heard(), Vec::<Value>::new());
    bench.agent_dies();
    assert_eq!(words(&bench.got(b)), ["error 1"]);
    bench.bring_back("session/resume");
}

#[test]
fn a_person_stops_an_agent_and_everybody_who_waited_is_answered() {
    let (mut bench, a, b) = Bench::new().with_two_clients();
    bench.session(a, "s");
    let request = bench.start_and_queue(a, "s", [(1, "one"), (2, "two")]);
    bench.ask(b, 9, "_acpd/agent/stop", &json!({"agent":AGENT}));
    bench.heard_one("session/cancel");
    assert_eq!(bench.stops, []);
    bench.agent_answers(&request, &json!({"stopReason":"cancelled"}));
    assert_eq!(bench.stops, [StopStep::CloseStdin]);
    bench.agent_dies();
    let got = bench.expect(a, ["error 1", "error 2"]);
    let message = format!("agent `{AGENT}` was stopped in the turn: stopped by a person");
    assert_eq!(got[0]["error"]["message"], message);
    assert_eq!(reason(&got[0]), "interrupted");
    let turn = &bench.call(a, "_acpd/session/show", &json!({"session":"s"}))["result"]["turn"];
    let ended = (&turn["last"], &turn["reason"]);
    assert_eq!(ended, (&json!("interrupted"), &json!(message)), "nobody has cancelled it");
    assert_eq!(bench.got(b)[0]["result"]["state"], "stopped");
    assert_eq!(bench.snapshot.agents[AGENT].desired, Desired::Down);
    bench.prompt(a, &json!(3), "s", "three");
    assert_eq!(reason(&bench.got(a)[0]), "agent_stopped");
    bench.ask(b, 10, "_acpd/agent/start", &json!({"agent":AGENT}));
    assert_eq!(bench.got(b)[0]["result"]["state"], "ready");
}

#[test]
fn a_restart_by_a_person_keeps_the_prompts_in_line() {
    let (mut bench, a) = Bench::begun();
    let request = bench.start_and_queue(a, "s", [(1, "one"), (2, "two")]);
    bench.ask(a, 9, "_acpd/agent/restart", &json!({"agent":AGENT}));
    bench.agent_answers(&request, &json!({"stopReason":"cancelled"}));
    bench.heard_one("session/cancel");
    bench.agent_dies();
    bench.resume_and_expect("two");
    let got = bench.expect(a, ["error 1", "result 9"]);
    let message = got[0]["error"]["message"].as_str().expect("a message");
    assert!(message.ends_with("was stopped in the turn: restarted by a person"), "{message}");
}

#[test]
fn a_shutdown_ends_every_process_before_the_daemon() {
    let (mut bench, a) = Bench::begun();
    bench.prompt(a, &json!(1), "s", "one");
    bench.prompt(a, &json!(2), "s", "two");
    bench.say(a, &json!({"id":3,"method":"_acpd/daemon/stop"}));
    bench.prompt(a, &json!(4), "s", "three");
    bench.pass(3_000);
    assert!(!bench.exited);
    bench.agent_dies();
    assert!(bench.exited);
    let mut got = words(&bench.got(a));
    got.sort();
    assert_eq!(got, ["error 1", "error 2", "error 4", "result 3"]);
}

#[test]
fn first_session_takes_the_process_that_answered_initialize() {
    let (mut bench, a) = Bench::with(|profile| profile.sharing = Sharing::Session).with_client();
    assert_eq!(bench.spawned.len(), 1, "for the answer to `initialize`");
    bench.ask_session(a, 1);
    assert_eq!(bench.spawned.len(), 1);
    // While it makes the session it is taken.
    bench.ask_session(a, 2);
    assert_eq!(bench.spawned.len(), 2);
    let request = bench.heard().pop().expect("both processes were asked");
    bench.agent_answers(&request, &json!({"sessionId":"s"}));
    let shown = bench.show("s");
    assert!(shown["pid"].is_u64(), "{shown}");
}

#[test]
fn a_session_of_its_own_process_does_not_leave_the_process_behind() {
    let mut bench = Bench::with(|profile| {
        profile.sharing = Sharing::Session;
        profile.idle_timeout = 0;
    });
    let a = bench.plain();
    bench.ask_session(a, 1);
    assert_eq!(bench.spawned.len(), 1);
    bench.refuses("session/new", -32603);
    assert_eq!(bench.stops, [StopStep::CloseStdin], "there is no session to keep it for");
}

#[test]
fn the_id_of_a_session_that_is_gone_is_no_beginning_of_an_id_that_acpd_has_numbered() {
    let (mut bench, a) = Bench::new().with_client();
    bench.used_session(a, "0");
    bench.restart_agent();
    bench.ask_session(a, 2);
    let request = bench.heard().into_iter().find(|line| line["method"] == "session/new");
    bench.agent_answers(&request.expect("asked for"), &json!({"sessionId":"0"}));
    for id in [3, 4] {
        bench.ask(a, id, "_acpd/session/remove", &json!({"session":"0"}));
    }
    assert_eq!(reason(&bench.answer(a, 4)), "session_not_found");
    assert_eq!(bench.show("0.")["sessionId"], "0.2");
}

#[test]
fn what_lingers_of_an_agent_does_not_make_its_run_longer() {
    let (mut bench, _) = Bench::with(|profile| profile.restart.budget = 3).with_used();
    for run in 1..=3 {
        assert_eq!(bench.spawned.len(), run);
        // The leader ends a little too early for a good run, and its child a little later.
        bench.pass(9_000);
        bench.leader_ends();
        bench.pass(1_000);
        bench.end_process();
        bench.pass(600);
    }
    assert_eq!((bench.spawned.len(), bench.agent_state()), (3, "failed".to_owned()));
}
