//! The Rust SDK as a client: a session, a question and turns. Over its own WebSocket transport on `acpctl web` in versions
//! 1 and 2, or, with AGENT_CMD, over stdio in version 2. Its arguments are the prompts in version 2; `streaming` is printed
//! in a slow answer, and all that was said before PASS. FAIL comes with the reason. A program of its own, built by the test.

use std::str::FromStr as _;
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
use agent_client_protocol::{AcpAgent, Agent, Client, ConnectTo, Error, LineDirection};
use agent_client_protocol_http::HttpClient;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

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

/// Turns in version 2, and a replay of the session after its close.
async fn talk_v2(
    transport: impl ConnectTo<Client> + 'static,
    heard: Heard,
    mut told: Told,
) -> Done {
    Client
        .v2()
        .on_receive_notification(
            async move |told: v2::UpdateSessionNotification, _| {
                heard.send(Ok(told.update)).map_err(Error::into_internal_error)
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
        .connect_with(transport, async move |agent| {
            let info = v2::Implementation::new("acpd-test", "0");
            let hello = v2::InitializeRequest::new(ProtocolVersion::V2, info);
            let hello = agent.send_request(hello).block_task().await?;
            assert_eq!(hello.protocol_version, ProtocolVersion::V2);
            let session = agent.build_session(var("WORK")).start_session().block_task().await?;
            let (mut session, mut seen) = (session.session, Seen::new());
            for prompt in std::env::args().skip(1) {
                session.send_prompt(&prompt).block_task().await?;
                let stop = turn_end(&mut told, &mut seen).await;
                assert_eq!(stop, v2::StopReason::EndTurn, "{prompt}: {seen:?}");
            }
            session.close().block_task().await?;

            let resume = v2::ResumeSessionRequest::new(session.session_id().clone(), var("WORK"));
            let resume = resume.replay_from(v2::ReplayFrom::Start(v2::ReplayFromStart::new()));
            session = agent.resume_session_from(resume).start_session().block_task().await?.session;
            let mut replayed = Seen::new();
            assert_eq!(until_idle(&mut told, &mut replayed).await, None);
            assert_eq!(replayed, seen);
            session.send_prompt("say #after").block_task().await?;
            assert_eq!(turn_end(&mut told, &mut seen).await, v2::StopReason::EndTurn);
            session.close().block_task().await?;
            seen.iter().for_each(|(kind, _, text)| println!("{kind}: {text}"));
            Ok(())
        })
        .await?;
    Ok(())
}

/// Updates as the SDK has read them, and lines that it could not read.
type Heard = UnboundedSender<Result<v2::SessionUpdate, String>>;
type Told = UnboundedReceiver<Result<v2::SessionUpdate, String>>;
/// Messages with their texts, and calls with their last status: kind, id, text.
type Seen = Vec<(String, String, String)>;

/// Adds what comes up to the end of a turn. A state may come again before the turn begins.
async fn turn_end(told: &mut Told, seen: &mut Seen) -> v2::StopReason {
    loop {
        if let Some(stop) = until_idle(told, seen).await {
            return stop;
        }
    }
}

/// Adds what comes up to the next idle state, and returns its stop reason.
async fn until_idle(told: &mut Told, seen: &mut Seen) -> Option<v2::StopReason> {
    loop {
        let update = told.recv().await.expect("an update").expect("a line of version 2");
        match &update {
            v2::SessionUpdate::StateUpdate(v2::StateUpdate::Idle(idle)) => {
                return idle.stop_reason.clone();
            }
            // Newer than this SDK's schema.
            v2::SessionUpdate::Other(other) if other.session_update == "replay_complete" => {}
            v2::SessionUpdate::Other(other) => panic!("no update of version 2: {other:?}"),
            _ => add(&serde_json::to_value(&update).expect("an object"), seen),
        }
    }
}

fn add(update: &Value, seen: &mut Seen) {
    let word = |name: &str| update[name].as_str().unwrap_or_default().to_owned();
    let (kind, message, call) = (word("sessionUpdate"), word("messageId"), word("toolCallId"));
    if message.is_empty() && call.is_empty() {
        return;
    }
    let (kind, id) = (kind.trim_end_matches("_chunk").to_owned(), message + &call);
    let at = seen.iter().position(|known| (&known.0, &known.1) == (&kind, &id));
    let at = at.unwrap_or_else(|| {
        seen.push((kind, id, String::new()));
        seen.len() - 1
    });
    let text = &mut seen[at].2;
    match (&update["content"], update["status"].as_str()) {
        (_, Some(status)) => *text = status.to_owned(),
        (Value::Array(blocks), _) if call.is_empty() => {
            *text = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        }
        (block, _) => text.push_str(block["text"].as_str().unwrap_or_default()),
    }
    if ["tick 5", "tick 5/30"].iter().any(|tick| text.trim_end().ends_with(tick)) {
        println!("streaming");
    }
}

/// `acpctl acp`, whose lines are read a second time: the SDK drops those that it cannot read.
fn over_stdio(command: &str, heard: Heard) -> Result<AcpAgent, Error> {
    let agent = AcpAgent::from_str(command)?;
    Ok(agent.with_debug(move |line, direction| {
        let line: Value = match direction {
            LineDirection::Stdout => serde_json::from_str(line).expect("JSON"),
            LineDirection::Stdin if line.contains(r#""error""#) => panic!("refused: {line}"),
            _ => return,
        };
        let params = line["params"].clone();
        if line["method"] == "session/update"
            && let Err(error) = serde_json::from_value::<v2::UpdateSessionNotification>(params)
        {
            heard.send(Err(format!("{error}: {line}"))).expect("the client listens");
        }
    }))
}

async fn all() -> Done {
    let (heard, told) = unbounded_channel();
    if let Ok(command) = std::env::var("AGENT_CMD") {
        return talk_v2(over_stdio(&command, heard.clone())?, heard, told).await;
    }
    talk().await?;
    talk_v2(transport()?, heard, told).await
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    match tokio::time::timeout(Duration::from_secs(60), all()).await {
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
