//! Clients that run under an agent: they work with agents, and decide nothing for people.

use acpd_api::method::METHODS;
use acpd_api::under_agent::{ACP, UnderAgent};
use acpd_core::ids::ClientId;
use serde_json::{Value, json};

use crate::bench::{Bench, words};
use crate::steps::reason;

/// A tool of an agent connects, and can show everything.
fn tool(bench: &mut Bench) -> ClientId {
    let client = bench.open_under_agent();
    let capabilities = json!({"elicitation":{"form":{},"url":{}}});
    let params = json!({"protocolVersion":1,"clientCapabilities":capabilities,
        "_meta":{"_acpd":{"notices":true}}});
    bench.ask(client, "init", "initialize", &params);
    bench.got(client);
    client
}

/// Params that fit every method well enough to be asked about the session `s`.
fn params() -> Value {
    json!({"sessionId":"s","session":"s","ref":{"session":"s"},"agent":"gem","cwd":"/w","name":"n",
        "id":"1-1","answer":{"kind":"allow"},"words":["x"],"mcpServers":[],"modeId":"m",
        "prompt":[{"type":"text","text":"x"}],"content":[{"type":"text","text":"x"}],"mode":"steer","toolCall":{"toolCallId":"t"},"server":"x","method":"tools/list"})
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
            bench.start_turn(a, 1, "s", "go");
            // The agent would report the missing params.
            bench.lenient = true;
            bench.ask(client, 7, method, &params());
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
    bench.ask(tool, 1, "_acpd/session/move", &json!({"ref":{"session":"s"},"cwd":"/"}));
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
            let params = format!(r#"{{{said},"sessionId":"s","prompt":{prompt}}}"#);
            let line = format!(r#"{{"id":1,"method":"session/prompt","params":{params}}}"#);
            bench.say_raw(tool, &line);
            let refused = bench.got(tool).iter().any(|line| reason(line) == "under_agent");
            assert_eq!((refused, bench.heard().is_empty()), (is_refused, is_refused), "{said}");
        }
    }
}

#[test]
fn m1_a_tool_prompts_other_sessions_and_its_questions_are_for_people() {
    let mut bench = Bench::new();
    let tool = tool(&mut bench);
    bench.session(tool, "s");
    let request = bench.start_turn(tool, 1, "s", "go");
    bench.ask_permission("q", "s");
    let form = json!({"sessionId":"s","mode":"form","message":"?","requestedSchema":
        {"type":"object","properties":{"k":{"type":"string"}}}});
    bench.agent_asks("f", "elicitation/create", &form);
    let got = bench.got(tool);
    assert!(got.iter().all(|line| line.get("id").is_none()), "it is asked nothing: {got:?}");
    assert!(words(&got).contains(&"_acpd/session_state".to_owned()), "it is told that it waits");
    // An answer to what it was not asked is none.
    let open: Vec<u64> = bench.snapshot.interactions.keys().map(|id| id.0).collect();
    for id in open {
        bench.select(tool, &json!({"id":id}), "y");
    }
    assert_eq!(bench.heard(), Vec::<Value>::new());
    let person = bench.plain();
    bench.ask(person, 1, "session/resume", &json!({"sessionId":"s"}));
    let asked = bench.got(person).pop().expect("asked");
    bench.select(person, &asked, "y");
    assert_eq!(bench.heard()[0]["id"], "q");
    bench.end_turn(&request);
    bench.expect_some(tool, "result 1");
}

#[test]
fn m2_a_tool_ends_its_own_turns_and_no_others() {
    let (mut bench, _) = Bench::begun();
    let tool = tool(&mut bench);
    bench.start_turn(tool, 1, "s", "mine");
    bench.cancel(tool, "s");
    assert_eq!(bench.heard()[0]["method"], "session/cancel", "its own");
    // Another one waits behind it.
    let (mut bench, a) = Bench::begun();
    let tool = self::tool(&mut bench);
    let request = bench.start_turn(tool, 1, "s", "mine");
    bench.prompt(a, &json!(2), "s", "yours");
    bench.cancel(tool, "s");
    assert_eq!(bench.heard(), Vec::<Value>::new(), "it would take the other one along");
    // The tool's own request may be cancelled.
    bench.cancel_request(tool, 1);
    assert_eq!(bench.heard()[0]["method"], "session/cancel");
    bench.agent_answers(&request, &json!({"stopReason":"cancelled"}));
    let yours = bench.heard_one("session/prompt");
    // The sender has gone: the turn is still not the tool's.
    bench.leave(a);
    bench.cancel(tool, "s");
    for method in ["session/close", "_acpd/session/close", "_acpd/session/cancel"] {
        bench.ask(tool, 3, method, &json!({"sessionId":"s","session":"s"}));
        assert_eq!(reason(&bench.got(tool).pop().expect("answered")), "under_agent", "{method}");
    }
    assert_eq!(bench.heard(), Vec::<Value>::new());
    bench.end_turn(&yours);
    bench.ask(tool, 4, "session/close", &json!({"sessionId":"s"}));
    bench.expect_some(tool, "result 4");
    assert_eq!(bench.state("s"), "closed");
}

#[test]
fn m2_a_tool_does_not_take_the_place_of_a_client_that_has_an_mcp_server() {
    let mut bench = Bench::new();
    bench.capabilities = Some(json!({"loadSession":true,"mcpCapabilities":{"acp":true},
        "sessionCapabilities":{"resume":{}}}));
    let editor = bench.plain();
    let server = |id: &str| json!([{"type":"acp","name":"tools","serverId":id}]);
    bench.ask(editor, 1, "session/new", &json!({"cwd":"/w","mcpServers":server("mine")}));
    let request = bench.heard_one("session/new");
    let name = request["params"]["mcpServers"][0]["serverId"].clone();
    bench.agent_answers(&request, &json!({"sessionId":"s"}));
    let tool = tool(&mut bench);
    bench.leave(editor);
    for method in ["session/load", "session/resume"] {
        let params = json!({"sessionId":"s","cwd":"/w","mcpServers":server("evil")});
        bench.ask(tool, 2, method, &params);
        let own = &bench.answer(tool, 2)["result"]["_meta"]["_acpd"];
        assert_eq!(own["ignoredMcpServers"], json!(["tools"]));
    }
    let call = json!({"serverId":name,"requestId":"r","method":"tools/list","params":{}});
    bench.agent_asks(7, "mcp/message", &call);
    assert_eq!(bench.heard()[0]["error"]["code"], -32002, "nobody has it");
    assert!(bench.got(tool).iter().all(|line| line["method"] != "mcp/message"));
    // A person's editor may.
    let other = bench.plain();
    let params = json!({"sessionId":"s","cwd":"/w","mcpServers":server("new")});
    bench.ask(other, 2, "session/resume", &params);
    bench.got(other);
    bench.agent_asks(8, "mcp/message", &call);
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
