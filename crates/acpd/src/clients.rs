//! Connections: one reader and one writer each, from the first line to the last.
//!
//! ```text
//!  silent ─ first line ─▶ opened ─┬─ the peer has ended ──────────▶ closed, after what it still reads
//!    │                            ├─ let go (its sink is dropped) ─▶ closed, after what it still reads
//!    └─ error, closed (`door`)    └─ cut ─────────────────────────▶ closed at once
//! ```
//!
//! A writer works off its queue strictly in order: lines, pieces of the journal, answers that need
//! the journal. So nothing overtakes anything, however slow a client is. The queue is counted in
//! bytes; past its limit the hub sends the client no live lines until the queue is empty.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use acp_wire::{Body, ErrorObject, Framer, Id, build};
use acpd_api::{
    AgentInfo, AgentList, AgentMetrics, ConfigChanged, JournalMetrics, PackageInfo, Reason, Status,
    VariableFrom, VariableInfo, is_named,
};
use acpd_core::ids::ClientId;
use acpd_core::{ClientEvent, ClientOrigin, Fault, StatusPart, ToClient, ValuesForm};
use acpd_store::size_on_disk;
use acpd_sys::limits::MORE_FILES;
use acpd_sys::paths::Paths;
use acpd_sys::runtime;
use bytes::Bytes;
use interprocess::local_socket::tokio::Stream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot};

use crate::config::{self, Config, OnDisk, Profile, Transport};
use crate::environment::{self, environment_of};
use crate::host::Reaper;
use crate::installed_agents::{Presence, default_for, look_for};
use crate::journal::Journal;
use crate::log;
use crate::login_shell;
use crate::real_cwd::with_real_cwd;
use crate::search::SearchIndex;

/// Bytes per write; a longer line is written alone.
const BLOCK: usize = 64 << 10;
/// Longest first line of a connection, in bytes: an unknown client costs no more.
const FIRST_LINE: usize = 64 << 10;
/// Bytes of an incomplete line that are not counted.
pub const SMALL_HALF: usize = 256 << 10;
/// Last time to read from a connection that is closed for its silence.
const LAST_WORD: Duration = Duration::from_millis(20);
/// Time for a client to read its last lines after either side has stopped sending.
const LAST_READ: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub enum FromClient {
    /// The sending end, before anything else. The relay keeps it.
    Sink(Sink),
    Event(ClientEvent),
}

pub type ClientEvents = mpsc::Sender<(ClientId, FromClient)>;

/// Returns the approximate memory until the item is written, in bytes.
fn size(what: &ToClient) -> usize {
    match what {
        ToClient::Line(line) | ToClient::Rows(line) => line.len() + 1,
        ToClient::Status { status, .. } => 2048 * (1 + status.agents.len() + status.sessions.len()),
        ToClient::Values(values) => match &values.form {
            ValuesForm::Answer { extra, .. } => 1024 + extra.len(),
            ValuesForm::Update { .. } => 1024,
        },
        ToClient::Search { search, .. } => 1024 * (1 + search.sessions.len()),
        ToClient::Read(_)
        | ToClient::Log(_)
        | ToClient::Usage { .. }
        | ToClient::LogLevel { .. } => 1024,
    }
}

#[derive(Debug, Default)]
struct Backlog {
    /// Unwritten bytes.
    waiting: AtomicUsize,
    /// The hub knows that the client lags, and not yet that it has drained.
    lagging: AtomicBool,
}

/// The sending end of a connection. Dropping it closes the connection after the queued lines.
#[derive(Debug)]
pub struct Sink {
    queue: mpsc::UnboundedSender<ToClient>,
    backlog: Arc<Backlog>,
    cut: oneshot::Sender<()>,
}

impl Sink {
    pub fn send(&self, what: ToClient) {
        self.backlog.waiting.fetch_add(size(&what), Ordering::Relaxed);
        // If the client is gone, the reader reports that.
        self.queue.send(what).ok();
    }

    pub fn waiting(&self) -> usize {
        self.backlog.waiting.load(Ordering::Relaxed)
    }

    pub fn lagging(&self) -> bool {
        self.backlog.lagging.load(Ordering::Relaxed)
    }

    /// Records what the hub knows. A client that lags is reported as drained when it has read
    /// everything.
    pub fn set_lagging(&self, lagging: bool) {
        self.backlog.lagging.store(lagging, Ordering::Relaxed);
    }

    /// Closes the connection at once; queued lines are dropped.
    pub fn cut(self) {
        self.cut.send(()).ok();
    }
}

#[derive(Clone)]
pub struct Service {
    pub events: ClientEvents,
    pub journal: Journal,
    pub index: SearchIndex,
    pub reaper: Reaper,
    pub config: Arc<Config>,
    pub config_file: Arc<OnDisk>,
    pub paths: Arc<Paths>,
    pub log: log::Filter,
    /// Longest line in bytes.
    pub line_limit: usize,
    /// Bytes of incomplete lines over [`SMALL_HALF`], of all connections.
    pub half_lines: Arc<AtomicUsize>,
}

impl Service {
    /// Adds whether agents are installed, as far as files show that; if not, how to install them,
    /// and why they cannot run.
    async fn with_installed(&self, mut agents: Vec<AgentInfo>) -> Vec<AgentInfo> {
        let (config, known) = (Arc::clone(&self.config), agents.clone());
        let look = move || {
            for agent in &mut agents {
                let Ok(profile) = config.agent(agent.name.raw()) else { continue };
                let Presence { is_installed, install, problem } = look_for(profile);
                agent.installed = Some(is_installed);
                if install.is_some() {
                    agent.packages = packages_of(profile);
                }
                agent.install = install.map(Into::into);
                agent.not_found = problem.map(|why| why.message.into());
            }
            agents
        };
        // After a failure the members stay empty.
        tokio::task::spawn_blocking(look).await.unwrap_or(known)
    }

    async fn config_changed(&self) -> Option<ConfigChanged> {
        let (config, file) = (Arc::clone(&self.config), Arc::clone(&self.config_file));
        tokio::task::spawn_blocking(move || file.change(&config)).await.ok().flatten()
    }

    async fn add_sizes(&self, journal: &mut JournalMetrics) {
        let paths = Arc::clone(&self.paths);
        let look = move || [paths.database(), paths.search_index()].map(|path| size_on_disk(&path));
        // After a failure the members stay empty.
        let sizes = tokio::task::spawn_blocking(look).await.unwrap_or_default();
        [journal.bytes, journal.index_bytes] = sizes;
    }

    /// Adds the agent's address, and the variables that its process inherits and gets. Values that
    /// only some agents get may be secrets, and are left out.
    fn add_profile(&self, agent: &mut AgentInfo) {
        let Ok(profile) = self.config.agent(agent.name.raw()) else { return };
        if let Transport::TcpConnect(address) = profile.transport() {
            agent.address = Some(address.into());
        }
        let inherits = self.config.inherits(profile);
        let is_inherited =
            |name: &&String| inherits.iter().any(|pattern| is_named(pattern, name.as_bytes()));
        agent.inherited = variables().iter().filter(is_inherited).map(Into::into).collect();
        agent.inherits = inherits.into_iter().map(Into::into).collect();
        let got = environment_of(profile);
        let credentials = profile.credentials.keys().map(|name| (name.into(), OsString::new()));
        let all: BTreeMap<OsString, OsString> = got.into_iter().chain(credentials).collect();
        agent.environment =
            all.into_iter().map(|(name, value)| variable_info(profile, &name, &value)).collect();
        agent.login_shell = environment::told();
    }

    fn add_shims(&self, agents: &mut [AgentInfo]) {
        for agent in agents {
            let is_its = |pid| agent.pid == Some(pid) || agent.other_pids.contains(&pid);
            agent.shims = self.reaper.shims_of(is_its);
        }
    }

    /// Adds variables that agents should inherit, but that are not there.
    fn add_lacking(&self, agents: &mut [AgentInfo]) {
        let variables = variables();
        let is_there =
            |wanted: &str| variables.iter().any(|name| is_named(wanted, name.as_bytes()));
        for agent in agents {
            let Ok(profile) = self.config.agent(agent.name.raw()) else { continue };
            let lacks = self.config.wanted_variables(profile).filter(|name| !is_there(name));
            agent.lacks = lacks.map(Into::into).collect();
        }
    }
}

fn packages_of(profile: &Profile) -> Vec<PackageInfo> {
    let parts = profile.repositories.iter().filter_map(|package| package.split_once('='));
    let package = |(name, repository): (&str, &str)| PackageInfo {
        name: name.into(),
        repository: repository.into(),
    };
    parts.map(package).collect()
}

fn counted(agent: AgentInfo) -> AgentMetrics {
    let AgentInfo { name, state, restarts, sessions, processes, rss, .. } = agent;
    AgentMetrics { name, state, restarts: restarts.into(), sessions, processes, rss }
}

fn variable_info(profile: &Profile, name: &OsStr, value: &OsStr) -> VariableInfo {
    let text = name.to_string_lossy();
    let from = if profile.credentials.contains_key(&*text) {
        VariableFrom::Credential
    } else if profile.env.contains_key(&*text) {
        VariableFrom::Config
    } else if std::env::var_os(name).as_deref() == Some(value) {
        VariableFrom::Daemon
    } else {
        VariableFrom::LoginShell
    };
    let is_public = config::every_agent_gets(&text) && from != VariableFrom::Credential;
    let value = is_public.then(|| value.to_string_lossy().into_owned().into());
    VariableInfo { name: text.into_owned().into(), value, from }
}

fn variables() -> Vec<String> {
    environment::variables().filter_map(|(name, _)| name.into_string().ok()).collect()
}

/// Serves a connection to its end. A message on `silence` closes a connection that has sent
/// nothing, after an error line. If the sender of `silence` is dropped, the daemon ends, and there
/// is no line.
pub(crate) async fn serve(
    client: ClientId,
    stream: Stream,
    service: Service,
    silence: oneshot::Receiver<()>,
) {
    // Read now, while the connecting process exists.
    let pid = runtime::peer_of_client(&stream).ok().and_then(|peer| peer.pid);
    let origin = match pid {
        Some(pid) => service.reaper.origin_of(pid).await,
        None => Ok(ClientOrigin::User),
    };
    let origin = match origin {
        Ok(origin) => origin,
        Err(error) => {
            tracing::debug!(%error, "cannot find out what a connection runs under");
            return tell(&stream, &no_descriptors()).await;
        }
    };
    let stream = Arc::new(stream);
    let mut lines = Lines::new(&stream, service.line_limit, Arc::clone(&service.half_lines));
    let Some(first) = first_lines(&mut lines, silence).await else { return };
    let (events, config) = (service.events.clone(), Arc::clone(&service.config));
    let are_here = !config.has_remote_agent();
    let first = looked_up(first, are_here, &config).await;

    let (sender, queue) = mpsc::unbounded_channel();
    let backlog = Arc::new(Backlog::default());
    let (cut, is_cut) = oneshot::channel();
    let sink = Sink { queue: sender, backlog: Arc::clone(&backlog), cut };
    let opened = FromClient::Event(ClientEvent::Opened(origin));
    for news in [FromClient::Sink(sink), opened].into_iter().chain(first) {
        if events.send((client, news)).await.is_err() {
            return;
        }
    }
    let read = async {
        // The reader is dropped with this future, so that its half line no longer counts.
        let mut lines = lines;
        while let Some(next) = lines.next().await {
            for news in looked_up(next, are_here, &config).await {
                if events.send((client, news)).await.is_err() {
                    return;
                }
            }
        }
    };
    let writer = Arc::clone(&stream);
    let out = Out { client, writer, queue, backlog, lines: VecDeque::new(), service };
    let out = out.run();
    tokio::pin!(out);
    tokio::select! {
        () = read => {
            events.send((client, FromClient::Event(ClientEvent::Closed))).await.ok();
            // The peer has stopped sending, but may still read its answers.
            tokio::time::timeout(LAST_READ, out).await.ok();
            return;
        }
        () = &mut out => {}
        cut = is_cut => match cut {
            Ok(()) => return,
            // The client may still read the lines that it was sent.
            Err(_) => drop(tokio::time::timeout(LAST_READ, out).await),
        },
    }
    // The relay may have closed the connection itself.
    events.send((client, FromClient::Event(ClientEvent::Closed))).await.ok();
}

/// Returns the first lines of a connection; `None` if it has ended or should be closed.
async fn first_lines(lines: &mut Lines<'_>, silence: oneshot::Receiver<()>) -> Option<Vec<Body>> {
    let let_go = tokio::select! {
        biased;
        first = lines.next() => return first,
        let_go = silence => let_go,
    };
    // The daemon ends.
    let_go.ok()?;
    // Lines may have arrived that were not read yet.
    if let Ok(first) = tokio::time::timeout(LAST_WORD, lines.next()).await {
        return first;
    }
    tell(lines.stream, &silent_for_too_long()).await;
    None
}

/// Returns lines as news of a client, after what the hub must know for them. Directories have their
/// real names, if agents have the same directories.
async fn looked_up(
    mut lines: Vec<Body>,
    are_here: bool,
    config: &Arc<Config>,
) -> impl Iterator<Item = FromClient> {
    let found = default_for(&lines, config).await;
    for body in lines.iter_mut().filter(|_| are_here) {
        if let Body::Line(line) = body {
            *line = with_real_cwd(std::mem::take(line)).await;
        }
    }
    let found = found.map(ClientEvent::DefaultFound);
    found.into_iter().chain([ClientEvent::Lines(lines)]).map(FromClient::Event)
}

struct Lines<'a> {
    stream: &'a Stream,
    framer: Framer,
    /// In bytes, from the second line on.
    limit: usize,
    all_halves: Arc<AtomicUsize>,
    half: usize,
}

impl Drop for Lines<'_> {
    fn drop(&mut self) {
        self.all_halves.fetch_sub(self.half, Ordering::Relaxed);
    }
}

impl Lines<'_> {
    fn new(stream: &Stream, limit: usize, all_halves: Arc<AtomicUsize>) -> Lines<'_> {
        let framer = Framer::new(limit.min(FIRST_LINE));
        Lines { stream, framer, limit, all_halves, half: 0 }
    }

    /// Counts the incomplete line. Returns whether all connections together keep too much of such
    /// lines.
    fn count_half(&mut self) -> bool {
        let half = Some(self.framer.half_line()).filter(|half| *half > SMALL_HALF).unwrap_or(0);
        self.all_halves.fetch_sub(self.half, Ordering::Relaxed);
        let others = self.all_halves.fetch_add(half, Ordering::Relaxed);
        self.half = half;
        // One longest line and as much again always have room.
        half > 0 && others + half > 2 * self.limit
    }

    /// Returns the next lines, at least one; `None` at the end. Cancel-safe: lines that were read stay.
    async fn next(&mut self) -> Option<Vec<Body>> {
        let mut reader = self.stream;
        while matches!(reader.read_buf(self.framer.read_buf()).await, Ok(n) if n > 0) {
            let mut lines = Vec::new();
            while let Some(frame) = self.framer.next_frame() {
                if matches!(frame.body, Body::Line(_)) {
                    self.framer.set_limit(self.limit);
                }
                lines.push(frame.body);
            }
            if self.count_half() {
                lines.push(self.framer.drop_half_line().body);
                self.count_half();
            }
            if !lines.is_empty() {
                return Some(lines);
            }
        }
        None
    }
}

struct Out {
    client: ClientId,
    writer: Arc<Stream>,
    queue: mpsc::UnboundedReceiver<ToClient>,
    backlog: Arc<Backlog>,
    lines: VecDeque<Bytes>,
    service: Service,
}

impl Out {
    async fn run(mut self) {
        while let Some(what) = self.queue.recv().await {
            let mut next = Some(what);
            while let Some(ToClient::Line(line)) = next {
                self.lines.push_back(line);
                next = self.queue.try_recv().ok();
            }
            let taken = self.lines.iter().map(|line| line.len() + 1).sum();
            if self.flush().await.is_err() {
                return;
            }
            self.backlog.waiting.fetch_sub(taken, Ordering::Relaxed);
            if let Some(what) = next {
                let size = size(&what);
                if self.answer(what).await.is_err() {
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

    async fn answer(&mut self, what: ToClient) -> io::Result<()> {
        let Service { journal, index, log, .. } = &self.service;
        let mut after = None;
        let line = match what {
            ToClient::Line(line) => line,
            ToClient::Rows(line) => {
                after = Some(ClientEvent::RowsWritten);
                line
            }
            ToClient::Log(page) => journal.log(page).await,
            ToClient::Values(values) => {
                let line = journal.values(values).await;
                line.ok_or_else(|| io::Error::other("unreadable options"))?
            }
            ToClient::Usage { id, asked } => journal.usage(id, asked).await,
            ToClient::LogLevel { id, level } => {
                match level.map_or(Ok(()), |level| log.change(&level)) {
                    Ok(()) => build::response(&id, &log.level()),
                    Err(fault) => build::error(&id, &fault.object()),
                }
            }
            ToClient::Search { id, search } => index.find(&id, *search).await,
            ToClient::Status { id, status, part } => self.status(&id, *status, part).await,
            ToClient::Read(read) => {
                let session = read.session;
                // Without this error the client would get later lines and miss these for ever. It
                // asks again on a new connection.
                let piece = journal.piece(read).await;
                let (lines, upto) = piece.ok_or_else(|| io::Error::other("unreadable journal"))?;
                self.lines.extend(lines);
                self.flush().await?;
                self.report(ClientEvent::ReadDone { session, upto }).await;
                return Ok(());
            }
        };
        self.lines.push_back(line);
        self.flush().await?;
        if let Some(event) = after {
            self.report(event).await;
        }
        Ok(())
    }

    async fn status(&self, id: &Id, mut status: Status, part: StatusPart) -> Bytes {
        self.service.add_lacking(&mut status.agents);
        let leaders = |agent: &AgentInfo| agent.pid.into_iter().chain(agent.other_pids.clone());
        let all: Vec<u32> = status.agents.iter().flat_map(leaders).collect();
        let usage = async {
            if all.is_empty() { Vec::new() } else { self.service.reaper.usage(all).await }
        };
        let changed = async {
            let is_all = matches!(part, StatusPart::All(_));
            if is_all { self.service.config_changed().await } else { None }
        };
        // Each asks another thread, so the answer waits for the slower one only.
        let (usage, changed) = tokio::join!(usage, changed);
        let mut usage = usage.into_iter();
        for agent in &mut status.agents {
            let trees = leaders(agent).count();
            for usage in usage.by_ref().take(trees).filter(|usage| usage.processes > 0) {
                *agent.rss.get_or_insert_default() += usage.bytes;
                *agent.processes.get_or_insert_default() += usage.processes;
            }
        }
        match part {
            StatusPart::All(_) => {
                status.daemon.rss = acpd_sys::process::rss_bytes(std::process::id()).ok();
                status.daemon.config_changed = changed;
                build::response(id, &status)
            }
            StatusPart::Agents => {
                self.service.add_shims(&mut status.agents);
                let mut agents = self.service.with_installed(status.agents).await;
                // Only the answer about one agent has the reason.
                for agent in &mut agents {
                    agent.not_found = None;
                }
                build::response(id, &AgentList { agents })
            }
            StatusPart::Metrics(mut metrics) => {
                self.service.add_sizes(&mut metrics.journal).await;
                metrics.rss = acpd_sys::process::rss_bytes(std::process::id()).ok();
                metrics.agents = status.agents.into_iter().map(counted).collect();
                build::response(id, &metrics)
            }
            StatusPart::Agent(_) => {
                if let Some(agent) = status.agents.first_mut() {
                    login_shell::settled().await;
                    self.service.add_profile(agent);
                }
                self.service.add_shims(&mut status.agents);
                build::response(id, &self.service.with_installed(status.agents).await.pop())
            }
        }
    }

    async fn report(&self, event: ClientEvent) {
        self.service.events.send((self.client, FromClient::Event(event))).await.ok();
    }

    /// Writes all lines with few system calls. They are copied together, because the stream writes
    /// one slice per call.
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

pub(crate) fn no_descriptors() -> ErrorObject {
    too_many(
        "acpd has no file descriptors left for another connection",
        &format!("close a client, or {MORE_FILES}"),
    )
}

fn silent_for_too_long() -> ErrorObject {
    too_many(
        "the connection was closed: it sent nothing, and other connections came",
        "connect again, and send a request at once",
    )
}

fn too_many(text: &str, hint: &str) -> ErrorObject {
    Fault::new(Reason::TooMany, text).hint(hint).object()
}

/// Sends the only line to a connection that is closed before it becomes a client. It has room for
/// that.
pub(crate) async fn tell(mut stream: &Stream, why: &ErrorObject) {
    let mut line = build::error(&Id::null(), why).to_vec();
    line.push(b'\n');
    // The connection is closed in any case.
    stream.write_all(&line).await.ok();
}
