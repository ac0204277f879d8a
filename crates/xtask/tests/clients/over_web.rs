//! The Rust SDK's own WebSocket transport on `acpctl web`: a session, a question and a turn, in
//! versions 1 and 2. Ends with PASS, or FAIL with the reason. A program of its own, built by the
//! test.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    ContentBlock, InitializeRequest, NewSessionRequest, PermissionOptionKind, PromptRequest,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse,
    SelectedPermissionOutcome, SessionNotification, SessionUpdate, StopReason, TextContent,
};
use agent_client_protocol::v2::schema as v2;
use agent_client_protocol::{Agent, Client, Error};
use agent_client_protocol_http::HttpClient;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

type Done = Result<(), Box<dyn std::error::Error>>;

fn var(name: &str) -> String {
    std::env::var(name).expect(name)
}

fn transport() -> Result<HttpClient, Box<dyn std::error::Error>> {
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, format!("Bearer {}", var("TOKEN")).parse()?);
    let client = HttpClient::builder_with_endpoint(var("URL"));
    Ok(client.configure_http(|http| http.default_headers(headers).no_proxy()).build()?)
}

async fn talk() -> Done {
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
        .connect_with(transport()?, async move |agent: ConnectionTo<Agent>| {
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

/// The same in version 2, and a replay of the session.
async fn talk_v2() -> Done {
    let (tell, mut told) = unbounded_channel();
    Client
        .v2()
        .on_receive_notification(
            async move |told: v2::UpdateSessionNotification, _| {
                tell.send(told.update).map_err(Error::into_internal_error)
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |asked: v2::RequestPermissionRequest, responder, _| {
                let is_allow = |kind: &_| *kind == v2::PermissionOptionKind::AllowOnce;
                let allow = asked.options.iter().find(|option| is_allow(&option.kind));
                let id = allow.expect("one").option_id.clone();
                let chosen = v2::SelectedPermissionOutcome::new(id);
                let outcome = v2::RequestPermissionOutcome::Selected(chosen);
                responder.respond(v2::RequestPermissionResponse::new(outcome))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(transport()?, async move |agent| {
            let info = v2::Implementation::new("acpd-test", "0");
            let hello = v2::InitializeRequest::new(ProtocolVersion::V2, info);
            let hello = agent.send_request(hello).block_task().await?;
            assert_eq!(hello.protocol_version, ProtocolVersion::V2);
            let session = agent.build_session(var("WORK")).start_session().block_task().await?;
            let session = session.session;
            session.send_prompt("say #two [ask] [tool Edit]").block_task().await?;
            let (live, stop) = until_idle(&mut told).await;
            assert_eq!(stop, Some(v2::StopReason::EndTurn));
            assert!(live.contains("permission: yes") && live.contains("tags=two"), "{live}");

            let resume = v2::ResumeSessionRequest::new(session.session_id().clone(), var("WORK"));
            let resume = resume.replay_from(v2::ReplayFrom::Start(v2::ReplayFromStart::new()));
            agent.resume_session_from(resume).start_session().block_task().await?;
            assert_eq!(until_idle(&mut told).await, (live, None));
            session.close().block_task().await?;
            Ok(())
        })
        .await?;
    Ok(())
}

/// Returns the agent's words up to the next idle state, and its stop reason.
async fn until_idle(
    told: &mut UnboundedReceiver<v2::SessionUpdate>,
) -> (String, Option<v2::StopReason>) {
    let mut said = String::new();
    loop {
        match told.recv().await.expect("an update") {
            v2::SessionUpdate::StateUpdate(v2::StateUpdate::Idle(idle)) => {
                return (said, idle.stop_reason);
            }
            v2::SessionUpdate::AgentMessageChunk(chunk) => {
                if let v2::ContentBlock::Text(text) = chunk.content {
                    said.push_str(&text.text);
                }
            }
            // Newer than this SDK's schema.
            v2::SessionUpdate::Other(other) if other.session_update == "replay_complete" => {}
            v2::SessionUpdate::Other(other) => panic!("no update of version 2: {other:?}"),
            _ => {}
        }
    }
}

async fn both() -> Done {
    talk().await?;
    talk_v2().await
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    match tokio::time::timeout(Duration::from_secs(60), both()).await {
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
