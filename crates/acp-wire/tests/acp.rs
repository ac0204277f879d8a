//! The typed shapes: lenient readers, strict consent, and originated lines that the official types
//! accept.

use acp_wire::acp::{
    AgentCapabilities, ClientCapabilities, ClientInitialize, Implementation, InitializeResult,
    NewSessionResult, PermissionAnswer, PermissionRequest, Services, SessionList, SessionParams,
    SessionUpdate, SetConfigOptionParams, SetModeParams, Update, initialize_params,
};
use acp_wire::{ErrorObject, Version, code};
use agent_client_protocol_schema::v1;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).expect("a value serializes")
}

/// Reads what acpd wrote as the official type, and makes sure that no field was lost on the way.
fn official<T: DeserializeOwned + Serialize>(written: &impl Serialize) -> T {
    let text = serde_json::to_string(written).expect("it serializes");
    let typed: T = serde_json::from_str(&text).expect("the official type takes it");
    let mut wanted: Value = serde_json::from_str(&text).expect("it is JSON");
    let mut kept = serde_json::to_value(&typed).expect("the official type serializes");
    prune(&mut wanted);
    prune(&mut kept);
    assert_eq!(kept, wanted);
    typed
}

/// Drops what the official types leave out or add by default.
fn prune(value: &mut Value) {
    if let Value::Object(members) = value {
        members.values_mut().for_each(prune);
        members.retain(|_, member| *member != json!(false) && !member.is_null());
        members
            .retain(|name, member| !matches!(name.as_str(), "auth" | "fs") || *member != json!({}));
    }
}

fn acpd() -> Implementation {
    Implementation { name: "acpd".into(), title: None, version: "0.1.0".into() }
}

#[test]
fn the_initialize_params_are_official_and_offer_what_acpd_can_give() {
    for on in [false, true] {
        let params = initialize_params(&acpd(), Services { fs: on, terminal: on }, false);
        let typed: v1::InitializeRequest = official(&params);
        let capabilities = typed.client_capabilities;
        assert_eq!((capabilities.fs.read_text_file, capabilities.fs.write_text_file), (on, on));
        assert_eq!(capabilities.terminal, on);
    }
    assert_eq!(
        initialize_params(&acpd(), Services::default(), false),
        json!({
            "protocolVersion": 1,
            "clientCapabilities": {
                "fs": {"readTextFile": false, "writeTextFile": false},
                "terminal": false,
                "session": {"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}},
                "plan": {},
                "elicitation": {"form": {}, "url": {}},
            },
            "clientInfo": {"name": "acpd", "version": "0.1.0"},
        })
    );
}

#[test]
fn originated_calls_are_official() {
    let session_id = "s";
    official::<v1::SetSessionModeRequest>(&SetModeParams { session_id, mode_id: "plan" });
    for value in ["\"opus\"", "true", "false"] {
        let value: &RawValue = serde_json::from_str(value).expect("it is JSON");
        let params = SetConfigOptionParams::new(session_id, "o", value);
        let text = serde_json::to_string(&params).expect("it serializes");
        let typed: v1::SetSessionConfigOptionRequest =
            serde_json::from_str(&text).expect("the official type takes it");
        assert_eq!(
            serde_json::to_value(typed).expect("it serializes"),
            serde_json::from_str::<Value>(&text).expect("it is JSON")
        );
    }
    let error = ErrorObject::new(code::INTERNAL, "gone").with_data(&json!({"_acpd": {}}));
    official::<v1::Error>(&error);
}

#[test]
fn originated_updates_are_official() {
    let block = raw(&json!({"type": "text", "text": "hi"}));
    let options = raw(&json!([{
        "id": "m", "name": "Model", "category": "model", "type": "select",
        "currentValue": "a", "options": [{"value": "a", "name": "A"}],
    }]));
    for (update, wanted) in [
        (
            Update::UserMessageChunk { content: &block, message_id: None },
            json!({"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "hi"}}),
        ),
        (
            Update::ToolCallUpdate { tool_call_id: "t", status: "failed" },
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "failed"}),
        ),
        (
            Update::CurrentModeUpdate { current_mode_id: "plan" },
            json!({"sessionUpdate": "current_mode_update", "currentModeId": "plan"}),
        ),
        (
            Update::ConfigOptionUpdate { config_options: &options },
            json!({
                "sessionUpdate": "config_option_update",
                "configOptions": serde_json::from_str::<Value>(options.get()).expect("it is JSON"),
            }),
        ),
    ] {
        let params = SessionUpdate { session_id: "s", update };
        let text = serde_json::to_value(params).expect("it serializes");
        assert_eq!(text, json!({"sessionId": "s", "update": wanted}));
        official::<v1::SessionNotification>(&params);
    }
}

#[test]
fn permission_answers_are_official_both_ways() {
    for answer in [PermissionAnswer::Selected("allow".into()), PermissionAnswer::Cancelled] {
        let typed: v1::RequestPermissionResponse = official(&answer);
        let back = to_raw_value(&typed).expect("it serializes");
        assert_eq!(PermissionAnswer::from_raw(&back), Ok(answer));
    }
}

#[test]
fn a_malformed_permission_answer_is_never_consent() {
    for answer in [
        json!(null),
        json!({}),
        json!(true),
        json!("allow"),
        json!({"outcome": "selected"}),
        json!({"outcome": "allowed"}),
        json!({"outcome": {"outcome": "allowed"}}),
        json!({"outcome": {"outcome": "selected"}}),
        json!({"outcome": {"outcome": "selected", "optionId": null}}),
        json!({"outcome": {"outcome": "selected", "optionId": 1}}),
        json!({"outcome": {"selected": {"optionId": "x"}}}),
        json!({"outcome": ["selected", "x"]}),
        json!([{"outcome": "selected", "optionId": "x"}]),
        json!({"selected": {"optionId": "x"}}),
        json!({"optionId": "x"}),
    ] {
        assert!(PermissionAnswer::from_raw(&raw(&answer)).is_err(), "{answer}");
    }
    let twice = r#"{"outcome":{"outcome":"cancelled","outcome":"selected","optionId":"x"}}"#;
    let twice: &RawValue = serde_json::from_str(twice).expect("it is JSON");
    assert!(PermissionAnswer::from_raw(twice).is_err());
}

#[test]
fn an_initialize_result_is_read_with_every_capability_spelling() {
    let result = raw(&json!({
        "protocolVersion": 1,
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": {"image": true, "audio": "yes", "embeddedContext": {}},
            "sessionCapabilities": {"list": {}, "resume": true, "close": null, "delete": false},
            "auth": {"logout": {"x": 1}},
            "mcpCapabilities": {"http": true, "sse": false},
            "new": 1,
        },
        "authMethods": [
            {"id": "a", "name": "A", "description": null},
            {"id": "t", "type": "terminal", "args": []},
            {"name": "no id"},
            7,
        ],
        "agentInfo": {"name": "agent", "version": 2},
    }));
    let read = InitializeResult::from_raw(&result).expect("it is readable");
    let wanted = AgentCapabilities {
        load_session: true,
        list: true,
        resume: true,
        image: true,
        embedded_context: true,
        logout: true,
        mcp_http: true,
        ..AgentCapabilities::default()
    };
    assert_eq!(read.capabilities, wanted);
    let methods: Vec<_> = read
        .auth_methods
        .iter()
        .map(|method| (method.id.as_str(), method.name.as_str(), method.kind.as_str()))
        .collect();
    assert_eq!(methods, [("a", "A", "agent"), ("t", "t", "terminal")]);
    let info = read.agent_info.expect("there is one");
    assert_eq!((info.name.as_str(), info.version.as_str()), ("agent", ""));
}

#[test]
fn optional_fields_of_a_wrong_type_are_defaults() {
    for junk in [json!(null), json!(1), json!("x"), json!([]), json!(true)] {
        let result = raw(&json!({
            "protocolVersion": 0, "agentCapabilities": junk, "authMethods": junk, "agentInfo": junk,
        }));
        let read = InitializeResult::from_raw(&result).expect("it is readable");
        assert_eq!(read.capabilities, AgentCapabilities::default());
        assert!(read.auth_methods.is_empty() && read.agent_info.is_none());
        let params = raw(&json!({
            "protocolVersion": 1, "clientCapabilities": junk, "clientInfo": junk,
        }));
        let read = ClientInitialize::from_raw(&params, Version::V2).expect("it is readable");
        assert_eq!(read.capabilities, ClientCapabilities::default());
        let params = raw(&json!({"cwd": [junk], "sessionId": {}, "additionalDirectories": junk}));
        let read = SessionParams::from_raw(&params);
        assert!(read.cwd.is_none() && read.session_id.is_none());
        assert!(read.additional_directories.is_empty());
    }
}

#[test]
fn a_protocol_version_must_be_an_integer() {
    for version in [json!("1"), json!(1.0), json!(null), json!(-1), json!(65536), json!([1])] {
        let value = raw(&json!({"protocolVersion": version}));
        assert!(InitializeResult::from_raw(&value).is_err(), "{version}");
        assert!(ClientInitialize::from_raw(&value, Version::V2).is_err(), "{version}");
    }
    assert!(InitializeResult::from_raw(&raw(&json!(null))).is_err());
}

#[test]
fn a_permission_request_is_read_with_unknown_option_kinds() {
    let params = raw(&json!({
        "sessionId": "s",
        "toolCall": {"toolCallId": "t", "title": "rm", "kind": "execute"},
        "options": [
            {"optionId": "a", "name": "Allow", "kind": "allow_once"},
            {"optionId": "p", "kind": "allow_persistent"},
            {"name": "no id"},
        ],
    }));
    let read = PermissionRequest::from_raw(&params).expect("it is readable");
    assert_eq!(read.title.as_deref(), Some("rm"));
    let kinds: Vec<_> = read.options.iter().map(|option| option.kind.as_str()).collect();
    assert_eq!(kinds, ["allow_once", "allow_persistent"]);
    assert!(PermissionRequest::from_raw(&raw(&json!({"options": []}))).is_err());
}

/// JSON text as a value.
fn read(json: &str) -> &RawValue {
    serde_json::from_str(json).expect("JSON")
}

#[test]
fn a_bad_member_of_a_question_hides_no_other() {
    let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
    for bad in [r#""\ud83d""#, "5", "[1]", "1e999", r#"{"\udc00":1}"#, &deep] {
        let of = |title: &str, option: &str| {
            format!(
                r#"{{"sessionId":"s","_meta":{bad},"toolCall":{{"toolCallId":"t","title":{title},
                "kind":"read","extra":{bad}}},"options":[{{"optionId":"y","name":{option}}},{bad}]}}"#
            )
        };
        let json = of(r#""read""#, r#""Yes""#);
        let params = PermissionRequest::from_raw(read(&json)).expect("it is readable");
        assert_eq!(params.title.as_deref(), Some("read"), "{json}");
        assert_eq!(params.options[0].name, "Yes", "{json}");
        assert!(params.unread.is_empty());
        let json = of(bad, bad);
        let params = PermissionRequest::from_raw(read(&json)).expect("it is readable");
        assert_eq!(params.tool_call_id.as_deref(), Some("t"), "{json}");
        assert_eq!(params.kind.as_deref(), Some("read"), "{json}");
        assert_eq!(params.options[0].option_id, "y", "{json}");
        assert_eq!(params.unread, ["title"], "{json}");
    }
    let half = PermissionRequest::from_raw(read(
        r#"{"sessionId":"s","toolCall":{"title":"rm \ud83d"},"options":[{"optionId":"y","name":"\udc00 no"}]}"#,
    ));
    let half = half.expect("it is readable");
    assert_eq!(half.title.as_deref(), Some("rm \u{fffd}"));
    assert_eq!(half.options[0].name, "\u{fffd} no");
}

#[test]
fn a_list_of_sessions_has_each_once_and_ends() {
    let list = SessionList::from_raw(&raw(&json!({
        "sessions": [{"sessionId": ""}, {"sessionId": "a", "title": "first"}, {"sessionId": 5},
            {"sessionId": "a", "title": "second"}, {"sessionId": "b", "title": 7}],
        "nextCursor": "",
    })));
    let ids: Vec<_> = list.sessions.iter().map(|info| info.session_id.as_str()).collect();
    assert_eq!(ids, ["a", "b"]);
    assert_eq!(list.sessions[0].title.as_deref(), Some("first"));
    assert_eq!(list.next_cursor, None);
    assert!(NewSessionResult::from_raw(&raw(&json!({"sessionId": ""}))).is_err());
}

#[test]
fn capabilities_are_read_under_their_older_and_newer_names() {
    for (capabilities, info) in [
        ("agentCapabilities", "agentInfo"),
        ("capabilities", "info"),
        ("capabilities", "serverInfo"),
    ] {
        let result = InitializeResult::from_raw(&raw(&json!({"protocolVersion": 1,
            capabilities: {"loadSession": true}, info: {"name": "a", "version": "2"}})));
        let result = result.expect("it is readable");
        assert!(result.capabilities.load_session, "{capabilities}");
        assert_eq!(result.agent_info.expect("a name").name, "a", "{info}");
    }
}

#[test]
fn the_uri_of_a_file_begins_with_its_root_on_every_system() {
    for (path, uri) in [
        ("/w/a b/ü.rs", "file:///w/a%20b/%C3%BC.rs"),
        (r"/w/a\b", "file:///w/a%5Cb"),
        (r"C:\a b\c", "file:///C:/a%20b/c"),
        (r"\\?\C:\a", "file:///C:/a"),
        ("c:/a", "file:///c:/a"),
        (r"\\server\share\a", "file://server/share/a"),
        (r"\\?\UNC\server\share\a", "file://server/share/a"),
    ] {
        assert_eq!(acp_wire::acp::file_uri(path), uri, "{path}");
    }
}

#[test]
fn the_path_of_a_file_uri_is_decoded() {
    let path = acp_wire::acp::file_uri_path;
    let found = |path: &str, behind| Some((path.to_owned(), behind));
    assert_eq!(path("file:///w/a%20b/%C3%BC%23.rs"), found("/w/a b/ü#.rs", ""));
    assert_eq!(path("FILE://localhost/w/a?b=%20#L1:2"), found("/w/a", "?b=%20#L1:2"));
    for other in ["file://server/a", "file:/a", "http://a/b", "file:///%E9", "/a", "f", "file://ü"]
    {
        assert_eq!(path(other), None, "{other}");
    }
}
