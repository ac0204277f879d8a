//! Clients that run under an agent: they work with agents, and decide nothing for people.

use acpd_api::method::METHODS;
use acpd_api::under_agent::{ACP, UnderAgent};
use acpd_core::ids::ClientId;
use acpd_core::{ClientEvent, ClientOrigin, Input};
use serde_json::{Value, json};

use crate::bench::{Bench, words};

const TOOL: ClientId = ClientId(77);

/// A tool of an agent connects, and can show everything.
fn tool(bench: &mut Bench) -> ClientId {
    bench.feed(Input::Client(TOOL, ClientEvent::Opened(ClientOrigin::Agent(None))));
    let capabilities = json!({"elicitation":{"form":{},"url":{}}});
    let params = json!({"protocolVersion":1,"clientCapabilities":capabilities,
        "_meta":{"_acpd":{"notices":true}}});
    bench.say(TOOL, &json!({"id":"init","method":"initialize","params":params}));
    bench.got(TOOL);
    TOOL
}

/// Params that fit every method well enough to be asked about the session `s`.
fn params() -> Value {
    json!({"sessionId":"s","session":"s","ref":{"session":"s"},"agent":"gem","cwd":"/w","name":"n",
        "id":"1-1","answer":{"kind":"allow"},"words":["x"],"mcpServers":[],"modeId":"m",
        "prompt":[{"type":"text","text":"x"}],"content":[{"type":"text","text":"x"}],"mode":"steer","toolCall":{"toolCallId":"t"},"server":"x","method":"tools/list"})
}

fn reason(answer: &Value) -> &str {
    answer["error"]["data"]["_acpd"]["reason"].as_str().unwrap_or_default()
}

#[test]
fn m2_the_list_is_what_the_daemon_serves_and_refuses() {
    for (method, side, _) in METHODS.iter().chain(ACP) {
        let is_call = !method.starts_with("$/")
            && !["_acpd/client/answered", "_acpd/client/leave", "mcp/message"].contains(method);
        if !is_call || *method == "initialize" || *method == "session/cancel" {
            continue;
        }
        let ask = |under_agent: bool| {
            let (mut bench, a) = Bench::begun();
            let client = if under_agent { tool(&mut bench) } else { bench.plain() };
            // A turn of another sender.
            bench.prompt(a, &json!(1), "s", "go");
            bench.heard();
            // The agent would report the missing params.
            bench.lenient = true;
            bench.say(client, &json!({"id":7,"method":method,"params":params()}));
            let got = bench.got(client);
            let answer = got.iter().find(|line| line["id"] == 7).cloned();
            (answer.unwrap_or_default(), bench.heard(), bench)
        };
        let (answer, ..) = ask(false);
        let is_for_some_agents = ["session/fork", "_session/steering", "session/inject"];
        let is_served = answer["error"]["code"] != -32601 || is_for_some_agents.contains(method);
        assert!(is_served && reason(&answer) != "under_agent", "{method}: {answer}");
        let (answer, heard, mut bench) = ask(true);
        let is_refused = reason(&answer) == "under_agent";
        assert_eq!(is_refused, *side != UnderAgent::Allowed, "{method}: {answer}");
        if is_refused {
            assert_eq!(heard, Vec::<Value>::new(), "{method}");
            assert_eq!(answer["error"]["code"], -32602);
            assert!(answer["error"]["data"]["_acpd"]["hint"].is_string());
            assert_eq!(bench.state("s"), "live", "{method} changed nothing");
        }
    }
}

#[test]
fn m2_a_session_stays_where_its_person_has_it() {
    let (mut bench, _) = Bench::used();
    let tool = tool(&mut bench);
    let params = json!({"ref":{"session":"s"},"cwd":"/"});
    bench.say(tool, &json!({"id":1,"method":"_acpd/session/move","params":params}));
    let told = bench.got(tool).pop().expect("answered");
    assert_eq!(reason(&told), "under_agent");
    let message = told["error"]["message"].as_str().expect("a text");
    assert_eq!(message, "a process that runs under an agent may not move a session");
    assert_eq!(bench.snapshot.sessions.values().next().expect("one").row.cwd, "/w");
}

#[test]
fn m1_an_answer_beforehand_is_not_given_from_under_an_agent() {
    let prompt = json!([{"type":"text","text":"go"}]);
    for own in ["\"allow\"", "\"reject\"", "\"x\"", "true"] {
        let meta = format!(r#""_meta":{{"_acpd":{{"permissions":{own}}}}}"#);
        let escaped = meta.replace("permissions", r"\u0070ermissions");
        let none = r#""_meta":{"_acpd":{}}"#;
        // Of a member that comes twice, the last counts.
        for (said, is_refused) in [
            (meta.clone(), true),
            (escaped, true),
            (format!("{none},{meta}"), true),
            (format!("{meta},{none}"), false),
        ] {
            let (mut bench, _) = Bench::begun();
            let tool = tool(&mut bench);
            bench.say_raw(
                tool,
                &format!(
                    r#"{{"id":1,"method":"session/prompt","params":{{{said},"sessionId":"s","prompt":{prompt}}}}}"#
                ),
            );
            let got = bench.got(tool);
            let refused = got.iter().any(|line| reason(line) == "under_agent");
            let reached: Vec<Value> = bench.heard();
            assert_eq!((refused, reached.is_empty()), (is_refused, is_refused), "{said}");
        }
    }
}

#[test]
fn m1_a_tool_prompts_other_sessions_and_its_questions_are_for_people() {
    let mut bench = Bench::new();
    let tool = tool(&mut bench);
    bench.session(tool, "s");
    bench.prompt(tool, &json!(1), "s", "go");
    let request = bench.heard_one("session/prompt");
    let option = json!({"optionId":"y","name":"Yes","kind":"allow_once"});
    let params = json!({"sessionId":"s","toolCall":{"toolCallId":"t"},"options":[option]});
    bench.agent(&json!({"id":"q","method":"session/request_permission","params":params}));
    let form = json!({"sessionId":"s","mode":"form","message":"?","requestedSchema":
        {"type":"object","properties":{"k":{"type":"string"}}}});
    bench.agent(&json!({"id":"f","method":"elicitation/create","params":form}));
    let got = bench.got(tool);
    assert!(got.iter().all(|line| line.get("id").is_none()), "it is asked nothing: {got:?}");
    assert!(words(&got).contains(&"_acpd/session_state".to_owned()), "it is told that it waits");
    // An answer to what it was not asked is none.
    let open: Vec<u64> = bench.snapshot.interactions.keys().map(|id| id.0).collect();
    for id in open {
        let outcome = json!({"outcome":"selected","optionId":"y"});
        bench.say(tool, &json!({"id":id,"result":{"outcome":outcome}}));
    }
    assert_eq!(bench.heard(), Vec::<Value>::new());
    let person = bench.plain();
    bench.say(person, &json!({"id":1,"method":"session/resume","params":{"sessionId":"s"}}));
    let asked = bench.got(person).pop().expect("asked");
    let outcome = json!({"outcome":"selected","optionId":"y"});
    bench.say(person, &json!({"id":asked["id"],"result":{"outcome":outcome}}));
    assert_eq!(bench.heard()[0]["id"], "q");
    bench.agent_answers(&request, &json!({"stopReason":"end_turn"}));
    let got = bench.got(tool);
    assert!(words(&got).contains(&"result 1".to_owned()), "{:?}", words(&got));
}

#[test]
fn m2_a_tool_ends_its_own_turns_and_no_others() {
    let cancel = json!({"method":"session/cancel","params":{"sessionId":"s"}});
    let (mut bench, _) = Bench::begun();
    let tool = tool(&mut bench);
    bench.prompt(tool, &json!(1), "s", "mine");
    bench.heard();
    bench.say(tool, &cancel);
    let heard = bench.heard();
    assert_eq!(heard[0]["method"], "session/cancel", "its own");
    // Another one waits behind it.
    let (mut bench, a) = Bench::begun();
    let tool = self::tool(&mut bench);
    bench.prompt(tool, &json!(1), "s", "mine");
    let request = bench.heard_one("session/prompt");
    bench.prompt(a, &json!(2), "s", "yours");
    bench.say(tool, &cancel);
    assert_eq!(bench.heard(), Vec::<Value>::new(), "it would take the other one along");
    // The tool's own request may be cancelled.
    bench.say(tool, &json!({"method":"$/cancel_request","params":{"requestId":1}}));
    assert_eq!(bench.heard()[0]["method"], "session/cancel");
    bench.agent_answers(&request, &json!({"stopReason":"cancelled"}));
    let yours = bench.heard_one("session/prompt");
    // The sender has gone: the turn is still not the tool's.
    bench.feed(Input::Client(a, ClientEvent::Closed));
    bench.say(tool, &cancel);
    for method in ["session/close", "_acpd/session/close", "_acpd/session/cancel"] {
        bench.say(tool, &json!({"id":3,"method":method,"params":{"sessionId":"s","session":"s"}}));
        let told = bench.got(tool).pop().expect("answered");
        assert_eq!(reason(&told), "under_agent", "{method}");
    }
    assert_eq!(bench.heard(), Vec::<Value>::new());
    bench.agent_answers(&yours, &json!({"stopReason":"end_turn"}));
    bench.say(tool, &json!({"id":4,"method":"session/close","params":{"sessionId":"s"}}));
    let got = bench.got(tool);
    assert!(words(&got).contains(&"result 4".to_owned()), "{:?}", words(&got));
    assert_eq!(bench.state("s"), "closed");
}

#[test]
fn m2_a_tool_does_not_take_the_place_of_a_client_that_has_an_mcp_server() {
    let mut bench = Bench::new();
    bench.capabilities = Some(json!({"loadSession":true,"mcpCapabilities":{"acp":true},
        "sessionCapabilities":{"resume":{}}}));
    let editor = bench.plain();
    let server = |id: &str| json!([{"type":"acp","name":"tools","serverId":id}]);
    let params = json!({"cwd":"/w","mcpServers":server("mine")});
    bench.say(editor, &json!({"id":1,"method":"session/new","params":params}));
    let request = bench.heard_one("session/new");
    let name = request["params"]["mcpServers"][0]["serverId"].clone();
    bench.agent_answers(&request, &json!({"sessionId":"s"}));
    let tool = tool(&mut bench);
    bench.feed(Input::Client(editor, ClientEvent::Closed));
    for method in ["session/load", "session/resume"] {
        let params = json!({"sessionId":"s","cwd":"/w","mcpServers":server("evil")});
        bench.say(tool, &json!({"id":2,"method":method,"params":params}));
        let got = bench.got(tool);
        let told = got.iter().find(|line| line["id"] == 2).expect("answered");
        let own = &told["result"]["_meta"]["_acpd"];
        assert_eq!(own["ignoredMcpServers"], json!(["tools"]), "{told}");
    }
    let call = json!({"serverId":name,"requestId":"r","method":"tools/list","params":{}});
    bench.agent(&json!({"id":7,"method":"mcp/message","params":call}));
    assert_eq!(bench.heard()[0]["error"]["code"], -32002, "nobody has it");
    assert!(bench.got(tool).iter().all(|line| line["method"] != "mcp/message"));
    // A person's editor may.
    let other = bench.plain();
    let params = json!({"sessionId":"s","cwd":"/w","mcpServers":server("new")});
    bench.say(other, &json!({"id":2,"method":"session/resume","params":params}));
    bench.got(other);
    bench.agent(&json!({"id":8,"method":"mcp/message","params":call}));
    assert_eq!(bench.got(other)[0]["params"]["serverId"], "new");
}

#[test]
fn a_client_under_an_agent_cannot_choose_what_agents_inherit() {
    let restart =
        json!({"id":7,"method":"_acpd/daemon/restart","params":{"environment":{"KEY":"v"}}});
    let brought = |client: fn(&mut Bench) -> ClientId| {
        let mut bench = Bench::new();
        let client = client(&mut bench);
        bench.say(client, &restart);
        let brought = bench.brought.expect("it restarts");
        brought.names().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(brought(Bench::plain), ["KEY"]);
    assert_eq!(brought(tool), [""; 0]);
}
