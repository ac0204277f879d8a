//! Access control. Each request is checked in this order, before any of its effects:
//!
//! ```text
//!  Host ──▶ Origin ──▶ key and cookie ──▶ handler
//!   421      403          401, 429
//! ```
//!
//! - `Host` is one of [`Names`](crate::names::Names), so no name of a stranger leads here.
//! - `Origin`, which a browser adds to requests of a page, is our own page's. Browsers omit it only
//!   when they open the page and its files. A program sends `Authorization`, which a page of a
//!   stranger cannot add.
//! - A browser has a cookie and a key, and neither is enough alone: another server of this machine
//!   sees the cookie, because cookies are shared between ports, and scripts can read the key. A
//!   program has a key alone, which a page cannot use.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::header::{AUTHORIZATION, COOKIE, HOST, HeaderMap, ORIGIN, SEC_WEBSOCKET_PROTOCOL};
use axum::http::request::Parts;
use axum::http::{HeaderName, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::headers;
use crate::names::Names;
use crate::refusal::Refusal;
use crate::state::Server;
use crate::store::TokenInfo;

/// Path of the page's socket, which carries blocks.
pub(crate) const PAGE: &str = "/page";
/// Prefix of the subprotocol that carries a key: a page can add no header to a socket.
const BEARER: &str = "bearer.";

/// The origin of a request.
#[derive(Debug, Clone, Copy)]
struct Sender {
    /// A page of this server sent it; otherwise a program, or a browser that opens the page.
    is_page: bool,
}

pub(crate) struct SignedIn(pub(crate) TokenInfo);

impl FromRequestParts<Arc<Server>> for SignedIn {
    type Rejection = Refusal;

    async fn from_request_parts(
        parts: &mut Parts,
        server: &Arc<Server>,
    ) -> Result<SignedIn, Refusal> {
        let sender = parts.extensions.get::<Sender>().ok_or_else(Refusal::unknown)?;
        token(server, &parts.headers, *sender).map(SignedIn)
    }
}

/// Checks `Host` and `Origin`, and adds the headers to every answer.
pub(crate) async fn door(
    State(server): State<Arc<Server>>,
    mut request: Request,
    next: Next,
) -> Response {
    let own = own_origin(&request, &server.names);
    let sender = own.as_deref().map_or_else(|| Err(wrong_host()), |own| sender_of(&request, own));
    let mut response = match sender {
        Ok(sender) => {
            request.extensions_mut().insert(sender);
            next.run(request).await
        }
        Err(refusal) => refusal.into_response(),
    };
    headers::add(response.headers_mut(), own.as_deref());
    response
}

/// The origin that the request addresses, if it is one of ours.
fn own_origin(request: &Request, names: &Names) -> Option<String> {
    let host = only(request.headers(), &HOST)?;
    let is_plain = request.uri().authority().is_none_or(|authority| authority.as_str() == host);
    names.origin_of(host).filter(|_| is_plain)
}

fn wrong_host() -> Refusal {
    let hint = "open the address that `acpctl web` prints, or name the proxy with `--behind`";
    Refusal::new(StatusCode::MISDIRECTED_REQUEST, "this server has another name", hint)
}

fn sender_of(request: &Request, own: &str) -> Result<Sender, Refusal> {
    let headers = request.headers();
    let wrong = |why: &str| Refusal::new(StatusCode::FORBIDDEN, why, "open the page itself");
    if headers.contains_key(ORIGIN) {
        let is_own = only(headers, &ORIGIN).is_some_and(|origin| origin == own);
        return if is_own {
            Ok(Sender { is_page: true })
        } else {
            Err(wrong("another site asks this"))
        };
    }
    let is_socket = ["/acp", PAGE].contains(&request.uri().path());
    let is_reading = [Method::GET, Method::HEAD].contains(request.method()) && !is_socket;
    if is_reading || headers.contains_key(AUTHORIZATION) {
        return Ok(Sender { is_page: false });
    }
    Err(wrong("neither a page of this server asks this nor a program with a token"))
}

fn token(server: &Server, headers: &HeaderMap, sender: Sender) -> Result<TokenInfo, Refusal> {
    // Only a page needs the subprotocol: a program can add headers.
    let from_page = || subprotocol(headers).filter(|_| sender.is_page);
    let key = bearer(headers).or_else(from_page);
    let key = key.ok_or_else(Refusal::unknown)?;
    let cookie = cookie(headers, &server.cookie);
    match server.store.token(key, cookie, sender.is_page)? {
        Some(token) => Ok(token),
        None if server.wrong_keys.count(Instant::now()) => Err(Refusal::too_often()),
        None => Err(Refusal::unknown()),
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, key) = only(headers, &AUTHORIZATION)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

fn subprotocol(headers: &HeaderMap) -> Option<&str> {
    let lists = headers.get_all(SEC_WEBSOCKET_PROTOCOL).into_iter();
    let mut words = lists.filter_map(|list| list.to_str().ok()).flat_map(|list| list.split(','));
    words.find_map(|word| word.trim().strip_prefix(BEARER))
}

fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lists = headers.get_all(COOKIE).into_iter();
    let mut cookies = lists.filter_map(|list| list.to_str().ok()).flat_map(|list| list.split(';'));
    cookies.find_map(|cookie| cookie.trim().strip_prefix(name)?.strip_prefix('='))
}

/// The value of a header that must not come twice.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).into_iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}
