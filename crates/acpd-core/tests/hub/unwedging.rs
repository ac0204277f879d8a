//! Turns that do not end when they should.

use acpd_core::StopStep;
use serde_json::{Value, json};

use crate::bench::{Bench, words};
use crate::steps::prompt_text;

fn close(bench: &mut Bench, client: acpd_core::ids::ClientId) {
    bench.ask(client, 7, "_acpd/session/close", &json!({"session":"s"}));
    bench.got(client);
}

#[test]
fn a_closed_session_does_not_come_back_while_its_old_turn_runs() {
    let (mut bench, a) = Bench::used();
    let old = bench.start_turn(a, 2, "s", "old");
    close(&mut bench, a);
    bench.heard_one("session/cancel");
    bench.prompt(a, &json!(3), "s", "new");
    bench.chunk("s", "still at the old one");
    assert_eq!(bench.heard(), Vec::<Value>::new(), "the old turn runs");
    assert_eq!(bench.got(a), Vec::<Value>::new());
    bench.agent_answers(&old, &json!({"stopReason":"cancelled"}));
    assert_eq!(prompt_text(&bench.bring_back("session/resume")), "new");
    bench.pass(60_000);
    assert_eq!(bench.stops, [], "it has ended the turn");
}

#[test]
fn an_agent_that_works_on_in_a_closed_session_is_stopped_and_the_next_prompt_runs() {
    let (mut bench, a) = Bench::used();
    bench.start_turn(a, 2, "s", "old");
    close(&mut bench, a);
    bench.heard();
    bench.prompt(a, &json!(3), "s", "new");
    bench.pass(9_999);
    assert_eq!(bench.stops, []);
    bench.pass(1);
    assert_eq!(bench.stops, [StopStep::CloseStdin]);
    bench.restart_agent();
    assert_eq!(prompt_text(&bench.bring_back("session/resume")), "new");
}

#[test]
fn a_deleted_session_is_not_taken_over_again_while_its_old_turn_runs() {
    let (mut bench, a) = Bench::used();
    let b = bench.plain();
    let old = bench.start_turn(a, 2, "s", "old");
    bench.ask(a, 7, "_acpd/session/remove", &json!({"session":"s"}));
    bench.heard_one("session/cancel");
    bench.ask(b, 8, "session/load", &json!({"sessionId":"s","cwd":"/w","mcpServers":[]}));
    assert_eq!(bench.heard(), Vec::<Value>::new(), "the old turn runs");
    bench.agent_answers(&old, &json!({"stopReason":"cancelled"}));
    bench.answers("session/load", &json!({}));
    bench.expect(b, ["result 8"]);
}

#[test]
fn the_next_daemon_knows_of_a_turn_that_was_given_up() {
    let (mut bench, a) = Bench::with_shims().with_used();
    bench.start_turn(a, 2, "s", "old");
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
    let (mut bench, a) = Bench::used();
    let b = bench.noticed();
    bench.join(b, "s");
    bench.start_turn(a, 2, "s", "old");
    bench.cancel(a, "s");
    bench.prompt(a, &json!(3), "s", "new");
    bench.chunk("s", "late");
    bench.heard();
    bench.got(b);
    bench.pass(9_999);
    assert_eq!(bench.stops, []);
    bench.pass(1);
    bench.pass(3_000);
    bench.pass(7_000);
    assert_eq!(bench.stops, [StopStep::CloseStdin, StopStep::Term, StopStep::Kill]);
    bench.agent_dies();
    let outcome = &bench.find(b, "_acpd/turn_ended")["params"]["outcome"];
    assert_eq!(outcome["kind"], "unwedged");
    assert!(outcome["reason"].as_str().expect("why").contains("ignored a cancel"), "{outcome}");
    bench.pass(1_000);
    assert_eq!(prompt_text(&bench.bring_back("session/resume")), "new");
    // Late lines belong to the old turn.
    let got = bench.expect(a, ["agent_message_chunk", "result 2"]);
    assert_eq!(got[1]["result"]["stopReason"], "cancelled");
}

#[test]
fn silence_is_counted_from_the_answer_of_a_person_and_not_while_a_tool_runs() {
    let (mut bench, a) = Bench::with(|profile| profile.stall_notice = 60_000).with_noticed();
    bench.start_turn(a, 1, "s", "go");
    bench.ask_permission(5, "s");
    let offer = bench.find(a, "session/request_permission");
    bench.pass(150_000);
    bench.select(a, &offer, "y");
    bench.got(a);
    bench.pass(59_999);
    assert!(!words(&bench.got(a)).contains(&"_acpd/notice".to_owned()));
    bench.pass(60_000);
    bench.expect_some(a, "_acpd/notice");
    bench.send_update("s", &json!({"sessionUpdate":"tool_call","toolCallId":"t","title":"x"}));
    bench.got(a);
    bench.pass(600_000);
    assert_eq!(bench.got(a), Vec::<Value>::new());
}
