//! Turns that end by a usage limit, with `on_limit = "wait"`.

use acpd_core::profile::OnLimit;
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::steps::prompt_text;

const HOUR: u64 = 3_600_000;

fn bench(on_limit: OnLimit) -> Bench {
    Bench::with(|profile| profile.on_limit = on_limit)
}

/// The agent breaks a turn off: its limit is over in an hour.
fn hits_limit(bench: &mut Bench, request: &Value) {
    let data = json!({"error":{"type":"usage_limit_reached","resets_in_seconds":3600}});
    bench.agent_fails(request, &json!({"code":-32603,"message":"limit","data":data}));
}

fn limited_until(bench: &mut Bench) -> Value {
    bench.show("s")["limitedUntil"].take()
}

fn prompts(bench: &mut Bench) -> Vec<Value> {
    let heard = bench.heard();
    heard.into_iter().filter(|line| line["method"] == "session/prompt").collect()
}

#[test]
fn the_agent_is_asked_to_continue_once_when_its_limit_is_over() {
    let (mut bench, client) = bench(OnLimit::Wait).with_noticed();
    let request = bench.start_turn(client, 1, "s", "do it");
    hits_limit(&mut bench, &request);
    let got = bench.got(client);
    assert!(got.iter().any(|line| line["error"]["message"] == "limit"), "{got:?}");
    assert!(format!("{got:?}").contains("has it continue in "), "{got:?}");
    assert_eq!(limited_until(&mut bench), json!(bench.now + HOUR));
    bench.pass(HOUR - 1);
    assert_eq!(prompts(&mut bench), [Value::Null; 0]);
    bench.pass(1);
    let asked = prompts(&mut bench);
    assert_eq!(asked.len(), 1);
    let text = prompt_text(&asked[0]);
    assert!(text.contains("Find out what is done") && !text.contains("do it"), "{text}");
    assert_eq!(asked[0]["params"]["_meta"]["_acpd"], Value::Null, "what is acpd's own stays here");
    bench.end_turn(&asked[0]);
    bench.pass(24 * HOUR);
    assert_eq!(prompts(&mut bench), [Value::Null; 0]);
}

#[test]
fn the_wait_survives_the_daemon() {
    let mut bench = Bench::with_shims();
    bench.change(|profile| profile.on_limit = OnLimit::Wait);
    bench.reboot();
    let (_, request) = bench.running("s", "do it");
    hits_limit(&mut bench, &request);
    let until = limited_until(&mut bench);
    bench.reboot();
    bench.adopt();
    assert_eq!(limited_until(&mut bench), until);
    bench.pass(HOUR - 1_000);
    assert_eq!(prompts(&mut bench), [Value::Null; 0]);
    bench.pass(1_000);
    assert_eq!(prompts(&mut bench).len(), 1);
    assert_eq!(limited_until(&mut bench), Value::Null);
}

#[test]
fn a_person_who_cancels_or_prompts_ends_the_wait() {
    for words in [None, Some("never mind")] {
        let (mut bench, client, request) = bench(OnLimit::Wait).in_turn("do it");
        hits_limit(&mut bench, &request);
        match words {
            Some(words) => bench.prompt(client, &json!(9), "s", words),
            None => bench.ask(client, 9, "_acpd/session/cancel", &json!({"session":"s"})),
        }
        assert_eq!(limited_until(&mut bench), Value::Null);
        bench.pass(2 * HOUR);
        let asked = prompts(&mut bench);
        let asked: Vec<&str> = asked.iter().map(prompt_text).collect();
        assert_eq!(asked, words.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn five_limits_in_a_row_are_enough_and_without_the_key_none_is_waited_for() {
    let mut waiting = bench(OnLimit::Wait);
    let (_, mut request) = waiting.running("s", "do it");
    for _ in 0..5 {
        hits_limit(&mut waiting, &request);
        waiting.pass(HOUR);
        request = prompts(&mut waiting).remove(0);
    }
    hits_limit(&mut waiting, &request);
    assert_eq!(limited_until(&mut waiting), Value::Null);
    let (mut failing, _, request) = bench(OnLimit::Fail).in_turn("do it");
    hits_limit(&mut failing, &request);
    assert_eq!(limited_until(&mut failing), Value::Null);
}

#[test]
fn a_limit_that_was_told_before_is_meant_by_an_error_without_a_time() {
    let (mut bench, _, request) = bench(OnLimit::Wait).in_turn("do it");
    let resets = bench.now / 1000 + 7200;
    let limit = json!({"status":"rejected","resetsAt":resets});
    let update = json!({"sessionUpdate":"usage_update","used":1,"size":2,"_meta":{"_claude/rateLimit":limit}});
    bench.send_update("s", &update);
    let error = json!({"code":-32603,"message":"limit","data":{"errorKind":"rate_limit"}});
    bench.agent_fails(&request, &error);
    assert_eq!(limited_until(&mut bench), json!(resets * 1000));
}

#[test]
fn a_clients_prompt_is_never_held_as_one_of_acpd() {
    let (mut bench, client) = bench(OnLimit::Wait).with_begun();
    let until = bench.now + HOUR;
    bench.prompt_with(client, 1, "mine", &json!({"continues":true,"until":until,"waits":1}));
    assert_eq!(prompts(&mut bench).iter().map(prompt_text).collect::<Vec<_>>(), ["mine"]);
}
