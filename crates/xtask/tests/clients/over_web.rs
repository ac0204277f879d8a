//! The Rust SDK's own WebSocket transport on `acpctl web`: a session, a question, a turn. Ends with PASS, or FAIL with
//! the reason. A program of its own, built by the test.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    ContentBlock, InitializeRequest, NewSessionRequest, PermissionOptionKind, PromptRequest,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse,
    SelectedPermissionOutcome, SessionNotification, SessionUpdate, StopReason, TextContent,
};
use agent_client_protocol::{Agent, Client};
use agent_client_protocol_http::HttpClient;
use reqwest::header::{AUTHORIZATION, HeaderMap};

type Done = Result<(), Box<dyn std::error::Error>>;

fn var(name: &str) -> String {
    std::env::var(name).expect(name)
}

async fn talk() -> Done {
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, format!("Bearer {}", var("TOKEN")).parse()?);
    let transport = HttpClient::builder_with_endpoint(var("URL"))
        .configure_http(|http| http.default_headers(headers).no_proxy())
        .build()?;
    let said = Arc::new(Mutex::new(String::new()));
    let heard = Arc::clone(&said);
    Client
        .v1()
        .on_receive_notification(
            async move |told: SessionNotification, _| {
                if let SessionUpdate::AgentMessageChunk(chunk) = told.update
                    && let ContentBlock::Text(text) = chunk.content
                {
                    heard.lock().expect("nobody panics").push_str(&text.text);
                }
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |asked: RequestPermissionRequest, responder, _| {
                let is_allow = |kind| kind == PermissionOptionKind::AllowOnce;
                let allow = asked.options.iter().find(|option| is_allow(option.kind)).expect("one");
                let chosen = SelectedPermissionOutcome::new(allow.option_id.clone());
                let outcome = RequestPermissionOutcome::Selected(chosen);
                responder.respond(RequestPermissionResponse::new(outcome))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(transport, async move |agent: ConnectionTo<Agent>| {
            let hello = InitializeRequest::new(ProtocolVersion::V1);
            let hello = agent.send_request(hello).block_task().await?;
            assert_eq!(hello.protocol_version, ProtocolVersion::V1);
            let made = agent.send_request(NewSessionRequest::new(var("WORK"))).block_task().await?;
            let text = ContentBlock::Text(TextContent::new("say #one [ask]"));
            let prompt = PromptRequest::new(made.session_id, vec![text]);
            let turn = agent.send_request(prompt).block_task().await?;
            assert_eq!(turn.stop_reason, StopReason::EndTurn);
            let said = said.lock().expect("nobody panics");
            assert!(said.contains("permission: yes") && said.contains("tags=one"), "{said}");
            Ok(())
        })
        .await?;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    match tokio::time::timeout(Duration::from_secs(60), talk()).await {
        Ok(Ok(())) => println!("PASS"),
        Ok(Err(error)) => {
            println!("FAIL {error}");
            std::process::exit(1);
        }
        Err(_) => {
            println!("FAIL no end");
            std::process::exit(1);
        }
    }
}
