//! The order of what clients and agents get: what ends comes before what begins.

use serde_json::json;

use crate::bench::{AGENT, Bench, methods, words};
use crate::questions::{asks, run};

#[test]
fn a_login_is_answered_when_the_agent_is_ready() {
    let mut bench = Bench::new();
    bench.by_hand();
    let a = bench.connect(&json!({}));
    bench.refuse_start();
    bench.agent_dies();
    bench.ask(a, 8, "_acpd/agent/start", &json!({"agent":AGENT}));
    bench.refuse_start();
    bench.agent_dies();
    bench.got(a);
    let starts = bench.spawned.len();
    bench.ask(a, 9, "_acpd/auth/done", &json!({"agent":AGENT}));
    assert_eq!(bench.spawned.len(), starts + 1);
    assert!(bench.got(a).iter().all(|line| line["id"] != 9), "it is not ready");
}

#[test]
fn an_agent_gets_its_answers_before_the_next_prompt() {
    let (mut bench, a) = Bench::begun();
    let one = bench.start_turn(a, 1, "s", "one");
    bench.prompt(a, &json!(2), "s", "two");
    asks(&mut bench, 7, &run("make"));
    bench.end_turn(&one);
    let heard = bench.heard();
    assert_eq!((&heard[0]["id"], &heard[1]["method"]), (&json!(7), &json!("session/prompt")));
    assert_eq!(heard[0]["result"]["outcome"]["outcome"], "cancelled");
}

#[test]
fn a_question_is_withdrawn_before_its_turn_ends() {
    let (mut bench, a) = Bench::new().with_noticed();
    let one = bench.start_turn(a, 1, "s", "one");
    asks(&mut bench, 7, &run("make"));
    bench.got(a);
    bench.end_turn(&one);
    let got = words(&bench.got(a));
    let ends = ["$/cancel_request", "_acpd/session_state", "_acpd/turn_ended", "result 1"];
    assert_eq!(got[..4], ends, "{got:?}");
    assert!(!got.contains(&"_acpd/answered".to_owned()), "nobody answered it: {got:?}");
}

#[test]
fn prompts_are_refused_before_clients_hear_that_acpd_was_stopped() {
    let mut bench = Bench::new();
    let a = bench.client(&json!({"client":{"token":"0123456789abcdef"}}));
    bench.used_session(a, "s");
    bench.start_turn(a, 1, "s", "one");
    bench.prompt(a, &json!(2), "s", "two");
    bench.agent_dies();
    bench.got(a);
    let b = bench.open();
    bench.say(b, &json!({"id":1,"method":"_acpd/daemon/stop"}));
    bench.expect(a, ["error 2", "_acpd/daemon/stopped"]);
}

#[test]
fn an_agent_gets_its_answers_before_it_hears_that_the_session_is_over() {
    let (mut bench, a) = Bench::able(&json!({"sessionCapabilities":{"close":{}}})).with_begun();
    bench.start_turn(a, 1, "s", "one");
    asks(&mut bench, 9, &run("make"));
    bench.ask(a, 2, "session/close", &json!({"sessionId":"s"}));
    let heard = bench.heard();
    assert_eq!(methods(&heard), ["session/cancel", "answer", "session/close"]);
    assert_eq!(heard[1]["result"]["outcome"]["outcome"], "cancelled");
}
