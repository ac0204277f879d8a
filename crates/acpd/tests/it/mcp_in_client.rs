//! MCP servers that live in an editor, through `acpctl acp`: the agent reaches the one that it means.

use acpd_test::harness::{Client, Running, TestEnv, until};
use serde_json::{Value, json};

use crate::echo;

fn home() -> TestEnv {
    crate::home([echo().flags("mcp-acp")])
}

/// An editor with a session that has a server of the name `tools`, under the same id in every editor.
fn editor(env: &TestEnv) -> (Running, Client, String) {
    let (bridge, mut editor) = env.bridge(&["echo"]);
    let known = editor.ok("initialize", json!({"protocolVersion": 1}));
    assert_eq!(known["agentCapabilities"]["mcpCapabilities"]["acp"], true);
    let made = editor.ok("session/new", json!({"cwd": env.work("main"), "mcpServers": servers()}));
    let session = made["sessionId"].as_str().unwrap().to_owned();
    (bridge, editor, session)
}

fn servers() -> Value {
    json!([{"type": "acp", "name": "tools", "serverId": "tools-1"}])
}

const CALL: &str = "[mcp tools tools/list] say #one";

#[test]
fn the_agent_reaches_the_editor_whose_session_it_is_and_hears_its_news() {
    let env = home();
    let mut editors = [editor(&env), editor(&env)];
    let prompts: Vec<u64> =
        editors.iter_mut().map(|(_, editor, session)| editor.prompt(session, CALL)).collect();
    for (n, (_, editor, session)) in editors.iter_mut().enumerate() {
        let call = editor.next_of("mcp/message");
        let expected =
            json!({"serverId": "tools-1", "requestId": "tools-0", "method": "tools/list"});
        assert_eq!(call["params"], expected);
        let news = json!({"serverId": "tools-1", "requestId": "tools-0", "method": "news", "params": {"of": n}});
        editor.notify("mcp/message", news);
        editor.respond(&call, json!({"result": {"of": n}}));
        assert_eq!(editor.answer(prompts[n]).unwrap()["stopReason"], "end_turn");
        let said = editor.said(session);
        assert!(said.contains(&format!(r#"mcp: {{"result":{{"of":{n}}}}}"#)), "{said}");
    }
    let news = env.received("echo", "mcp/message");
    let of: Vec<_> = news.iter().map(|news| news["params"]["params"]["of"].clone()).collect();
    assert_eq!(of, [0, 1]);
    let declared = env.received("echo", "session/new");
    for (news, declared) in news.iter().zip(declared) {
        assert_eq!(news["params"]["serverId"], declared["params"]["mcpServers"][0]["serverId"]);
    }

    // One of them goes; another takes its place.
    let [(bridge, first, session), (_other, mut second, _)] = editors;
    drop(first);
    bridge.finish().success();
    let mut watcher = env.client("echo");
    watcher.attach(&session, None);
    watcher.say(&session, CALL).unwrap();
    let said = watcher.said(&session);
    assert!(said.contains("the client that has the MCP server `tools` is gone"), "{said}");
    let params = json!({"sessionId": session, "cwd": env.work("main"), "mcpServers": servers()});
    second.ok("session/load", params);
    let prompt = watcher.prompt(&session, CALL);
    let call = second.next_of("mcp/message");
    second.respond(&call, json!({"error": {"code": -1, "message": "no"}}));
    watcher.answer(prompt).unwrap();
    let said = watcher.said(&session);
    assert!(said.contains(r#"mcp: {"error":{"code":-1,"message":"no"}}"#), "{said}");
}

#[test]
fn a_call_outlives_the_daemon() {
    let env = home();
    let (_bridge, mut editor, session) = editor(&env);
    let prompt = editor.prompt(&session, CALL);
    let call = editor.next_of("mcp/message");
    env.kill_daemon();
    editor.respond(&call, json!({"result": 7}));
    assert_eq!(editor.answer(prompt).unwrap()["stopReason"], "end_turn");
    assert!(editor.said(&session).contains(r#"mcp: {"result":7}"#), "{}", editor.said(&session));
    let calls = editor.seen().iter().filter(|message| message["method"] == "mcp/message");
    assert_eq!(calls.count(), 1);
}

#[test]
fn the_next_process_of_the_agent_reaches_the_same_server() {
    let env = home();
    let (_bridge, mut editor, session) = editor(&env);
    editor.say(&session, "say #one").unwrap();
    let old = env.agent_pid("echo").unwrap();
    editor.prompt(&session, "[crash]");
    until("the next agent to be ready", || {
        let agent = env.agent("echo");
        (agent["state"] == "ready" && agent["pid"] != old).then_some(())
    });
    let prompt = editor.prompt(&session, CALL);
    let call = editor.next_of("mcp/message");
    assert_eq!(call["params"]["serverId"], "tools-1");
    editor.respond(&call, json!({"result": 8}));
    editor.answer(prompt).unwrap();
    assert!(editor.said(&session).contains(r#"mcp: {"result":8}"#), "{}", editor.said(&session));
}
