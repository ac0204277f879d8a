//! Agents of version 2: limits, parts, and lines that pass as they are.

use acp_wire::Version;
use acp_wire::dialect::{Heard, Translator, initialized_from_agent, initialized_to_v2};
use agent_client_protocol_schema::v1;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{heard, line, request, text, update, value, with};

fn idle(stop: &str) -> Value {
    json!({"sessionUpdate": "state_update", "state": "idle", "stopReason": stop})
}

/// The texts of the chunks that the engine hears of an update.
fn texts(translator: &mut Translator, of: &Value) -> String {
    let of_chunk = |update: Value| {
        assert_eq!(update["sessionUpdate"], "agent_message_chunk");
        update["content"]["text"].as_str().expect("a text").to_owned()
    };
    updates(translator, of).into_iter().map(of_chunk).collect()
}

fn chunk(text: &str) -> Value {
    json!({"sessionUpdate": "agent_message_chunk", "messageId": "m",
        "content": {"type": "text", "text": text}})
}

fn message(texts: &[String]) -> Value {
    let blocks = texts.iter().map(|text| json!({"type": "text", "text": text}));
    json!({"sessionUpdate": "agent_message", "messageId": "m", "content": blocks.collect::<Value>()})
}

/// The updates that the engine hears of an update in the session `s`.
fn updates(translator: &mut Translator, of: &Value) -> Vec<Value> {
    let heard = heard(translator, &update(of)).into_iter();
    heard.map(|mut line| line["params"]["update"].take()).collect()
}

fn call(more: &Value) -> Value {
    with(json!({"sessionUpdate": "tool_call_update", "toolCallId": "c"}), more)
}

fn output(bytes: &[u8]) -> Value {
    let data = BASE64_STANDARD.encode(bytes);
    json!({"sessionUpdate": "terminal_output_chunk", "terminalId": "t", "data": data})
}

#[test]
fn added_content_grows_in_steps_until_the_turn_ends() {
    let mut t = Translator::default();
    updates(
        &mut t,
        &call(&json!({"title": "T", "content": [{"type": "terminal", "terminalId": "t"}]})),
    );
    let mut bytes = 0;
    for n in 0..2000 {
        let more = json!({"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c",
            "content": text(&n.to_string())});
        bytes += updates(&mut t, &more).iter().map(|line| line.to_string().len()).sum::<usize>();
    }
    assert!(bytes < 6 * 2000 * 70, "{bytes}");
    assert_eq!(updates(&mut t, &output(b"first")).len(), 1);
    assert_eq!(updates(&mut t, &output(b",")), [] as [Value; 0]);
    let last = updates(&mut t, &idle("end_turn"));
    let content = last[0]["content"].as_array().expect("the content");
    assert_eq!(
        (content.len(), &content[0], &content[2000]),
        (2001, &text("first,"), &text("1999"))
    );
    assert_eq!(updates(&mut t, &idle("end_turn")), [] as [Value; 0]);
}

#[test]
fn old_content_of_a_call_is_forgotten() {
    let mut t = Translator::default();
    let items: Vec<_> = (0..100_000).map(|n| text(&n.to_string())).collect();
    let whole = updates(&mut t, &call(&json!({"status": "failed", "content": items})));
    assert_eq!(whole[0]["content"], json!(items));
    let more = json!({"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c",
        "content": text("last")});
    let kept = updates(&mut t, &more)[0]["content"].as_array().expect("a list").clone();
    assert!((1000..10_000).contains(&kept.len()), "{}", kept.len());
    assert_eq!(kept[kept.len() - 2..], [text("99999"), text("last")]);
}

#[test]
fn terminals_show_whole_characters_and_the_end() {
    let mut t = Translator::default();
    let shown = |t: &mut Translator, of: &Value| match &*updates(t, of) {
        [] => None,
        [update] => Some(update["content"][0]["content"]["text"].as_str().unwrap().to_owned()),
        more => panic!("{more:?}"),
    };
    let terminal = json!({"type": "terminal", "terminalId": "t"});
    let first = updates(&mut t, &call(&json!({"name": "N", "content": [terminal]})));
    let named = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "N", "name": "N"});
    assert_eq!(first, [named]);
    assert_eq!(shown(&mut t, &output(b"a\xc3")).as_deref(), Some("a"));
    assert_eq!(shown(&mut t, &output(b"\xa9\xff")).as_deref(), Some("a\u{e9}"));
    let end = json!({"sessionUpdate": "terminal_update", "terminalId": "t", "exitStatus": {}});
    assert_eq!(shown(&mut t, &end), None);
    let cleared = json!({"sessionUpdate": "terminal_update", "terminalId": "t", "output": null});
    assert_eq!(shown(&mut t, &cleared), None);
    let long = shown(&mut t, &output("\u{e9}\n".repeat(1 << 20).as_bytes())).unwrap();
    assert!(long.starts_with("\u{2026}\n") && long.ends_with("\u{e9}\n") && long.len() < 17 << 10);
    // Nothing of it is left in the next turn.
    updates(&mut t, &call(&json!({"status": "completed"})));
    updates(&mut t, &idle("end_turn"));
    let again =
        updates(&mut t, &call(&json!({"content": [{"type": "terminal", "terminalId": "t"}]})));
    assert_eq!(again[0], call(&json!({"sessionUpdate": "tool_call", "title": "tool"})));
}

#[test]
fn a_call_of_which_a_part_is_not_shown_is_marked() {
    let is_part = |t: &mut Translator, of: &Value| {
        let heard = t.from_agent(&line(of));
        matches!(heard.last().expect("a line"), Heard::Part(_))
    };
    let asks = |description: Option<&str>, call: Value| {
        let subject = json!({"type": "tool_call", "toolCall": call});
        let asked = json!({"sessionId": "s", "title": "Run?", "description": description,
            "subject": subject, "options": []});
        request(0, "session/request_permission", &asked)
    };
    let c = || json!({"toolCallId": "c", "title": "Run?"});
    let mut t = Translator::default();
    // An earlier daemon has got the content, which the description would replace.
    t.restore_call("s", "c");
    assert!(!is_part(&mut t, &asks(None, c())));
    assert!(is_part(&mut t, &asks(Some("why"), c())));
    // Long content is not kept, either.
    let long = text(&"x".repeat(300 << 10));
    assert!(!is_part(&mut t, &update(&call(&json!({"content": [long]})))));
    assert!(is_part(&mut t, &asks(Some("why"), c())));
    // Rules see the paths of diffs, and no texts.
    let diff = |change: Value| json!([{"type": "diff", "changes": [change]}]);
    let gone = diff(json!({"operation": "delete", "path": "/etc/passwd"}));
    let mut asked = asks(None, c());
    asked["params"]["subject"]["toolCall"]["content"] = gone;
    let heard = heard(&mut t, &asked);
    let shown = &heard[0]["params"]["toolCall"]["content"];
    let file = json!({"type": "diff", "path": "/etc/passwd", "oldText": null, "newText": ""});
    assert_eq!(shown, &json!([file]));
    assert!(!is_part(&mut t, &asked));
    for operation in ["modify", "add", "move", "copy", "_own"] {
        let change = diff(json!({"operation": operation, "oldPath": "/etc/a", "path": "/etc/b"}));
        asked["params"]["subject"]["toolCall"]["content"] = change.clone();
        assert!(is_part(&mut t, &asked), "{operation}");
        assert!(is_part(&mut t, &update(&call(&json!({"content": change})))), "{operation}");
    }
    // A hunk that cannot be read may be what matters.
    for (hunk, is_unread) in [("-1,1 +1,1", false), ("-99999999999999999999,1 +1,1", true)] {
        let text = format!("--- a\n+++ a\n@@ -1,1 +1,1 @@\n-a\n+b\n@@ {hunk} @@\n-x\n+y\n");
        let mut change = diff(json!({"operation": "modify", "path": "/etc/a"}));
        change[0]["patch"] = json!({"format": "git_patch", "text": text});
        asked["params"]["subject"]["toolCall"]["content"] = change;
        assert_eq!(is_part(&mut t, &asked), is_unread, "{hunk}");
    }
    let cleared = updates(&mut t, &call(&json!({"rawInput": null})));
    assert_eq!(cleared[0]["rawInput"], json!({}));
}

#[test]
fn the_initialize_result_is_official() {
    let info = json!({"name": "codex-acp", "title": "Codex", "version": "2.6.0"});
    let prompt =
        json!({"image": {}, "audio": null, "embeddedContext": {"_x": 1}, "_meta": {"a": {}}});
    let mut agent = json!({"protocolVersion": 2, "info": info,
        "capabilities": {"auth": {"_meta": {"authStatus": {}}}, "providers": {}, "session": {
            "prompt": prompt, "mcp": {"stdio": {}, "http": {}}, "delete": {}, "title": {},
            "systemPrompt": {"mode": {"override": {}}}}},
        "authMethods": [{"methodId": "api-key", "type": "agent", "name": "API Key"},
            {"methodId": "tty", "type": "terminal", "name": "T", "args": ["x"],
                "env": [{"name": "A", "value": "1"}, {"name": 5, "value": "2"}, {"name": "B"}]},
            {"methodId": "new", "type": "_new", "name": "N"}],
        "_meta": {"steering": {"supported": true}}});
    let agent_v1 = json!({"protocolVersion": 1, "agentInfo": info,
        "agentCapabilities": {"auth": {"_meta": {"authStatus": {}}, "logout": {}}, "providers": {},
            "loadSession": true, "mcpCapabilities": {"http": true},
            "promptCapabilities": {"image": true, "embeddedContext": true, "_meta": {"a": {}}},
            "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {},
                "title": {}, "systemPrompt": {"mode": {"override": {}}}}},
        "authMethods": [{"id": "api-key", "type": "agent", "name": "API Key"},
            {"id": "tty", "type": "terminal", "name": "T", "args": ["x"], "env": {"A": "1"}}],
        "_meta": {"steering": {"supported": true}}});
    let (version, initialized) = initialized_from_agent(&line(&agent));
    assert_eq!((version, value(&initialized)), (Version::V2, agent_v1.clone()));
    serde_json::from_value::<v1::InitializeResponse>(agent_v1).expect("v1");
    // And back, for a client of version 2.
    let back = value(&initialized_to_v2(&initialized));
    agent["capabilities"]["session"]["prompt"] =
        json!({"image": {}, "embeddedContext": {}, "_meta": {"a": {}}});
    assert_eq!((&back["info"], &back["capabilities"]), (&agent["info"], &agent["capabilities"]));
    let other = json!({"protocolVersion": 2, "info": {}, "capabilities": {}});
    assert_eq!(initialized_from_agent(&line(&other)), (Version::V1, line(&other)));
}

#[derive(Debug, Clone)]
enum Change {
    Chunk(String),
    Replace(Vec<String>),
    Continue(Vec<String>),
}

fn change() -> impl Strategy<Value = Change> {
    let text = "[ab\u{e9}]{0,3}";
    let texts = prop::collection::vec(text, 0..3);
    prop_oneof![
        text.prop_map(Change::Chunk),
        texts.clone().prop_map(Change::Replace),
        texts.prop_map(Change::Continue),
    ]
}

proptest! {
    #[test]
    fn texts_of_messages_are_complete_and_in_order(changes in prop::collection::vec(change(), 0..9)) {
        let mut t = Translator::default();
        let (mut now, mut shown) = (String::new(), String::new());
        for change in changes {
            let more = match change {
                Change::Chunk(text) => {
                    now.push_str(&text);
                    texts(&mut t, &chunk(&text))
                }
                Change::Replace(blocks) => {
                    now = blocks.concat();
                    texts(&mut t, &message(&blocks))
                }
                Change::Continue(blocks) => {
                    let all: Vec<_> = [now.clone()].into_iter().chain(blocks).collect();
                    let (is_whole, was) = (shown.ends_with(&now), now);
                    now = all.concat();
                    let more = texts(&mut t, &message(&all));
                    prop_assert!(is_whole && (was.is_empty() || more == now[was.len()..]));
                    more
                }
            };
            shown.push_str(&more);
            prop_assert!(shown.ends_with(&now), "{:?} is not the end of {:?}", now, shown);
        }
    }
}

/// Fate of a line itself, in one word, and the number of lines made of it.
fn fate(translator: &mut Translator, agent: &Value) -> String {
    let heard = translator.from_agent(&line(agent));
    let words = heard.iter().filter_map(|heard| match heard {
        Heard::Same => Some("same".to_owned()),
        Heard::Original => Some("original".to_owned()),
        Heard::Echo => Some("echo".to_owned()),
        Heard::State(session, state) => Some(format!("{session} {state:?}")),
        _ => None,
    });
    let words: Vec<_> = words.collect();
    format!("{} {}", words.join(" "), heard.len() - words.len())
}

#[test]
fn lines_that_both_versions_have_pass_as_they_are() {
    let mut t = Translator::default();
    let plan = |status: &str| {
        let entry = json!({"content": "a", "priority": "low", "status": status});
        json!({"sessionUpdate": "plan_update",
            "plan": {"type": "items", "planId": "p", "entries": [entry]}})
    };
    let state = |state: &str| json!({"sessionUpdate": "state_update", "state": state});
    let cases = [
        (chunk("so"), "same 0"),
        (message(&["so it is".to_owned()]), "original 1"),
        (message(&[]), "original 0"),
        (chunk("so"), "original 2"),
        (plan("pending"), "same 0"),
        (plan("cancelled"), "original 1"),
        (call(&json!({"title": "make"})), "original 1"),
        (call(&json!({"content": [text("ok")]})), "same 0"),
        (call(&json!({"status": "paused"})), "original 1"),
        (call(&json!({"status": "completed"})), "same 0"),
        (json!({"sessionUpdate": "terminal_update", "terminalId": "x"}), "original 0"),
        (json!({"sessionUpdate": "usage_update", "used": 1, "size": 2}), "same 0"),
        (json!({"sessionUpdate": "later", "any": null}), "same 0"),
        (json!({"sessionUpdate": "config_option_update", "configOptions": []}), " 1"),
        (json!({"sessionUpdate": "replay_complete"}), " 0"),
        (state("idle"), "s Idle 0"),
        (state("requires_action"), "s RequiresAction 0"),
        (state("unknown"), "s Running 0"),
    ];
    for (said, wanted) in cases {
        assert_eq!(fate(&mut t, &update(&said)), wanted, "{said}");
    }
    let page = json!({"sessionId": "s", "mode": "form", "message": "?", "requestedSchema": {}});
    assert_eq!(fate(&mut t, &request(7, "elicitation/create", &page)), "same 0");
    let params = json!({"sessionId": "s", "title": "?", "options": []});
    assert_eq!(fate(&mut t, &request(8, "session/request_permission", &params)), " 1");
}

/// Knowledge of the engine about a prompt.
#[derive(Clone, Copy, Default)]
struct Fate {
    inserted: bool,
    ended: bool,
}

#[test]
fn each_order_of_events_ends_a_prompt_once() {
    let error = json!({"jsonrpc": "2.0", "id": 9, "error": {"code": -32603, "message": "no"}});
    let user = json!({"sessionUpdate": "user_message", "messageId": "m", "content": []});
    let running = json!({"sessionUpdate": "state_update", "state": "running"});
    let events = [
        update(&user),
        json!({"jsonrpc": "2.0", "id": 9, "result": {"messageId": "m"}}),
        error,
        update(&running),
        update(&idle("end_turn")),
    ];
    let mut t = Translator::default();
    t.to_agent(&line(&request(9, "session/prompt", &json!({"sessionId": "s", "prompt": []}))));
    every_order(&t, Fate::default(), &events, 8);
}

fn every_order(before: &Translator, fate: Fate, events: &[Value], left: usize) {
    for (at, event) in events.iter().enumerate().filter(|_| left > 0) {
        let (mut t, mut now) = (before.clone(), fate);
        let (is_idle, is_error) = (at == 4, at == 2);
        for heard in heard(&mut t, event) {
            if heard.get("inserted").is_some() {
                assert!(!now.inserted && !now.ended, "{event}");
                now.inserted = true;
            } else if heard["id"] == 9 && !now.ended {
                assert!(is_error || is_idle && now.inserted, "{event}");
                now.ended = true;
            } else {
                // The engine knows no such request any longer.
                assert!(heard["id"] == 9 && !is_idle, "{heard}");
            }
        }
        assert!(now.ended || !(is_idle && now.inserted), "idle in a turn");
        every_order(&t, now, events, left - 1);
    }
}
