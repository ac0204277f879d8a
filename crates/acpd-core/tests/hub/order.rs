//! The order of what clients and agents get: what ends comes before what begins.

use acpd_api::{Amount, Cost};
use acpd_core::profile::{BudgetLimit, WhenOver};
use serde_json::{Value, json};

use crate::bench::{AGENT, Bench, words};
use crate::questions::{asks, run};

#[test]
fn a_login_is_answered_when_the_agent_is_ready() {
    let mut bench = Bench::new();
    bench.by_hand();
    let a = bench.connect(&json!({}));
    bench.refuse_start();
    bench.agent_dies();
    bench.say(a, &json!({"id":8,"method":"_acpd/agent/start","params":{"agent":AGENT}}));
    bench.refuse_start();
    bench.agent_dies();
    bench.got(a);
    let starts = bench.spawned.len();
    bench.say(a, &json!({"id":9,"method":"_acpd/auth/done","params":{"agent":AGENT}}));
    assert_eq!(bench.spawned.len(), starts + 1);
    assert!(bench.got(a).iter().all(|line| line["id"] != 9), "it is not ready");
}

#[test]
fn an_agent_gets_its_answers_before_the_next_prompt() {
    let (mut bench, a) = Bench::begun();
    bench.prompt(a, &json!(1), "s", "one");
    let one = bench.heard_one("session/prompt");
    bench.prompt(a, &json!(2), "s", "two");
    asks(&mut bench, 7, &run("make"));
    bench.agent_answers(&one, &json!({"stopReason":"end_turn"}));
    let heard = bench.heard();
    assert_eq!((&heard[0]["id"], &heard[1]["method"]), (&json!(7), &json!("session/prompt")));
}

#[test]
fn a_question_is_withdrawn_before_its_turn_ends() {
    let mut bench = Bench::new();
    let a = bench.client(&json!({"notices":true}));
    bench.session(a, "s");
    bench.prompt(a, &json!(1), "s", "one");
    let one = bench.heard_one("session/prompt");
    asks(&mut bench, 7, &run("make"));
    bench.got(a);
    bench.agent_answers(&one, &json!({"stopReason":"end_turn"}));
    let got = words(&bench.got(a));
    let ends = ["$/cancel_request", "_acpd/session_state", "_acpd/turn_ended", "result 1"];
    assert_eq!(got[..4], ends, "{got:?}");
}

#[test]
fn prompts_are_refused_before_clients_hear_that_acpd_was_stopped() {
    let mut bench = Bench::new();
    let a = bench.client(&json!({"client":{"token":"0123456789abcdef"}}));
    bench.used_session(a, "s");
    bench.prompt(a, &json!(1), "s", "one");
    bench.heard_one("session/prompt");
    bench.prompt(a, &json!(2), "s", "two");
    bench.agent_dies();
    bench.got(a);
    let b = bench.open();
    bench.say(b, &json!({"id":1,"method":"_acpd/daemon/stop"}));
    assert_eq!(words(&bench.got(a)), ["error 2", "_acpd/daemon/stopped"]);
}

#[test]
fn a_used_up_budget_is_told_in_the_turn_that_has_used_it_up() {
    let mut bench = Bench::with_shims();
    let per_day = Cost { amount: Amount::from_units(5.0).unwrap(), currency: "USD".into() };
    bench.configure(|config| {
        config.budget = Some(BudgetLimit { per_day, when_over: WhenOver::Warn });
    });
    let a = bench.client(&json!({"notices":true}));
    bench.session(a, "s");
    bench.prompt(a, &json!(1), "s", "one");
    let one = bench.heard_one("session/prompt");
    let cost = json!({"amount":5.25,"currency":"USD"});
    let update = json!({"sessionUpdate":"usage_update","used":1,"size":2,"cost":cost});
    let params = json!({"sessionId":"s","update":update});
    bench.agent(&json!({"method":"session/update","params":params}));
    bench.got(a);
    bench.agent_answers(&one, &json!({"stopReason":"end_turn"}));
    assert_eq!(words(&bench.got(a))[..2], ["_acpd/notice", "_acpd/turn_ended"]);
}

#[test]
fn an_agent_gets_its_answers_before_it_hears_that_the_session_is_over() {
    let mut bench = Bench::new();
    bench.capabilities = Some(json!({"sessionCapabilities":{"close":{}}}));
    let a = bench.plain();
    bench.session(a, "s");
    bench.prompt(a, &json!(1), "s", "one");
    bench.heard_one("session/prompt");
    asks(&mut bench, 9, &run("make"));
    bench.say(a, &json!({"id":2,"method":"session/close","params":{"sessionId":"s"}}));
    let heard = bench.heard();
    let words: Vec<&Value> = heard
        .iter()
        .map(|line| line.get("method").unwrap_or(&line["result"]["outcome"]["outcome"]))
        .collect();
    assert_eq!(words, ["session/cancel", "cancelled", "session/close"]);
}
