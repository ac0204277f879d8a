//! Clients of version 2 of the protocol, with an agent of version 1.

use acpd_core::ids::ClientId;
use acpd_core::{ClientEvent, Input};
use serde_json::{Value, json};

use crate::bench::{Bench, word};
use crate::questions::{asks, run};
use crate::survival::TOKEN;

fn mode_state() -> Value {
    let mode = |id: &str| json!({"id":id,"name":id.to_uppercase()});
    json!({"currentModeId":"ask","availableModes":[mode("ask"), mode("code")]})
}

fn option() -> Value {
    json!({"id":"model","name":"Model","category":"model","type":"select","currentValue":"a",
        "options":[{"value":"a","name":"A"},{"value":"b","name":"B"}]})
}

/// Kinds of lines in words: updates by their state or message, answers by their id.
pub(crate) fn words(lines: &[Value]) -> Vec<String> {
    let one = |line: &Value| {
        let update = &line["params"]["update"];
        let more = ["state", "messageId", "toolCallId"];
        let text = more.iter().find_map(|name| update[name].as_str());
        let text = text.map_or_else(|| word(line), |text| format!("{} {text}", word(line)));
        match update["stopReason"].as_str() {
            Some(reason) => format!("{text} {reason}"),
            None => text,
        }
    };
    lines.iter().map(one).collect()
}

impl Bench {
    pub(crate) fn second_with(&mut self, own: &Value) -> ClientId {
        let client = self.open();
        self.second.insert(client);
        let params = json!({"protocolVersion":2,"info":{"name":"zed","version":"1"},
            "capabilities":{"elicitation":{"form":{}}},"_meta":{"_acpd":own}});
        self.ask(client, "init", "initialize", &params);
        client
    }

    /// A client of version 2; the answer to its `initialize` is taken off.
    pub(crate) fn second(&mut self, own: &Value) -> ClientId {
        let client = self.second_with(own);
        self.got(client);
        client
    }

    /// The client with the token connects again: lines that it has seen, open requests, questions.
    pub(crate) fn second_back(&mut self, seen: u64, open: &Value, asked: &Value) -> ClientId {
        let resume = json!({"generation":"","sessions":{"s":seen},"open":open,"asked":asked});
        self.second_with(&json!({"client":{"token":TOKEN,"resume":resume}}))
    }

    #[track_caller]
    pub(crate) fn expect_words<const N: usize>(
        &mut self,
        client: ClientId,
        words: [&str; N],
    ) -> Vec<Value> {
        let got = self.got(client);
        assert_eq!(self::words(&got), words, "{got:#?}");
        got
    }

    pub(crate) fn resume(&mut self, client: ClientId, from: &Value) {
        let params = json!({"sessionId":"s","cwd":"/w","mcpServers":[],"replayFrom":from});
        self.ask(client, "resume", "session/resume", &params);
    }

    /// Returns what a further client gets that resumes the session.
    pub(crate) fn resumed(&mut self, from: &Value) -> Vec<Value> {
        let client = self.second(&json!({}));
        self.resume(client, from);
        self.got(client)
    }

    pub(crate) fn keyed_prompt(&mut self, client: ClientId, id: u64, key: &str, text: &str) {
        let prompt = json!([{"type":"text","text":text}]);
        let params = json!({"sessionId":"s","prompt":prompt,"idempotencyKey":key});
        self.ask(client, id, "session/prompt", &params);
    }
}

fn begun() -> (Bench, ClientId) {
    let mut bench = Bench::new();
    let client = bench.second(&json!({}));
    bench.session(client, "s");
    (bench, client)
}

/// A client with a token, which comes back when the daemon dies.
fn with_token() -> (Bench, ClientId) {
    let mut bench = Bench::with_shims();
    let client = bench.second(&json!({"client":{"token":TOKEN}}));
    bench.session(client, "s");
    (bench, client)
}

#[test]
fn members_of_version_2_decide_the_version() {
    let info = json!({"name":"zed","version":"1"});
    let first = [
        json!({"protocolVersion":2,"clientInfo":info,"clientCapabilities":{}}),
        json!({"protocolVersion":1,"info":info,"capabilities":{}}),
        json!({"protocolVersion":2}),
    ];
    let mut bench = Bench::new();
    for params in first {
        let client = bench.open();
        bench.ask(client, 1, "initialize", &params);
        let result = bench.answer(client, 1);
        assert_eq!(result["result"]["protocolVersion"], 1, "{params}");
    }
    let both = json!({"protocolVersion":7,"info":info,"capabilities":{},"clientInfo":info,
        "clientCapabilities":{"fs":{"readTextFile":true}}});
    let client = bench.open();
    bench.second.insert(client);
    bench.ask(client, 1, "initialize", &both);
    let result = bench.answer(client, 1);
    assert_eq!(result["result"]["protocolVersion"], 2);
    assert_eq!(result["result"]["capabilities"]["_meta"]["_acpd"]["agent"], "gem");

    bench.configure(|config| config.newest = acp_wire::Version::V1);
    let client = bench.open();
    bench.ask(client, 1, "initialize", &both);
    assert_eq!(bench.answer(client, 1)["result"]["protocolVersion"], 1, "it is not configured");
}

#[test]
fn a_turn_is_told_by_its_states() {
    let (mut bench, client) = begun();
    let prompt = bench.start_turn(client, 1, "s", "go");
    let begin = ["state_update running", "user_message_chunk acpd-2", "result 1"];
    let answer = bench.expect_words(client, begin)[2].clone();
    assert_eq!(answer["result"], json!({"messageId":"acpd-2"}));

    bench.update("s", "agent_thought_chunk", "hm");
    bench.chunk("s", "let ");
    bench.chunk("s", "me");
    bench.send_update("s", &json!({"sessionUpdate":"tool_call","toolCallId":"t","title":"make"}));
    bench.update_call("t", &json!({"status":"completed"}));
    bench.chunk("s", "done");
    let said = [
        "agent_thought_chunk acpd-3",
        "agent_message_chunk acpd-4",
        "agent_message_chunk acpd-4",
        "tool_call_update t~1",
        "tool_call_update t~1",
        "agent_message_chunk acpd-8",
    ];
    bench.expect_words(client, said);
    bench.end_turn(&prompt);
    bench.expect_words(client, ["state_update idle end_turn"]);

    // The agent uses its ids again: it is another call, and another message.
    let prompt = bench.start_turn(client, 2, "s", "more");
    bench.update_call("t", &json!({"title":"test"}));
    bench.agent_refuses(&prompt, -32603);
    let second = [
        "state_update running",
        "user_message_chunk acpd-11",
        "result 2",
        "tool_call_update t~2",
        "state_update idle error",
    ];
    let error = bench.expect_words(client, second)[4]["params"]["update"]["error"].clone();
    assert_eq!((&error["code"], &error["message"]), (&json!(-32603), &json!("no")));
}

#[test]
fn a_question_is_asked_with_its_subject_and_the_state_says_so() {
    let (mut bench, client) = begun();
    let prompt = bench.start_turn(client, 1, "s", "go");
    bench.got(client);
    asks(&mut bench, 7, &run("make"));
    let asked = ["state_update requires_action", "session/request_permission"];
    let question = bench.expect_words(client, asked)[1].clone();
    let params = &question["params"];
    assert_eq!((&params["title"], &params["toolCall"]), (&json!("make"), &Value::Null));
    assert_eq!(params["subject"]["toolCall"]["toolCallId"], "t~1");
    bench.select(client, &question, "y");
    bench.expect_words(client, ["state_update running"]);
    assert_eq!(bench.heard()[0]["result"]["outcome"]["optionId"], "y");

    asks(&mut bench, 8, &run("rm"));
    bench.got(client);
    bench.cancel(client, "s");
    bench.expect_words(client, ["$/cancel_request", "state_update running"]);
    bench.agent_answers(&prompt, &json!({"stopReason":"cancelled"}));
    bench.expect_words(client, ["state_update idle cancelled"]);
}

#[test]
fn a_resumed_session_is_replayed_up_to_its_state() {
    let (mut bench, client) = begun();
    bench.run_turn(client, 1, "s", "go");
    bench.start_turn(client, 2, "s", "on");
    bench.chunk("s", "well");
    let live = bench.got(client);
    let replay = [
        "user_message_chunk acpd-2",
        "user_message_chunk acpd-5",
        "agent_message_chunk acpd-6",
        "replay_complete",
        "state_update running",
        "result \"resume\"",
    ];
    let replayed = bench.resumed(&json!({"type":"start"}));
    assert_eq!(words(&replayed), replay);
    let of = |lines: &[Value]| -> Vec<Value> {
        let lines = lines.iter().filter(|line| word(line).ends_with("_chunk"));
        lines.cloned().collect()
    };
    assert_eq!(of(&replayed), of(&live), "the replay is what was live");

    let third = bench.second(&json!({}));
    bench.resume(third, &Value::Null);
    bench.expect_words(third, ["state_update running", "result \"resume\""]);
    bench.resume(third, &json!({"type":"cursor"}));
    assert_eq!(bench.answer(third, "resume")["error"]["code"], -32602);
    bench.ask(third, 1, "session/load", &json!({"sessionId":"s","cwd":"/w","mcpServers":[]}));
    assert_eq!(bench.answer(third, 1)["error"]["code"], -32601);
    // A session without a line has a replay, too.
    bench.session(third, "empty");
    let params = json!({"sessionId":"empty","cwd":"/w","replayFrom":{"type":"start"}});
    bench.ask(third, 2, "session/resume", &params);
    bench.expect_words(third, ["replay_complete", "state_update idle", "result 2"]);
}

#[test]
fn clients_of_both_versions_share_a_session() {
    let (mut bench, second) = begun();
    let first = bench.joined("s");
    let prompt = bench.start_turn(first, 1, "s", "go");
    bench.chunk("s", "well");
    bench.end_turn(&prompt);
    bench.expect(first, ["agent_message_chunk", "result 1"]);
    let told = [
        "state_update running",
        "user_message_chunk acpd-2",
        "agent_message_chunk acpd-3",
        "state_update idle end_turn",
    ];
    bench.expect_words(second, told);
    // The prompt of one is the other's to wait for, each in its own way.
    bench.keyed_prompt(second, 2, "k", "once");
    let prompt = bench.heard_one("session/prompt");
    bench.prompt_with(first, 2, "once", &json!({"idempotencyKey":"k"}));
    bench.keyed_prompt(second, 3, "k", "once");
    bench.expect(first, ["user_message_chunk"]);
    let answers = ["state_update running", "user_message_chunk acpd-6", "result 2", "result 3"];
    let answers = bench.expect_words(second, answers);
    assert_eq!(answers[2]["result"], answers[3]["result"]);
    bench.end_turn(&prompt);
    assert_eq!(bench.answer(first, 2)["result"]["stopReason"], "end_turn");
    bench.keyed_prompt(second, 4, "k", "once");
    assert_eq!(bench.answer(second, 4)["result"], answers[2]["result"], "the turn is over");
    assert_eq!(bench.heard(), Vec::<Value>::new(), "it ran once");
}

#[test]
fn prompts_that_wait_are_refused_when_they_are_taken_back() {
    let (mut bench, client) = begun();
    bench.start_turn(client, 1, "s", "go");
    bench.prompt(client, &json!(2), "s", "next");
    bench.prompt(client, &json!(3), "s", "last");
    bench.got(client);
    bench.cancel_request(client, 2);
    assert_eq!(bench.answer(client, 2)["error"]["code"], -32800);
    bench.cancel(client, "s");
    assert_eq!(bench.answer(client, 3)["error"]["code"], -32800);
    bench.heard_one("session/cancel");
    bench.prompt(client, &json!(4), "s", "more");
    bench.keyed_prompt(client, 5, "k", "ours");
    let other = bench.joined("s");
    bench.prompt_with(other, 1, "ours", &json!({"idempotencyKey":"k"}));
    bench.got(client);
    bench.ask(client, 6, "session/close", &json!({"sessionId":"s"}));
    // The other client has joined one of them, and keeps the turn.
    bench.expect_words(client, ["error 5", "error 4", "result 6"]);
    bench.join(client, "s");
    bench.leave(other);
    bench.prompt(client, &json!(7), "s", "last");
    bench.got(client);
    bench.ask(client, 8, "session/close", &json!({"sessionId":"s"}));
    bench.expect_words(client, ["error 7", "state_update idle cancelled", "result 8"]);
    bench.ask(client, 9, "session/close", &json!({"sessionId":"unknown"}));
    bench.expect_words(client, ["result 9"]);
}

#[test]
fn the_mode_is_an_option() {
    let mut bench = Bench::new();
    let client = bench.second(&json!({}));
    let params = json!({"cwd":"/w","mcpServers":[{"type":"stdio","name":"m","command":"/m"}]});
    bench.ask(client, 1, "session/new", &params);
    let new = bench.heard_one("session/new");
    let server = json!({"name":"m","command":"/m","args":[],"env":[]});
    assert_eq!(new["params"]["mcpServers"], json!([server]));
    let values = json!({"sessionId":"s","modes":mode_state(),"configOptions":[option()]});
    bench.agent_answers(&new, &values);
    let values = |line: &Value| {
        let of = [&line["result"], &line["params"]["update"]];
        let list = of.iter().find_map(|of| of["configOptions"].as_array()).expect("options");
        let mut values: Vec<_> = list
            .iter()
            .map(|option| format!("{}={}", option["configId"], option["currentValue"]))
            .collect();
        values.sort_unstable();
        values.join(" ").replace('"', "")
    };
    assert_eq!(values(&bench.answer(client, 1)), "mode=ask model=a");

    let first = bench.joined("s");
    let set =
        |id: &str, value: &str| json!({"sessionId":"s","configId":id,"type":"id","value":value});
    bench.ask(client, 2, "session/set_config_option", &set("mode", "code"));
    let asked = bench.heard_one("session/set_mode");
    assert_eq!(asked["params"]["modeId"], "code");
    bench.agent_answers(&asked, &json!({}));
    let told = bench.expect_words(client, ["config_option_update", "result 2"]);
    assert_eq!([values(&told[0]), values(&told[1])], ["mode=code model=a"; 2]);
    bench.expect(first, ["current_mode_update"]);

    bench.ask(client, 3, "session/set_config_option", &set("model", "b"));
    let asked = bench.heard_one("session/set_config_option");
    assert_eq!(asked["params"]["type"], Value::Null);
    let mut changed = option();
    changed["currentValue"] = "b".into();
    bench.agent_answers(&asked, &json!({"configOptions":[changed]}));
    let told = bench.expect_words(client, ["config_option_update", "result 3"]);
    assert_eq!([values(&told[0]), values(&told[1])], ["mode=code model=b"; 2]);
    bench.set_mode(first, "s", "ask");
    let told = bench.expect_words(client, ["config_option_update"]);
    assert_eq!(values(&told[0]), "mode=ask model=b");
    let set = json!({"sessionId":"s","configId":"model","value":"a"});
    bench.ask(client, 4, "session/set_config_option", &set);
    assert_eq!(bench.answer(client, 4)["error"]["code"], -32602, "it needs a `type`");
}

#[test]
fn a_client_that_comes_back_gets_what_it_missed_and_the_state() {
    let (mut bench, client) = with_token();
    bench.start_turn(client, 1, "s", "go");
    let say = |bench: &mut Bench, id: &str| {
        let content = json!({"type":"text","text":"well"});
        let update =
            json!({"sessionUpdate":"agent_message_chunk","messageId":id,"content":content});
        bench.send_update("s", &update);
    };
    say(&mut bench, "m");
    bench.got(client);
    bench.leave(client);
    say(&mut bench, "m");
    bench.reboot();
    let client = bench.second_back(3, &json!([]), &json!([]));
    let back = [
        "result \"init\"",
        "agent_message_chunk acpd-3",
        "config_option_update",
        "state_update running",
        "_acpd/caught_up",
    ];
    bench.expect_words(client, back);
    // The message continues.
    say(&mut bench, "m");
    say(&mut bench, "n");
    bench.expect_words(client, ["agent_message_chunk acpd-3", "agent_message_chunk acpd-6"]);
}

#[test]
fn a_prompt_that_waits_over_a_restart_is_answered_in_its_version() {
    let (mut bench, client) = with_token();
    let prompt = bench.start_turn(client, 1, "s", "go");
    bench.prompt(client, &json!(2), "s", "next");
    bench.leave(client);
    bench.reboot();
    // The client is away when its prompt begins.
    bench.end_turn(&prompt);
    bench.heard_one("session/prompt");
    let client = bench.second_back(3, &json!([2]), &json!([]));
    assert_eq!(bench.answer(client, 2)["result"]["messageId"], "acpd-5");
}

#[test]
fn a_change_of_state_is_told_to_a_client_that_was_behind_or_away() {
    let (mut bench, client) = with_token();
    let other = bench.joined("s");
    bench.start_turn(client, 1, "s", "go");
    bench.got(client);
    bench.feed(Input::Client(client, ClientEvent::Lagged));
    asks(&mut bench, 7, &run("make"));
    bench.feed(Input::Client(client, ClientEvent::Drained));
    let told =
        ["session/request_permission", "config_option_update", "state_update requires_action"];
    let question = bench.expect_words(client, told)[0]["id"].clone();

    bench.leave(client);
    let asked = bench.got(other).pop().expect("a question");
    bench.select(other, &asked, "y");
    let head = bench.journal_words().len() as u64;
    let client = bench.second_back(head, &json!([]), &json!([question]));
    let told = [
        "result \"init\"",
        "$/cancel_request",
        "config_option_update",
        "state_update running",
        "_acpd/caught_up",
    ];
    bench.expect_words(client, told);
}

#[test]
fn the_state_of_a_resume_comes_before_later_lines() {
    let (mut bench, client) = begun();
    let prompt = bench.start_turn(client, 1, "s", "go");
    bench.got(client);
    bench.feed(Input::Client(client, ClientEvent::Lagged));
    bench.resume(client, &Value::Null);
    bench.end_turn(&prompt);
    bench.expect_words(client, []);
    bench.feed(Input::Client(client, ClientEvent::Drained));
    let told = [
        "state_update running",
        "result \"resume\"",
        "state_update idle end_turn",
        "config_option_update",
        "state_update idle",
    ];
    bench.expect_words(client, told);
}

#[test]
fn a_prompt_in_the_history_keeps_its_key_when_a_login_is_missing() {
    for restarts in [false, true] {
        let mut bench = Bench::with_shims();
        let first = bench.client(&json!({}));
        bench.session(first, "s");
        let mut second = bench.second(&json!({}));
        if restarts {
            bench.keyed_prompt(second, 1, "k", "once");
        } else {
            bench.prompt_with(first, 1, "once", &json!({"idempotencyKey":"k"}));
            bench.keyed_prompt(second, 1, "k", "once");
        }
        let prompt = bench.heard_one("session/prompt");
        let id = bench.answer(second, 1)["result"].clone();
        assert_eq!(id, json!({"messageId":"acpd-2"}));
        if restarts {
            bench.reboot();
            second = bench.second(&json!({}));
        }
        bench.agent_refuses(&prompt, -32000);
        bench.got(second);
        bench.keyed_prompt(second, 2, "k", "once");
        assert_eq!(bench.answer(second, 2)["result"], id);
        assert_eq!(bench.heard(), Vec::<Value>::new(), "it ran once");
    }
}

#[test]
fn lines_from_before_there_were_entities_are_replayed() {
    let (mut bench, client) = begun();
    let prompt = bench.start_turn(client, 1, "s", "go");
    for text in ["a", "b"] {
        bench.chunk("s", text);
    }
    bench.update_call("t", &json!({"title":"make"}));
    bench.end_turn(&prompt);
    for row in bench.journal.values_mut().flatten() {
        row.entity = None;
    }
    let replay = [
        "user_message_chunk acpd-2",
        "agent_message_chunk acpd-4",
        "tool_call_update t",
        "replay_complete",
        "state_update idle",
        "result \"resume\"",
    ];
    assert_eq!(words(&bench.resumed(&json!({"type":"start"}))), replay);
}
