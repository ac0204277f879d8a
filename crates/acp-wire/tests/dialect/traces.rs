//! Whole conversations with agents of version 2, cut from the traces of real ones, and random ones.

use std::collections::BTreeMap;

use acp_wire::dialect::{Heard, Translator, initialized_from_agent, update_to_v2};
use agent_client_protocol_schema::{v1, v2};
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::random::{part, text_file, word};
use crate::{heard, line, official, update, value};

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

fn assert_readable<T: DeserializeOwned>(written: &Value) {
    serde_json::from_value::<T>(written.clone()).expect("the official type takes it");
}

fn assert_official_v1(message: &Value, methods: &BTreeMap<String, String>) {
    let method = message["method"].as_str();
    let known = method.or_else(|| methods.get(&message["id"].to_string()).map(String::as_str));
    let assert_official = match known {
        Some("session/update") => assert_official::<v1::SessionNotification>,
        Some("session/request_permission") => assert_official::<v1::RequestPermissionRequest>,
        Some("elicitation/create") => assert_official::<v1::CreateElicitationRequest>,
        Some("$/cancel_request") => assert_official::<v1::CancelRequestNotification>,
        _ if !message["error"].is_null() => assert_official::<v1::Error>,
        Some("session/prompt") => assert_official::<v1::PromptResponse>,
        Some("session/new") => assert_official::<v1::NewSessionResponse>,
        Some("session/load") => assert_official::<v1::LoadSessionResponse>,
        Some("session/resume") => assert_official::<v1::ResumeSessionResponse>,
        Some("session/fork") => assert_official::<v1::ForkSessionResponse>,
        Some("session/close") => assert_official::<v1::CloseSessionResponse>,
        Some("authenticate") => assert_official::<v1::AuthenticateResponse>,
        Some("logout") => assert_official::<v1::LogoutResponse>,
        Some("session/set_config_option") => assert_official::<v1::SetSessionConfigOptionResponse>,
        // The answer has the options of version 2, too.
        Some("session/set_mode") => assert_readable::<v1::SetSessionModeResponse>,
        Some("_auth/status_update") => assert_readable::<Value>,
        _ => {
            let is_known = message["inserted"].is_u64() || message["background"].is_array();
            return assert!(is_known, "{message}");
        }
    };
    let parts = ["params", "result", "error"];
    assert_official(parts.iter().find_map(|part| message.get(part)).expect("a part"));
}

fn assert_official_v2(message: &Value) {
    let assert_official = match message["method"].as_str() {
        Some("session/new") => assert_official::<v2::NewSessionRequest>,
        Some("session/resume") => assert_official::<v2::ResumeSessionRequest>,
        Some("session/fork") => assert_official::<v2::ForkSessionRequest>,
        Some("session/close") => assert_official::<v2::CloseSessionRequest>,
        Some("session/prompt") => assert_official::<v2::PromptRequest>,
        Some("session/cancel") => assert_official::<v2::CancelSessionNotification>,
        Some("session/set_config_option") => assert_official::<v2::SetSessionConfigOptionRequest>,
        Some("auth/login") => assert_official::<v2::LoginAuthRequest>,
        Some("auth/logout") => assert_official::<v2::LogoutAuthRequest>,
        Some("$/cancel_request") => assert_official::<v2::CancelRequestNotification>,
        Some("session/update") => assert_official::<v2::UpdateSessionNotification>,
        Some("session/request_permission") => assert_official::<v2::RequestPermissionRequest>,
        Some("elicitation/create") => assert_official::<v2::CreateElicitationRequest>,
        Some(other) => return assert_eq!(other, "_auth/status_update"),
        None => return,
    };
    assert_official(&message["params"]);
}

/// Lines `{"agent": MESSAGE, "heard": [MESSAGE or {"inserted": ID}]}` and
/// `{"engine": MESSAGE, "sent": MESSAGE}`, with "same" for the same message, and `"unofficial":
/// true` for what the protocol does not have. `{"begin": CLAIM}` begins another conversation.
fn check(conversation: &str) {
    let (mut t, mut methods) = (Translator::default(), BTreeMap::new());
    for case in conversation.lines().map(|case| value(case.as_bytes())) {
        let or_same = |name: &str, same: Value| match &case[name] {
            Value::String(_) => same,
            other => other.clone(),
        };
        if case["begin"].is_string() {
            (t, methods) = Default::default();
            continue;
        }
        if let Value::Object(_) = &case["agent"] {
            let agent = &case["agent"];
            let heard: Vec<_> = heard(&mut t, agent).into_iter().map(without_version).collect();
            if case["unofficial"].is_null() {
                assert_official_v2(agent);
                for message in &heard {
                    assert_official_v1(message, &methods);
                }
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
    check(include_str!("agent-claude.jsonl"));
}

#[test]
fn codex_is_heard_as_version_1() {
    check(include_str!("agent-codex.jsonl"));
}

#[test]
fn unusual_agents_are_heard_as_version_1() {
    check(include_str!("agent-unusual.jsonl"));
}

/// The content items that the engine hears for a call with this content.
fn content(items: &Value) -> Vec<Value> {
    let call = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "content": items});
    let heard = heard(&mut Translator::default(), &update(&call));
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

/// Returns whether a part of the old text, replaced, makes the new one.
fn makes(old: &str, part: &str, by: &str, new: &str) -> bool {
    let places = old.char_indices().map(|(at, _)| at).chain([old.len()]);
    let mut places = places.filter(|at| old[*at..].starts_with(part));
    places.any(|at| [&old[..at], by, &old[at + part.len()..]].concat() == new)
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
            (false, crate::update(&update))
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
        let in_2 = value(&update_to_v2(&line(&update(&call)), Some(1)).expect("it has one"));
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
