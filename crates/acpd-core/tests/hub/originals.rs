//! Agents of version 2 with clients of version 2: they get the agent's lines as they are.

use acpd_core::HostEvent;
use acpd_core::ids::ClientId;
use acpd_core::profile::OnLimit;
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::questions::pending;
use crate::steps::reason;
use crate::survival::token;
use crate::version2::words;

fn begun() -> (Bench, ClientId) {
    begun_in(Bench::with_second_agent())
}

fn begun_in(mut bench: Bench) -> (Bench, ClientId) {
    let client = bench.second(&json!({}));
    bench.session(client, "s");
    (bench, client)
}

fn in_turn() -> (Bench, ClientId) {
    let (mut bench, client) = begun();
    bench.inserted_turn(client, 1);
    bench.got(client);
    (bench, client)
}

fn terminal(data: &str) -> Value {
    json!({"terminalId":"x","data":data})
}

/// Says one of each.
fn says_all(bench: &mut Bench) {
    bench.tell(
        "agent_thought_chunk",
        &json!({"messageId":"a","content":{"type":"text","text":"hm"}}),
    );
    bench.tell(
        "agent_message_chunk",
        &json!({"messageId":"a","content":{"type":"text","text":"so"}}),
    );
    bench.tell("terminal_update", &json!({"terminalId":"x","command":"make"}));
    let content = json!([{"type":"terminal","terminalId":"x"}]);
    bench.tell("tool_call_update", &json!({"toolCallId":"t","title":"make","content":content}));
    bench.tell("terminal_output_chunk", &terminal("b2s="));
    let diff = json!({"type":"diff","changes":[{"operation":"delete","path":"/w/a"}]});
    bench.tell("tool_call_content_chunk", &json!({"toolCallId":"t","content":diff}));
    bench.tell("tool_call_update", &json!({"toolCallId":"t","status":"completed","kind":null}));
    let plan = json!({"type":"items","planId":"p","entries":[{"content":"a","priority":"low",
        "status":"cancelled"}]});
    bench.tell("plan_update", &json!({"plan":plan}));
    bench.tell("agent_message", &json!({"messageId":"b","content":[{"type":"text","text":"no"}]}));
    bench.tell("_later", &json!({"any":1}));
}

#[test]
fn a_client_of_the_same_version_gets_the_bytes() {
    let (mut bench, client) = begun();
    let prompt = bench.start_turn(client, 1, "s", "go");
    assert_eq!(bench.got(client), Vec::<Value>::new(), "the agent does not have the prompt");
    bench.insert(&prompt);
    let begun = ["user_message m", "result 1", "state_update running"];
    let answer = bench.expect_words(client, begun)[1].clone();
    assert_eq!(answer["result"], json!({"messageId":"m"}));
    bench.said.clear();
    says_all(&mut bench);
    bench.idle("end_turn");
    let said = std::mem::take(&mut bench.said);
    assert_eq!(said.len(), 11);
    assert_eq!(bench.got_raw(client), said);

    let late = bench.second(&json!({}));
    bench.resume(late, &json!({"type":"start"}));
    let history = bench.got_raw(late);
    let end = ["replay_complete", "state_update", "result"];
    for (line, part) in history.iter().rev().zip(end.iter().rev()) {
        assert!(line.contains(part), "{line}");
    }
    assert_eq!(history[1..history.len() - end.len()], said[..said.len() - 1], "no state");
    assert!(history[0].contains("user_message"), "{history:#?}");
}

#[test]
fn a_client_that_comes_back_gets_the_rest_of_the_bytes() {
    let mut bench = Bench::with_second_agent();
    bench.shims = true;
    let client = bench.second(&token());
    bench.session(client, "s");
    bench.inserted_turn(client, 1);
    bench.got(client);
    bench.said.clear();
    says_all(&mut bench);
    bench.reboot();
    bench.idle("end_turn");
    let said = std::mem::take(&mut bench.said);
    let client = bench.second_back(4, &json!([]), &json!([]));
    let got = bench.got_raw(client);
    // The position is behind the rest.
    let its = |line: &String| said.iter().find(|said| line.starts_with(&said[..said.len() - 2]));
    assert_eq!(got.iter().filter_map(its).collect::<Vec<_>>(), said.iter().collect::<Vec<_>>());
}

#[test]
fn a_prompt_that_the_agent_refuses_is_in_no_history() {
    let (mut bench, client) = begun();
    bench.keyed_prompt(client, 1, "k", "go");
    let prompt = bench.heard_one("session/prompt");
    assert_eq!(prompt["params"]["idempotencyKey"], "k");
    bench.keyed_prompt(client, 2, "k", "go");
    bench.agent_refuses(&prompt, -32602);
    bench.expect_words(client, ["error 1", "error 2"]);
    bench.keyed_prompt(client, 3, "k", "go");
    let prompt = bench.heard_one("session/prompt");
    bench.insert(&prompt);
    bench.keyed_prompt(client, 4, "k", "go");
    let told = ["user_message m", "result 3", "state_update running", "result 4"];
    let got = bench.expect_words(client, told);
    assert_eq!(got[1]["result"], got[3]["result"]);
    bench.idle("end_turn");
    bench.keyed_prompt(client, 5, "k", "go");
    let got = bench.expect_words(client, ["state_update idle end_turn", "result 5"]);
    assert_eq!(got[1]["result"], json!({"messageId":"m"}));
}

#[test]
fn acpd_tells_what_a_lost_agent_cannot() {
    let (mut bench, client) = in_turn();
    bench.update_call("t", &json!({"title":"make"}));
    bench.got(client);
    bench.agent_dies();
    bench.expect_words(client, ["tool_call_update t", "state_update idle error"]);

    bench.prompt(client, &json!(2), "s", "more");
    let resume = bench.heard_one("session/resume");
    bench.agent_answers(&resume, &json!({}));
    bench.heard_one("session/prompt");
    bench.got(client);
    bench.agent_dies();
    let lost = bench.expect_words(client, ["error 2"]);
    assert_eq!(reason(&lost[0]), "outcome_unknown");
    bench.prompt(client, &json!(3), "s", "more");
    let resume = bench.heard_one("session/resume");
    bench.agent_answers(&resume, &json!({}));
    bench.says_running();
    bench.got(client);
    bench.cancel(client, "s");
    bench.agent_dies();
    bench.expect_words(client, ["state_update idle cancelled", "error 3"]);
}

#[test]
fn the_state_is_that_of_the_agent() {
    let (mut bench, client) = begun();
    let join = |bench: &mut Bench| {
        let got = bench.resumed(&Value::Null);
        let update = got.iter().find(|line| !line["params"]["update"]["state"].is_null());
        update.expect("a state")["params"]["update"].clone()
    };
    bench.says_running();
    assert_eq!(join(&mut bench)["state"], "running", "without a prompt");
    assert_eq!(bench.leases.last(), Some(&true), "it is at work");
    bench.tell("state_update", &json!({"state":"requires_action"}));
    assert_eq!(join(&mut bench)["state"], "requires_action");
    let background = json!([{"type":"terminal","terminalId":"a"}]);
    bench.in_background(&background);
    let mut now = join(&mut bench);
    assert_eq!(now["background"].take(), background);
    bench.in_background(&json!([]));
    let none = json!({"sessionUpdate":"state_update","state":"idle","background":[]});
    assert_eq!(join(&mut bench), none, "no list is not an empty one");
    bench.tell("state_update", &json!({"state":"running","background":background}));
    bench.agent_dies();
    let got = bench.got(client);
    assert_eq!(got.last().expect("the end")["params"]["update"], none, "{got:?}");
    assert_eq!(join(&mut bench), none);
}

/// The agent's question about a call.
fn question(title: &str) -> Value {
    let call = json!({"toolCallId":"t","title":title,"kind":"execute"});
    let option = json!({"optionId":"yes","name":"Yes","kind":"allow_once"});
    json!({"sessionId":"s","title":"Do it?","description":"Please.","options":[option],
        "subject":{"type":"tool_call","toolCall":call}})
}

#[test]
fn a_question_is_shown_as_it_is_until_its_call_changes() {
    let mut bench = Bench::with_second_agent();
    bench.shims = true;
    let client = bench.second(&token());
    bench.session(client, "s");
    bench.agent_asks(7, "session/request_permission", &question("make"));
    let mut params = bench.find(client, "session/request_permission")["params"].take();
    params.as_object_mut().expect("params").remove("_meta");
    assert_eq!(params, question("make"));
    assert_eq!(pending(&mut bench).len(), 1);

    bench.reboot();
    bench.tell("tool_call_update", &json!({"toolCallId":"t","title":"rm"}));
    let other = bench.second(&json!({}));
    bench.resume(other, &Value::Null);
    let asked = bench.find(other, "session/request_permission");
    assert_eq!(asked["params"]["title"], "rm");
    let call = &asked["params"]["subject"]["toolCall"];
    assert_eq!((&call["toolCallId"], &call["title"]), (&json!("t"), &json!("rm")));
    assert_eq!(call["content"][1]["content"]["text"], "Please.");
    bench.cancel(other, "s");
    assert_eq!(bench.heard(), Vec::<Value>::new(), "no turn runs");
}

#[test]
fn a_cancelled_question_is_left_to_the_agent() {
    let (mut bench, client) = in_turn();
    bench.agent_asks(7, "session/request_permission", &question("make"));
    bench.got(client);
    bench.cancel(client, "s");
    bench.heard_one("session/cancel");
    bench.agent(&json!({"method":"$/cancel_request","params":{"requestId":7}}));
    bench.heard();
    bench.idle("cancelled");
    assert_eq!(bench.heard(), Vec::<Value>::new());
    bench.expect_words(client, ["$/cancel_request", "state_update idle cancelled"]);
}

#[test]
fn an_item_is_cancelled_where_the_agent_can() {
    let (mut bench, client) = begun();
    let params = json!({"sessionId":"s","terminalId":"a"});
    bench.ask(client, 1, "terminal/cancel", &params);
    let asked = bench.heard_one("terminal/cancel");
    assert_eq!(asked["params"], params);
    bench.agent_answers(&asked, &json!({}));
    bench.expect_words(client, ["result 1"]);
    let tool = bench.open_under_agent();
    assert_eq!(reason(&bench.call(tool, "terminal/cancel", &params)), "under_agent");
    assert_eq!(bench.heard(), Vec::<Value>::new());
    bench.agent_dies();
    bench.ask(client, 2, "terminal/cancel", &params);
    assert_eq!(bench.answer(client, 2)["error"]["code"], -32602);
    let mut bench = Bench::new();
    let client = bench.second(&json!({}));
    bench.session(client, "s");
    bench.ask(client, 1, "tool_call/cancel", &json!({"sessionId":"s","toolCallId":"t"}));
    assert_eq!(bench.answer(client, 1)["error"]["code"], -32602);
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

/// A session of an agent that takes messages into its turns.
fn steerable() -> (Bench, ClientId) {
    let mut bench = Bench::with_second_agent();
    bench.greeting = json!({"_meta":{"steering":{"supported":true}}});
    begun_in(bench)
}

fn steer(bench: &mut Bench, client: ClientId, text: &str) -> Value {
    let params = json!({"sessionId":"s","prompt":[{"type":"text","text":text}]});
    bench.ask(client, 2, "_session/steering", &params);
    bench.heard_one("_session/steering")
}

fn user(id: &str, text: &str) -> Value {
    json!({"messageId":id,"content":[{"type":"text","text":text}]})
}

fn failed(bench: &mut Bench, code: i64) {
    let error = json!({"code":code,"message":"x"});
    bench.tell("state_update", &json!({"state":"idle","stopReason":"error","error":error}));
}

#[test]
fn a_prompt_in_the_history_has_an_end_before_the_agent_says_that_it_works() {
    let (mut bench, client) = begun();
    let prompt = bench.start_turn(client, 1, "s", "go");
    bench.tell("user_message", &user("m", "go"));
    bench.agent_answers(&prompt, &json!({"messageId":"m"}));
    bench.expect_words(client, ["user_message m", "result 1"]);
    bench.agent_dies();
    bench.expect_words(client, ["state_update idle error"]);
}

#[test]
fn a_refused_prompt_ends_no_other_work() {
    let (mut bench, client) = begun();
    bench.says_running();
    let prompt = bench.start_turn(client, 1, "s", "go");
    bench.got(client);
    bench.agent_refuses(&prompt, -32603);
    bench.expect_words(client, ["error 1"]);
    assert!(words(&bench.resumed(&Value::Null)).contains(&"state_update running".to_owned()));
    bench.cancel(client, "s");
    bench.heard_one("session/cancel");
}

#[test]
fn a_prompt_in_the_history_is_not_sent_again() {
    let (mut bench, client) = begun();
    bench.feed_process(HostEvent::CredentialsGood { left: 0 });
    bench.keyed_prompt(client, 1, "k", "go");
    let prompt = bench.heard_one("session/prompt");
    bench.insert(&prompt);
    failed(&mut bench, -32000);
    bench.agent_dies();
    bench.answers("session/resume", &json!({}));
    assert!(bench.heard().iter().all(|line| line["method"] != "session/prompt"));
}

#[test]
fn a_question_of_work_that_goes_on_outlives_the_turn() {
    let (mut bench, client) = in_turn();
    bench.agent_asks(7, "session/request_permission", &question("make"));
    let asked = bench.find(client, "session/request_permission");
    let background = json!([{"type":"tool_call","toolCallId":"t"}]);
    let idle = json!({"state":"idle","stopReason":"end_turn","background":background});
    bench.tell("state_update", &idle);
    assert_eq!(bench.heard(), Vec::<Value>::new());
    bench.select(client, &asked, "yes");
    assert_eq!(bench.heard()[0]["result"]["outcome"]["optionId"], "yes");
}

#[test]
fn a_cancelled_prompt_that_was_never_taken_frees_its_key() {
    let (mut bench, client) = begun();
    bench.keyed_prompt(client, 1, "k", "go");
    let prompt = bench.heard_one("session/prompt");
    bench.cancel(client, "s");
    bench.heard_one("session/cancel");
    bench.agent_refuses(&prompt, -32800);
    bench.expect_words(client, ["error 1"]);
    bench.keyed_prompt(client, 2, "k", "go");
    bench.heard_one("session/prompt");
    bench.cancel(client, "s");
    bench.agent_dies();
    assert_eq!(reason(&bench.answer(client, 2)), "outcome_unknown");
}

#[test]
fn a_refused_prompt_is_not_continued_after_a_limit() {
    let mut bench = Bench::with_second_agent();
    bench.change(|profile| profile.on_limit = OnLimit::Wait);
    bench.reboot();
    let (mut bench, client) = begun_in(bench);
    let prompt = bench.start_turn(client, 1, "s", "go");
    let limit = json!({"error":{"type":"usage_limit_reached","resets_in_seconds":3600}});
    let error = json!({"code":-32603,"message":"limit","data":limit});
    bench.agent_fails(&prompt, &error);
    bench.pass(3_600_001);
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn who_leaves_gets_the_answer_to_its_prompt_before() {
    let (mut bench, client) = begun();
    let other = bench.second(&json!({}));
    bench.resume(other, &Value::Null);
    bench.start_turn(client, 1, "s", "go");
    bench.ask(client, 2, "session/close", &json!({"sessionId":"s"}));
    let got = bench.expect_words(client, ["error 1", "result 2"]);
    assert_eq!(reason(&got[0]), "outcome_unknown");
}

#[test]
fn user_messages_are_shown_once() {
    let (mut bench, client) = steerable();
    bench.inserted_turn(client, 1);
    bench.got(client);
    let asked = steer(&mut bench, client, "the red");
    bench.tell("user_message", &user("n", "the red"));
    bench.agent_answers(&asked, &json!({"outcome":"injected"}));
    let got = bench.got(client);
    assert_eq!(got.iter().filter(|line| line.to_string().contains("the red")).count(), 1);

    let chunk = |id: &str| json!({"messageId":id,"content":{"type":"text","text":"go"}});
    let (mut bench, client) = steerable();
    bench.start_turn(client, 1, "s", "go");
    steer(&mut bench, client, "go faster");
    bench.got(client);
    bench.tell("user_message_chunk", &chunk("m"));
    bench.expect_words(client, ["user_message_chunk m", "result 1"]);

    let (mut bench, client) = in_turn();
    bench.tell("user_message_chunk", &chunk("n"));
    bench.expect_words(client, ["user_message_chunk n"]);
}

#[test]
fn a_session_that_was_deleted_while_it_worked_comes_back_idle() {
    let mut bench = Bench::with_second_agent();
    bench.configure(|config| config.keep_deleted = 3_600_000);
    bench.shims = true;
    let (mut bench, client) = begun_in(bench);
    bench.inserted_turn(client, 1);
    bench.got(client);
    bench.idle("end_turn");
    bench.says_running();
    bench.command("_acpd/session/remove", &json!({"session":"s"}));
    bench.heard();
    bench.command("_acpd/session/undo", &json!({}));
    let client = bench.second(&json!({}));
    bench.resume(client, &Value::Null);
    let set = json!({"sessionId":"s","configId":"a","type":"id","value":"b"});
    bench.ask(client, 2, "session/set_config_option", &set);
    let resume = bench.heard_one("session/resume");
    bench.agent_answers(&resume, &json!({}));
    bench.reboot();
    assert!(words(&bench.resumed(&Value::Null)).contains(&"state_update idle".to_owned()));
}

#[test]
fn a_history_keeps_what_clears_and_what_replaces() {
    let (mut bench, _) = in_turn();
    let updates = [
        json!({"title":"make","_meta":{"v":{"x":1}}}),
        json!({"_meta":{"v":{"y":2}}}),
        json!({"title":null}),
    ];
    for update in &updates {
        bench.update_call("t", update);
    }
    bench.idle("end_turn");
    let got = bench.resumed(&json!({"type":"start"}));
    let shown = got.iter().filter(|line| line["params"]["update"]["toolCallId"] == "t");
    let last = shown.map(|line| &line["params"]["update"]).collect::<Vec<_>>();
    assert_eq!(last[1]["_meta"]["v"], json!({"y":2}));
    assert_eq!(last[2].get("title"), Some(&Value::Null));
}

#[test]
fn a_cancelled_subagent_takes_its_questions_back_itself() {
    let (mut bench, client) = in_turn();
    let child = json!({"sessionId":"c","state":{"state":"running"},"capabilities":{"cancel":{}}});
    bench.tell("subagent_update", &child);
    let mut asked = question("make");
    asked["sessionId"] = json!("c");
    bench.agent_asks(7, "session/request_permission", &asked);
    bench.cancel(client, "c");
    bench.heard_one("session/cancel");
}
