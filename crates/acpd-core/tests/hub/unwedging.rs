//! Turns that do not end when they should.

use acpd_core::StopStep;
use serde_json::{Value, json};

use crate::bench::{Bench, words};

fn close(bench: &mut Bench, client: acpd_core::ids::ClientId) {
    let params = json!({"session":"s"});
    bench.say(client, &json!({"id":7,"method":"_acpd/session/close","params":params}));
    bench.got(client);
}

#[test]
fn a_closed_session_does_not_come_back_while_its_old_turn_runs() {
    let (mut bench, a) = Bench::used();
    bench.prompt(a, &json!(2), "s", "old");
    let old = bench.heard_one("session/prompt");
    close(&mut bench, a);
    bench.heard_one("session/cancel");
    bench.prompt(a, &json!(3), "s", "new");
    bench.chunk("s", "still at the old one");
    assert_eq!(bench.heard(), Vec::<Value>::new(), "the old turn runs");
    assert_eq!(bench.got(a), Vec::<Value>::new());
    bench.agent_answers(&old, &json!({"stopReason":"cancelled"}));
    bench.answers("session/resume", &json!({}));
    assert_eq!(bench.heard_one("session/prompt")["params"]["prompt"][0]["text"], "new");
    bench.pass(60_000);
    assert_eq!(bench.stops, [], "it has ended the turn");
}

#[test]
fn an_agent_that_works_on_in_a_closed_session_is_stopped_and_the_next_prompt_runs() {
    let (mut bench, a) = Bench::used();
    bench.prompt(a, &json!(2), "s", "old");
    bench.heard();
    close(&mut bench, a);
    bench.heard();
    bench.prompt(a, &json!(3), "s", "new");
    bench.pass(9_999);
    assert_eq!(bench.stops, []);
    bench.pass(1);
    assert_eq!(bench.stops, [StopStep::CloseStdin]);
    bench.agent_dies();
    bench.pass(1_000);
    bench.answers("session/resume", &json!({}));
    assert_eq!(bench.heard_one("session/prompt")["params"]["prompt"][0]["text"], "new");
}

#[test]
fn a_deleted_session_is_not_taken_over_again_while_its_old_turn_runs() {
    let mut bench = Bench::new();
    let (a, b) = (bench.plain(), bench.plain());
    bench.used_session(a, "s");
    bench.prompt(a, &json!(2), "s", "old");
    let old = bench.heard_one("session/prompt");
    bench.say(a, &json!({"id":7,"method":"_acpd/session/remove","params":{"session":"s"}}));
    bench.heard_one("session/cancel");
    let load = json!({"sessionId":"s","cwd":"/w","mcpServers":[]});
    bench.say(b, &json!({"id":8,"method":"session/load","params":load}));
    assert_eq!(bench.heard(), Vec::<Value>::new(), "the old turn runs");
    bench.agent_answers(&old, &json!({"stopReason":"cancelled"}));
    bench.answers("session/load", &json!({}));
    assert_eq!(words(&bench.got(b)), ["result 8"]);
}

#[test]
fn the_next_daemon_knows_of_a_turn_that_was_given_up() {
    let (mut bench, a) = Bench::with_shims().with_used();
    bench.prompt(a, &json!(2), "s", "old");
    bench.heard();
    close(&mut bench, a);
    bench.heard();
    bench.reboot();
    let a = bench.plain();
    bench.prompt(a, &json!(3), "s", "new");
    assert_eq!(bench.heard(), Vec::<Value>::new(), "the old turn runs");
    assert_eq!(bench.leases.last(), Some(&true), "something runs in it");
    bench.pass(10_000);
    assert_eq!(bench.stops, [StopStep::CloseStdin]);
}

#[test]
fn a_turn_whose_cancel_was_ignored_ends_as_unwedged_and_queued_prompts_run() {
    let mut bench = Bench::new();
    let (a, b) = (bench.plain(), bench.client(&json!({"notices":true})));
    bench.used_session(a, "s");
    bench.say(b, &json!({"id":1,"method":"session/resume","params":{"sessionId":"s","cwd":"/w"}}));
    bench.prompt(a, &json!(2), "s", "old");
    bench.heard();
    bench.say(a, &json!({"method":"session/cancel","params":{"sessionId":"s"}}));
    bench.prompt(a, &json!(3), "s", "new");
    bench.chunk("s", "late");
    bench.heard();
    bench.got(b);
    bench.pass(10_000);
    bench.agent_dies();
    let got = bench.got(b);
    let ended = got.iter().find(|line| line["method"] == "_acpd/turn_ended").expect("told");
    assert_eq!(ended["params"]["outcome"]["kind"], "unwedged");
    let reason = ended["params"]["outcome"]["reason"].as_str().expect("why");
    assert!(reason.contains("ignored a cancel"), "{reason}");
    bench.pass(1_000);
    bench.answers("session/resume", &json!({}));
    assert_eq!(bench.heard_one("session/prompt")["params"]["prompt"][0]["text"], "new");
    let got = bench.got(a);
    assert_eq!(
        words(&got),
        ["agent_message_chunk", "result 2"],
        "what is late belongs to the old turn"
    );
}

#[test]
fn silence_is_counted_from_the_answer_of_a_person_and_not_while_a_tool_runs() {
    let mut bench = Bench::with(|profile| profile.stall_notice = 60_000);
    let a = bench.client(&json!({"notices":true}));
    bench.session(a, "s");
    bench.prompt(a, &json!(1), "s", "go");
    bench.heard();
    let options = json!([{"optionId":"yes","name":"Yes","kind":"allow_once"}]);
    let params = json!({"sessionId":"s","toolCall":{"toolCallId":"t"},"options":options});
    bench.agent(&json!({"id":5,"method":"session/request_permission","params":params}));
    let got = bench.got(a);
    let offer = got.iter().find(|line| line["method"] == "session/request_permission");
    let offer = offer.expect("asked")["id"].clone();
    bench.pass(150_000);
    let answer = json!({"outcome":{"outcome":"selected","optionId":"yes"}});
    bench.say(a, &json!({"id":offer,"result":answer}));
    bench.got(a);
    bench.pass(59_999);
    assert!(!words(&bench.got(a)).contains(&"_acpd/notice".to_owned()));
    bench.pass(60_000);
    assert!(words(&bench.got(a)).contains(&"_acpd/notice".to_owned()));
    let call = json!({"sessionUpdate":"tool_call","toolCallId":"t","title":"x"});
    bench.agent(&json!({"method":"session/update","params":{"sessionId":"s","update":call}}));
    bench.got(a);
    bench.pass(600_000);
    assert_eq!(bench.got(a), Vec::<Value>::new());
}
