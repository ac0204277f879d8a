//! The socket: who may connect, and one reader and one writer per connection.
//!
//! A writer works off what it is given strictly in order: lines, pieces of journal, answers that need
//! the journal. So nothing overtakes anything, however slow a client is. What waits is counted in
//! bytes; past its limit the hub sends this client no live lines until it has drained.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use acp_wire::{Body, ErrorObject, Framer, Id, build, code};
use acpd_api::{AgentInfo, AgentList, ErrorData, NAMESPACE, Reason, Status};
use acpd_core::ids::{ClientId, Seq, SessionKey};
use acpd_core::{Read, Search, StatusPart};
use acpd_sys::dir::private_dir;
use acpd_sys::socket::{self, SocketFile};
use bytes::Bytes;
use interprocess::local_socket::tokio::prelude::*;
use interprocess::local_socket::tokio::{Listener, Stream};
use interprocess::local_socket::{GenericFilePath, ListenerOptions};
use interprocess::os::unix::local_socket::ListenerOptionsExt as _;
use interprocess::os::unix::uds_local_socket::tokio::Listener as UdsListener;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot, watch};

use crate::config::{self, Config, Installed};
use crate::finder::Finder;
use crate::host::Reaper;
use crate::journal::{Journal, LogPage, Values};

/// How often the socket file is looked at.
const CHECK: Duration = Duration::from_mins(1);
/// Bytes that are written at once; a longer line is written by itself.
const BLOCK: usize = 64 << 10;
/// How long a client that sends no more may take to read what it was sent.
const LAST_READ: Duration = Duration::from_secs(10);

/// What a connection reports.
#[derive(Debug)]
pub enum ClientEvent {
    /// It is there, and this is how to send to it.
    Opened {
        /// Where its lines go.
        sink: Sink,
        /// Its process descends from an agent, as far as that can be seen.
        under_agent: bool,
    },
    /// It sent lines.
    Lines(Vec<Body>),
    /// It has read everything that it was sent.
    Drained,
    /// A piece of journal was sent.
    ReadDone {
        /// Of which session.
        session: SessionKey,
        /// Up to this position.
        upto: Seq,
    },
    /// It is gone.
    Closed,
}

/// Where connections report to.
pub type ClientEvents = mpsc::Sender<(ClientId, ClientEvent)>;

/// One thing for a client.
#[derive(Debug)]
pub enum Op {
    /// A line without newline.
    Line(Bytes),
    /// A piece of journal.
    Read(Read),
    /// The answer to `_acpd/session/log`.
    Log(LogPage),
    /// The answer to `_acpd/session/search`.
    Search(Id, Box<Search>),
    /// An answer with a session's values.
    Values(Values),
    /// A status, to be completed with memory figures.
    Status {
        /// The request to answer.
        id: Id,
        /// Without memory figures.
        status: Box<Status>,
        /// What was asked for.
        part: StatusPart,
    },
}

impl Op {
    /// About how much memory it takes until it is written, in bytes.
    fn size(&self) -> usize {
        match self {
            Op::Line(line) => line.len() + 1,
            Op::Status { status, .. } => 2048 * (1 + status.agents.len() + status.sessions.len()),
            Op::Values(values) => 1024 + values.extra.len(),
            Op::Search(_, search) => 1024 * (1 + search.sessions.len()),
            // Their lines are read when it is their turn.
            Op::Read(_) | Op::Log(_) => 1024,
        }
    }
}

/// What the relay and a writer know together of a connection.
#[derive(Debug, Default)]
struct Backlog {
    /// Sizes of what is not written yet, in bytes.
    waiting: AtomicUsize,
    /// The hub was told that the client lags and was not told that it has drained.
    lagging: AtomicBool,
}

/// The sending end of a connection. Dropping it closes the connection after what was sent.
#[derive(Debug)]
pub struct Sink {
    ops: mpsc::UnboundedSender<Op>,
    backlog: Arc<Backlog>,
    cut: oneshot::Sender<()>,
}

impl Sink {
    /// Hands over something.
    pub fn send(&self, op: Op) {
        self.backlog.waiting.fetch_add(op.size(), Ordering::Relaxed);
        // The writer is gone when the client is; the reader tells of that.
        self.ops.send(op).ok();
    }

    /// What was not written yet, in bytes.
    pub fn waiting(&self) -> usize {
        self.backlog.waiting.load(Ordering::Relaxed)
    }

    /// Whether the client lags, as far as the hub knows.
    pub fn lagging(&self) -> bool {
        self.backlog.lagging.load(Ordering::Relaxed)
    }

    /// Remembers what the hub was told. A client that lags is reported as drained when it has read
    /// everything.
    pub fn set_lagging(&self, lagging: bool) {
        self.backlog.lagging.store(lagging, Ordering::Relaxed);
    }

    /// Closes the connection at once, whatever waits.
    pub fn cut(self) {
        // It may be closed already.
        self.cut.send(()).ok();
    }
}

/// What connections need.
#[derive(Debug, Clone)]
pub struct Service {
    /// Where to report to.
    pub events: ClientEvents,
    /// Reads the journal.
    pub journal: Journal,
    /// Finds what was said.
    pub finder: Finder,
    /// Knows what agents take.
    pub reaper: Reaper,
    /// How agents are started.
    pub config: Arc<Config>,
    /// Longest line in bytes.
    pub line_limit: usize,
    /// Connections at once.
    pub max_clients: usize,
}

impl Service {
    /// What a person could do for the agent, as far as files show it.
    async fn hint(&self, agent: &str) -> Option<String> {
        let (config, agent) = (Arc::clone(&self.config), agent.to_owned());
        let look = move || {
            let profile = config.agent(&agent).ok()?;
            let env = config::environment(profile, std::env::vars_os());
            match config::installed(profile, &env) {
                Installed::Missing { hint } => Some(hint),
                Installed::Other | Installed::Here { .. } => None,
            }
        };
        // Without an answer it is only not hinted.
        tokio::task::spawn_blocking(look).await.ok().flatten()
    }
}

/// The socket that connections come in by.
#[derive(Debug)]
pub struct Door {
    /// Where it is, if we have bound it: what somebody else has bound is theirs to look after.
    place: Option<(PathBuf, Option<SocketFile>)>,
    listener: Listener,
}

impl Door {
    /// Binds the socket: only its owner can reach it, whatever the umask. To be called under the
    /// instance lock, on the runtime.
    ///
    /// # Errors
    /// When the path is taken by something else or cannot be bound.
    pub fn open(path: PathBuf) -> Result<Door, String> {
        socket::clear_stale_socket(&path).map_err(|error| error.to_string())?;
        let options = || -> io::Result<ListenerOptions<'_>> {
            let name = path.as_path().to_fs_name::<GenericFilePath>()?;
            // On drop the name stays: a successor may have bound it by then.
            Ok(ListenerOptions::new().name(name).reclaim_name(false))
        };
        let bound = match options().and_then(|options| options.mode(0o600).create_tokio()) {
            // Not every system can set the mode of a socket; its directory is private anyway.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                options().and_then(ListenerOptions::create_tokio)
            }
            other => other,
        };
        let listener = bound.map_err(|e| format!("cannot listen on `{}`: {e}", path.display()))?;
        let file = SocketFile::at(&path);
        Ok(Door { place: Some((path, file)), listener })
    }

    /// Takes over a socket that listens already: with the path of its file if that is ours to look
    /// after. To be called on the runtime.
    ///
    /// # Errors
    /// When it is no such socket.
    pub fn given(socket: OwnedFd, path: Option<PathBuf>) -> Result<Door, String> {
        let socket = std::os::unix::net::UnixListener::from(socket);
        let listener = socket
            .set_nonblocking(true)
            .and_then(|()| UdsListener::try_from(OwnedFd::from(socket)))
            .map_err(|error| format!("cannot use the socket that was handed over: {error}"))?;
        let place = path.map(|path| (path.clone(), SocketFile::at(&path)));
        Ok(Door { place, listener: listener.into() })
    }

    /// The socket itself, which goes on listening. To be called on the runtime.
    ///
    /// # Errors
    /// When the system does not let go of it.
    pub fn into_socket(self) -> io::Result<OwnedFd> {
        let Listener::UdSocket(listener) = self.listener;
        OwnedFd::try_from(listener).map_err(|error| error.to_string()).map_err(io::Error::other)
    }

    /// The file that goes with the daemon.
    pub fn own_path(&self) -> Option<PathBuf> {
        self.place.as_ref().map(|(path, _)| path.clone())
    }

    /// Binds again if the file is gone or another one: cleaners of temporary directories do that.
    fn check(&mut self) {
        let Some((path, file)) = &self.place else { return };
        if SocketFile::at(path) == *file && file.is_some() {
            // An old file looks abandoned to a cleaner.
            socket::touch(path).ok();
            return;
        }
        let runtime = path.parent().unwrap_or(path);
        let again = private_dir(runtime)
            .map_err(|error| error.to_string())
            .and_then(|()| Door::open(path.clone()));
        match again {
            Ok(door) => {
                tracing::warn!("the socket was gone and is there again");
                *self = door;
            }
            Err(error) => tracing::error!(error, "the socket is gone and cannot be made again"),
        }
    }
}

/// Accepts connections until `stop` changes.
pub async fn accept(mut door: Door, service: Service, mut stop: watch::Receiver<bool>) -> Door {
    let mut next = 0;
    let open = Arc::new(AtomicUsize::new(0));
    let mut check = tokio::time::interval(CHECK);
    check.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let stream = tokio::select! {
            stream = door.listener.accept() => stream,
            _ = check.tick() => {
                door.check();
                continue;
            }
            _ = stop.changed() => return door,
        };
        match stream {
            Ok(stream) => {
                if let Some(why) = refusal(&stream, open.load(Ordering::Relaxed), &service) {
                    tracing::warn!(why = why.message, "a connection was refused");
                    tokio::spawn(refuse(stream, why));
                    continue;
                }
                next += 1;
                open.fetch_add(1, Ordering::Relaxed);
                let (client, service, open) = (ClientId(next), service.clone(), Arc::clone(&open));
                tokio::spawn(async move {
                    serve(client, stream, service).await;
                    open.fetch_sub(1, Ordering::Relaxed);
                });
            }
            Err(error) => {
                // Out of descriptors, most likely: let others go first.
                tracing::error!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// Why a connection is refused, before a byte of it is read.
fn refusal(stream: &Stream, open: usize, service: &Service) -> Option<ErrorObject> {
    let own = acpd_sys::socket::own_uid();
    let peer = stream.peer_creds().ok().and_then(|creds| creds.euid());
    if peer != Some(own) {
        let who = peer.map_or_else(|| "an unknown user".to_owned(), |uid| format!("user {uid}"));
        let data = ErrorData::new(Reason::Other).with_hint("each user runs an acpd of their own");
        let text = format!("this acpd belongs to user {own}, not to {who}");
        return Some(
            ErrorObject::new(code::INVALID_REQUEST, text).with_data(&json!({ NAMESPACE: data })),
        );
    }
    if open >= service.max_clients {
        let data = ErrorData::new(Reason::TooMany)
            .with_hint("raise `max_clients` under `[daemon]` in the configuration");
        let text = format!("{open} clients are connected already");
        return Some(ErrorObject::new(code::INTERNAL, text).with_data(&json!({ NAMESPACE: data })));
    }
    None
}

async fn refuse(stream: Stream, why: ErrorObject) {
    let mut line = build::error(&Id::null(), &why).to_vec();
    line.push(b'\n');
    // It is going to be closed either way.
    (&stream).write_all(&line).await.ok();
}

async fn serve(client: ClientId, stream: Stream, service: Service) {
    let stream = Arc::new(stream);
    let (ops, queue) = mpsc::unbounded_channel();
    let backlog = Arc::new(Backlog::default());
    let (cut, mut is_cut) = oneshot::channel();
    let sink = Sink { ops, backlog: Arc::clone(&backlog), cut };
    let events = service.events.clone();
    let peer = stream.peer_creds().ok().and_then(|creds| creds.pid());
    let pid = peer.and_then(|pid| u32::try_from(pid).ok());
    let under_agent = pid.is_some_and(|pid| service.reaper.runs_under_agent(pid));
    if events.send((client, ClientEvent::Opened { sink, under_agent })).await.is_err() {
        return;
    }
    let writer = Arc::clone(&stream);
    let out =
        Out { client, writer, queue, backlog, lines: VecDeque::new(), service: service.clone() };
    let out = out.run();
    tokio::pin!(out);
    let written = tokio::select! {
        () = read_lines(client, &stream, &service) => false,
        () = &mut out => true,
        // The relay has let it go, so it need not be told.
        Ok(()) = &mut is_cut => return,
    };
    events.send((client, ClientEvent::Closed)).await.ok();
    if !written {
        // The peer sends no more, but may still read what it asked for.
        tokio::time::timeout(LAST_READ, out).await.ok();
    }
}

async fn read_lines(client: ClientId, stream: &Stream, service: &Service) {
    let mut framer = Framer::new(service.line_limit);
    let mut reader = stream;
    while matches!(reader.read_buf(framer.read_buf()).await, Ok(n) if n > 0) {
        let mut lines = Vec::new();
        while let Some(frame) = framer.next_frame() {
            lines.push(frame.body);
        }
        if !lines.is_empty()
            && service.events.send((client, ClientEvent::Lines(lines))).await.is_err()
        {
            return;
        }
    }
}

struct Out {
    client: ClientId,
    writer: Arc<Stream>,
    queue: mpsc::UnboundedReceiver<Op>,
    backlog: Arc<Backlog>,
    lines: VecDeque<Bytes>,
    service: Service,
}

impl Out {
    async fn run(mut self) {
        while let Some(op) = self.queue.recv().await {
            let mut op = Some(op);
            // Lines that wait go out together.
            while let Some(Op::Line(line)) = op {
                self.lines.push_back(line);
                op = self.queue.try_recv().ok();
            }
            let taken = self.lines.iter().map(|line| line.len() + 1).sum();
            if self.flush().await.is_err() {
                return;
            }
            self.backlog.waiting.fetch_sub(taken, Ordering::Relaxed);
            if let Some(op) = op {
                let size = op.size();
                if self.answer(op).await.is_err() {
                    return;
                }
                self.backlog.waiting.fetch_sub(size, Ordering::Relaxed);
            }
            if self.backlog.waiting.load(Ordering::Relaxed) == 0
                && self.backlog.lagging.load(Ordering::Relaxed)
            {
                self.report(ClientEvent::Drained).await;
            }
        }
    }

    async fn answer(&mut self, op: Op) -> io::Result<()> {
        let journal = &self.service.journal;
        match op {
            Op::Line(line) => self.lines.push_back(line),
            Op::Log(page) => self.lines.push_back(journal.log(page).await),
            Op::Values(values) => self.lines.push_back(journal.values(values).await),
            Op::Search(id, search) => {
                self.lines.push_back(self.service.finder.find(&id, *search).await);
            }
            Op::Status { id, status, part } => {
                let line = self.status(&id, *status, part).await;
                self.lines.push_back(line);
            }
            Op::Read(read) => {
                let session = read.session;
                // A client that got what comes after it would miss this for ever. Connected anew it
                // asks again.
                let piece = journal.piece(read).await;
                let (lines, upto) = piece.ok_or_else(|| io::Error::other("unreadable journal"))?;
                self.lines.extend(lines);
                self.flush().await?;
                self.report(ClientEvent::ReadDone { session, upto }).await;
                return Ok(());
            }
        }
        self.flush().await
    }

    async fn status(&self, id: &Id, mut status: Status, part: StatusPart) -> Bytes {
        // An agent that is only connected to is no process of this machine.
        for agent in &mut status.agents {
            agent.pid = agent.pid.filter(|pid| *pid != 0);
            agent.other_pids.retain(|pid| *pid != 0);
        }
        let leaders = |agent: &AgentInfo| agent.pid.into_iter().chain(agent.other_pids.clone());
        let all: Vec<u32> = status.agents.iter().flat_map(leaders).collect();
        if !all.is_empty() {
            let mut usage = self.service.reaper.usage(all).await.into_iter();
            for agent in &mut status.agents {
                let trees = leaders(agent).count();
                for usage in usage.by_ref().take(trees).filter(|usage| usage.processes > 0) {
                    *agent.rss.get_or_insert_default() += usage.bytes;
                    *agent.processes.get_or_insert_default() += usage.processes;
                }
            }
        }
        match part {
            StatusPart::All => {
                status.daemon.rss = acpd_sys::process::rss_bytes(std::process::id()).ok();
                build::response(id, &status)
            }
            StatusPart::Agents => build::response(id, &AgentList { agents: status.agents }),
            StatusPart::Agent(_) => {
                let mut agent = status.agents.pop();
                if let Some(agent) = agent.as_mut().filter(|agent| agent.hint.is_none()) {
                    agent.hint = self.service.hint(agent.name.raw()).await.map(Into::into);
                }
                build::response(id, &agent)
            }
        }
    }

    async fn report(&self, event: ClientEvent) {
        // The relay is gone only when the daemon ends.
        self.service.events.send((self.client, event)).await.ok();
    }

    /// Writes all lines, many per system call. They are copied together for that: the stream writes
    /// one slice at a time, which would be two calls for each line.
    async fn flush(&mut self) -> io::Result<()> {
        let mut writer = &*self.writer;
        let mut block = Vec::new();
        while let Some(line) = self.lines.pop_front() {
            if line.len() < BLOCK {
                block.extend_from_slice(&line);
            } else {
                writer.write_all(&block).await?;
                block.clear();
                writer.write_all(&line).await?;
            }
            block.push(b'\n');
            if block.len() >= BLOCK {
                writer.write_all(&block).await?;
                block.clear();
            }
        }
        writer.write_all(&block).await
    }
}
