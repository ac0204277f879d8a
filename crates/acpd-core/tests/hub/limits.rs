//! Input from outside is limited, and left out only on purpose.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::bench::{Bench, client_oversized, host_oversized, words};

fn reason(line: &Value) -> &str {
    line["error"]["data"]["_acpd"]["reason"].as_str().unwrap_or("none")
}

fn tool(bench: &mut Bench, kind: &str, more: &Value) {
    let mut update = json!({"sessionUpdate":kind,"toolCallId":"t"});
    for (key, value) in more.as_object().expect("an object") {
        update[key] = value.clone();
    }
    let params = json!({"sessionId":"s","update":update});
    bench.agent(&json!({"method":"session/update","params":params}));
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
    let mut bench = Bench::new();
    let (a, request) = bench.running("s", "go");
    tool(&mut bench, "tool_call", &json!({"title":"Look","status":"pending"}));
    bench.agent_answers(&request, &json!({"stopReason":"end_turn"}));
    bench.got(a);
    bench.agent_dies();
    assert_eq!(bench.got(a), Vec::<Value>::new());
}

#[test]
fn a_question_that_outlives_its_turn_is_answered_as_cancelled() {
    let mut bench = Bench::new();
    let (_, request) = bench.running("s", "go");
    let options = json!([{"optionId":"yes","name":"Yes","kind":"allow_once"}]);
    let params = json!({"sessionId":"s","toolCall":{"toolCallId":"t"},"options":options});
    bench.agent(&json!({"id":9,"method":"session/request_permission","params":params}));
    bench.agent_answers(&request, &json!({"stopReason":"end_turn"}));
    let heard = bench.heard();
    assert_eq!(heard[0]["id"], 9);
    assert_eq!(heard[0]["result"]["outcome"]["outcome"], "cancelled");
}

#[test]
fn boolean_options_are_for_clients_that_can_show_them() {
    let mut bench = Bench::new();
    let a = bench.plain();
    let options = json!([
        {"id":"fast","name":"Fast","type":"boolean","currentValue":true},
        {"id":"model","name":"Model","type":"select","currentValue":"m",
         "options":[{"value":"m","name":"M"}]},
    ]);
    bench.say(a, &json!({"id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}));
    bench.answers("session/new", &json!({"sessionId":"s","configOptions":options}));
    let got = bench.got(a);
    let shown = got[0]["result"]["configOptions"].as_array().expect("a list");
    assert_eq!(shown.iter().map(|option| &option["id"]).collect::<Vec<_>>(), ["model"]);
}

#[test]
fn a_login_that_is_wanted_comes_with_the_way_to_it() {
    let mut bench = Bench::with(|profile| profile.login_hint = Some("gem login".to_owned()));
    let a = bench.plain();
    bench.say(a, &json!({"id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}));
    bench.refuses("session/new", -32000);
    let got = bench.got(a);
    assert_eq!((got[0]["error"]["code"].as_i64(), reason(&got[0])), (Some(-32000), "needs_login"));
    assert_eq!(got[0]["error"]["data"]["_acpd"]["hint"], "`acpctl auth login gem`, then try again");
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
    bench.say(
        a,
        &json!({"id":1,"method":"session/set_mode","params":{"sessionId":"s","modeId":"m"}}),
    );
    assert_eq!(reason(&bench.got(a)[0]), "too_many");
}

#[test]
fn a_cancel_is_sent_once() {
    let mut bench = Bench::new();
    let (a, _) = bench.running("s", "go");
    for _ in 0..3 {
        bench.say(a, &json!({"method":"session/cancel","params":{"sessionId":"s"}}));
    }
    assert_eq!(bench.heard().len(), 1);
}

#[test]
fn the_directory_of_a_session_is_the_same_with_a_slash_at_its_end() {
    let mut bench = Bench::new();
    let a = bench.plain();
    let new = |id: u64, cwd: &str| {
        let meta = json!({"_acpd":{"name":"fix"}});
        json!({"id":id,"method":"session/new","params":{"cwd":cwd,"mcpServers":[],"_meta":meta}})
    };
    bench.say(a, &new(1, "/w"));
    bench.answers("session/new", &json!({"sessionId":"s"}));
    bench.got(a);
    bench.say(a, &new(2, "/w/"));
    assert_eq!(reason(&bench.got(a)[0]), "name_taken");
    bench.say(a, &new(3, "w"));
    assert_eq!(reason(&bench.got(a)[0]), "invalid");
}

#[test]
fn an_oversized_line_fails_the_request_that_it_is_about_and_no_other() {
    let (mut bench, a) = Bench::begun();
    bench.got(a);
    let head = br#"{"jsonrpc":"2.0","method":"session/prompt","params":{"x":{"id":5}},"id":"big""#;
    bench.feed(client_oversized(a, Bytes::from_static(head), 2_000_000));
    assert_eq!(bench.got(a)[0]["id"], "big");
    bench.prompt(a, &json!(1), "s", "go");
    let request = bench.heard_one("session/prompt");
    let head = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"method":"x""#, request["id"]);
    let (host, head) = (bench.host(), Bytes::from(head));
    bench.feed(host_oversized(host, head, 2_000_000, 3_000_000));
    assert_eq!(reason(&bench.got(a)[0]), "line_too_long");
}

#[test]
fn a_replay_of_many_prompts_without_answers_takes_no_time() {
    let mut bench = Bench::new();
    let (_, load) = bench.loading("s");
    for n in 0..20_000 {
        bench.update("s", "user_message_chunk", &format!("prompt {n}"));
    }
    bench.agent_answers(&load, &json!({}));
    assert_eq!(bench.state("s"), "live");
}
