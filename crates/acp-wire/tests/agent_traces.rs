//! Whole conversations with agents of version 2, cut from the traces of real ones, and random ones.

mod official;

use std::collections::BTreeMap;

use acp_wire::dialect::{Heard, Translator, initialized_from_agent, update_to_v2};
use agent_client_protocol_schema::{v1, v2};
use bytes::Bytes;
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

fn line(value: &Value) -> Bytes {
    value.to_string().into()
}

fn value(line: &[u8]) -> Value {
    serde_json::from_slice(line).expect("it is JSON")
}

fn heard(translator: &mut Translator, agent: &Value) -> Vec<Value> {
    let heard = translator.from_agent(&line(agent)).into_iter();
    let heard = heard.filter_map(|heard| match heard {
        Heard::Same => Some(agent.clone()),
        Heard::Original | Heard::Echo | Heard::State(..) => None,
        Heard::Line(line) | Heard::Part(line) => Some(value(&line)),
        Heard::Inserted(id, _) => Some(json!({ "inserted": id })),
        // Each state has the list.
        Heard::Background { work, .. } if work.is_empty() => None,
        Heard::Background { work, .. } => Some(json!({ "background": work })),
    });
    heard.map(without_version).collect()
}

fn without_version(mut message: Value) -> Value {
    message.as_object_mut().expect("a message").remove("jsonrpc");
    message
}

#[track_caller]
fn assert_official<T: DeserializeOwned + Serialize>(written: &Value) {
    official::assert_official::<T>(
        written,
        &[json!([]), json!({}), json!("pending"), json!("other"), Value::Null],
    );
}

fn assert_official_v1(message: &Value, methods: &BTreeMap<String, String>) {
    let (params, result) = (&message["params"], &message["result"]);
    let method = message["method"].as_str();
    match method.or_else(|| methods.get(&message["id"].to_string()).map(String::as_str)) {
        Some("session/update") => assert_official::<v1::SessionNotification>(params),
        Some("session/request_permission") => {
            assert_official::<v1::RequestPermissionRequest>(params);
        }
        Some("elicitation/create") => assert_official::<v1::CreateElicitationRequest>(params),
        Some("$/cancel_request") => assert_official::<v1::CancelRequestNotification>(params),
        _ if !message["error"].is_null() => assert_official::<v1::Error>(&message["error"]),
        Some("session/prompt") => assert_official::<v1::PromptResponse>(result),
        Some("session/new") => assert_official::<v1::NewSessionResponse>(result),
        Some("session/load") => assert_official::<v1::LoadSessionResponse>(result),
        Some("session/resume") => assert_official::<v1::ResumeSessionResponse>(result),
        Some("session/fork") => assert_official::<v1::ForkSessionResponse>(result),
        Some("session/close") => assert_official::<v1::CloseSessionResponse>(result),
        Some("authenticate") => assert_official::<v1::AuthenticateResponse>(result),
        Some("logout") => assert_official::<v1::LogoutResponse>(result),
        Some("session/set_config_option") => {
            assert_official::<v1::SetSessionConfigOptionResponse>(result);
        }
        // The answer has the options of version 2, too.
        Some("session/set_mode") => {
            serde_json::from_value::<v1::SetSessionModeResponse>(result.clone()).expect("v1");
        }
        Some("_auth/status_update") => {}
        _ => {
            let is_known = message["inserted"].is_u64() || message["background"].is_array();
            assert!(is_known, "{message}");
        }
    }
}

fn assert_official_v2(message: &Value) {
    let params = &message["params"];
    match message["method"].as_str() {
        Some("session/new") => assert_official::<v2::NewSessionRequest>(params),
        Some("session/resume") => assert_official::<v2::ResumeSessionRequest>(params),
        Some("session/fork") => assert_official::<v2::ForkSessionRequest>(params),
        Some("session/close") => assert_official::<v2::CloseSessionRequest>(params),
        Some("session/prompt") => assert_official::<v2::PromptRequest>(params),
        Some("session/cancel") => assert_official::<v2::CancelSessionNotification>(params),
        Some("session/set_config_option") => {
            assert_official::<v2::SetSessionConfigOptionRequest>(params);
        }
        Some("auth/login") => assert_official::<v2::LoginAuthRequest>(params),
        Some("auth/logout") => assert_official::<v2::LogoutAuthRequest>(params),
        Some("$/cancel_request") => assert_official::<v2::CancelRequestNotification>(params),
        Some("session/update") => assert_official::<v2::UpdateSessionNotification>(params),
        Some("session/request_permission") => {
            assert_official::<v2::RequestPermissionRequest>(params);
        }
        Some("elicitation/create") => assert_official::<v2::CreateElicitationRequest>(params),
        Some(other) => assert_eq!(other, "_auth/status_update"),
        None => {}
    }
}

/// Lines `{"agent": MESSAGE, "heard": [MESSAGE or {"inserted": ID}]}` and
/// `{"engine": MESSAGE, "sent": MESSAGE}`, with "same" for the same message.
fn check(conversation: &str) {
    let (mut t, mut methods) = (Translator::default(), BTreeMap::new());
    for case in conversation.lines().map(|case| value(case.as_bytes())) {
        let or_same = |name: &str, same: Value| match &case[name] {
            Value::String(_) => same,
            other => other.clone(),
        };
        if let Value::Object(_) = &case["agent"] {
            let agent = &case["agent"];
            assert_official_v2(agent);
            let heard = heard(&mut t, agent);
            for message in &heard {
                assert_official_v1(message, &methods);
            }
            assert_eq!(json!(heard), or_same("heard", json!([agent])), "{case}");
            continue;
        }
        let engine = &case["engine"];
        if let (Some(method), Some(id)) = (engine["method"].as_str(), engine.get("id")) {
            methods.insert(id.to_string(), method.to_owned());
        }
        let sent = value(&t.to_agent(&line(engine)));
        assert_official_v2(&sent);
        assert_eq!(sent, or_same("sent", engine.clone()), "{case}");
    }
}

#[test]
fn claude_is_heard_as_version_1() {
    check(include_str!("dialect/agent-claude.jsonl"));
}

#[test]
fn codex_is_heard_as_version_1() {
    check(include_str!("dialect/agent-codex.jsonl"));
}

/// The content items that the engine hears for a call with this content.
fn content(items: &Value) -> Vec<Value> {
    let call = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "content": items});
    let update = json!({"method": "session/update", "params": {"sessionId": "s", "update": call}});
    let heard = heard(&mut Translator::default(), &update);
    assert_official_v1(&heard[0], &BTreeMap::new());
    heard[0]["params"]["update"]["content"].as_array().expect("a list").clone()
}

fn patch(changes: &Value, text: &str) -> Vec<Value> {
    let patch = json!({"format": "git_patch", "text": text});
    content(&json!([{"type": "diff", "changes": changes, "patch": patch, "_meta": {"a": 1}}]))
}

fn diff(path: &str, old: Option<&str>, new: &str) -> Value {
    json!({"type": "diff", "path": path, "oldText": old, "newText": new, "_meta": {"a": 1}})
}

fn text(text: &str) -> Value {
    json!({"type": "content", "content": {"type": "text", "text": text}, "_meta": {"a": 1}})
}

#[test]
fn patches_are_a_diff_for_each_hunk() {
    let git = "\
diff --git a/a b/a
index 1..2 100644
--- a/a
+++ b/a
@@ -1,3 +1,2 @@ fn a()
 1
--- 2
 3
@@ -8,2 +7,3 @@

-9
\\ No newline at end of file
+++ nine
+9
\\ No newline at end of file
diff --git a/old b/new
similarity index 90%
rename from old
rename to new
diff --git a/gone b/gone
deleted file mode 100644
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-x\r
diff --git a/b.png b/b.png
GIT binary patch
literal 0
";
    let changes = json!([{"operation": "modify", "path": "/a"},
        {"operation": "move", "oldPath": "/old", "path": "/new"},
        {"operation": "delete", "path": "/gone"}, {"operation": "modify", "path": "/b.png"}]);
    let git_v1 = [
        diff("/a", Some("1\n-- 2\n3\n"), "1\n3\n"),
        diff("/a", Some("\n9"), "\n++ nine\n9"),
        text("move: /old \u{2192} /new"),
        diff("/gone", Some("x\r\n"), ""),
        text("modify: /b.png"),
    ];
    assert_eq!(patch(&changes, git), git_v1);
    let plain = "--- a\n+++ a\n@@ -1 +1 @@\n-1\n+2\n--- b\n+++ b\n@@ -0,0 +1 @@\n+3\n";
    let changes =
        json!([{"operation": "modify", "path": "/a"}, {"operation": "add", "path": "/b"}]);
    assert_eq!(patch(&changes, plain), [diff("/a", Some("1\n"), "2\n"), diff("/b", None, "3\n")]);
    // A patch that does not fit the changes, or is none, is shown as it is.
    let one = json!([{"operation": "modify", "path": "/a"}]);
    let raw = |patch: &str| json!({"type": "content", "content": {"type": "text", "text": patch}});
    assert_eq!(patch(&one, plain), [text("modify: /a"), raw(plain)]);
    let cut = "@@ -1,99999999999999999999 +1 @@\n-1\n";
    assert_eq!(patch(&one, cut), [text("modify: /a"), raw(cut)]);
    for changes in [json!([{}]), json!([])] {
        let other =
            json!([{"type": "diff", "changes": changes, "patch": {"format": "_x", "text": plain}}]);
        let content = content(&other);
        let is_named = changes == json!([{}]);
        assert!(!is_named || content[0]["content"]["text"] == "?: ?");
        assert_eq!(content[usize::from(is_named)], raw(plain));
    }
}

fn text_file() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec!["a\n", "b\n", "\n", "-c\r\n", "\\ d\n", "--- e\n"]);
    let lines = prop::collection::vec(line, 0..24);
    (lines, "[ax]?").prop_map(|(lines, last)| lines.concat() + &last)
}

/// Returns whether a part of the old text, replaced, makes the new one.
fn makes(old: &str, part: &str, by: &str, new: &str) -> bool {
    let places = old.char_indices().map(|(at, _)| at).chain([old.len()]);
    let mut places = places.filter(|at| old[*at..].starts_with(part));
    places.any(|at| [&old[..at], by, &old[at + part.len()..]].concat() == new)
}

/// One of these words.
fn word(words: &'static str) -> impl Strategy<Value = String> {
    prop::sample::select(words.split(' ').collect::<Vec<_>>()).prop_map(str::to_owned)
}

/// JSON with the names and words of the protocol, rightly used or not.
fn part() -> impl Strategy<Value = Value> {
    const NAMES: &str = "sessionUpdate sessionId toolCallId terminalId messageId content type text \
        status title name output data exitStatus changes patch path operation configOptions options \
        category configId currentValue value plan entries availableCommands state stopReason error \
        subject toolCall kind modeId mcpServers description input";
    const WORDS: &str = "s c tool_call_update tool_call_content_chunk terminal_update \
        terminal_output_chunk agent_message agent_message_chunk user_message user_message_chunk \
        state_update idle end_turn error plan_update config_option_update \
        available_commands_update terminal diff text tool_call command mode completed cancelled \
        w6nDqQ== /w== \u{e9} git_patch";
    const PATCH: &str = "--- a\n+++ a\n@@ -1 +1 @@\n-\u{e9}\n\\\n+b\n";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        Just(Value::from(PATCH)),
        word(WORDS).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let members = prop::collection::vec((word(NAMES), inner.clone()), 0..8);
        prop_oneof![
            1 => prop::collection::vec(inner, 0..4).prop_map(Value::from),
            3 => members.prop_map(|all| Value::Object(all.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// A line, and whether it is the engine's.
fn random_line() -> impl Strategy<Value = (bool, Value)> {
    const UPDATES: &str = "tool_call_update tool_call_content_chunk terminal_update \
        terminal_output_chunk agent_message agent_message_chunk user_message state_update";
    const METHODS: &str = "session/new session/load session/prompt session/set_mode session/close \
        session/set_config_option session/request_permission";
    let id = || 0..4_u8;
    prop_oneof![
        4 => (word(UPDATES), part()).prop_map(|(kind, mut update)| {
            if let Value::Object(members) = &mut update {
                for (name, value) in [("sessionUpdate", &*kind), ("toolCallId", "c"),
                    ("terminalId", "c"), ("state", "idle")] {
                    members.entry(name).or_insert_with(|| json!(value));
                }
            }
            let params = json!({"sessionId": "s", "update": update});
            (false, json!({"method": "session/update", "params": params}))
        }),
        1 => (any::<bool>(), id(), word(METHODS), part()).prop_map(
            |(is_engine, id, method, mut params)| {
                if let Value::Object(members) = &mut params {
                    members.entry("sessionId").or_insert_with(|| json!("s"));
                }
                (is_engine, json!({"id": id, "method": method, "params": params}))
            }
        ),
        1 => (id(), part()).prop_map(|(id, result)| (false, json!({"id": id, "result": result}))),
        1 => id().prop_map(|id| (true, json!({"id": id, "method": "session/prompt",
            "params": {"sessionId": "s", "prompt": []}}))),
    ]
}

proptest! {
    #[test]
    fn diffs_make_the_same_change_after_both_conversions(
        old in prop::option::of(text_file()),
        new in text_file(),
    ) {
        let diff = json!({"type": "diff", "path": "/a", "oldText": old, "newText": new});
        let call = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "content": [diff]});
        let update = json!({"method": "session/update", "params": {"sessionId": "s", "update": call}});
        let in_2 = value(&update_to_v2(&line(&update), Some(1)).expect("it has one"));
        let items = content(&in_2["params"]["update"]["content"]);
        prop_assert_eq!(items.len(), 1);
        let (old_text, new_text) = (items[0]["oldText"].as_str(), items[0]["newText"].as_str());
        match (old.as_deref(), old_text, new_text) {
            (None, None, Some(text)) => prop_assert_eq!(text, new),
            (None, None, None) => prop_assert_eq!(new, ""),
            (Some(old), Some(part), Some(by)) => prop_assert!(makes(old, part, by, &new)),
            (Some(old), None, None) => prop_assert_eq!(old, new),
            other => prop_assert!(false, "{:?}", other),
        }
    }

    #[test]
    fn any_conversation_is_json(lines in prop::collection::vec(random_line(), 0..24)) {
        let mut t = Translator::default();
        for (is_engine, message) in lines {
            value(&initialized_from_agent(&line(&message["params"])).1);
            let message = line(&message);
            if is_engine {
                acp_wire::parse(&t.to_agent(&message)).expect("it is a message");
                continue;
            }
            for heard in t.from_agent(&message) {
                if let Heard::Line(line) | Heard::Part(line) = heard {
                    acp_wire::parse(&line).expect("it is a message");
                }
            }
        }
    }
}
