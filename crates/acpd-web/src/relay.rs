//! One socket of a client, and one connection to the daemon: each text frame is a line, as it is.
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
//! At most one line is under way to the client. While it is not taken, nothing is read from the daemon, which then
//! treats this client as one that does not read: other clients do not notice.

use std::sync::{Arc, Mutex, PoisonError};

use acp_wire::{Body, Framer};
use acpd_sys::halves::{Reader, Writer, halves};
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, close_code};
use bytes::{Buf as _, Bytes};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout};

use crate::check::{Client, Verdict};
use crate::failure::Failure;
use crate::state::{Limits, Server};
use crate::store::Token;

/// The token is no longer good.
const SIGNED_OUT: u16 = 4401;
/// There is no daemon.
const DAEMON_AWAY: u16 = 4001;
/// The most that a reason may have, in bytes.
const LONGEST_REASON: usize = 123;

/// How a socket ends.
enum End {
    /// The client is gone, or takes no last word.
    Gone,
    /// The client gets this close code and reason.
    Told(u16, String),
}

/// Carries lines until one side ends.
pub(crate) async fn relay(
    server: Arc<Server>,
    mut socket: WebSocket,
    token: Token,
    client: Client,
) {
    // Before the token is looked at again, so that no change is missed.
    let mut changes = server.news.of_tokens();
    let mut stop = server.news.of_the_end();
    let found = server.off(Server::daemon).await;
    let (reader, writer) = match found.and_then(|stream| halves(stream).map_err(Failure::new)) {
        Ok(halves) => halves,
        Err(why) => {
            return tell(&mut socket, End::Told(DAEMON_AWAY, words(&why)), &server.limits).await;
        }
    };
    let (mut sink, source) = socket.split();
    let (replies, replied) = mpsc::channel(1);
    let heard = Heard::default();
    let end = tokio::select! {
        end = to_daemon(source, writer, &client, replies, &heard, server.limits.message) => end,
        end = to_client(&mut sink, reader, replied, &heard, &server.limits) => end,
        () = heard.silence(&server.limits) => End::Gone,
        () = revoked(&server, &token, &mut changes) => End::Told(SIGNED_OUT, "signed out".to_owned()),
        _ = stop.wait_for(|stops| *stops) => End::Told(close_code::AWAY, "the server ends".to_owned()),
    };
    tell(&mut sink, end, &server.limits).await;
}

/// When something came from the client, or was taken by it.
#[derive(Clone)]
struct Heard(Arc<Mutex<Instant>>);

impl Default for Heard {
    fn default() -> Heard {
        Heard(Arc::new(Mutex::new(Instant::now())))
    }
}

impl Heard {
    fn now(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn last(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the client was silent for too long.
    async fn silence(&self, limits: &Limits) {
        while self.last().elapsed() < limits.silence {
            sleep_until(self.last() + limits.silence).await;
        }
    }
}

/// Lines of the client.
async fn to_daemon(
    mut source: SplitStream<WebSocket>,
    mut daemon: Writer,
    client: &Client,
    replies: mpsc::Sender<Bytes>,
    heard: &Heard,
    longest: usize,
) -> End {
    let too_long = || End::Told(close_code::SIZE, format!("a message has at most {longest} bytes"));
    loop {
        let line = match source.next().await {
            None | Some(Ok(Message::Close(_))) => return End::Gone,
            Some(Err(error)) if error.to_string().contains("too long") => {
                return too_long();
            }
            Some(Err(_)) => return End::Gone,
            Some(Ok(Message::Binary(_))) => {
                return End::Told(close_code::UNSUPPORTED, "a message is text".to_owned());
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {
                heard.now();
                continue;
            }
            Some(Ok(Message::Text(text))) => Bytes::from(text),
        };
        heard.now();
        if line.len() > longest {
            return too_long();
        }
        if line.contains(&b'\n') {
            let why = "a message is one line, without a line feed";
            return End::Told(close_code::INVALID, why.to_owned());
        }
        match client.check(&line) {
            Verdict::Drop => {}
            Verdict::Answer(answer) => drop(replies.send(answer).await),
            Verdict::Pass(line) => {
                let mut line = line.chain(&b"\n"[..]);
                if daemon.write_all_buf(&mut line).await.is_err() {
                    // The task that reads from it gets its last lines, and its end.
                    std::future::pending::<()>().await;
                }
            }
        }
    }
}

/// Lines of the daemon, our own answers, and now and then the question whether the client is there.
async fn to_client(
    sink: &mut SplitSink<WebSocket, Message>,
    daemon: Reader,
    mut replies: mpsc::Receiver<Bytes>,
    heard: &Heard,
    limits: &Limits,
) -> End {
    let mut lines = Lines::new(daemon);
    let mut pings = interval_at(Instant::now() + limits.ping, limits.ping);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let line = tokio::select! {
            line = lines.next() => match line {
                Some(line) => line,
                None => return End::Told(DAEMON_AWAY, "acpd has closed the connection; connect again".to_owned()),
            },
            Some(reply) = replies.recv() => reply,
            _ = pings.tick() => {
                if sink.send(Message::Ping(Bytes::new())).await.is_err() {
                    return End::Gone;
                }
                continue;
            }
        };
        let Ok(text) = Utf8Bytes::try_from(line) else {
            // The daemon reads only text, so it says nothing else.
            return End::Told(close_code::ERROR, "acpd has said what is no text".to_owned());
        };
        if sink.send(Message::Text(text)).await.is_err() {
            return End::Gone;
        }
        heard.now();
    }
}

/// Reads the lines of the daemon.
pub(crate) struct Lines {
    daemon: Reader,
    framer: Framer,
}

impl Lines {
    pub(crate) fn new(daemon: Reader) -> Lines {
        Lines { daemon, framer: Framer::new(usize::MAX) }
    }

    /// The next line; `None` at the end. A caller that waits for something else as well loses nothing.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            while let Some(frame) = self.framer.next_frame() {
                if let Body::Line(line) = frame.body {
                    return Some(line);
                }
            }
            // One that was killed with something unread is gone all the same.
            let count = self.daemon.read_buf(self.framer.read_buf()).await.ok()?;
            if count == 0 {
                return None;
            }
        }
    }
}

/// Waits until the token is taken back.
async fn revoked(server: &Server, token: &Token, changes: &mut tokio::sync::watch::Receiver<()>) {
    loop {
        // A file that cannot be read grants no access.
        if !server.store.has(&token.id).unwrap_or(false) {
            return;
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}

/// Says why it ends, if the client takes that.
async fn tell(sink: &mut (impl futures_util::Sink<Message> + Unpin), end: End, limits: &Limits) {
    let End::Told(code, mut reason) = end else { return };
    while reason.len() > LONGEST_REASON {
        reason.pop();
    }
    let frame = CloseFrame { code, reason: reason.into() };
    let last = async {
        // A client that is gone needs no reason.
        let _ = sink.send(Message::Close(Some(frame))).await;
        let _ = sink.close().await;
    };
    let _ = timeout(limits.goodbye, last).await;
}

/// An error and its way out, in one sentence.
fn words(why: &Failure) -> String {
    match why.way_out() {
        Some(hint) => format!("{why}; {hint}"),
        None => why.to_string(),
    }
}
