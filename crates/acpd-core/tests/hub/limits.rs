//! Input from outside is limited, and left out only on purpose.

use serde_json::{Value, json};

use crate::bench::{Bench, words};
use crate::steps::reason;

fn tool(bench: &mut Bench, kind: &str, more: &Value) {
    let mut update = json!({"sessionUpdate":kind,"toolCallId":"t"});
    for (key, value) in more.as_object().expect("an object") {
        update[key] = value.clone();
    }
    bench.send_update("s", &update);
}

#[test]
fn tool_calls_that_are_over_do_not_fail_with_their_agent() {
    for ends_turn in [false, true] {
        let (mut bench, a, request) = Bench::new().in_turn("go");
        tool(&mut bench, "tool_call", &json!({"title":"Look","status":"pending"}));
        if ends_turn {
            bench.end_turn(&request);
        } else {
            tool(&mut bench, "tool_call_update", &json!({"status":"completed"}));
            // News of a call that has ended does not open it again.
            tool(&mut bench, "tool_call_update", &json!({"title":"Looked"}));
        }
        bench.got(a);
        bench.agent_dies();
        let expected: &[&str] = if ends_turn { &[] } else { &["error 1"] };
        assert_eq!(words(&bench.got(a)), expected, "nothing is left to be closed");
    }
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
fn the_directory_of_a_session_is_the_same_with_a_slash_at_its_end() {
    let (mut bench, a) = Bench::new().with_client();
    let new = |cwd: &str| json!({"cwd":cwd,"mcpServers":[],"_meta":{"_acpd":{"name":"fix"}}});
    bench.session_of(a, "s", &new("/w"));
    assert_eq!(reason(&bench.call(a, "session/new", &new("/w/"))), "name_taken");
    assert_eq!(reason(&bench.call(a, "session/new", &new("w"))), "invalid");
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
