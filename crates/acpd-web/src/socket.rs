//! `GET /acp`, and `GET /page` for the page: opening a socket. The transport for remote agents lets
//! a server offer WebSockets only; other requests are answered with how to connect.

use std::sync::Arc;

use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::http::header::{ALLOW, UPGRADE};
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};

use crate::blocks::PageConversation;
use crate::check::Client;
use crate::door::{PAGE, SignedIn};
use crate::refusal::Refusal;
use crate::relay::relay;
use crate::secret::Secret;
use crate::state::{LONGEST_MESSAGE, Server};

/// The subprotocol: version 1 of ACP, a message in each text frame.
const PROTOCOL: &str = "acp.v1";
/// The transport's header for the id of a connection.
const CONNECTION: HeaderName = HeaderName::from_static("acp-connection-id");

pub(crate) async fn acp(
    State(server): State<Arc<Server>>,
    SignedIn(token): SignedIn,
    uri: Uri,
    socket: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Result<Response, Refusal> {
    let conversation = (uri.path() == PAGE).then(PageConversation::default);
    let Ok(socket) = socket else { return Ok(only_sockets(StatusCode::UPGRADE_REQUIRED)) };
    let place = Arc::clone(&server.sockets).try_acquire_owned().map_err(|_| {
        let hint = "close pages that you do not need";
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "too many sockets are open", hint)
    })?;
    let mut query = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let agent = query.find(|(name, _)| name == "agent").map(|(_, agent)| agent.into_owned());
    let client = Client { scopes: token.scopes, agent, place: token.name.clone() };
    // The limit counts all frames of a message together.
    let socket = socket.protocols([PROTOCOL]).max_message_size(LONGEST_MESSAGE);
    let socket = socket.max_frame_size(LONGEST_MESSAGE);
    let mut response = socket.on_upgrade(async move |socket| {
        relay(server, socket, token, client, conversation).await;
        drop(place);
    });
    // The transport requires an id, but each socket is a connection of its own and needs none.
    let id = Secret::code().ok().and_then(|id| HeaderValue::from_str(id.reveal()).ok());
    response.headers_mut().extend(id.map(|id| (CONNECTION, id)));
    Ok(response)
}

/// `POST` and `DELETE` of the transport's other form, which this server does not offer.
pub(crate) async fn no_stream() -> Response {
    only_sockets(StatusCode::METHOD_NOT_ALLOWED)
}

fn only_sockets(status: StatusCode) -> Response {
    let hint = "connect with a WebSocket";
    let refusal = Refusal::new(status, "this address is for WebSockets alone", hint);
    let mut response = ([(UPGRADE, "websocket")], refusal).into_response();
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
    }
    response
}
