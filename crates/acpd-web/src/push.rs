//! Web Push: notifies a browser when its user is needed, also while the page is closed.
//!
//! ```text
//!  daemon ──rows that change──▶ needs ──notification──▶ seal (for one browser) ──▶ its push service ──▶ its service worker
//!                                                         ▲ vapid: the sender's signature
//! ```
//!
//! The daemon is watched only while a browser wants notifications. A push service sees the time,
//! the sender, the receiver and the rounded length of a message; only the browser can read the
//! content.

mod needs;
mod post;
mod seal;

use std::sync::Arc;
use std::time::Duration;

use acpd_api::method;
use acpd_sys::runtime::halves;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::time::sleep;

use crate::body;
use crate::door::SignedIn;
use crate::failure::Failure;
use crate::refusal::{Refusal, json as answer};
use crate::relay::Lines;
use crate::state::Server;
use crate::subscription::Subscription;
use needs::{Needs, News};
use post::{Outcome, Vapid};
use seal::Recipient;

/// Pause before the daemon is looked for again.
const PAUSE: Duration = Duration::from_secs(5);
/// Pauses before the tries of a push.
const TRIES: [Duration; 3] = [Duration::ZERO, Duration::from_secs(5), Duration::from_mins(1)];

/// `GET /push`: the key for which a browser subscribes.
pub(crate) async fn key(
    State(server): State<Arc<Server>>,
    _: SignedIn,
) -> Result<Response, Refusal> {
    needs_tls(&server)?;
    let vapid = server.off(|server| Vapid::of(&server.store)).await?;
    Ok(answer(StatusCode::OK, &json!({"key": vapid.public()})))
}

/// `POST /push`: sets the subscription of this token's browser.
pub(crate) async fn subscribe(
    State(server): State<Arc<Server>>,
    SignedIn(token): SignedIn,
    body: Body,
) -> Result<Response, Refusal> {
    needs_tls(&server)?;
    let said: Option<Subscription> = body::json(body).await;
    let is_usable =
        |it: &Subscription| Recipient::of(it).is_some() && post::service(&it.endpoint).is_some();
    let Some(subscription) = said.filter(is_usable) else {
        let hint = "send what `PushSubscription.toJSON()` gives, with an `https` address";
        return Err(Refusal::new(StatusCode::BAD_REQUEST, "this is no push subscription", hint));
    };
    server.off(move |server| server.store.subscribe(&token.id, Some(subscription))).await?;
    server.tokens.send_replace(());
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `DELETE /push`: removes the subscription.
pub(crate) async fn unsubscribe(
    State(server): State<Arc<Server>>,
    SignedIn(token): SignedIn,
) -> Result<Response, Refusal> {
    server.off(move |server| server.store.subscribe(&token.id, None)).await?;
    server.tokens.send_replace(());
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn needs_tls(server: &Server) -> Result<(), Refusal> {
    if server.names.is_secure() {
        return Ok(());
    }
    let hint = "docs/web.md says how a phone gets here over TLS";
    Err(Refusal::new(StatusCode::CONFLICT, "without TLS nothing is pushed", hint))
}

/// Notifies browsers as long as the server runs.
pub(crate) async fn run(server: Arc<Server>) {
    let mut changes = server.tokens.subscribe();
    let mut needs = Needs::default();
    loop {
        // An unreadable file is reported to the next client that needs it.
        if server.store.subscriptions().is_ok_and(|all| !all.is_empty()) {
            // After a loss of the daemon, its next snapshot shows what happened meanwhile.
            let _ = follow(&server, &mut needs, &mut changes).await;
            sleep(PAUSE).await;
        } else {
            needs = Needs::default();
            if changes.changed().await.is_err() {
                return;
            }
        }
    }
}

/// Watches the daemon until it is gone, or no browser wants notifications.
async fn follow(
    server: &Arc<Server>,
    needs: &mut Needs,
    changes: &mut tokio::sync::watch::Receiver<()>,
) -> Result<(), Failure> {
    let stream = server.off(Server::daemon).await?;
    let (reader, mut writer) = halves(stream)?;
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": method::WATCH}).to_string() + "\n";
    writer.write_all(request.as_bytes()).await?;
    let mut lines = Lines::new(reader);
    loop {
        let line = tokio::select! {
            line = lines.next() => line,
            _ = changes.changed() => {
                if server.store.subscriptions()?.is_empty() { return Ok(()) }
                continue;
            }
        };
        let Some(line) = line else { return Ok(()) };
        let mut message: Value = serde_json::from_slice(&line)?;
        let news = match message["method"].as_str() {
            None => needs.snapshot(serde_json::from_value(message["result"].take())?),
            Some(method::CHANGED) => {
                needs.changed(serde_json::from_value(message["params"].take())?)
            }
            Some(_) => continue,
        };
        for news in news {
            tell(server, &news)?;
        }
    }
}

/// Sends a notification to each subscribed browser.
fn tell(server: &Arc<Server>, news: &News) -> Result<(), Failure> {
    for (token, subscription) in server.store.subscriptions()? {
        let (server, news) = (Arc::clone(server), news.clone());
        tokio::spawn(async move {
            for pause in TRIES {
                sleep(pause).await;
                // The browser is notified once, soon or not at all: a failure cannot be fixed here.
                match post::post(&server, &subscription, &news).await {
                    Ok(Outcome::Taken) => return,
                    Ok(Outcome::Gone) => {
                        let is_it = subscription.clone();
                        let forget = move |server: &Server| server.store.forget(&token, &is_it);
                        let _ = server.off(forget).await;
                        return;
                    }
                    Ok(Outcome::Later) | Err(_) => {}
                }
            }
        });
    }
    Ok(())
}
