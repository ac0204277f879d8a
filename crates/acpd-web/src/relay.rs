//! One socket of a client, and one connection to the daemon: each text frame is a line, as it is. On the socket of the
//! page, lines of a conversation become blocks on their way (see `blocks`).
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

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp_wire::{Body, Framer};
use acpd_sys::halves::{Reader, Writer, halves};
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, close_code};
use bytes::{Buf as _, Bytes};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout};

use crate::blocks::{Conversation, Lines as Told};
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
    /// It is told why.
    Told(u16, String),
}

/// A conversation that both directions of a socket work on; none for a client that folds lines itself.
type Folded = Option<Mutex<Conversation>>;

/// Carries lines until one side ends.
pub(crate) async fn relay(
    server: Arc<Server>,
    mut socket: WebSocket,
    token: Token,
    client: Client,
    conversation: Option<Conversation>,
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
    // Each is the consequence of a line, so there are never many.
    let (requests, requested) = mpsc::unbounded_channel();
    let folded: Folded = conversation.map(Mutex::new);
    let heard = Heard::default();
    let (mut from, mut to) = (
        FromClient { source, daemon: writer, client: &client, folded: &folded, replies, requested },
        ToClient { sink: &mut sink, lines: Lines::new(reader), folded: &folded, replied, requests },
    );
    let end = tokio::select! {
        end = from.carry(&heard, server.limits.message) => end,
        end = to.carry(&heard, &server.limits) => end,
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
struct FromClient<'a> {
    source: SplitStream<WebSocket>,
    daemon: Writer,
    client: &'a Client,
    folded: &'a Folded,
    replies: mpsc::Sender<Bytes>,
    /// Requests of the conversation.
    requested: mpsc::UnboundedReceiver<Bytes>,
}

impl FromClient<'_> {
    async fn carry(&mut self, heard: &Heard, longest: usize) -> End {
        loop {
            let line = tokio::select! {
                frame = self.source.next() => match line_of(frame, longest) {
                    Ok(line) => line,
                    Err(end) => return end,
                },
                Some(request) = self.requested.recv() => {
                    self.write(request).await;
                    continue;
                }
            };
            heard.now();
            let Some(line) = line else { continue };
            let told = self.folded.as_ref().and_then(|folded| locked(folded).on_page(&line));
            if let Some(Told { to_page, to_daemon }) = told {
                for line in to_daemon {
                    self.write(line).await;
                }
                for line in to_page {
                    drop(self.replies.send(line).await);
                }
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
            // Its last words, and its end, come the other way.
            std::future::pending::<()>().await;
        }
    }
}

/// The line in a frame; none in one that only says that the client is there.
fn line_of(
    frame: Option<Result<Message, axum::Error>>,
    longest: usize,
) -> Result<Option<Bytes>, End> {
    let too_long = || End::Told(close_code::SIZE, format!("a message has at most {longest} bytes"));
    let line = match frame {
        Some(Err(error)) if error.to_string().contains("too long") => return Err(too_long()),
        None | Some(Ok(Message::Close(_)) | Err(_)) => return Err(End::Gone),
        Some(Ok(Message::Binary(_))) => {
            return Err(End::Told(close_code::UNSUPPORTED, "a message is text".to_owned()));
        }
        Some(Ok(Message::Ping(_) | Message::Pong(_))) => return Ok(None),
        Some(Ok(Message::Text(text))) => Bytes::from(text),
    };
    if line.len() > longest {
        return Err(too_long());
    }
    if line.contains(&b'\n') {
        let why = "a message is one line, without a line feed";
        return Err(End::Told(close_code::INVALID, why.to_owned()));
    }
    Ok(Some(line))
}

fn locked(folded: &Mutex<Conversation>) -> MutexGuard<'_, Conversation> {
    folded.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lines of the daemon, our own answers, and now and then the question whether the client is there.
struct ToClient<'a> {
    sink: &'a mut SplitSink<WebSocket, Message>,
    lines: Lines,
    folded: &'a Folded,
    replied: mpsc::Receiver<Bytes>,
    requests: mpsc::UnboundedSender<Bytes>,
}

impl ToClient<'_> {
    async fn carry(&mut self, heard: &Heard, limits: &Limits) -> End {
        let mut pings = interval_at(Instant::now() + limits.ping, limits.ping);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let lines = tokio::select! {
                line = self.lines.next() => match (line, self.folded) {
                    (None, _) => return End::Told(DAEMON_AWAY, "acpd has closed the connection; connect again".to_owned()),
                    (Some(line), None) => vec![line],
                    (Some(line), Some(folded)) => {
                        let Told { to_page, to_daemon } = locked(folded).on_daemon(line);
                        for line in to_daemon {
                            // Without its receiver the socket is over.
                            let _ = self.requests.send(line);
                        }
                        to_page
                    }
                },
                Some(reply) = self.replied.recv() => vec![reply],
                _ = pings.tick() => {
                    if self.sink.send(Message::Ping(Bytes::new())).await.is_err() {
                        return End::Gone;
                    }
                    continue;
                }
            };
            for line in lines {
                let Ok(text) = Utf8Bytes::try_from(line) else {
                    // The daemon reads only text, so it says nothing else.
                    return End::Told(
                        close_code::ERROR,
                        "acpd has said what is no text".to_owned(),
                    );
                };
                if self.sink.send(Message::Text(text)).await.is_err() {
                    return End::Gone;
                }
                heard.now();
            }
        }
    }
}

/// What the daemon says.
pub(crate) struct Lines {
    daemon: Reader,
    framer: Framer,
}

impl Lines {
    pub(crate) fn new(daemon: Reader) -> Lines {
        Lines { daemon, framer: Framer::new(usize::MAX) }
    }

    /// The next line; `None` at the end. Whoever waits for something else as well loses nothing.
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
        // A file that cannot be read lets nobody in.
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
