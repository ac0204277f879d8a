//! `GET /acp`: the door of a socket.

use std::sync::Arc;

use axum::Extension;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use crate::check::Client;
use crate::door::{self, Sender};
use crate::refusal::Refusal;
use crate::relay::relay;
use crate::state::Server;

/// What is spoken: protocol version 1, a message in each text frame.
const PROTOCOL: &str = "acp.v1";

/// Opens a socket for whoever has a token.
pub(crate) async fn acp(
    State(server): State<Arc<Server>>,
    Extension(sender): Extension<Sender>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    socket: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Result<Response, Refusal> {
    let token = door::token(&server, &headers, sender)?;
    let socket = socket.map_err(|_| {
        let hint = "connect with a WebSocket";
        Refusal::new(StatusCode::UPGRADE_REQUIRED, "this address is for sockets", hint)
    })?;
    let place = Arc::clone(&server.sockets).try_acquire_owned().map_err(|_| {
        let hint = "close pages that you do not need";
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "too many sockets are open", hint)
    })?;
    let mut query = form_urlencoded::parse(query.as_deref().unwrap_or_default().as_bytes());
    let agent = query.find(|(name, _)| name == "agent").map(|(_, agent)| agent.into_owned());
    let client = Client { scopes: token.scopes, agent, place: token.name.clone() };
    let longest = 2 * server.limits.message;
    let socket = socket.protocols([PROTOCOL]).max_message_size(longest).max_frame_size(longest);
    Ok(socket.on_upgrade(async move |socket| {
        relay(server, socket, token, client).await;
        drop(place);
    }))
}
