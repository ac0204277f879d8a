//! Clients of version 2 of the protocol, through `acpctl acp`, and agents of version 2.

use acpd_test::harness::{Agent, Client, Config, TestEnv, until};
use serde_json::{Value, json};

use crate::{echo, home, home_with};

fn hello(editor: &mut Client) -> Value {
    let info = json!({"name": "editor", "version": "1"});
    editor.ok("initialize", json!({"protocolVersion": 2, "info": info, "capabilities": {}}))
}

/// A home that serves version 2, too.
fn newest_with(agent: Agent) -> TestEnv {
    home_with(&Config::new([agent]).daemon("protocols", r#"["1", "2"]"#))
}

/// An agent that speaks version 2, in the order of messages of this one.
fn second(order: &str) -> Agent {
    echo().flags(&format!("v2={order} replay-complete")).set("protocol", "\"auto\"")
}

/// Returns the id.
fn keyed(editor: &mut Client, session: &str, key: &str, text: &str) -> u64 {
    let prompt = json!([{"type": "text", "text": text}]);
    let params = json!({"sessionId": session, "prompt": prompt, "idempotencyKey": key});
    editor.request("session/prompt", params)
}

/// Waits for the next end of a turn; returns its stop reason.
fn idle(editor: &mut Client) -> Value {
    let idle = editor.next("an idle state", |m| m["params"]["update"]["state"] == "idle");
    idle["params"]["update"]["stopReason"].clone()
}

/// Messages and calls in order of their first line: kind, id, and text or last status.
fn conversation(editor: &Client) -> Vec<(String, String, String)> {
    let mut all: Vec<(String, String, String)> = Vec::new();
    for update in editor.seen().iter().map(|line| &line["params"]["update"]) {
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        let id = ["messageId", "toolCallId"].iter().find_map(|name| update[name].as_str());
        let Some(id) = id else { continue };
        let at = all.iter().position(|(of, known, _)| of == kind && known == id);
        let at = at.unwrap_or_else(|| {
            all.push((kind.to_owned(), id.to_owned(), String::new()));
            all.len() - 1
        });
        let text = &mut all[at].2;
        match (update["content"]["text"].as_str(), update["status"].as_str()) {
            (Some(more), _) => text.push_str(more),
            (None, Some(status)) => status.clone_into(text),
            (None, None) => {}
        }
    }
    all
}

#[test]
fn conversation_continues_after_daemon_is_killed() {
    for agent in [echo(), second("claude"), second("codex")] {
        conversation_continues(&newest_with(agent));
    }
}

fn conversation_continues(env: &TestEnv) {
    let (bridge, mut editor) = env.bridge(&["echo"]);
    let known = hello(&mut editor);
    assert_eq!(
        (&known["protocolVersion"], &known["info"]["name"]),
        (&2.into(), &"acpd-demo".into())
    );
    assert!(known["capabilities"]["session"].is_object(), "{known}");
    let session = editor.new_session(&env.work("main"), Some("fix"));

    let first = keyed(&mut editor, &session, "k1", "say #one [tool Edit] [ask]");
    let question = editor.next_of("session/request_permission");
    assert_eq!(question["params"]["subject"]["toolCall"]["title"], "Write demo.txt");
    let first = editor.answer(first).expect("it is inserted while its turn waits");
    editor.permit(&question, "yes");
    assert_eq!(idle(&mut editor), "end_turn");

    let second = keyed(&mut editor, &session, "k2", "say #two [pause middle] [chunks 50]");
    editor.hear("paused at middle");
    let second = editor.answer(second).expect("it is inserted");
    assert_ne!(first["messageId"], second["messageId"]);
    let waiting = keyed(&mut editor, &session, "k3", "say #never");
    editor.notify("$/cancel_request", json!({"requestId": waiting}));
    assert_eq!(editor.answer(waiting).unwrap_err()["code"], -32800);

    env.kill_daemon();
    let again = keyed(&mut editor, &session, "k2", "say #two [pause middle] [chunks 50]");
    assert_eq!(editor.answer(again).expect("it is known"), second);
    env.release("middle");
    assert_eq!(idle(&mut editor), "end_turn");
    let again = keyed(&mut editor, &session, "k1", "say #one");
    assert_eq!(editor.answer(again).expect("it is known"), first);
    keyed(&mut editor, &session, "k3", "say #three");
    assert_eq!(idle(&mut editor), "end_turn");
    assert!(editor.said(&session).contains("tags=one,two,three"), "{}", editor.said(&session));
    assert_eq!(env.received("echo", "session/prompt").len(), 3);

    let (other, mut reader) = env.bridge(&["echo"]);
    hello(&mut reader);
    let start = json!({"type": "start"});
    let params = json!({"sessionId": session, "cwd": env.work("main"), "replayFrom": start});
    reader.ok("session/resume", params);
    let (live, replayed) = (conversation(&editor), conversation(&reader));
    assert_eq!(live, replayed);
    let is_whole = |text: &str| text.contains("paused at middle") && text.contains("line 50");
    assert!(live.iter().any(|(.., text)| is_whole(text)), "a message was cut: {live:#?}");
    let users = live.iter().filter(|(kind, ..)| kind.starts_with("user_message"));
    let ids: Vec<&str> = users.map(|(_, id, _)| &**id).collect();
    assert_eq!(ids[..2], [&first["messageId"], &second["messageId"]]);

    let log = env.acpctl(&["session", "log", "fix"]).success();
    for text in ["permission: yes", "line 50", "tags=one,two,three"] {
        assert_eq!(log.stdout().matches(text).count(), 1, "{text}: {log:?}");
    }
    drop((editor, reader));
    for bridge in [bridge, other] {
        bridge.finish().success();
    }
}

#[test]
fn work_in_the_background_outlives_its_turn_and_the_daemon() {
    let env = home([second("claude")]);
    let run = |text: &str| env.acpctl(&["run", "-a", "echo", "-s", "work", text]).success();
    let said = run("say #one [background 1000]");
    assert!(said.stdout().contains("in the background"), "{said:?}");
    let agent = env.agent("echo");
    assert_eq!(agent["protocol"], "2");
    let pid = agent["pid"].clone();
    let work = |env: &TestEnv| env.session("work")["background"].clone();
    assert_eq!(work(&env)[0]["kind"], "terminal");
    let listed = env.acpctl(&["ps"]).success();
    assert!(listed.stdout().contains("1 in background"), "{listed:?}");

    env.kill_daemon();
    assert!(run("say #two").stdout().contains("tags=one,two"));
    assert_eq!(env.agent("echo")["pid"], pid);
    assert_eq!(work(&env)[0]["kind"], "terminal");
    env.acpctl(&["cancel", "work", "--background"]).success();
    until("the end of the work", || work(&env).is_null().then_some(()));
    env.acpctl(&["cancel", "work", "--background"]).code(1);
}
