//! Input from outside is limited, and left out only on purpose.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::bench::{Bench, client_oversized, host_oversized, words};
use crate::questions::asks;
use crate::steps::{hint, reason};

fn tool(bench: &mut Bench, kind: &str, more: &Value) {
    let mut update = json!({"sessionUpdate":kind,"toolCallId":"t"});
    for (key, value) in more.as_object().expect("an object") {
        update[key] = value.clone();
    }
    bench.send_update("s", &update);
}

#[test]
fn news_of_a_tool_call_that_has_ended_does_not_open_it_again() {
    let (mut bench, a) = Bench::begun();
    bench.prompt(a, &json!(1), "s", "go");
    tool(&mut bench, "tool_call", &json!({"title":"Look","status":"pending"}));
    tool(&mut bench, "tool_call_update", &json!({"status":"completed"}));
    tool(&mut bench, "tool_call_update", &json!({"title":"Looked"}));
    bench.got(a);
    bench.agent_dies();
    assert_eq!(words(&bench.got(a)), ["error 1"], "nothing is left to be closed");
}

#[test]
fn a_turn_that_ended_leaves_no_tool_call_to_fail_later() {
    let (mut bench, a, request) = Bench::new().in_turn("go");
    tool(&mut bench, "tool_call", &json!({"title":"Look","status":"pending"}));
    bench.end_turn(&request);
    bench.got(a);
    bench.agent_dies();
    assert_eq!(bench.got(a), Vec::<Value>::new());
}

#[test]
fn a_question_that_outlives_its_turn_is_answered_as_cancelled() {
    let (mut bench, _, request) = Bench::new().in_turn("go");
    asks(&mut bench, 9, &json!({"toolCallId":"t"}));
    bench.end_turn(&request);
    let heard = bench.heard();
    assert_eq!(heard[0]["id"], 9);
    assert_eq!(heard[0]["result"]["outcome"]["outcome"], "cancelled");
}

#[test]
fn boolean_options_are_for_clients_that_can_show_them() {
    let (mut bench, a) = Bench::new().with_client();
    let options = json!([
        {"id":"fast","name":"Fast","type":"boolean","currentValue":true},
        {"id":"model","name":"Model","type":"select","currentValue":"m",
         "options":[{"value":"m","name":"M"}]},
    ]);
    bench.ask_session(a, 1);
    bench.answers("session/new", &json!({"sessionId":"s","configOptions":options}));
    let got = bench.got(a);
    let shown = got[0]["result"]["configOptions"].as_array().expect("a list");
    assert_eq!(shown.iter().map(|option| &option["id"]).collect::<Vec<_>>(), ["model"]);
}

#[test]
fn a_login_that_is_wanted_comes_with_the_way_to_it() {
    let bench = Bench::with(|profile| profile.login_hint = Some("gem login".to_owned()));
    let (mut bench, a) = bench.with_client();
    bench.ask_session(a, 1);
    bench.refuses("session/new", -32000);
    let got = bench.got(a);
    assert_eq!((got[0]["error"]["code"].as_i64(), reason(&got[0])), (Some(-32000), "needs_login"));
    assert_eq!(hint(&got[0]), "`acpctl auth login gem`, then try again");
}

#[test]
fn an_agent_that_does_not_read_is_not_given_more_and_more() {
    let (mut bench, a) = Bench::begun();
    bench.heard();
    bench.writes = false;
    let text = "x".repeat(1 << 20);
    let note = json!({"method":"_x/y","params":{"sessionId":"s","text":text}});
    for _ in 0..20 {
        bench.say(a, &note);
    }
    assert!(bench.heard().len() < 12, "notifications are dropped");
    bench.ask(a, 1, "session/set_mode", &json!({"sessionId":"s","modeId":"m"}));
    assert_eq!(reason(&bench.got(a)[0]), "too_many");
}

#[test]
fn a_cancel_is_sent_once() {
    let (mut bench, a, _) = Bench::new().in_turn("go");
    for _ in 0..3 {
        bench.cancel(a, "s");
    }
    assert_eq!(bench.heard().len(), 1);
}

#[test]
fn the_directory_of_a_session_is_the_same_with_a_slash_at_its_end() {
    let (mut bench, a) = Bench::new().with_client();
    let new = |cwd: &str| json!({"cwd":cwd,"mcpServers":[],"_meta":{"_acpd":{"name":"fix"}}});
    bench.session_of(a, "s", &new("/w"));
    assert_eq!(reason(&bench.call(a, "session/new", &new("/w/"))), "name_taken");
    assert_eq!(reason(&bench.call(a, "session/new", &new("w"))), "invalid");
}

#[test]
fn an_oversized_line_fails_the_request_that_it_is_about_and_no_other() {
    let (mut bench, a) = Bench::begun();
    bench.got(a);
    let head = br#"{"jsonrpc":"2.0","method":"session/prompt","params":{"x":{"id":5}},"id":"big""#;
    bench.feed(client_oversized(a, Bytes::from_static(head), 2_000_000));
    assert_eq!(bench.got(a)[0]["id"], "big");
    let request = bench.start_turn(a, 1, "s", "go");
    let head = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"method":"x""#, request["id"]);
    let (host, head) = (bench.host(), Bytes::from(head));
    bench.feed(host_oversized(host, head, 2_000_000, 3_000_000));
    assert_eq!(reason(&bench.got(a)[0]), "line_too_long");
}

#[test]
fn a_replay_of_many_prompts_without_answers_takes_no_time() {
    let (mut bench, _, load) = Bench::new().with_loading("s");
    for n in 0..20_000 {
        bench.update("s", "user_message_chunk", &format!("prompt {n}"));
    }
    bench.agent_answers(&load, &json!({}));
    assert_eq!(bench.state("s"), "live");
}
