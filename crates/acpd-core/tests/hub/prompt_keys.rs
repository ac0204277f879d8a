//! Prompts with an idempotency key: a prompt that is sent again under its key is the same prompt.

use acpd_core::ids::ClientId;
use serde_json::{Value, json};

use crate::bench::{AGENT, Bench};
use crate::questions::{asks, run};
use crate::steps::reason;
use crate::survival::{answer_of, back, stop_reason};

fn keyed(bench: &mut Bench, client: ClientId, id: u64, key: &Value, text: &str) {
    bench.prompt_with(client, id, text, &json!({"idempotencyKey":key}));
}

/// Another client sends the prompt with the key `k` again. Returns the client and its answer, if it has one.
fn again(bench: &mut Bench) -> (ClientId, Option<Value>) {
    let client = bench.plain();
    keyed(bench, client, 9, &json!("k"), "once");
    let got = bench.got(client);
    (client, answer_of(&got, &json!(9)))
}

fn is_repeated(answer: &Value) -> bool {
    let places = [&answer["error"]["data"], &answer["result"]["_meta"]];
    places.iter().any(|own| own["_acpd"]["repeated"] == true)
}

/// A session in which the prompt with the key `k` runs: its client, and the prompt as the agent got it.
fn running(bench: Bench) -> (Bench, ClientId, Value) {
    let (mut bench, a) = bench.with_begun();
    keyed(&mut bench, a, 1, &json!("k"), "once");
    let prompt = bench.heard_one("session/prompt");
    assert_eq!(prompt["params"]["_meta"]["_acpd"], Value::Null, "the agent never sees the key");
    bench.got(a);
    (bench, a, prompt)
}

#[test]
fn a_key_is_a_string_of_1_to_255_characters() {
    let (mut bench, a) = Bench::begun();
    for bad in [json!(7), json!(""), json!("x".repeat(256)), json!(["k"]), json!({})] {
        keyed(&mut bench, a, 1, &bad, "go");
        assert_eq!(bench.answer(a, 1)["error"]["code"], -32602, "{bad}");
        assert_eq!(bench.heard(), Vec::<Value>::new(), "{bad}");
    }
    for good in [json!("ä".repeat(255)), json!(null), json!("\u{0}\n")] {
        keyed(&mut bench, a, 1, &good, "go");
        bench.end_prompt();
        assert_eq!(bench.answer(a, 1)["result"]["stopReason"], "end_turn", "{good}");
    }
}

#[test]
fn a_retry_joins_the_running_prompt() {
    let (mut bench, a, prompt) = running(Bench::new());
    let (b, answer) = again(&mut bench);
    assert_eq!((answer, bench.heard()), (None, vec![]));
    // One connection may send it again, too.
    keyed(&mut bench, a, 2, &json!("k"), "once");
    bench.agent_answers(&prompt, &json!({"stopReason":"max_tokens"}));
    let got = bench.got(a);
    for (got, id) in [(&got, 1), (&got, 2), (&bench.got(b), 9)] {
        assert_eq!(stop_reason(got, id), "max_tokens", "{id}");
    }
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn a_retry_joins_the_waiting_prompt() {
    let (mut bench, a, first) = Bench::new().in_turn("before");
    keyed(&mut bench, a, 2, &json!("k"), "once");
    let (b, answer) = again(&mut bench);
    assert_eq!(answer, None);
    assert_eq!(bench.snapshot.turns.len(), 2);
    // An edited or moved prompt keeps its key.
    bench.ask(b, 5, "_acpd/session/queue", &json!({"session":"s"}));
    let ticket = bench.answer(b, 5)["result"]["prompts"][0]["ticket"].clone();
    let edit = json!({"ref":{"session":"s"},"ticket":ticket,
        "prompt":[{"type":"text","text":"changed"}]});
    bench.ask(b, 6, "_acpd/session/queue/edit", &edit);
    let (c, answer) = again(&mut bench);
    assert_eq!(answer, None);
    bench.end_turn(&first);
    let second = bench.expect_prompt("changed");
    bench.agent_answers(&second, &json!({"stopReason":"refusal"}));
    for (client, id) in [(a, 2), (b, 9), (c, 9)] {
        assert_eq!(bench.answer(client, id)["result"]["stopReason"], "refusal");
    }
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn a_retry_of_an_ended_prompt_gets_the_first_outcome() {
    for reply in [
        json!({"result":{"stopReason":"end_turn","_meta":{"x":1}}}),
        json!({"result":{"stopReason":"refusal"}}),
        json!({"result":{"stopReason":"cancelled"}}),
        json!({"error":{"code":-32603,"message":"the model failed","data":{"x":1}}}),
    ] {
        let (mut bench, a, prompt) = running(Bench::with_shims());
        if reply["result"]["stopReason"] == "cancelled" {
            bench.cancel_turn(a);
        }
        let mut line = reply.clone();
        line["id"] = prompt["id"].clone();
        bench.agent(&line);
        let first = bench.answer(a, 1);
        assert!(!is_repeated(&first), "{first}");
        for reboots in [false, true] {
            if reboots {
                bench.reboot();
            }
            let (_, answer) = again(&mut bench);
            let answer = answer.expect("answered from the journal");
            assert!(is_repeated(&answer), "{answer}");
            assert_eq!(answer["result"]["stopReason"], first["result"]["stopReason"]);
            for part in ["code", "message"] {
                assert_eq!(answer["error"][part], first["error"][part]);
            }
            assert_eq!(bench.heard(), Vec::<Value>::new());
        }
    }
}

#[test]
fn keys_count_in_their_session_and_their_case() {
    let (mut bench, a, prompt) = running(Bench::new());
    bench.end_turn(&prompt);
    keyed(&mut bench, a, 2, &json!("K"), "other");
    bench.end_prompt();
    bench.session(a, "t");
    let params = json!({"sessionId":"t","prompt":[],"_meta":{"_acpd":{"idempotencyKey":"k"}}});
    bench.ask(a, 3, "session/prompt", &params);
    bench.heard_one("session/prompt");
}

#[test]
fn a_prompt_that_is_taken_back_frees_its_key() {
    let (mut bench, a, first) = Bench::new().in_turn("before");
    let take_back = [
        json!({"method":"session/cancel","params":{"sessionId":"s"}}),
        json!({"method":"$/cancel_request","params":{"requestId":2}}),
    ];
    for line in take_back {
        keyed(&mut bench, a, 2, &json!("k"), "once");
        let (b, _) = again(&mut bench);
        bench.say(a, &line);
        let (of_a, of_b) = (bench.answer(a, 2), bench.answer(b, 9));
        assert_eq!(of_a["result"], of_b["result"]);
        assert_eq!(of_a["error"]["code"], of_b["error"]["code"]);
    }
    bench.agent_answers(&first, &json!({"stopReason":"cancelled"}));
    bench.heard();
    again(&mut bench);
    bench.expect_prompt("once");
}

#[test]
fn a_prompt_that_is_refused_for_a_login_frees_its_key() {
    let (mut bench, a, prompt) = running(Bench::new());
    bench.agent_refuses(&prompt, -32000);
    assert_eq!(bench.answer(a, 1)["error"]["code"], -32000);
    bench.log_in(a);
    again(&mut bench);
    bench.expect_prompt("once");
}

#[test]
fn a_retry_joins_after_the_death_of_client_and_daemon() {
    for waits in [false, true] {
        let (mut bench, a) = Bench::with_shims().with_begun();
        let before = waits.then(|| {
            bench.prompt(a, &json!(1), "s", "before");
            bench.heard_one("session/prompt")
        });
        keyed(&mut bench, a, 2, &json!("k"), "once");
        let prompt = (!waits).then(|| bench.heard_one("session/prompt"));
        bench.leave(a);
        bench.reboot();
        let (b, answer) = again(&mut bench);
        assert_eq!((answer, bench.heard()), (None, vec![]), "waits: {waits}");
        let prompt = prompt.unwrap_or_else(|| {
            bench.agent_answers(&before.expect("it waits"), &json!({"stopReason":"end_turn"}));
            bench.heard_one("session/prompt")
        });
        bench.end_turn(&prompt);
        assert_eq!(bench.answer(b, 9)["result"]["stopReason"], "end_turn");
        assert_eq!(bench.heard(), Vec::<Value>::new());
    }
}

#[test]
fn clients_that_joined_are_answered_by_the_next_daemon() {
    let (mut bench, a) = Bench::with_shims().with_token();
    keyed(&mut bench, a, 1, &json!("k"), "once");
    let prompt = bench.heard_one("session/prompt");
    keyed(&mut bench, a, 2, &json!("k"), "once");
    bench.reboot();
    bench.end_turn(&prompt);
    let got = back(&mut bench, 0, &json!([1, 2]));
    for id in [1, 2] {
        assert_eq!(stop_reason(&got, id), "end_turn");
    }
}

#[test]
fn an_interrupted_prompt_is_not_sent_again_for_its_key() {
    let (mut bench, a, _) = running(Bench::new());
    bench.agent_dies();
    let first = bench.answer(a, 1);
    assert_ne!(reason(&first), "", "{first}");
    let (_, answer) = again(&mut bench);
    assert_eq!(reason(&answer.expect("answered")), reason(&first));
    assert!(bench.heard().iter().all(|line| line["method"] != "session/prompt"));
}

#[test]
fn a_prompt_of_unknown_outcome_is_not_sent_again_for_its_key() {
    let (mut bench, a) = Bench::begun();
    bench.writes = false;
    keyed(&mut bench, a, 1, &json!("k"), "once");
    bench.writes = true;
    bench.reboot();
    bench.end_process();
    for reboots in [false, true] {
        if reboots {
            bench.reboot();
        }
        let (_, answer) = again(&mut bench);
        assert_eq!(reason(&answer.expect("answered")), "outcome_unknown");
    }
    assert!(bench.heard().iter().all(|line| line["method"] != "session/prompt"));
}

#[test]
fn a_retry_is_answered_although_no_agent_starts() {
    let (mut bench, a, prompt) = running(Bench::new());
    bench.end_turn(&prompt);
    bench.ask(a, 2, "_acpd/agent/stop", &json!({"agent":AGENT}));
    bench.agent_dies();
    let (_, answer) = again(&mut bench);
    assert_eq!(answer.expect("answered")["result"]["stopReason"], "end_turn");
    assert_eq!(bench.started.len(), 1);
}

#[test]
fn a_client_that_joins_without_a_yes_ends_it() {
    for waits in [true, false] {
        let (mut bench, a, first) = Bench::new().in_turn("before");
        bench.prompt_with(a, 2, "once", &json!({"idempotencyKey":"k","permissions":"allow"}));
        if waits {
            again(&mut bench);
        }
        bench.end_turn(&first);
        bench.heard_one("session/prompt");
        if !waits {
            again(&mut bench);
        }
        asks(&mut bench, 5, &run("ls"));
        assert_eq!(bench.heard(), Vec::<Value>::new(), "a person is asked");
    }
}
