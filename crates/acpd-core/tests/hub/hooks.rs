//! Events of hooks, and their number.

use acpd_core::profile::Sharing;
use acpd_core::{HostEvent, Input};
use serde_json::{Value, json};

use crate::bench::{AGENT, Bench};
use crate::questions::{self, pending, run, with_policy};

/// Returns the events since the last call.
fn told(bench: &mut Bench) -> Vec<Value> {
    std::mem::take(&mut bench.hooks)
}

#[track_caller]
fn told_one(bench: &mut Bench) -> Value {
    let told = told(bench);
    assert_eq!(told.len(), 1, "{told:?}");
    told.into_iter().next().expect("one")
}

/// A session with a turn; the agent's request is there to be answered.
fn at_work(bench: Bench) -> (Bench, Value) {
    let (bench, _, prompt) = bench.in_turn("go");
    (bench, prompt)
}

#[track_caller]
fn told_nothing(bench: &mut Bench) {
    assert_eq!(told(bench), Vec::<Value>::new());
}

fn asks(bench: &mut Bench, command: &str) {
    questions::asks(bench, 7, &run(command));
}

fn form(scope: &Value) -> Value {
    let schema = json!({"type":"object","properties":{"name":{"type":"string"}}});
    let mut params = json!({"mode":"form","message":"Which?","requestedSchema":schema});
    for (name, value) in scope.as_object().expect("an object") {
        params[name] = value.clone();
    }
    json!({"id":8,"method":"elicitation/create","params":params})
}

#[test]
fn a_question_is_told_once_with_all_that_a_list_of_questions_says_of_it() {
    let (mut bench, _) = at_work(Bench::with_shims());
    asks(&mut bench, "make");
    let question = told_one(&mut bench);
    assert_eq!(question["event"], "permission");
    assert_eq!(question["question"]["subject"], "run `make`");
    let mut listed = pending(&mut bench).remove(0);
    listed["event"] = json!("permission");
    assert_eq!(question, listed);
    // The next daemon knows of the question, and that it is no news.
    bench.reboot();
    told_nothing(&mut bench);
}

#[test]
fn a_form_is_told_and_what_nobody_is_asked_is_not() {
    let (mut bench, _) = at_work(Bench::new());
    bench.agent(&form(&json!({"sessionId":"s"})));
    let question = told_one(&mut bench);
    assert_eq!((&question["question"]["kind"], &question["cwd"]), (&json!("form"), &json!("/w")));
    // About a request that is not open: answered at once.
    bench.agent(&form(&json!({"requestId":4711})));
    told_nothing(&mut bench);
}

#[test]
fn a_question_about_a_request_is_told_without_a_session() {
    let (mut bench, client) = Bench::new().with_client();
    let request = bench.relay(client, "log", "authenticate", &json!({"methodId":"m"}));
    bench.agent(&form(&json!({"requestId":request["id"]})));
    let question = told_one(&mut bench);
    assert_eq!((&question["agent"], &question["sessionId"]), (&json!(AGENT), &Value::Null));
}

#[test]
fn a_question_that_the_policy_answers_is_not_told() {
    let rules = json!({"rules":[{"decision":"allow","command":"make"}]});
    let (mut bench, _) = at_work(with_policy(&rules));
    asks(&mut bench, "make");
    told_nothing(&mut bench);
    asks(&mut bench, "make install");
    assert_eq!(told_one(&mut bench)["question"]["title"], "make install");
}

#[test]
fn the_end_of_a_turn_is_told_once_with_its_outcome() {
    let (mut bench, request) = at_work(Bench::with_shims());
    bench.reboot();
    told_nothing(&mut bench);
    bench.end_turn(&request);
    let outcome = json!({"kind":"stopped","stopReason":"end_turn"});
    let end = json!({"event":"turn_end","agent":AGENT,"sessionId":"s","name":null,"cwd":"/w",
        "at":bench.now,"turn":1,"outcome":outcome});
    assert_eq!(told_one(&mut bench), end);
    bench.reboot();
    told_nothing(&mut bench);
}

#[test]
fn a_crash_is_told_and_then_what_it_interrupted() {
    let (mut bench, _) = at_work(Bench::with_shims());
    bench.leader_ends();
    let told_now = told(&mut bench);
    assert_eq!(told_now[0]["event"], "crash");
    assert_eq!(told_now[0]["reason"], "it ended with exit status 1");
    assert_eq!(told_now[0]["sessionId"], Value::Null, "the process is not that session's own");
    assert_eq!(told_now[1]["outcome"]["kind"], "interrupted");
    assert_eq!(told_now.len(), 2);
    // The daemon dies before the rest of the tree is gone; the next one hears of the same end.
    bench.reboot();
    bench.agent_dies();
    told_nothing(&mut bench);
}

#[test]
fn a_process_of_a_single_session_is_told_with_that_session() {
    let (mut bench, _) = at_work(Bench::with(|profile| profile.sharing = Sharing::Session));
    bench.leader_ends();
    let crash = told(&mut bench).remove(0);
    assert_eq!((&crash["sessionId"], &crash["cwd"]), (&json!("s"), &json!("/w")));
}

#[test]
fn an_end_that_was_asked_for_is_no_crash() {
    let (mut bench, client) = Bench::used();
    told(&mut bench);
    bench.ask(client, 1, "_acpd/agent/stop", &json!({"agent":AGENT}));
    bench.agent_dies();
    told_nothing(&mut bench);
    assert_eq!(bench.agent_state(), "stopped");
}

#[test]
fn a_process_that_ended_with_the_last_daemon_is_no_crash() {
    let (mut bench, _) = Bench::used();
    told(&mut bench);
    bench.reboot();
    let host = bench.swept[0];
    bench.feed(Input::Host(host, HostEvent::Gone));
    told_nothing(&mut bench);
}

#[test]
fn what_no_command_is_run_for_is_not_told() {
    let (mut bench, _) = at_work(Bench::without_hooks());
    asks(&mut bench, "make");
    bench.leader_ends();
    told_nothing(&mut bench);
}

#[test]
fn a_login_that_is_needed_is_told_when_it_becomes_known() {
    let (mut bench, client) = Bench::new().with_client();
    for time in 0..2 {
        bench.ask_session(client, time);
        bench.refuses("session/new", -32000);
    }
    let login = told_one(&mut bench);
    assert_eq!((&login["event"], &login["reason"]), (&json!("login"), &json!("no")));
    // After a login it may run out again.
    bench.session(client, "s");
    assert_eq!(bench.agent_state(), "ready");
    bench.refuse_prompt(client, "p", "s", "go", -32000);
    let events: Vec<_> = told(&mut bench).iter().map(|told| told["event"].clone()).collect();
    assert_eq!(events, ["turn_end", "login"]);
}

/// The working session has no clients any longer.
fn left_alone() -> (Bench, Value) {
    let (mut bench, client, request) = Bench::new().in_turn("go");
    bench.leave(client);
    (bench, request)
}

#[test]
fn the_desktop_shows_that_a_person_is_needed_and_not_what_for() {
    let (mut bench, _) = at_work(Bench::new());
    asks(&mut bench, "curl -H 'Authorization: s3cret'");
    assert_eq!(bench.notified, [], "somebody is attached");
    let (mut bench, _) = left_alone();
    asks(&mut bench, "curl -H 'Authorization: s3cret'");
    let body = format!("{AGENT} asks for permission (execute)");
    assert_eq!(bench.notified, [("s".to_owned(), body)]);
}

#[test]
fn the_desktop_shows_what_is_asked_while_only_a_tool_of_an_agent_is_attached() {
    let (mut bench, tool) = Bench::new().with_client_of(&json!({"tool": true}));
    bench.session(tool, "s");
    bench.prompt(tool, &json!(2), "s", "go");
    bench.heard();
    asks(&mut bench, "make");
    assert_eq!(bench.notified.len(), 1);
}

#[test]
fn the_desktop_shows_the_end_of_a_turn_of_more_than_a_minute() {
    let ends = |after: u64, reason: &str| {
        let (mut bench, request) = left_alone();
        bench.pass(after);
        bench.agent_answers(&request, &json!({"stopReason":reason}));
        bench.notified
    };
    assert_eq!(ends(59_000, "end_turn"), []);
    let body = format!("{AGENT} is done after 61 s");
    assert_eq!(ends(61_000, "end_turn"), [("s".to_owned(), body)]);
    assert_eq!(ends(61_000, "cancelled"), []);
    let (title, body) = ends(61_000, &"x\u{1b}[2J".repeat(200)).remove(0);
    assert!(!body.contains('\u{1b}') && body.len() < 2_000, "{title}: {body}");
}
