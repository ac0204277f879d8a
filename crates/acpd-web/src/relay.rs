//! One socket of a client, and one connection to the daemon: each text frame is an unchanged line.
//! On the socket of the page, lines of a conversation become blocks (see `blocks`).
//!
//! ```text
//!  finding the daemon ──▶ open ──┬── the client leaves ─────────────────▶ over
//!         │                      ├── its token is gone ────────▶ 4401 ──▶ over
//!         └── there is none      ├── the daemon is gone ───────▶ 4001 ──▶ over
//!               ▼                ├── no line, or too long ─────▶ 100x ──▶ over
//!             4001               ├── the server ends ──────────▶ 1001 ──▶ over
//!                                └── silent for too long ───────────────▶ over
//! ```
//!
//! At most one line is under way to the client. Until the client takes it, nothing is read from the
//! daemon, which then treats it as a slow client: other clients do not notice.

use std::sync::Arc;

use acp_wire::{Body, Framer};
use acpd_sys::runtime::{StreamReader, StreamWriter, halves};
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, close_code};
use bytes::{Buf as _, Bytes};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout};

use crate::blocks::{Outgoing, PageConversation};
use crate::check::{Client, Verdict};
use crate::failure::Failure;
use crate::state::{GOODBYE, LONGEST_MESSAGE, Server};
use crate::store::TokenInfo;

const SIGNED_OUT: u16 = 4401;
const DAEMON_AWAY: u16 = 4001;
/// Most bytes of a reason.
const LONGEST_REASON: usize = 123;

/// The close code and reason for the client; none for a client that is gone, or takes no close frame.
type WsEnd = Option<(u16, String)>;

/// Carries lines until one side ends.
pub(crate) async fn relay(
    server: Arc<Server>,
    mut socket: WebSocket,
    token: TokenInfo,
    client: Client,
    mut conversation: Option<PageConversation>,
) {
    let limits = &server.limits;
    // Subscribed before the token is checked again, so that no change is missed.
    let mut changes = server.tokens.subscribe();
    let mut stop = server.end.subscribe();
    let found = server.off(Server::daemon).await;
    let (reader, mut daemon) = match found.and_then(|stream| halves(stream).map_err(Failure::new)) {
        Ok(halves) => halves,
        Err(why) => {
            return tell(&mut socket, Some((DAEMON_AWAY, words(&why)))).await;
        }
    };
    let (mut sink, mut source) = socket.split();
    // Answers of the server itself, and requests of the page to its conversation.
    let (replies, mut replied) = mpsc::channel(1);
    // Requests of the conversation to the daemon. Unbounded, but each follows from a line, so there
    // are few.
    let (requests, mut requested) = mpsc::unbounded_channel();
    // The last time that the client sent or took something.
    let heard = watch::Sender::new(Instant::now());
    let is_page = conversation.is_some();
    let from_client = async {
        loop {
            let line = tokio::select! {
                frame = source.next() => match line_of(frame) {
                    Ok(line) => line,
                    Err(end) => return end,
                },
                Some(request) = requested.recv() => {
                    write(&mut daemon, request).await;
                    continue;
                }
            };
            heard.send_replace(Instant::now());
            let Some(line) = line else { continue };
            if is_page && PageConversation::takes(&line) {
                drop(replies.send(line).await);
                continue;
            }
            match client.check(&line) {
                Verdict::Drop => {}
                Verdict::Answer(answer) => drop(replies.send(answer).await),
                Verdict::Pass(line) => write(&mut daemon, line).await,
            }
        }
    };
    // Lines of the daemon and replies, with pings that find a client that is gone.
    let to_client = async {
        let mut lines = Lines::new(reader);
        let mut pings = interval_at(Instant::now() + limits.ping, limits.ping);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let (line, is_reply) = tokio::select! {
                line = lines.next() => match line {
                    Some(line) => (line, false),
                    None => return Some((DAEMON_AWAY, "acpd has closed the connection; connect again".to_owned())),
                },
                Some(reply) = replied.recv() => (reply, true),
                _ = pings.tick() => {
                    if sink.send(Message::Ping(Bytes::new())).await.is_err() {
                        return None;
                    }
                    continue;
                }
            };
            let Outgoing { to_page, to_daemon } = match &mut conversation {
                Some(page) if !is_reply => page.on_daemon(line),
                Some(page) if PageConversation::takes(&line) => page.on_page(&line),
                _ => Outgoing { to_page: vec![line], to_daemon: Vec::new() },
            };
            for line in to_daemon {
                // Without the receiver the socket is closed.
                let _ = requests.send(line);
            }
            for line in to_page {
                let Ok(text) = Utf8Bytes::try_from(line) else {
                    // The daemon sends only UTF-8, because it reads nothing else.
                    return Some((close_code::ERROR, "acpd has said what is no text".to_owned()));
                };
                if sink.send(Message::Text(text)).await.is_err() {
                    return None;
                }
                heard.send_replace(Instant::now());
            }
        }
    };
    let silence = async {
        while heard.borrow().elapsed() < limits.silence {
            let until = *heard.borrow() + limits.silence;
            sleep_until(until).await;
        }
    };
    let revoked = async {
        // An unreadable file grants no access.
        while server.store.has(&token.id).unwrap_or(false) && changes.changed().await.is_ok() {}
    };
    let end = tokio::select! {
        end = from_client => end,
        end = to_client => end,
        () = silence => None,
        () = revoked => Some((SIGNED_OUT, "signed out".to_owned())),
        _ = stop.wait_for(|stops| *stops) => Some((close_code::AWAY, "the server ends".to_owned())),
    };
    tell(&mut sink, end).await;
}

async fn write(daemon: &mut StreamWriter, line: Bytes) {
    let mut line = line.chain(&b"\n"[..]);
    if daemon.write_all_buf(&mut line).await.is_err() {
        // The reading task gets the daemon's last lines and its end.
        std::future::pending::<()>().await;
    }
}

/// The line in a frame; `None` for a ping or pong.
fn line_of(frame: Option<Result<Message, axum::Error>>) -> Result<Option<Bytes>, WsEnd> {
    let line = match frame {
        Some(Err(error)) if error.to_string().contains("too long") => {
            let why = format!("a message has at most {LONGEST_MESSAGE} bytes");
            return Err(Some((close_code::SIZE, why)));
        }
        None | Some(Ok(Message::Close(_)) | Err(_)) => return Err(None),
        Some(Ok(Message::Binary(_))) => {
            return Err(Some((close_code::UNSUPPORTED, "a message is text".to_owned())));
        }
        Some(Ok(Message::Ping(_) | Message::Pong(_))) => return Ok(None),
        Some(Ok(Message::Text(text))) => Bytes::from(text),
    };
    if line.contains(&b'\n') {
        let why = "a message is one line, without a line feed";
        return Err(Some((close_code::INVALID, why.to_owned())));
    }
    Ok(Some(line))
}

pub(crate) struct Lines {
    daemon: StreamReader,
    framer: Framer,
}

impl Lines {
    pub(crate) fn new(daemon: StreamReader) -> Lines {
        Lines { daemon, framer: Framer::new(usize::MAX) }
    }

    /// The next line; `None` at the end. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            while let Some(frame) = self.framer.next_frame() {
                if let Body::Line(line) = frame.body {
                    return Some(line);
                }
            }
            // A reset connection is an end, too: the daemon was killed with unread bytes.
            let count = self.daemon.read_buf(self.framer.read_buf()).await.ok()?;
            if count == 0 {
                return None;
            }
        }
    }
}

/// Sends the reason of the end, if the client takes it.
async fn tell(sink: &mut (impl futures_util::Sink<Message> + Unpin), end: WsEnd) {
    let Some((code, mut reason)) = end else { return };
    reason.truncate(reason.floor_char_boundary(LONGEST_REASON));
    let frame = CloseFrame { code, reason: reason.into() };
    let last = async {
        // A client that is gone needs no reason.
        let _ = sink.send(Message::Close(Some(frame))).await;
        let _ = sink.close().await;
    };
    let _ = timeout(GOODBYE, last).await;
}

/// An error and its way out, in one sentence.
fn words(why: &Failure) -> String {
    match why.way_out() {
        Some(hint) => format!("{why}; {hint}"),
        None => why.to_string(),
    }
}
