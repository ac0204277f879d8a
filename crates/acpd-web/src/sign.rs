//! Signing in with a code, signing out, and the caller's identity.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, HeaderMap, SET_COOKIE, USER_AGENT};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use serde_json::json;

use crate::body;
use crate::door::SignedIn;
use crate::page::VERSION;
use crate::refusal::{Refusal, json};
use crate::state::{Event, Server};

/// Seconds that a browser keeps the cookie: 400 days, the most that browsers take.
const COOKIE_LIFE: u64 = 400 * 24 * 60 * 60;

#[derive(Deserialize)]
struct SignIn {
    code: String,
}

/// `POST /sign-in`: a code for a key and a cookie.
pub(crate) async fn sign_in(
    State(server): State<Arc<Server>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    // A form of another site could send any other type without a preflight request.
    let is_json = headers
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    if !is_json {
        let (status, hint) =
            (StatusCode::UNSUPPORTED_MEDIA_TYPE, "send `content-type: application/json`");
        return Err(Refusal::new(status, "this is no JSON", hint));
    }
    if server.wrong_codes.are_too_many(Instant::now()) {
        return Err(Refusal::too_often());
    }
    let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok());
    let device = device(agent.unwrap_or_default());
    let signed_in = match body::json(body).await {
        Some(SignIn { code }) => {
            server.off(move |server| server.store.redeem(&code, &device)).await?
        }
        None => None,
    };
    let Some(signed_in) = signed_in else {
        server.wrong_codes.count(Instant::now());
        let hint = "`acpctl web pair` prints a new code";
        let why = "this code is wrong, was used before, or is older than two minutes";
        return Err(Refusal::new(StatusCode::UNAUTHORIZED, why, hint));
    };
    let token = signed_in.token;
    (server.tell)(Event::SignedIn { name: token.name.clone() });
    let answer = json!({"key": signed_in.key.reveal(), "name": token.name, "scopes": token.scopes});
    let mut response = json(StatusCode::OK, &answer);
    set_cookie(&server, &mut response, signed_in.cookie.reveal(), COOKIE_LIFE);
    Ok(response)
}

/// `POST /sign-out`: revokes the token and closes its sockets.
pub(crate) async fn sign_out(
    State(server): State<Arc<Server>>,
    SignedIn(token): SignedIn,
) -> Result<Response, Refusal> {
    server.off(move |server| server.store.revoke(|one| one.id == token.id)).await?;
    server.tokens.send_replace(());
    let mut response = StatusCode::NO_CONTENT.into_response();
    set_cookie(&server, &mut response, "", 0);
    Ok(response)
}

/// `GET /me`: the name and the scopes of the token.
pub(crate) async fn me(
    State(server): State<Arc<Server>>,
    SignedIn(token): SignedIn,
) -> Result<Response, Refusal> {
    let me = json!({"name": token.name, "scopes": token.scopes, "place": token.name,
        "version": env!("CARGO_PKG_VERSION"), "page": VERSION, "push": server.names.is_secure()});
    Ok(json(StatusCode::OK, &me))
}

fn set_cookie(server: &Server, response: &mut Response, value: &str, life: u64) {
    let secure = if server.names.is_secure() { "; Secure" } else { "" };
    let name = &server.cookie;
    let cookie =
        format!("{name}={value}; Path=/; Max-Age={life}; HttpOnly; SameSite=Strict{secure}");
    // The name and the value are letters and digits.
    response
        .headers_mut()
        .extend(HeaderValue::try_from(cookie).ok().map(|cookie| (SET_COOKIE, cookie)));
}

/// The common name of the browser that sends this user agent.
fn device(agent: &str) -> String {
    let first = |known: &[(&str, &'static str)]| {
        known.iter().find(|(word, _)| agent.contains(word)).map(|(_, name)| *name)
    };
    // In this order, because each browser names those that it imitates.
    let browser = first(&[
        ("Firefox/", "Firefox"),
        ("FxiOS/", "Firefox"),
        ("Edg", "Edge"),
        ("OPR/", "Opera"),
        ("Chrome/", "Chrome"),
        ("CriOS/", "Chrome"),
        ("Safari/", "Safari"),
    ]);
    let system = first(&[
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Android", "Android"),
        ("Windows", "Windows"),
        ("Mac OS X", "Mac"),
        ("CrOS", "ChromeOS"),
        ("Linux", "Linux"),
    ]);
    match (browser, system) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(one), None) | (None, Some(one)) => one.to_owned(),
        (None, None) => "browser".to_owned(),
    }
}
