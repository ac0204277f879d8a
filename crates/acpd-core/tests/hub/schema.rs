//! Everything that the hub originates is in the official schema.

use agent_client_protocol_schema::{v1, v2};
use serde::de::DeserializeOwned;
use serde_json::Value;

fn conforms<T: DeserializeOwned>(line: &Value) {
    reads::<T>(&line["params"]);
}

fn reads<T: DeserializeOwned>(part: &Value) {
    if let Err(error) = serde_json::from_value::<T>(part.clone()) {
        panic!("{error}: {part}");
    }
}

/// The id of a request has to fit into 32 bits or to be a string: the Kotlin SDK reads no other.
fn check_id(line: &Value) {
    let id = &line["id"];
    let fits = id.is_string() || id.as_i64().is_some_and(|number| i32::try_from(number).is_ok());
    assert!(line["method"].is_null() || id.is_null() || fits, "{line}");
}

pub(crate) fn check_to_agent(line: &Value) {
    check_id(line);
    match line["method"].as_str() {
        Some("initialize") => conforms::<v1::InitializeRequest>(line),
        Some("session/new") => conforms::<v1::NewSessionRequest>(line),
        Some("session/load") => conforms::<v1::LoadSessionRequest>(line),
        Some("session/resume") => conforms::<v1::ResumeSessionRequest>(line),
        Some("session/fork") => conforms::<v1::ForkSessionRequest>(line),
        Some("session/list") => conforms::<v1::ListSessionsRequest>(line),
        Some("session/close") => conforms::<v1::CloseSessionRequest>(line),
        Some("session/delete") => conforms::<v1::DeleteSessionRequest>(line),
        Some("session/prompt") => conforms::<v1::PromptRequest>(line),
        Some("session/cancel") => conforms::<v1::CancelNotification>(line),
        Some("session/set_title") => conforms::<v1::SetSessionTitleRequest>(line),
        Some("session/archive") => conforms::<v1::ArchiveSessionRequest>(line),
        Some("session/unarchive") => conforms::<v1::UnarchiveSessionRequest>(line),
        Some("session/status") => conforms::<v1::SessionStatusRequest>(line),
        Some("mcp/message") => conforms::<v1::MessageMcpNotification>(line),
        Some("session/set_mode") => conforms::<v1::SetSessionModeRequest>(line),
        Some("session/set_config_option") => conforms::<v1::SetSessionConfigOptionRequest>(line),
        Some(_) => {}
        None => {
            if let Some(result) = line.get("result") {
                let has = |name: &str| result.get(name).is_some();
                if has("action") {
                    reads::<v1::CreateElicitationResponse>(result);
                } else if has("content") {
                    reads::<v1::ReadTextFileResponse>(result);
                } else if has("outcome") {
                    reads::<v1::RequestPermissionResponse>(result);
                } else if has("result") || has("error") {
                    reads::<v1::MessageMcpResponse>(result);
                } else {
                    reads::<v1::WriteTextFileResponse>(result);
                }
            }
        }
    }
}

/// Like [`check_to_agent`], for an agent of version 2.
pub(crate) fn check_to_second_agent(line: &Value) {
    check_id(line);
    match line["method"].as_str() {
        Some("initialize") => {
            conforms::<v1::InitializeRequest>(line);
            conforms::<v2::InitializeRequest>(line);
        }
        Some("session/new") => conforms::<v2::NewSessionRequest>(line),
        Some("session/resume") => conforms::<v2::ResumeSessionRequest>(line),
        Some("session/fork") => conforms::<v2::ForkSessionRequest>(line),
        Some("session/close") => conforms::<v2::CloseSessionRequest>(line),
        Some("session/prompt") => conforms::<v2::PromptRequest>(line),
        Some("session/cancel") => conforms::<v2::CancelSessionNotification>(line),
        Some("session/set_config_option") => conforms::<v2::SetSessionConfigOptionRequest>(line),
        Some("session/load" | "session/set_mode" | "authenticate" | "logout") => {
            panic!("version 2 has no such method: {line}");
        }
        _ => {}
    }
}

pub(crate) fn check_to_client(line: &Value) {
    check_id(line);
    match line["method"].as_str() {
        Some("session/update") => {
            let kind = line["params"]["update"]["sessionUpdate"].as_str();
            // Tests let agents say things that no schema knows.
            if !kind.is_some_and(|kind| kind.starts_with("odd_")) {
                conforms::<v1::SessionNotification>(line);
            }
        }
        Some("mcp/message") => conforms::<v1::MessageMcpRequest>(line),
        Some("session/request_permission") => conforms::<v1::RequestPermissionRequest>(line),
        Some(_) => {}
        None => {
            if let Some(error) = line.get("error") {
                reads::<v1::Error>(error);
            }
            check_result(&line["result"]);
        }
    }
}

/// Results that tell themselves apart by their members.
fn check_result(result: &Value) {
    let has = |name: &str| result.get(name).is_some();
    if has("agentCapabilities") {
        reads::<v1::InitializeResponse>(result);
    } else if result["sessions"][0].get("archived").is_some() {
        reads::<v1::ListSessionsResponse>(result);
    }
}

/// Like [`check_to_client`], for a client of version 2.
pub(crate) fn check_to_second(line: &Value) {
    check_id(line);
    match line["method"].as_str() {
        Some("session/update") => conforms::<v2::UpdateSessionNotification>(line),
        Some("session/request_permission") => conforms::<v2::RequestPermissionRequest>(line),
        Some("elicitation/create") => conforms::<v2::CreateElicitationRequest>(line),
        Some(_) => {}
        None => {
            let result = &line["result"];
            let has = |name: &str| result.get(name).is_some();
            if has("capabilities") {
                reads::<v2::InitializeResponse>(result);
            } else if has("messageId") {
                reads::<v2::PromptResponse>(result);
            } else if has("sessionId") {
                reads::<v2::NewSessionResponse>(result);
            } else if has("configOptions") {
                reads::<v2::ResumeSessionResponse>(result);
            }
        }
    }
}
