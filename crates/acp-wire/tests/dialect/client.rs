//! Conversions for clients of version 2.

use acp_wire::dialect::{
    MODE_OPTION, initialized_to_v2, opened_to_v2, options_to_v2, question_to_v2, request_from_v2,
    update_to_v2,
};
use agent_client_protocol_schema::{v1, v2};
use bytes::Bytes;
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use crate::random::{part, text_file};
use crate::{line, official, request, update, value};

#[track_caller]
fn assert_official<T: DeserializeOwned + Serialize>(written: &Value) {
    official::assert_official::<T>(written, &[json!([]), Value::Null]);
}

/// Adds unknown members to the objects at these pointers.
fn with_unknown(mut value: Value, places: &[&str]) -> Value {
    for place in places {
        value.pointer_mut(place).expect("the place is there")["_x"] = json!({"y": [null, 1.50]});
    }
    value
}

/// The cases of a file, one a line.
fn cases(file: &str) -> impl Iterator<Item = Value> {
    file.lines().map(|case| value(case.as_bytes()))
}

#[test]
fn updates_are_official() {
    for case in cases(include_str!("updates.jsonl")) {
        let (entity, wanted) = (case["entity"].as_u64(), &case["v2"]);
        let line_v1 = update(&case["v1"]);
        serde_json::from_value::<v1::SessionNotification>(line_v1["params"].clone()).expect("v1");
        let converted = update_to_v2(&line(&line_v1), entity);
        if wanted.is_null() {
            assert_eq!(converted, None, "{case}");
            continue;
        }
        let converted = value(&converted.expect("version 2 has it"));
        assert_eq!(converted, update(wanted));
        assert_official::<v2::UpdateSessionNotification>(&converted["params"]);
        let places = ["", "/params", "/params/update"];
        let converted = update_to_v2(&line(&with_unknown(line_v1, &places)), entity);
        assert_eq!(converted.map(|line| value(&line)), Some(with_unknown(update(wanted), &places)));
    }
    let unknown = Bytes::from_static(
        br#"{ "params" : { "update": {"sessionUpdate":"_x", "a": 1.0, "a": "\ud800"} } }"#,
    );
    assert_eq!(update_to_v2(&unknown, None), Some(unknown));
}

#[test]
fn questions_are_official() {
    for case in cases(include_str!("questions.jsonl")) {
        let method = case["method"].as_str().expect("a method");
        let asked = with_unknown(request(1, method, &case["v1"]), &["", "/params"]);
        let converted = question_to_v2(&line(&asked), 3);
        let wanted = request(1, method, &case["v2"]);
        assert_eq!(value(&converted), with_unknown(wanted, &["", "/params"]));
        match method {
            "elicitation/create" => assert_official::<v2::CreateElicitationRequest>(&case["v2"]),
            _ => assert_official::<v2::RequestPermissionRequest>(&case["v2"]),
        }
    }
}

#[test]
fn the_initialize_result_is_official() {
    let result = json!({
        "protocolVersion": 1,
        "agentInfo": {"name": "a", "title": "A", "version": "1"},
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": {"image": true, "audio": false, "_meta": {"a": 1}},
            "mcpCapabilities": {"http": true, "sse": true, "acp": false},
            "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "fork": {},
                "delete": null, "systemPrompt": {"mode": {"override": {}}}},
            "auth": {"logout": {}, "status": {}},
            "providers": {},
            "_meta": {"_acpd": {"b": true}},
        },
        "authMethods": [
            {"id": "key", "name": "Key", "_meta": {"c": 1}},
            {"type": "terminal", "id": "tty", "name": "T", "args": ["x"], "env": {"A": "1", "B": "2"}},
            {"type": "env_var", "id": "var", "name": "V"},
        ],
        "_meta": {"steering": {"supported": true}},
    });
    let wanted = json!({
        "protocolVersion": 2,
        "info": {"name": "a", "title": "A", "version": "1"},
        "capabilities": {
            "session": {
                "prompt": {"image": {}, "_meta": {"a": 1}},
                "mcp": {"stdio": {}, "http": {}},
                "fork": {}, "delete": null, "systemPrompt": {"mode": {"override": {}}},
            },
            "auth": {"status": {}},
            "providers": {},
            "_meta": {"_acpd": {"b": true}},
        },
        "authMethods": [
            {"type": "agent", "methodId": "key", "name": "Key", "_meta": {"c": 1}},
            {"type": "terminal", "methodId": "tty", "name": "T", "args": ["x"],
                "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
        ],
        "_meta": {"steering": {"supported": true}},
    });
    let converted = value(&initialized_to_v2(&line(&result)));
    assert_eq!(converted, wanted);
    assert_official::<v2::InitializeResponse>(&converted);
    let places = |info, capabilities| ["", info, capabilities, "/authMethods/0"];
    let more = line(&with_unknown(result, &places("/agentInfo", "/agentCapabilities")));
    assert_eq!(
        value(&initialized_to_v2(&more)),
        with_unknown(wanted, &places("/info", "/capabilities"))
    );
    let bare = value(&initialized_to_v2(&line(&json!({"protocolVersion": 1}))));
    assert_eq!(bare["info"], json!({"name": "agent", "version": ""}));
    assert_official::<v2::InitializeResponse>(&bare);
}

#[test]
fn modes_models_and_options_are_one_list() {
    let modes = json!({"currentModeId": "ask", "_meta": {"a": 1},
        "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "go", "name": "Go"}]});
    let models = json!({"currentModelId": "m", "availableModels": [{"modelId": "m", "name": "M"}]});
    let choices = json!([{"group": "g", "name": "G", "options": [{"value": "x", "name": "X"}]}]);
    let options = json!([
        {"id": "effort", "name": "E", "type": "select", "currentValue": "x", "options": choices},
        {"id": "fast", "name": "F", "type": "boolean", "currentValue": false}]);
    let opened = |result: &Value| {
        let answer = json!({"jsonrpc": "2.0", "id": 1, "result": result});
        let converted = value(&opened_to_v2(&line(&answer)));
        assert_official::<v2::NewSessionResponse>(&converted["result"]);
        converted["result"].clone()
    };
    let mode = |current| {
        json!({"configId": MODE_OPTION, "name": "Mode", "category": "mode", "type": "select",
            "currentValue": current, "_meta": {"a": 1},
            "options": [{"value": "ask", "name": "Ask"}, {"value": "go", "name": "Go"}]})
    };
    let model = json!({"configId": "model", "name": "Model", "category": "model", "type": "select",
        "currentValue": "m", "options": [{"value": "m", "name": "M"}]});
    let groups = json!([{"groupId": "g", "name": "G", "options": [{"value": "x", "name": "X"}]}]);
    let effort = json!({"configId": "effort", "name": "E", "type": "select", "currentValue": "x",
        "options": groups});
    let fast = json!({"configId": "fast", "name": "F", "type": "boolean", "currentValue": false});
    let all = json!({"sessionId": "s", "modes": modes, "models": models, "configOptions": options});
    assert_eq!(
        opened(&all),
        json!({"sessionId": "s", "configOptions": [mode("ask"), model, effort, fast]})
    );
    assert_eq!(
        opened(&json!({"sessionId": "s", "modes": null})),
        json!({"sessionId": "s", "configOptions": []})
    );
    let raw = |value: &Value| to_raw_value(value).expect("it serializes");
    let listed = |options: &Value| {
        value(options_to_v2(Some(&raw(&modes)), Some(&raw(options)), Some("go")).as_bytes())
    };
    assert_eq!(listed(&options), json!([mode("go"), effort, fast]));
    let own = json!([{"id": "m", "category": "mode", "name": "M", "type": "select",
        "currentValue": "x", "options": []}]);
    assert_eq!(listed(&own)[0]["configId"], "m");
    assert_eq!(listed(&own)[1], Value::Null);
    let refused = line(&json!({"id": 1, "error": {"code": 1, "message": "no"}}));
    assert_eq!(opened_to_v2(&refused), refused);
}

#[test]
fn requests_are_official() {
    for case in cases(include_str!("requests.jsonl")) {
        let method = case["method"][0].as_str().expect("a method");
        let asked = with_unknown(request(1, method, &case["v2"]), &["", "/params"]);
        let converted = match request_from_v2(method, &line(&asked)) {
            Ok(converted) => converted,
            Err(error) => {
                assert_eq!(case["method"][1], error.code, "{case}");
                continue;
            }
        };
        assert_eq!(case["method"][1], *converted.method, "{case}");
        let wanted = request(1, &converted.method, &case["v1"]);
        assert_eq!(value(&converted.line), with_unknown(wanted, &["", "/params"]));
        let assert_official = match &*converted.method {
            "authenticate" => assert_official::<v1::AuthenticateRequest>,
            "logout" => assert_official::<v1::LogoutRequest>,
            "session/new" => assert_official::<v1::NewSessionRequest>,
            "session/resume" => assert_official::<v1::ResumeSessionRequest>,
            "session/load" => assert_official::<v1::LoadSessionRequest>,
            "session/fork" => assert_official::<v1::ForkSessionRequest>,
            "session/set_config_option" => assert_official::<v1::SetSessionConfigOptionRequest>,
            "session/prompt" => assert_official::<v1::PromptRequest>,
            "session/list" => assert_official::<v1::ListSessionsRequest>,
            _ => assert_official::<Value>,
        };
        assert_official(&case["v1"]);
    }
}

/// The patch that a diff becomes.
fn patch_of(path: &str, old: Option<&str>, new: &str) -> Option<String> {
    let diff = json!({"type": "diff", "path": path, "oldText": old, "newText": new});
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "content": [diff]});
    let converted = update_to_v2(&line(&update(&call)), Some(1)).expect("it has one");
    let patch = &value(&converted)["params"]["update"]["content"][0]["patch"];
    patch["text"].as_str().map(str::to_owned)
}

/// Applies a patch of at most one hunk.
fn apply(patch: &str, old: &str) -> String {
    let Some((_, hunk)) = patch.split_once("\n@@ -") else { return old.to_owned() };
    let (ranges, lines) = hunk.split_once('\n').expect("the hunk has lines");
    let (first, count) = ranges.split_once(' ').and_then(|(old, _)| old.split_once(',')).unwrap();
    let first = first.parse::<usize>().unwrap() - usize::from(count != "0");
    let mut left = old.split_inclusive('\n');
    let mut new: Vec<String> = left.by_ref().take(first).map(str::to_owned).collect();
    let mut lines = lines.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let no_newline = lines.next_if(|next| next.starts_with('\\')).is_some();
        let text = if no_newline { &line[1..line.len() - 1] } else { &line[1..] };
        if !line.starts_with('+') {
            assert_eq!(left.next(), Some(text));
        }
        if !line.starts_with('-') {
            new.push(text.to_owned());
        }
    }
    new.extend(left.map(str::to_owned));
    new.concat()
}

#[test]
fn patches_are_as_git_writes_them() {
    let old = "1\n2\n3\n4\n5\n6\n7\n8\n9";
    let new = "1\n2\n3\n4\nfive\r\n6\n7\n8\n9";
    let head = "diff --git /a /a\n--- /a\n+++ /a\n";
    let hunk = "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\r\n 6\n 7\n 8\n";
    assert_eq!(patch_of("/a", Some(old), new), Some(format!("{head}{hunk}")));
    let end = "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+a\n";
    assert_eq!(patch_of("/a", Some("a"), "a\n"), Some(format!("{head}{end}")));
    let empty = "diff --git \"/\\303\\251\\t\\\"\" \"/\\303\\251\\t\\\"\"\nnew file mode 100644\n";
    assert_eq!(patch_of("/é\t\"", None, "").as_deref(), Some(empty));
    assert_eq!(patch_of("/a", Some(old), old), None);
}

proptest! {
    #[test]
    fn patches_make_the_new_text(old in prop::option::of(text_file()), new in text_file()) {
        let before = old.as_deref().unwrap_or_default();
        let patch = patch_of("/a", old.as_deref(), &new).unwrap_or_default();
        prop_assert_eq!(apply(&patch, before), new);
    }

    #[test]
    fn any_update_becomes_json(part in part(), entity in any::<Option<u64>>()) {
        if let Some(converted) = update_to_v2(&line(&update(&part)), entity) {
            value(&converted);
        }
        value(&question_to_v2(&line(&part), 1));
        value(&initialized_to_v2(&line(&part)));
        value(&opened_to_v2(&line(&json!({"result": part}))));
    }
}
