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
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout};

use crate::blocks::{Outgoing, PageConversation};
use crate::check::{Client, Verdict};
use crate::failure::Failure;
use crate::state::{Limits, Server};
use crate::store::Token;

const SIGNED_OUT: u16 = 4401;
const DAEMON_AWAY: u16 = 4001;
/// Most bytes of a reason.
const LONGEST_REASON: usize = 123;

enum WsEnd {
    /// The client is gone, or takes no close frame.
    Gone,
    /// The client gets this close code and reason.
    Code(u16, String),
}

/// Carries lines until one side ends.
pub(crate) async fn relay(
    server: Arc<Server>,
    mut socket: WebSocket,
    token: Token,
    client: Client,
    conversation: Option<PageConversation>,
) {
    // Subscribed before the token is checked again, so that no change is missed.
    let mut changes = server.tokens.subscribe();
    let mut stop = server.end.subscribe();
    let found = server.off(Server::daemon).await;
    let (reader, writer) = match found.and_then(|stream| halves(stream).map_err(Failure::new)) {
        Ok(halves) => halves,
        Err(why) => {
            return tell(&mut socket, WsEnd::Code(DAEMON_AWAY, words(&why)), &server.limits).await;
        }
    };
    let (mut sink, source) = socket.split();
    let (replies, replied) = mpsc::channel(1);
    // Unbounded, but each request follows from a line, so there are few.
    let (requests, requested) = mpsc::unbounded_channel();
    let heard = Heard(watch::Sender::new(Instant::now()));
    let is_page = conversation.is_some();
    let mut from =
        FromClient { source, daemon: writer, client: &client, is_page, replies, requested };
    let lines = Lines::new(reader);
    let mut to = ToClient { sink: &mut sink, lines, conversation, replied, requests };
    let end = tokio::select! {
        end = from.carry(&heard, server.limits.message) => end,
        end = to.carry(&heard, &server.limits) => end,
        () = heard.silence(&server.limits) => WsEnd::Gone,
        () = revoked(&server, &token, &mut changes) => WsEnd::Code(SIGNED_OUT, "signed out".to_owned()),
        _ = stop.wait_for(|stops| *stops) => WsEnd::Code(close_code::AWAY, "the server ends".to_owned()),
    };
    tell(&mut sink, end, &server.limits).await;
}

/// The last time that the client sent or took something.
struct Heard(watch::Sender<Instant>);

impl Heard {
    fn now(&self) {
        self.0.send_replace(Instant::now());
    }

    fn last(&self) -> Instant {
        *self.0.borrow()
    }

    async fn silence(&self, limits: &Limits) {
        while self.last().elapsed() < limits.silence {
            sleep_until(self.last() + limits.silence).await;
        }
    }
}

struct FromClient<'a> {
    source: SplitStream<WebSocket>,
    daemon: StreamWriter,
    client: &'a Client,
    /// The client is the page, which has a conversation.
    is_page: bool,
    /// Answers of the server itself, and requests of the page to its conversation.
    replies: mpsc::Sender<Bytes>,
    /// Requests of the conversation to the daemon.
    requested: mpsc::UnboundedReceiver<Bytes>,
}

impl FromClient<'_> {
    async fn carry(&mut self, heard: &Heard, longest: usize) -> WsEnd {
        loop {
            let frame = tokio::select! {
                frame = self.source.next() => frame,
                Some(request) = self.requested.recv() => {
                    self.write(request).await;
                    continue;
                }
            };
            let line = match line_of(frame, longest) {
                Ok(line) => line,
                Err(end) => return end,
            };
            heard.now();
            let Some(line) = line else { continue };
            if self.is_page && PageConversation::takes(&line) {
                drop(self.replies.send(line).await);
                continue;
            }
            match self.client.check(&line) {
                Verdict::Drop => {}
                Verdict::Answer(answer) => drop(self.replies.send(answer).await),
                Verdict::Pass(line) => self.write(line).await,
            }
        }
    }

    async fn write(&mut self, line: Bytes) {
        let mut line = line.chain(&b"\n"[..]);
        if self.daemon.write_all_buf(&mut line).await.is_err() {
            // The reading task gets the daemon's last lines and its end.
            std::future::pending::<()>().await;
        }
    }
}

/// The line in a frame; `None` for a ping or pong.
fn line_of(
    frame: Option<Result<Message, axum::Error>>,
    longest: usize,
) -> Result<Option<Bytes>, WsEnd> {
    let too_long =
        || WsEnd::Code(close_code::SIZE, format!("a message has at most {longest} bytes"));
    let line = match frame {
        Some(Err(error)) if error.to_string().contains("too long") => return Err(too_long()),
        None | Some(Ok(Message::Close(_)) | Err(_)) => return Err(WsEnd::Gone),
        Some(Ok(Message::Binary(_))) => {
            return Err(WsEnd::Code(close_code::UNSUPPORTED, "a message is text".to_owned()));
        }
        Some(Ok(Message::Ping(_) | Message::Pong(_))) => return Ok(None),
        Some(Ok(Message::Text(text))) => Bytes::from(text),
    };
    if line.len() > longest {
        return Err(too_long());
    }
    if line.contains(&b'\n') {
        let why = "a message is one line, without a line feed";
        return Err(WsEnd::Code(close_code::INVALID, why.to_owned()));
    }
    Ok(Some(line))
}

/// Lines of the daemon and replies, with pings that find a client that is gone.
struct ToClient<'a> {
    sink: &'a mut SplitSink<WebSocket, Message>,
    lines: Lines,
    conversation: Option<PageConversation>,
    replied: mpsc::Receiver<Bytes>,
    requests: mpsc::UnboundedSender<Bytes>,
}

impl ToClient<'_> {
    async fn carry(&mut self, heard: &Heard, limits: &Limits) -> WsEnd {
        let mut pings = interval_at(Instant::now() + limits.ping, limits.ping);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let lines = tokio::select! {
                line = self.lines.next() => match line {
                    Some(line) => self.on_daemon(line),
                    None => return WsEnd::Code(DAEMON_AWAY, "acpd has closed the connection; connect again".to_owned()),
                },
                Some(reply) = self.replied.recv() => self.on_reply(reply),
                _ = pings.tick() => {
                    if self.sink.send(Message::Ping(Bytes::new())).await.is_err() {
                        return WsEnd::Gone;
                    }
                    continue;
                }
            };
            for line in lines {
                let Ok(text) = Utf8Bytes::try_from(line) else {
                    // The daemon sends only UTF-8, because it reads nothing else.
                    return WsEnd::Code(
                        close_code::ERROR,
                        "acpd has said what is no text".to_owned(),
                    );
                };
                if self.sink.send(Message::Text(text)).await.is_err() {
                    return WsEnd::Gone;
                }
                heard.now();
            }
        }
    }

    fn on_daemon(&mut self, line: Bytes) -> Vec<Bytes> {
        let Some(conversation) = &mut self.conversation else { return vec![line] };
        let outgoing = conversation.on_daemon(line);
        self.pass(outgoing)
    }

    fn on_reply(&mut self, line: Bytes) -> Vec<Bytes> {
        match &mut self.conversation {
            Some(conversation) if PageConversation::takes(&line) => {
                let outgoing = conversation.on_page(&line);
                self.pass(outgoing)
            }
            _ => vec![line],
        }
    }

    /// Sends requests to the daemon, and returns the lines for the page.
    fn pass(&self, outgoing: Outgoing) -> Vec<Bytes> {
        for line in outgoing.to_daemon {
            // Without the receiver the socket is closed.
            let _ = self.requests.send(line);
        }
        outgoing.to_page
    }
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

async fn revoked(server: &Server, token: &Token, changes: &mut watch::Receiver<()>) {
    // An unreadable file grants no access.
    while server.store.has(&token.id).unwrap_or(false) && changes.changed().await.is_ok() {}
}

/// Sends the reason of the end, if the client takes it.
async fn tell(sink: &mut (impl futures_util::Sink<Message> + Unpin), end: WsEnd, limits: &Limits) {
    let WsEnd::Code(code, mut reason) = end else { return };
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
