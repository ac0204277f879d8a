//! Everything that a well-behaved run writes is in the schema: a typed round trip loses none of it.

use std::collections::HashMap;

use acpd_demo::Direction;
use agent_client_protocol_schema::v1;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::driver::Place;

fn conforms<T: DeserializeOwned + Serialize>(what: &str, value: &Value) {
    let typed: T = serde_json::from_value(value.clone())
        .unwrap_or_else(|error| panic!("{what}: {error}: {value}"));
    let back = serde_json::to_value(&typed).unwrap();
    assert!(contains(&back, value), "{what}: {value} became {back}");
}

/// Returns whether nothing of `part` is missing or different in `whole`. Types may add their defaults, and leave out the
/// default status of a tool call, `pending`.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => part.iter().all(|(key, part)| {
            whole.get(key).map_or(part == "pending", |whole| contains(whole, part))
        }),
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len()
                && whole.iter().zip(part).all(|(whole, part)| contains(whole, part))
        }
        _ => whole == part,
    }
}

fn check_result(method: &str, result: &Value) {
    match method {
        "initialize" => conforms::<v1::InitializeResponse>(method, result),
        "authenticate" => conforms::<v1::AuthenticateResponse>(method, result),
        "session/new" => conforms::<v1::NewSessionResponse>(method, result),
        "session/load" => conforms::<v1::LoadSessionResponse>(method, result),
        "session/resume" => conforms::<v1::ResumeSessionResponse>(method, result),
        "session/fork" => conforms::<v1::ForkSessionResponse>(method, result),
        "session/list" => conforms::<v1::ListSessionsResponse>(method, result),
        "session/close" => conforms::<v1::CloseSessionResponse>(method, result),
        "session/delete" => conforms::<v1::DeleteSessionResponse>(method, result),
        "session/set_mode" => conforms::<v1::SetSessionModeResponse>(method, result),
        "session/set_config_option" => {
            conforms::<v1::SetSessionConfigOptionResponse>(method, result);
        }
        "session/prompt" => conforms::<v1::PromptResponse>(method, result),
        other => panic!("an answer to {other}"),
    }
}

fn check(message: &Value, methods: &HashMap<String, String>) {
    assert_eq!(message["jsonrpc"], "2.0");
    let params = &message["params"];
    match message["method"].as_str() {
        Some("session/update") => conforms::<v1::SessionNotification>("session/update", params),
        Some(method @ "session/request_permission") => {
            conforms::<v1::RequestPermissionRequest>(method, params);
        }
        Some(method @ "fs/read_text_file") => conforms::<v1::ReadTextFileRequest>(method, params),
        Some(method) => assert!(method.starts_with('_'), "{method}"),
        None => match message.get("error") {
            Some(error) => conforms::<v1::Error>("error", error),
            None => check_result(&methods[&message["id"].to_string()], &message["result"]),
        },
    }
}

#[test]
fn everything_it_writes_is_in_the_schema() {
    let place = Place::new();
    let mut agent = place.agent("auth-required,echo-user,replay-turns=1");
    assert_eq!(agent.prompt("none", "x").code(), -32000);
    agent.call("authenticate", json!({"methodId": "demo-login"})).ok();
    assert_eq!(agent.prompt("none", "x").code(), -32002);
    let session = agent.session();
    let id = json!({"sessionId": session, "cwd": "/"});
    let turn = agent.send_prompt(
        &session,
        "[fs-read /x] [ask] [think a] [plan] [tool b] [ext] [slow 1] hello #c",
    );
    for (method, result) in [
        ("fs/read_text_file", json!({"content": "x"})),
        (
            "session/request_permission",
            json!({"outcome": {"outcome": "selected", "optionId": "yes"}}),
        ),
    ] {
        let request = agent.until(method);
        agent.answer(&request, result);
    }
    agent.wait(&turn).ok();
    agent.call("session/set_mode", json!({"sessionId": session, "modeId": "code"})).ok();
    let option = json!({"sessionId": session, "configId": "model", "value": "demo-large"});
    agent.call("session/set_config_option", option).ok();
    agent.load(&session).ok();
    let methods = ["resume", "fork", "list", "close", "delete"];
    for method in methods.map(|name| format!("session/{name}")) {
        agent.call(&method, id.clone()).ok();
    }

    let mut methods = HashMap::new();
    let mut checked = 0;
    for line in place.record() {
        if line.dir == Direction::Event {
            continue;
        }
        let message: Value = serde_json::from_str(&line.line).unwrap();
        if line.dir == Direction::Out {
            check(&message, &methods);
            checked += 1;
        } else if let Some(method) = message["method"].as_str() {
            methods.insert(message["id"].to_string(), method.to_owned());
        }
    }
    assert!(checked > 30, "only {checked} messages");
}
