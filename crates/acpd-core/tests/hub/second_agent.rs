//! Agents of version 2 of the protocol, with clients of both versions.

use acp_wire::Versions;
use acpd_core::ids::ClientId;
use serde_json::{Value, json};

use crate::bench::{Bench, words};
use crate::questions::pending;
use crate::steps::{reason, selected};
use crate::survival::{TOKEN, back, come_back, stop_reason, token};

impl Bench {
    /// Processes speak version 2.
    pub(crate) fn with_second_agent() -> Bench {
        let mut bench = Bench::with(|profile| profile.protocol = Versions::Auto);
        bench.second_agent = true;
        bench
    }

    pub(crate) fn tell(&mut self, kind: &str, members: &Value) {
        let mut update = json!({"sessionUpdate":kind});
        for (name, value) in members.as_object().into_iter().flatten() {
            update[name] = value.clone();
        }
        self.send_update("s", &update);
    }

    pub(crate) fn says_running(&mut self) {
        self.tell("state_update", &json!({"state":"running"}));
    }

    pub(crate) fn idle(&mut self, stop: &str) {
        self.tell("state_update", &json!({"state":"idle","stopReason":stop}));
    }

    /// The prompt is in the agent's history, and its turn begins.
    pub(crate) fn insert(&mut self, prompt: &Value) {
        let content = &prompt["params"]["prompt"];
        self.tell("user_message", &json!({"messageId":"m","content":content}));
        self.agent_answers(prompt, &json!({"messageId":"m"}));
        self.says_running();
    }

    /// Starts a turn whose prompt is in the agent's history.
    pub(crate) fn inserted_turn(&mut self, client: ClientId, id: u64) {
        let prompt = self.start_turn(client, id, "s", "go");
        self.insert(&prompt);
    }

    /// The session does this next to its turns.
    pub(crate) fn in_background(&mut self, items: &Value) {
        self.tell("state_update", &json!({"state":"idle","background":items}));
    }
}

fn begun() -> (Bench, ClientId) {
    Bench::with_second_agent().with_begun()
}

fn in_turn() -> (Bench, ClientId) {
    let (mut bench, client) = begun();
    bench.inserted_turn(client, 1);
    (bench, client)
}

/// The `initialize` that a process gets, of an agent with this choice.
fn asking(protocol: Versions) -> (Bench, ClientId, Value) {
    let mut bench = Bench::with(|profile| profile.protocol = protocol);
    bench.by_hand();
    let client = bench.connect(&json!({}));
    let asked = bench.process_asks();
    (bench, client, asked)
}

#[test]
fn the_members_of_the_answer_decide_the_version() {
    let first = json!({"protocolVersion":1,"agentCapabilities":{}});
    let echo = json!({"protocolVersion":2,"agentCapabilities":{}});
    let second = json!({"protocolVersion":2,"info":{"name":"a","version":"1"},
        "capabilities":{"session":{}},"authMethods":[]});
    for (answer, version) in [(&first, "1"), (&echo, "1"), (&second, "2")] {
        let (mut bench, client, asked) = asking(Versions::Auto);
        let params = &asked["params"];
        assert_eq!(params["protocolVersion"], 2);
        assert_eq!(params["info"], params["clientInfo"]);
        bench.agent_answers(&asked, answer);
        let result = &bench.answer(client, "init")["result"];
        assert_eq!(result["protocolVersion"], 1, "for a client of version 1");
        assert_eq!(bench.show_agent()["protocol"], version);
    }
    let (mut bench, _, asked) = asking(Versions::One);
    assert_eq!(asked["params"]["protocolVersion"], 1);
    assert_eq!(asked["params"].get("info"), None);
    bench.agent_answers(&asked, &second);
    assert_eq!(bench.agent_state(), "stopping", "nobody asked for version 2");
}

#[test]
fn who_refuses_version_2_is_asked_for_version_1_once() {
    for code in [-32602, -32022] {
        let (mut bench, client, asked) = asking(Versions::Auto);
        bench.agent_refuses(&asked, code);
        let asked = bench.heard_one("initialize");
        assert_eq!(asked["params"]["protocolVersion"], 1);
        let answer = json!({"protocolVersion":1,"agentCapabilities":{}});
        bench.agent_answers(&asked, &answer);
        assert_eq!(bench.answer(client, "init")["result"]["protocolVersion"], 1);

        let (mut bench, _, asked) = asking(Versions::Auto);
        bench.agent_refuses(&asked, code);
        bench.refuses("initialize", code);
        assert_eq!(bench.agent_state(), "stopping");
        let (mut bench, _, asked) = asking(Versions::Two);
        bench.agent_refuses(&asked, code);
        assert_eq!(bench.heard(), Vec::<Value>::new());
        assert_eq!(bench.agent_state(), "stopping");
    }
    let (mut bench, client, asked) = asking(Versions::Two);
    bench.agent_answers(&asked, &json!({"protocolVersion":1,"agentCapabilities":{}}));
    let error = bench.answer(client, "init")["error"].clone();
    let text = error["message"].as_str().expect("a text");
    assert!(text.contains("does not speak version 2"), "{error}");
}

#[test]
fn the_answer_to_a_prompt_is_not_its_end() {
    let (mut bench, client) = in_turn();
    bench.chunk("s", "hm");
    bench.expect(client, ["agent_message_chunk"]);
    assert_eq!(bench.show("s")["turn"]["state"], "working");
    bench.idle("max_tokens");
    assert_eq!(stop_reason(&bench.got(client), 1), "max_tokens");
    bench.idle("end_turn");
    assert_eq!(bench.got(client), Vec::<Value>::new(), "it has ended");
    let journal = [
        "_acpd/turn_started",
        "user_message_chunk",
        "user_message",
        "state_update",
        "agent_message_chunk",
        "state_update",
        "_acpd/turn_ended",
        "state_update",
    ];
    assert_eq!(bench.journal_words(), journal, "once for each version");

    bench.inserted_turn(client, 2);
    let error = json!({"code":-32603,"message":"too bad"});
    bench.tell("state_update", &json!({"state":"idle","stopReason":"error","error":error}));
    assert_eq!(bench.answer(client, 2)["error"]["message"], "too bad");
    assert_eq!(bench.notes, Vec::<String>::new());
}

#[test]
fn the_next_daemon_knows_what_an_answer_means() {
    for is_inserted in [true, false] {
        let mut bench = Bench::with_second_agent();
        bench.shims = true;
        let client = bench.client(&token());
        bench.session(client, "s");
        let prompt = bench.start_turn(client, 1, "s", "go");
        if is_inserted {
            bench.insert(&prompt);
        }
        bench.reboot();
        if !is_inserted {
            bench.idle("end_turn");
            assert_eq!(bench.show("s")["turn"]["state"], "working", "the end of other work");
            bench.insert(&prompt);
        }
        bench.chunk("s", "hm");
        bench.idle("end_turn");
        let got = back(&mut bench, 0, &json!([1]));
        assert_eq!(stop_reason(&got, 1), "end_turn");
        assert!(!words(&got).contains(&"user_message".to_owned()), "{got:#?}");
    }
}

#[test]
fn a_question_is_asked_in_the_version_of_each_client() {
    let (mut bench, first) = begun();
    let second = bench.second(&json!({}));
    bench.join(second, "s");
    bench.inserted_turn(first, 1);
    let call = json!({"toolCallId":"t","title":"make","kind":"execute","status":"pending"});
    bench.tell("tool_call_update", &call);
    bench.got(first);
    bench.got(second);
    let subject = json!({"type":"tool_call","toolCall":call});
    let option = json!({"optionId":"yes","name":"Yes","kind":"allow_once"});
    let params = json!({"sessionId":"s","title":"Run it?","subject":subject,"options":[option]});
    bench.agent_asks(7, "session/request_permission", &params);
    let asked = bench.find(first, "session/request_permission");
    assert_eq!(asked["params"]["toolCall"]["title"], "make");
    assert_eq!(asked["params"]["toolCall"]["content"][0]["content"]["text"], "Run it?");
    let asked = bench.find(second, "session/request_permission");
    assert_eq!(asked["params"], params, "as it is");
    bench.select(second, &asked, "yes");
    let answer = bench.heard().remove(0);
    assert_eq!(answer["result"], selected(7, "yes")["result"]);
}

#[test]
fn options_are_modes_too_also_for_the_next_daemon() {
    let mut bench = Bench::with_second_agent();
    bench.shims = true;
    let client = bench.client(&json!({"client":{"token":TOKEN}}));
    let option = |current: &str| {
        let choices = json!([{"value":"ask","name":"Ask"},{"value":"code","name":"Code"}]);
        json!([{"configId":"how","name":"Mode","category":"mode","type":"select",
            "currentValue":current,"options":choices}])
    };
    bench.ask(
        client,
        1,
        "session/new",
        &json!({"cwd":"/w","mcpServers":[{"name":"x","command":"x","args":[],"env":[]}]}),
    );
    let new = bench.heard_one("session/new");
    assert_eq!(new["params"]["mcpServers"][0]["type"], "stdio");
    let commands = json!([{"type":"command","name":"fix","description":"Fix it"}]);
    let result =
        json!({"sessionId":"s","configOptions":option("ask"),"availableCommands":commands});
    bench.agent_answers(&new, &result);
    let got = bench.got(client);
    let opened = "_acpd/client/received, result 1, _acpd/caught_up, available_commands_update";
    assert_eq!(words(&got).join(", "), opened);
    assert_eq!(got[1]["result"]["modes"]["currentModeId"], "ask");
    assert_eq!(got[1]["result"]["configOptions"][0]["id"], "how");

    bench.reboot();
    let resume = json!({"sessions":{"s":0},"open":[],"asked":[]});
    let (client, _) = come_back(&mut bench, &resume);
    bench.ask(client, 2, "session/set_mode", &json!({"sessionId":"s","modeId":"code"}));
    let set = bench.heard_one("session/set_config_option");
    let wanted = json!({"sessionId":"s","configId":"how","type":"id","value":"code"});
    assert_eq!(set["params"], wanted);
    bench.got(client);
    bench.tell("config_option_update", &json!({"configOptions":option("code")}));
    bench.agent_answers(&set, &json!({"configOptions":option("code")}));
    bench.expect(client, ["config_option_update", "current_mode_update", "result 2"]);
}

#[test]
fn work_in_the_background_is_shown_kept_and_ended() {
    let (mut bench, _) = begun();
    let cancel = json!({"cancel":{}});
    let terminal = |id: &str, capabilities: &Value| json!({"terminalId":id,"command":format!("make {id}"),"capabilities":capabilities});
    bench.tell("terminal_update", &terminal("a", &cancel));
    bench.tell("terminal_update", &terminal("b", &cancel));
    bench.tell("terminal_update", &terminal("b", &Value::Null));
    let item = |id: &str| json!({"type":"terminal","terminalId":id});
    bench.in_background(&json!([item("a"), item("b"), {"type":"later"}]));
    let a = json!({"kind":"terminal","id":"a","title":"make a","canBeCancelled":true});
    let b = json!({"kind":"terminal","id":"b","title":"make b"});
    assert_eq!(bench.show("s")["background"], json!([a, b]));
    assert_eq!(bench.leases.last(), Some(&true), "it is at work");
    bench.tell("state_update", &json!({"state":"idle"}));
    assert_eq!(bench.show("s")["background"], json!([a, b]), "no list is not an empty one");

    bench.shims = true;
    bench.reboot();
    assert_eq!(bench.show("s")["background"], json!([a, b]));
    let cancel = json!({"session":"s","background":true});
    let tool = bench.open_under_agent();
    assert_eq!(reason(&bench.call(tool, "_acpd/session/cancel", &cancel)), "under_agent");
    let done = &bench.command("_acpd/session/cancel", &cancel)["result"];
    assert_eq!(done["background"], 1);
    let asked = bench.heard_one("terminal/cancel");
    assert_eq!(asked["params"], json!({"sessionId":"s","terminalId":"a"}));
    bench.agent_answers(&asked, &json!({}));
    bench.in_background(&json!([item("b")]));
    assert_eq!(bench.show("s")["background"][0]["id"], "b");
    bench.agent_dies();
    assert_eq!(bench.show("s").get("background"), None);
    let lines = bench.journal_lines();
    let text = "work in the background ended with the agent: make b";
    assert!(lines.iter().any(|line| line["params"]["text"] == text), "{lines:#?}");
    let refused = bench.command("_acpd/session/cancel", &cancel);
    assert_eq!(reason(&refused), "no_turn");
}

#[test]
fn a_call_may_go_on_when_its_turn_has_ended() {
    let (mut bench, client) = in_turn();
    bench.update_call("t", &json!({"title":"make","status":"in_progress"}));
    bench.idle("end_turn");
    bench.got(client);
    bench.update_call("t", &json!({"status":"completed"}));
    bench.expect(client, ["tool_call_update"]);
    bench.update_call("u", &json!({"title":"test"}));
    bench.got(client);
    bench.agent_dies();
    let got = bench.got(client);
    let update = json!({"sessionUpdate":"tool_call_update","toolCallId":"u","status":"failed"});
    assert!(got.iter().any(|line| line["params"]["update"] == update), "{got:#?}");
}

#[test]
fn a_call_that_never_ends_counts_while_it_says_something() {
    const MINUTE: u64 = 60_000;
    // The process is unused after half an hour, the session after ten minutes.
    for (timeout, pause) in [(0, 25), (10, 9)] {
        let mut bench = Bench::with(|profile| {
            profile.protocol = Versions::Auto;
            profile.session_idle_timeout = timeout * MINUTE;
        });
        bench.second_agent = true;
        let client = bench.noticed();
        bench.session(client, "s");
        bench.inserted_turn(client, 1);
        bench.update_call("t", &json!({"title":"make"}));
        bench.idle("end_turn");
        bench.leave(client);
        let output = json!({"type":"content","content":{"type":"text","text":"more"}});
        for _ in 0..10 {
            bench.pass(pause * MINUTE);
            let more = json!({"toolCallId":"t","content":output});
            bench.tell("tool_call_content_chunk", &more);
            assert_eq!((bench.state("s"), bench.stops.len()), ("live".to_owned(), 0));
        }
        bench.pass(2 * pause * MINUTE);
        assert_eq!(bench.state("s") == "parked", timeout > 0);
        assert_eq!(bench.stops.is_empty(), timeout > 0);
    }
}

#[test]
fn an_agent_that_works_without_a_prompt_is_not_stopped_for_idleness() {
    let (mut bench, client) = begun();
    bench.leave(client);
    let works = [
        json!({"state":"running"}),
        json!({"state":"requires_action"}),
        json!({"state":"idle","background":[{"type":"terminal","terminalId":"a"}]}),
    ];
    for state in works {
        bench.tell("state_update", &state);
        bench.pass(60 * 60_000);
        assert_eq!((bench.stops.len(), bench.leases.last()), (0, Some(&true)));
    }
    bench.in_background(&json!([]));
    bench.pass(60 * 60_000);
    assert_ne!(bench.stops, []);
}

#[test]
fn a_call_of_an_earlier_turn_hides_no_silence() {
    let (mut bench, client) = Bench::with_second_agent().with_noticed();
    bench.inserted_turn(client, 1);
    bench.update_call("t", &json!({"title":"make"}));
    bench.idle("end_turn");
    bench.inserted_turn(client, 2);
    bench.got(client);
    bench.pass(600_000);
    let got = bench.got(client);
    assert!(got.iter().any(|line| line.to_string().contains("stalled")), "{got:#?}");
}

/// What no agent should do: none of it ends a turn, or is fatal.
#[test]
fn a_turn_ends_whatever_the_agent_says() {
    let (mut bench, client) = begun();
    let prompt = bench.start_turn(client, 1, "s", "go");
    bench.idle("end_turn");
    bench.tell("replay_complete", &json!({}));
    bench.tell(
        "agent_message_chunk",
        &json!({"messageId":"?","content":{"type":"text","text":"a"}}),
    );
    bench.tell("tool_call_content_chunk", &json!({"toolCallId":"?","content":{"type":"later"}}));
    bench.tell("terminal_output_chunk", &json!({"terminalId":"?","data":"!"}));
    bench.insert(&prompt);
    bench
        .tell("user_message", &json!({"messageId":"other","content":[{"type":"text","text":"b"}]}));
    bench.agent_answers(&prompt, &json!({"messageId":"again"}));
    bench.tell("state_update", &json!({"state":"unknown"}));
    let item = json!({"type":"terminal","terminalId":"x"});
    let many = json!({"state":"unknown","background":vec![item; 100_000]});
    bench.tell("state_update", &many);
    bench.got(client);
    assert_eq!(bench.show("s")["turn"]["state"], "working");
    assert_eq!(bench.show("s")["background"].as_array().map(Vec::len), Some(256));
    bench.cancel(client, "s");
    bench.pass(60_000);
    assert!(!bench.stops.is_empty(), "it did not end the turn");
    bench.agent_dies();
    assert_eq!(stop_reason(&bench.got(client), 1), "cancelled");
}

#[test]
fn the_next_daemon_knows_that_a_given_up_prompt_is_inserted() {
    let (mut bench, client) = in_turn();
    bench.shims = true;
    bench.ask(client, 7, "_acpd/session/close", &json!({"session":"s"}));
    bench.got(client);
    bench.reboot();
    bench.idle("cancelled");
    bench.pass(60_000);
    assert_eq!(bench.stops, [], "it has ended the turn");
}

/// The agent asks for this permission, and the question is listed so.
fn listed(bench: &mut Bench, id: u64, subject: &Value) -> Value {
    let option = json!({"optionId":"yes","name":"Yes","kind":"allow_once"});
    let params = json!({"sessionId":"s","title":"Do it?","subject":subject,"options":[option]});
    bench.agent_asks(id, "session/request_permission", &params);
    pending(bench).pop().expect("a question")["question"].take()
}

#[test]
fn a_question_without_a_call_has_nothing_of_another_one() {
    let (mut bench, _) = in_turn();
    let first = listed(&mut bench, 7, &json!({"type":"command","command":"ls","cwd":"/w"}));
    assert_eq!(first["shown"]["commands"], json!(["ls"]), "{first:#}");
    let second = listed(&mut bench, 8, &json!({"type":"_pay","amount":5}));
    assert_eq!(second["shown"]["commands"], json!([]), "{second:#}");
    assert!(second.to_string().contains("amount"), "{second:#}");
}

#[test]
fn a_question_about_a_call_of_an_earlier_turn_is_not_understood() {
    let (mut bench, _) = in_turn();
    let input = json!({"command":"rm -r /"});
    bench.update_call("t", &json!({"title":"make","status":"in_progress","rawInput":input}));
    bench.idle("end_turn");
    let call = json!({"toolCallId":"t","title":"make","kind":"execute"});
    let asked = listed(&mut bench, 7, &json!({"type":"tool_call","toolCall":call}));
    let unclear = asked["shown"]["unclear"].as_array();
    assert!(unclear.is_some_and(|unclear| !unclear.is_empty()), "{asked:#}");
}
