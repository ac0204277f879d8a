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
fn answers_are_official() {
    for case in cases(include_str!("answers.jsonl")) {
        let converted = if case["method"] == "initialize" {
            value(&initialized_to_v2(&line(&case["v1"])))
        } else {
            let answer = json!({"jsonrpc": "2.0", "id": 1, "result": case["v1"]});
            value(&opened_to_v2(&line(&answer)))["result"].take()
        };
        assert_eq!(converted, case["v2"]);
        match case["method"].as_str() {
            _ if case["unofficial"] == true => {}
            Some("initialize") => assert_official::<v2::InitializeResponse>(&converted),
            _ => assert_official::<v2::NewSessionResponse>(&converted),
        }
    }
    let refused = line(&json!({"id": 1, "error": {"code": 1, "message": "no"}}));
    assert_eq!(opened_to_v2(&refused), refused);
}

#[test]
fn a_mode_in_force_is_an_option() {
    let raw = |value: &Value| to_raw_value(value).expect("it serializes");
    let modes = json!({"currentModeId": "ask",
        "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "go", "name": "Go"}]});
    let option = |id: &str, category: &str| {
        json!([{"id": id, "category": category, "name": "M", "type": "select",
            "currentValue": "x", "options": []}])
    };
    let listed = |options: Value| {
        let list = options_to_v2(Some(&raw(&modes)), Some(&raw(&options)), Some("go"));
        let list: Vec<Value> = serde_json::from_str(&list).expect("a list");
        let ids = list.iter().map(|option| (&option["configId"], &option["currentValue"]));
        json!(ids.collect::<Vec<_>>())
    };
    assert_eq!(listed(option("a", "other")), json!([[MODE_OPTION, "go"], ["a", "x"]]));
    assert_eq!(listed(option("m", "mode")), json!([["m", "x"]]), "the agent's own");
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
