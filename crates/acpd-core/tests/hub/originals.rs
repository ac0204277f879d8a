//! Agents of version 2 with clients of version 2: they get the agent's lines as they are.

use acpd_core::ids::ClientId;
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::questions::pending;
use crate::steps::reason;
use crate::survival::{TOKEN, token};

fn begun() -> (Bench, ClientId) {
    let mut bench = Bench::with_second_agent();
    let client = bench.second(&json!({}));
    bench.session(client, "s");
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
    let prompt = bench.start_turn(client, 1, "s", "go");
    bench.insert(&prompt);
    bench.got(client);
    bench.said.clear();
    says_all(&mut bench);
    bench.reboot();
    bench.idle("end_turn");
    let said = std::mem::take(&mut bench.said);
    let resume = json!({"sessions":{"s":4},"open":[],"asked":[],"generation":""});
    let client = bench.second_with(&json!({"client":{"token":TOKEN,"resume":resume}}));
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
    let (mut bench, client) = begun();
    let prompt = bench.start_turn(client, 1, "s", "go");
    bench.insert(&prompt);
    bench.tell("tool_call_update", &json!({"toolCallId":"t","title":"make"}));
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
    let (mut bench, _) = begun();
    let join = |bench: &mut Bench| {
        let client = bench.second(&json!({}));
        bench.resume(client, &Value::Null);
        let got = bench.got(client);
        let update = got.iter().find(|line| !line["params"]["update"]["state"].is_null());
        update.expect("a state")["params"]["update"].clone()
    };
    bench.says_running();
    let idle = json!({"sessionUpdate":"state_update","state":"idle"});
    assert_eq!(join(&mut bench)["state"], "running", "without a prompt");
    assert_eq!(bench.leases.last(), Some(&true), "it is at work");
    bench.tell("state_update", &json!({"state":"requires_action"}));
    assert_eq!(join(&mut bench)["state"], "requires_action");
    let background = json!([{"type":"terminal","terminalId":"a"}]);
    bench.tell("state_update", &json!({"state":"idle","background":background}));
    let mut now = join(&mut bench);
    assert_eq!(now["background"].take(), background);
    bench.tell("state_update", &json!({"state":"idle","background":[]}));
    assert_eq!(join(&mut bench), idle);
    bench.says_running();
    bench.agent_dies();
    assert_eq!(join(&mut bench), idle);
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
    let (mut bench, client) = begun();
    let prompt = bench.start_turn(client, 1, "s", "go");
    bench.insert(&prompt);
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
