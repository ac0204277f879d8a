//! The relay: drains what is ready, steps the hub, commits, then acts.
//!
//! ```text
//!  clients ─┐                    ┌─▶ store thread ── committed ─┐
//!  hosts ───┼─▶ hub ─▶ batch ────┤                              ▼
//!  time ────┘                    └─▶ pending effects ──▶ clients, hosts, journal reads
//! ```
//!
//! One task owns the hub; nothing else decides anything. While a batch is being committed the next
//! one grows, so the size of a transaction follows the load.
//!
//! Architecture invariant: the effects of a batch are performed after its records are committed, and
//! batches in their order. While the store fails, hosts are held back and only `urgent` effects go
//! out.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::mpsc::TrySendError;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use acp_wire::Body;
use acpd_core::ids::{ClientId, HostId, Time};
use acpd_core::{Batch, Effect, Hub, Input, SpawnError, StopStep};
use acpd_store::{CommitBatch, Report, Writer};
use acpd_sys::paths::Paths;
use acpd_sys::process::ProcessId;
use tokio::sync::mpsc;

use crate::clients::{ClientEvent, Op, Sink};
use crate::config::{self, Config};
use crate::host::{AgentHost, Direct, HostEvent, HostEvents, Launch, Reaper};
use crate::journal::{LogPage, Values};
use crate::log::{self, BoundedLog};
use crate::signals::Stops;

/// Events that one batch takes up at most.
const EVENTS: usize = 256;
/// Lines of clients after which a batch takes up no more of them: an answer can be far longer than
/// its question, and what waits for a client is counted only when the batch goes out.
const LINES: usize = 1024;
/// Batches that wait for the store before hosts are held back.
const PENDING: usize = 32;
/// A client that lets so many times its queue limit pile up in answers, beside one line of any
/// length, is let go.
const OVERRUN: usize = 8;
/// From SIGTERM to SIGKILL, and from one SIGKILL to the next, when the daemon is aborted.
const ABORT_KILL: Duration = Duration::from_secs(1);
/// How long an aborted daemon waits for process trees to end.
const ABORT: Duration = Duration::from_secs(5);

/// A clock that shows the time of day and never goes back.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    wall: u64,
    from: Instant,
}

impl Clock {
    /// Starts it at the time of day.
    pub fn start() -> Clock {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { wall: wall.as_millis() as u64, from: Instant::now() }
    }

    /// Now.
    pub fn now(&self) -> Time {
        Time(self.wall + self.from.elapsed().as_millis() as u64)
    }

    fn instant(&self, time: Time) -> tokio::time::Instant {
        let after = Duration::from_millis(time.0.saturating_sub(self.wall));
        // A millisecond begun is not over: round up, or the deadline is found a little too early.
        tokio::time::Instant::from_std(self.from + after + Duration::from_millis(1))
    }
}

/// Where events come from.
#[derive(Debug)]
pub struct Sources {
    /// Connections.
    pub clients: mpsc::Receiver<(ClientId, ClientEvent)>,
    /// Agent processes.
    pub hosts: mpsc::Receiver<(HostId, HostEvent)>,
    /// The store's writer.
    pub reports: mpsc::UnboundedReceiver<Report>,
    /// Signals.
    pub stops: Stops,
}

/// What agents are started with.
#[derive(Debug)]
pub struct Agents {
    /// Profiles.
    pub config: Config,
    /// Logs.
    pub paths: Paths,
    /// Marks the processes of this journal.
    pub generation: String,
    /// Ends process trees.
    pub reaper: Reaper,
    /// Where hosts report to.
    pub events: HostEvents,
}

/// Connections that are being closed after their last lines.
#[derive(Debug)]
pub struct LastLines(mpsc::Receiver<(ClientId, ClientEvent)>);

impl LastLines {
    /// Waits until all connections are closed.
    pub async fn written(mut self) {
        while self.0.recv().await.is_some() {}
    }
}

struct Pending {
    /// `None`: there was nothing to commit, only an order to keep.
    tag: Option<u64>,
    effects: Vec<Effect>,
}

/// The task.
pub struct Relay {
    hub: Hub,
    clock: Clock,
    agents: Agents,
    writer: Writer,
    client_queue: usize,
    sinks: BTreeMap<ClientId, Sink>,
    hosts: BTreeMap<HostId, Box<dyn AgentHost + Send>>,
    pending: VecDeque<Pending>,
    /// Batches that the store had no room for.
    unsent: VecDeque<CommitBatch>,
    next_tag: u64,
    failing: bool,
    /// By profile. One handle for each file: it counts what it has written.
    logs: BTreeMap<String, BoundedLog>,
    end: Option<End>,
}

/// How the relay ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// All agents are gone.
    Done,
    /// Whatever runs is ended first.
    Aborted,
}

impl Relay {
    /// Prepares the relay; [`Relay::run`] does the work. `first` is what the hub's recovery asked
    /// for.
    pub fn new(hub: Hub, first: Batch, clock: Clock, agents: Agents, writer: Writer) -> Relay {
        let client_queue = agents.config.daemon.client_queue as usize;
        let mut relay = Relay {
            hub,
            clock,
            agents,
            writer,
            client_queue,
            sinks: BTreeMap::new(),
            hosts: BTreeMap::new(),
            pending: VecDeque::new(),
            unsent: VecDeque::new(),
            next_tag: 0,
            failing: false,
            logs: BTreeMap::new(),
            end: None,
        };
        relay.submit(first);
        relay
    }

    /// Runs until the hub says that everything is over. Gives back the store, to be closed, and what
    /// clients have still to read.
    pub async fn run(mut self, mut from: Sources) -> (Writer, LastLines) {
        while self.end.is_none() {
            let mut out = Batch::default();
            let deadline = self.hub.deadline();
            let at = deadline.map(|time| self.clock.instant(time));
            let hosts_may = !self.failing && self.pending.len() < PENDING;
            tokio::select! {
                biased;
                report = from.reports.recv() => match report {
                    Some(report) => self.reported(report, &mut out),
                    None => self.store_died(),
                },
                Some(()) = from.stops.recv() => self.input(Input::Stop, &mut out),
                Some((client, event)) = from.clients.recv() => {
                    self.client_event(client, event, &mut out);
                }
                Some((host, event)) = from.hosts.recv(), if hosts_may => {
                    self.host_event(host, event, &mut out);
                }
                () = sleep_until(at), if at.is_some() => self.input(Input::Tick, &mut out),
            }
            self.drain(&mut from, hosts_may, &mut out);
            self.hub.seal(&mut out);
            self.submit(out);
        }
        if self.end == Some(End::Aborted) {
            self.end_hosts(&mut from.hosts).await;
        }
        // Without their sinks the writers end after what they were given.
        self.sinks.clear();
        (self.writer, LastLines(from.clients))
    }

    /// Takes up what else is ready, so that one commit covers it.
    fn drain(&mut self, from: &mut Sources, hosts_may: bool, out: &mut Batch) {
        let mut asked = 0;
        for _ in 0..EVENTS {
            let mut idle = true;
            while let Ok(report) = from.reports.try_recv() {
                self.reported(report, out);
            }
            if asked < LINES
                && let Ok((client, event)) = from.clients.try_recv()
            {
                if let ClientEvent::Lines(lines) = &event {
                    asked += lines.len();
                }
                self.client_event(client, event, out);
                idle = false;
            }
            if hosts_may && let Ok((host, event)) = from.hosts.try_recv() {
                self.host_event(host, event, out);
                idle = false;
            }
            if idle {
                return;
            }
        }
    }

    fn input(&mut self, input: Input, out: &mut Batch) {
        self.hub.handle(self.clock.now(), input, out);
    }

    fn client_event(&mut self, client: ClientId, event: ClientEvent, out: &mut Batch) {
        match event {
            ClientEvent::Opened(sink) => {
                self.sinks.insert(client, sink);
                self.input(Input::ClientOpened { client }, out);
            }
            ClientEvent::Lines(lines) => {
                for body in lines {
                    let input = match body {
                        Body::Line(line) => Input::ClientLine { client, line },
                        Body::Oversized { head, len } => {
                            Input::ClientOversized { client, head, len }
                        }
                    };
                    self.input(input, out);
                }
            }
            ClientEvent::Drained => {
                // More may have piled up since; then it is reported again after that.
                let limit = self.client_queue;
                let sink = self.sinks.get(&client);
                if let Some(sink) = sink.filter(|s| s.lagging() && s.waiting() <= limit) {
                    sink.set_lagging(false);
                    self.input(Input::ClientDrained { client }, out);
                }
            }
            ClientEvent::ReadDone { session, upto } => {
                self.input(Input::ReadDone { client, session, upto }, out);
            }
            ClientEvent::Closed => {
                self.sinks.remove(&client);
                self.input(Input::ClientClosed { client }, out);
            }
        }
    }

    fn host_event(&mut self, host: HostId, event: HostEvent, out: &mut Batch) {
        match event {
            HostEvent::Started { pid, start } => {
                self.input(Input::HostStarted { host, pid, start }, out);
            }
            HostEvent::Output(frames) => {
                for frame in frames {
                    let end = frame.end;
                    let input = match frame.body {
                        Body::Line(line) => Input::HostLine { host, line, end },
                        Body::Oversized { head, len } => {
                            Input::HostOversized { host, head, len, end }
                        }
                    };
                    self.input(input, out);
                }
            }
            HostEvent::Written { chunk } => self.input(Input::HostWritten { host, chunk }, out),
            HostEvent::Exited { status, stderr } => {
                tracing::info!(host = host.0, status, "an agent has ended");
                self.input(Input::HostExited { host, status, stderr }, out);
            }
            HostEvent::Gone => {
                self.hosts.remove(&host);
                self.input(Input::HostGone { host }, out);
            }
        }
    }

    fn reported(&mut self, report: Report, out: &mut Batch) {
        match report {
            Report::Committed { tag } => {
                if std::mem::take(&mut self.failing) {
                    tracing::warn!("the journal can be written again");
                    self.input(Input::StoreWorks, out);
                }
                while let Some(pending) =
                    self.pending.pop_front_if(|p| p.tag.is_none_or(|t| t <= tag))
                {
                    self.perform_all(pending.effects, out);
                }
                self.send_unsent();
            }
            Report::Failing { reason, .. } => {
                let reason = reason.to_string();
                tracing::error!(reason, "the journal cannot be written; trying again");
                self.failing = true;
                self.input(Input::StoreFailing { reason }, out);
            }
        }
    }

    /// Gives a batch to the store, its effects into the line behind it.
    fn submit(&mut self, batch: Batch) {
        let mut after = Batch::default();
        self.perform_all(batch.urgent, &mut after);
        if batch.records.is_empty() && self.pending.is_empty() {
            self.perform_all(batch.effects, &mut after);
        } else if !batch.records.is_empty() || !batch.effects.is_empty() {
            let tag = (!batch.records.is_empty()).then(|| {
                self.next_tag += 1;
                self.next_tag
            });
            self.pending.push_back(Pending { tag, effects: batch.effects });
            if let Some(tag) = tag {
                let (records, durable) = (batch.records, batch.durable);
                self.unsent.push_back(CommitBatch { records, durable, tag });
                self.send_unsent();
            }
        }
        // Effects can fail at once (a process that cannot be made): that is news for the hub.
        if !after.is_empty() {
            self.hub.seal(&mut after);
            self.submit(after);
        }
    }

    fn send_unsent(&mut self) {
        while let Some(batch) = self.unsent.pop_front() {
            match self.writer.commit(batch) {
                Ok(()) => {}
                Err(TrySendError::Full(batch)) => return self.unsent.push_front(batch),
                Err(TrySendError::Disconnected(_)) => {
                    return self.store_died();
                }
            }
        }
    }

    /// Nothing can be kept any more, so nothing may run.
    fn store_died(&mut self) {
        tracing::error!("the store's writer has died");
        self.end = Some(End::Aborted);
    }

    /// Ends every process tree, without hub and store: what they still say is lost.
    async fn end_hosts(&mut self, events: &mut mpsc::Receiver<(HostId, HostEvent)>) {
        for host in self.hosts.values_mut() {
            host.stop(StopStep::CloseStdin);
            host.stop(StopStep::Term);
        }
        let give_up = tokio::time::sleep(ABORT);
        tokio::pin!(give_up);
        let mut kill = tokio::time::interval(ABORT_KILL);
        kill.reset();
        while !self.hosts.is_empty() {
            tokio::select! {
                Some((host, event)) = events.recv() => match event {
                    HostEvent::Gone => drop(self.hosts.remove(&host)),
                    HostEvent::Output(frames) => {
                        if let (Some(host), Some(last)) = (self.hosts.get_mut(&host), frames.last()) {
                            host.ack(last.end);
                        }
                    }
                    _ => {}
                },
                _ = kill.tick() => {
                    for host in self.hosts.values_mut() {
                        host.stop(StopStep::Kill);
                    }
                }
                () = &mut give_up => {
                    tracing::error!(hosts = self.hosts.len(), "agents could not be ended");
                    return;
                }
            }
        }
    }

    fn perform_all(&mut self, effects: Vec<Effect>, out: &mut Batch) {
        for effect in effects {
            self.perform(effect, out);
        }
    }

    fn perform(&mut self, effect: Effect, out: &mut Batch) {
        match effect {
            Effect::Send { client, line } => self.send(client, Op::Line(line), out),
            Effect::SendStatus { client, id, status, part } => {
                self.send(client, Op::Status { id, status, part }, out);
            }
            Effect::Read(read) => self.send(read.client, Op::Read(read), out),
            Effect::ReadLog { client, id, session, session_id, after, upto, limit } => {
                let page = LogPage { id, session, session_id, after, upto, limit };
                self.send(client, Op::Log(page), out);
            }
            Effect::SendValues { client, id, session, mode, extra, boolean_options } => {
                let values = Values { id, session, mode, extra, boolean_options };
                self.send(client, Op::Values(values), out);
            }
            Effect::Spawn { host, agent } => match self.spawn(host, &agent) {
                Ok(direct) => {
                    self.hosts.insert(host, Box::new(direct));
                }
                Err(error) => self.input(Input::HostRefused { host, error }, out),
            },
            Effect::Sweep { host, pid, start } => {
                tracing::info!(host = host.0, pid, "ending what an earlier daemon left behind");
                let leader = ProcessId { pid, start };
                self.agents.reaper.sweep(host, self.marker(host), leader);
            }
            Effect::HostWrite { host, chunk, line } => {
                if let Some(host) = self.hosts.get_mut(&host) {
                    host.write(chunk, line);
                }
            }
            Effect::HostAck { host, offset } => {
                if let Some(host) = self.hosts.get_mut(&host) {
                    host.ack(offset);
                }
            }
            Effect::HostStop { host, step } => {
                if let Some(host) = self.hosts.get_mut(&host) {
                    host.stop(step);
                }
            }
            Effect::Note { host, text } => {
                let text = log::printable(&text);
                tracing::debug!(host = host.0, text, "an agent did something odd");
                if let Some(host) = self.hosts.get_mut(&host) {
                    host.note(&text);
                }
            }
            Effect::Abort => self.end = Some(End::Aborted),
            Effect::Exit => self.end = self.end.or(Some(End::Done)),
        }
    }

    fn send(&mut self, client: ClientId, op: Op, out: &mut Batch) {
        let Some(sink) = self.sinks.get(&client) else { return };
        sink.send(op);
        let waiting = sink.waiting();
        let line_limit = self.agents.config.daemon.line_limit as usize;
        if waiting > self.client_queue * OVERRUN + line_limit {
            tracing::warn!(client = client.0, waiting, "a client reads nothing and is let go");
            if let Some(sink) = self.sinks.remove(&client) {
                sink.cut();
            }
            self.input(Input::ClientClosed { client }, out);
        } else if waiting > self.client_queue && !sink.lagging() {
            sink.set_lagging(true);
            self.input(Input::ClientLagged { client }, out);
        }
    }

    fn marker(&self, host: HostId) -> String {
        format!("{}-{}", self.agents.generation, host.0)
    }

    fn spawn(&mut self, host: HostId, agent: &str) -> Result<Direct, SpawnError> {
        let agents = &self.agents;
        let refused = |message: String, hint: &str| SpawnError {
            message,
            hint: Some(hint.to_owned()),
            permanent: true,
        };
        let profile = agents.config.agent(agent).map_err(|e| refused(e.to_string(), e.hint()))?;
        let env = config::environment(profile, std::env::vars_os());
        let program =
            config::resolve_program(profile, &env).map_err(|e| refused(e.to_string(), e.hint()))?;
        let home = || std::env::home_dir().unwrap_or_else(|| PathBuf::from("/"));
        let log = self.logs.entry(agent.to_owned()).or_insert_with(|| {
            BoundedLog::open(&agents.paths.agent_log(agent), agents.config.daemon.log_max_bytes)
        });
        let log = log.clone();
        let launch = Launch {
            program,
            args: profile.command.iter().skip(1).cloned().collect(),
            env,
            cwd: profile.cwd.clone().unwrap_or_else(home),
            marker: self.marker(host),
            log,
            line_limit: agents.config.daemon.line_limit as usize,
        };
        tracing::info!(agent, host = host.0, program = %launch.program.display(), "starting an agent");
        Direct::spawn(host, launch, &agents.reaper, &agents.events)
    }
}

async fn sleep_until(at: Option<tokio::time::Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
