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

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::mpsc::TrySendError;
use std::time::Duration;

use acp_wire::{Body, Id, build};
use acpd_api::{Empty, Reason};
use acpd_core::ids::{ClientId, HostId};
use acpd_core::{Accepted, Batch, Effect, Fault, Hub, Input, LeftOut, StopStep};
use acpd_store::{CommitBatch, Report, StoreError, Writer};
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use crate::asleep::Sleep;
use crate::check::{Trials, Tried};
use crate::clients::{ClientEvent, Op, Sink};
use crate::clock::Clock;
use crate::config::{self, Transport};
use crate::crash;
use crate::credentials::{Credentials, Ready};
use crate::finder::Finder;
use crate::hooks::Hooks;
use crate::host::{AgentHost, Agents, HostEvent};
use crate::journal::Journal;
use crate::journal::{LogPage, Values};
use crate::log;
use crate::logins::Logins;
use crate::mcp::{self, Completed};
use crate::service::Pulse;
use crate::services::Services;
use crate::signals::Stops;
use crate::terminals::Terminals;

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
/// How long clients have to wait at most, at the start, for agents that are being found again.
const ADOPTING: Duration = Duration::from_secs(1);
/// How long a daemon that leaves its agents waits for its last effects.
const LEAVING: Duration = Duration::from_secs(1);

/// What was said: for the hub, and for people.
#[derive(Debug)]
pub struct Readers {
    /// The journal.
    pub journal: Journal,
    /// The index.
    pub finder: Finder,
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
    /// When the service manager wants a sign of life.
    pub pulse: Pulse,
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
    /// The requests that came with it.
    accepted: Vec<Accepted>,
}

/// What is left when the relay has ended.
#[derive(Debug)]
pub struct Ended {
    /// The store, to be closed.
    pub writer: Writer,
    /// What clients have still to read.
    pub last: LastLines,
    /// The daemon is to start again.
    pub restart: bool,
}

/// An agent process.
struct Running {
    host: Box<dyn AgentHost + Send>,
    /// Nothing of it is left.
    gone: bool,
}

/// The time before clients are let in.
struct Opening {
    tell: oneshot::Sender<()>,
    /// Not later than this.
    by: tokio::time::Instant,
    /// Hosts that have not been found yet, or given up.
    adopting: BTreeSet<HostId>,
}

/// The task.
pub struct Relay {
    hub: Hub,
    clock: Clock,
    sleep: Sleep,
    agents: Agents,
    writer: Writer,
    readers: Readers,
    services: Services,
    terminals: Terminals,
    logins: Logins,
    credentials: Credentials,
    /// What these three have done.
    served: mpsc::UnboundedReceiver<Input>,
    hooks: Hooks,
    trials: Trials,
    client_queue: usize,
    sinks: BTreeMap<ClientId, Sink>,
    hosts: BTreeMap<HostId, Running>,
    opening: Option<Opening>,
    pending: VecDeque<Pending>,
    /// Batches that the store had no room for.
    unsent: VecDeque<CommitBatch>,
    next_tag: u64,
    failing: bool,
    end: Option<End>,
    /// After the end comes a new start.
    restart: bool,
}

/// How the relay ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// All agents are gone.
    Done,
    /// Agents go on without a daemon.
    Left,
    /// Whatever runs is ended first.
    Aborted,
}

impl Relay {
    /// Prepares the relay; [`Relay::run`] does the work. `first` is what the hub's recovery asked
    /// for. `open` is told when clients may come in: agents of an earlier daemon are there again, or
    /// do not answer.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn new(
        hub: Hub,
        first: Batch,
        clock: Clock,
        agents: Agents,
        writer: Writer,
        readers: Readers,
        open: oneshot::Sender<()>,
    ) -> io::Result<Relay> {
        let client_queue = agents.config.daemon.client_queue as usize;
        let adopting = first.effects.iter().filter_map(|effect| match effect {
            Effect::Adopt(adopt) => Some(adopt.host),
            _ => None,
        });
        let (by, adopting) = (tokio::time::Instant::now() + ADOPTING, adopting.collect());
        let (done, served) = mpsc::unbounded_channel();
        let (generation, reaper) = (&agents.generation, agents.reaper.clone());
        let terminals = Terminals::start(generation, hub.incarnation(), reaper, done.clone())?;
        let services = Services::new(done.clone());
        let logins = Logins::new(done);
        let credentials = Credentials::new(agents.reaper.clone());
        let hooks = Hooks::new(&agents.config.hooks, agents.reaper.clone());
        let trials = Trials::new(agents.exe.clone(), agents.reaper.clone());
        let mut relay = Relay {
            hub,
            clock,
            sleep: Sleep::start(),
            agents,
            writer,
            readers,
            services,
            terminals,
            logins,
            credentials,
            served,
            hooks,
            trials,
            client_queue,
            sinks: BTreeMap::new(),
            hosts: BTreeMap::new(),
            opening: Some(Opening { tell: open, by, adopting }),
            pending: VecDeque::new(),
            unsent: VecDeque::new(),
            next_tag: 0,
            failing: false,
            end: None,
            restart: false,
        };
        relay.submit(first);
        Ok(relay)
    }

    /// Runs until the hub says that everything is over, or the daemon is to leave.
    pub async fn run(mut self, mut from: Sources) -> Ended {
        while self.end.is_none() {
            self.open_if_ready();
            let opening = self.opening.as_ref().map(|opening| opening.by);
            let mut out = Batch::default();
            let deadline = self.hub.deadline();
            let at = deadline.map(|time| self.clock.instant(time));
            let hosts_may = !self.failing && self.pending.len() < PENDING;
            tokio::select! {
                biased;
                report = from.reports.recv() => match report {
                    Some(report) => self.reported(report, &mut from.pulse, &mut out),
                    None => self.store_died(),
                },
                Some(()) = from.stops.recv() => self.leave(&mut out),
                () = from.pulse.due() => self.pulse(&mut from.pulse),
                Some((client, event)) = from.clients.recv() => {
                    self.client_event(client, event, &mut out);
                }
                Some((host, event)) = from.hosts.recv(), if hosts_may => {
                    self.host_event(host, event, &mut out);
                }
                Some(ready) = self.credentials.next() => self.spawn(ready, &mut out),
                Some(input) = self.served.recv() => self.input(input, &mut out),
                Some(tried) = self.trials.next() => self.tried(tried, &mut out),
                () = sleep_until(at), if at.is_some() => self.input(Input::Tick, &mut out),
                () = sleep_until(opening), if opening.is_some() => {}
            }
            self.drain(&mut from, hosts_may, &mut out);
            self.hub.seal(&mut out);
            self.submit(out);
        }
        match self.end {
            Some(End::Aborted) => self.end_hosts(&mut from.hosts).await,
            Some(End::Left) => {
                // What is not done by then is done by the next daemon.
                tokio::time::timeout(LEAVING, self.last_effects(&mut from)).await.ok();
            }
            Some(End::Done) if !self.restart => self.agents.end_others().await,
            Some(End::Done) | None => {}
        }
        // At the same time: each may have to wait for what does not want to end.
        tokio::join!(self.hooks.end(), self.terminals.end(), self.credentials.end());
        // Without their sinks the writers end after what they were given.
        self.sinks.clear();
        let restart = self.restart && self.end != Some(End::Aborted);
        Ended { writer: self.writer, last: LastLines(from.clients), restart }
    }

    /// Lets clients in when all agents have been found or the time is over.
    fn open_if_ready(&mut self) {
        let found = self.pending.is_empty();
        let is_ready = |opening: &mut Opening| {
            (found && opening.adopting.is_empty()) || tokio::time::Instant::now() >= opening.by
        };
        if let Some(opening) = self.opening.take_if(is_ready) {
            crash::point("recovered");
            // Nobody waits for it if the daemon ends already.
            opening.tell.send(()).ok();
        }
    }

    fn found(&mut self, host: HostId) {
        if let Some(opening) = &mut self.opening {
            opening.adopting.remove(&host);
        }
    }

    /// Ends the daemon: agents go on if they can.
    fn leave(&mut self, out: &mut Batch) {
        if self.agents.survive() {
            self.end = self.end.or(Some(End::Left));
        } else {
            self.input(Input::Stop, out);
        }
    }

    /// Performs what is committed, without taking up anything new.
    async fn last_effects(&mut self, from: &mut Sources) {
        while !self.pending.is_empty() {
            let Some(report) = from.reports.recv().await else { return };
            self.reported(report, &mut from.pulse, &mut Batch::default());
        }
    }

    /// Sends a round through hub and store, for the service manager.
    fn pulse(&mut self, pulse: &mut Pulse) {
        if self.failing {
            // The store has answered: it tries again by itself, and says nothing until it can.
            return pulse.answer();
        }
        pulse.asked();
        self.next_tag += 1;
        let tag = self.next_tag;
        self.pending.push_back(Pending {
            tag: Some(tag),
            effects: Vec::new(),
            accepted: Vec::new(),
        });
        self.unsent.push_back(CommitBatch { records: Vec::new(), durable: false, tag });
        self.send_unsent();
    }

    /// Takes up what else is ready, so that one commit covers it.
    fn drain(&mut self, from: &mut Sources, hosts_may: bool, out: &mut Batch) {
        let mut asked = 0;
        for _ in 0..EVENTS {
            let mut idle = true;
            while let Ok(report) = from.reports.try_recv() {
                self.reported(report, &mut from.pulse, out);
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
        let now = self.clock.now();
        if let Some(slept) = self.sleep.news() {
            self.hub.handle(now, Input::Slept { time: slept.as_millis() as u64 }, out);
        }
        self.hub.handle(now, input, out);
    }

    fn client_event(&mut self, client: ClientId, event: ClientEvent, out: &mut Batch) {
        match event {
            ClientEvent::Opened { sink, under_agent } => {
                self.sinks.insert(client, sink);
                self.input(Input::ClientOpened { client, under_agent }, out);
            }
            ClientEvent::Lines(lines) => {
                for body in lines {
                    let input = match body {
                        Body::Line(line) => Input::ClientLine { client, line },
                        Body::Oversized { head, len, .. } => {
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
            HostEvent::Refused(error) => {
                self.hosts.remove(&host);
                self.input(Input::HostRefused { host, error }, out);
            }
            HostEvent::Adopted { pid, start, end } => {
                tracing::info!(host = host.0, pid, "an agent of an earlier daemon goes on");
                self.found(host);
                self.input(Input::HostAdopted { host, pid, start, end }, out);
            }
            HostEvent::Lost { reason } => {
                tracing::info!(host = host.0, reason, "an agent of an earlier daemon is lost");
                self.found(host);
                self.input(Input::HostLost { host, reason }, out);
            }
            HostEvent::Started { pid, start } => {
                self.input(Input::HostStarted { host, pid, start }, out);
            }
            HostEvent::Output(frames) => {
                for frame in frames {
                    let end = frame.end;
                    let input = match frame.body {
                        Body::Line(line) => Input::HostLine { host, line, end },
                        Body::Oversized { head, len, inside } => {
                            Input::HostOversized { host, head, len, end, inside }
                        }
                    };
                    self.input(input, out);
                }
            }
            HostEvent::Written { chunk } => self.input(Input::HostWritten { host, chunk }, out),
            HostEvent::Exited { status, stderr } => {
                tracing::info!(host = host.0, status, "an agent has ended");
                self.services.cancel(host);
                self.input(Input::HostExited { host, status, stderr }, out);
            }
            HostEvent::Left(left) => self.input(Input::LeftoversFound { host, left }, out),
            HostEvent::Gone => {
                self.services.cancel(host);
                if let Some(running) = self.hosts.get_mut(&host) {
                    running.gone = true;
                }
                self.input(Input::HostGone { host }, out);
            }
        }
    }

    fn reported(&mut self, report: Report, pulse: &mut Pulse, out: &mut Batch) {
        // Here, and not where reports come in: that is several places.
        pulse.beat();
        match report {
            Report::Committed { tag } => {
                self.store_works(out);
                while let Some(pending) =
                    self.pending.pop_front_if(|p| p.tag.is_none_or(|t| t <= tag))
                {
                    if !pending.effects.is_empty() {
                        crash::point("after-commit");
                    }
                    self.perform_all(pending.effects, out);
                }
                self.send_unsent();
            }
            Report::Failing { reason, .. } => self.store_fails(&reason, out),
            Report::Works => self.store_works(out),
        }
    }

    fn store_works(&mut self, out: &mut Batch) {
        if std::mem::take(&mut self.failing) {
            tracing::warn!("the journal can be written again");
            self.input(Input::StoreWorks, out);
        }
    }

    /// The journal cannot be written: whoever asked for something that is not written is told.
    fn store_fails(&mut self, reason: &StoreError, out: &mut Batch) {
        let hint = reason.hint().map(str::to_owned);
        let reason = reason.to_string();
        tracing::error!(reason, "the journal cannot be written; trying again");
        self.failing = true;
        self.input(Input::StoreFailing { reason, hint }, out);
        let pending = self.pending.iter_mut();
        let (mut batches, accepted): (Vec<_>, Vec<_>) =
            pending.map(|batch| (&mut batch.effects, std::mem::take(&mut batch.accepted))).unzip();
        let mut accepted: Vec<_> = accepted.into_iter().flatten().collect();
        accepted.append(&mut out.accepted);
        let mut last = std::mem::take(&mut out.effects);
        batches.push(&mut last);
        self.hub.answer_unwritten(accepted, &mut batches, out);
        last.append(&mut out.effects);
        out.effects = last;
    }

    /// Gives a batch to the store, its effects into the line behind it.
    fn submit(&mut self, batch: Batch) {
        let mut after = Batch::default();
        self.perform_all(batch.urgent, &mut after);
        if batch.records.is_empty() && self.pending.is_empty() {
            self.perform_all(batch.effects, &mut after);
        } else if !batch.records.is_empty() || !batch.effects.is_empty() {
            crash::point("before-commit");
            let tag = (!batch.records.is_empty()).then(|| {
                self.next_tag += 1;
                self.next_tag
            });
            let Batch { effects, accepted, .. } = batch;
            self.pending.push_back(Pending { tag, effects, accepted });
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
        self.hosts.retain(|_, running| !running.gone || running.host.dismiss());
        for running in self.hosts.values_mut() {
            running.host.stop(StopStep::CloseStdin);
            running.host.stop(StopStep::Term);
        }
        let give_up = tokio::time::sleep(ABORT);
        tokio::pin!(give_up);
        let mut kill = tokio::time::interval(ABORT_KILL);
        kill.reset();
        while !self.hosts.is_empty() {
            tokio::select! {
                Some((host, event)) = events.recv() => match event {
                    HostEvent::Gone => self.hosts.retain(|number, running| {
                        // The second time, nothing is left of it either.
                        *number != host
                            || (!std::mem::replace(&mut running.gone, true)
                                && running.host.dismiss())
                    }),
                    HostEvent::Refused(_) => drop(self.hosts.remove(&host)),
                    HostEvent::Output(frames) => {
                        if let (Some(running), Some(last)) = (self.hosts.get_mut(&host), frames.last())
                        {
                            running.host.ack(last.end);
                        }
                    }
                    _ => {}
                },
                _ = kill.tick() => {
                    for running in self.hosts.values_mut() {
                        running.host.stop(StopStep::Kill);
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
            crash::point("between-effects");
            self.perform(effect, out);
        }
    }

    fn perform(&mut self, effect: Effect, out: &mut Batch) {
        match effect {
            Effect::Send { client, line } => self.send(client, Op::Line(line), out),
            // Without its sink the connection ends after what it was given.
            Effect::Close { client } => drop(self.sinks.remove(&client)),
            Effect::SendStatus { client, id, status, part } => {
                self.send(client, Op::Status { id, status, part }, out);
            }
            Effect::Read(read) => self.send(read.client, Op::Read(read), out),
            Effect::ReadLog { client, id, session, session_id, after, upto, limit } => {
                let page = LogPage { id, session, session_id, after, upto, limit };
                self.send(client, Op::Log(page), out);
            }
            Effect::Search { client, id, search } => {
                self.send(client, Op::Search(id, search), out);
            }
            Effect::Index(session) => self.readers.finder.update(session),
            Effect::SendValues { client, id, session, mode, extra, boolean_options } => {
                let values = Values { id, session, mode, extra, boolean_options };
                self.send(client, Op::Values(values), out);
            }
            Effect::Spawn { host, agent } => match self.agents.config.agent(&agent) {
                Ok(profile) if !profile.credentials.is_empty() => {
                    self.credentials.look_up(host, profile);
                }
                _ => self.spawn(Ready { host, agent, found: Ok(Vec::new()), left: None }, out),
            },
            Effect::Adopt(mut adopt) => {
                let host = adopt.host;
                let mut remade = BTreeSet::new();
                for (chunk, line) in &mut adopt.chunks {
                    if let Some(whole) = self.with_servers(host, line, out) {
                        *line = whole;
                        remade.insert(*chunk);
                    }
                }
                let running = self.agents.adopt(adopt, remade);
                self.take_in(host, running);
            }
            Effect::HostForget { host } => {
                if let Some(mut running) = self.hosts.remove(&host) {
                    running.host.forget();
                }
            }
            Effect::HostLease { host, busy } => self.with(host, |host| host.lease(busy)),
            Effect::HostWrite { host, chunk, line } => {
                let line = self.with_servers(host, &line, out).unwrap_or(line);
                self.with(host, |host| host.write(chunk, line));
            }
            Effect::HostAck { host, offset } => self.with(host, |host| host.ack(offset)),
            Effect::HostStop { host, step } => {
                self.services.cancel(host);
                self.with(host, |host| host.stop(step));
            }
            Effect::FindLeftovers { host } => self.agents.reaper.find_left(host),
            Effect::Serve { host, request, roots, service } => {
                self.services.serve(host, request, roots, service);
            }
            Effect::FindDirectory { question, agent, cwd } => {
                self.find_directory(question, &agent, cwd, out);
            }
            Effect::Summarize { session, upto } => {
                self.services.summarize(self.readers.journal.clone(), session, upto);
            }
            Effect::CreateTerminal { terminal, new } => {
                let environment = self.agents.environment(&new.agent);
                self.terminals.create(terminal, *new, environment);
            }
            Effect::TerminalOutput { request, terminal } => {
                self.terminals.output(request, terminal);
            }
            Effect::LookAtTerminal { terminal } => self.terminals.look(terminal),
            Effect::KillTerminal { terminal } => self.terminals.kill(terminal),
            Effect::ReleaseTerminal { terminal } => self.terminals.release(terminal),
            Effect::WatchLogin { agent, wanted } => {
                let file = self.agents.config.agent(&agent).ok();
                match file.and_then(|profile| profile.login_file.clone()).filter(|_| wanted) {
                    Some(file) => self.logins.watch(agent, file),
                    None => self.logins.unwatch(&agent),
                }
            }
            Effect::ForgetCredentials { agent } => self.credentials.forget(&agent),
            Effect::Hook { event, about } => self.hooks.run(event, about),
            Effect::Note { host, text } => {
                let text = log::quote(&text);
                tracing::debug!(host = host.0, text, "an agent did something odd");
                self.with(host, |host| host.note(text));
            }
            Effect::Failure { agent, session, what, code } => {
                tracing::warn!(agent, session, code, what, "an agent failed");
            }
            Effect::Leave { client, id, restart: true } => self.trials.begin(client, id),
            Effect::Leave { client, id, restart: false } => self.leave_for(client, &id, out),
            Effect::Abort => self.end = Some(End::Aborted),
            Effect::Exit => self.end = self.end.or(Some(End::Done)),
        }
    }

    /// An agent that listens somewhere may have other directories than this machine, and so may one of
    /// which that is said.
    fn find_directory(&mut self, question: u64, agent: &str, cwd: String, out: &mut Batch) {
        let profile = self.agents.config.agents.get(agent);
        let is_elsewhere = |profile: &config::Profile| {
            !profile.check_cwd || matches!(profile.transport(), Transport::TcpConnect(_))
        };
        if profile.is_some_and(is_elsewhere) {
            return self.input(Input::DirectoryFound { question, exists: true }, out);
        }
        self.services.find_directory(question, cwd);
    }

    /// A line that is to bring MCP servers, with them; nothing for all other lines.
    fn with_servers(&mut self, host: HostId, line: &Bytes, out: &mut Batch) -> Option<Bytes> {
        let Completed { line, request, left_out: servers } =
            mcp::complete(&self.agents.config.mcp, line)?;
        for LeftOut { server, reason } in &servers {
            tracing::warn!(host = host.0, server, reason, "an MCP server was left out");
        }
        if !servers.is_empty() {
            self.input(Input::ServersLeftOut { host, request, servers }, out);
        }
        Some(line)
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

    fn spawn(&mut self, ready: Ready, out: &mut Batch) {
        let Ready { host, agent, found, left } = ready;
        if let Some(left) = left {
            let left = left.as_millis() as u64;
            self.input(Input::CredentialsGood { host, left }, out);
        }
        match found.and_then(|secrets| self.agents.spawn(host, &agent, secrets)) {
            Ok(running) => self.take_in(host, running),
            Err(error) => self.input(Input::HostRefused { host, error }, out),
        }
    }

    fn take_in(&mut self, host: HostId, running: Box<dyn AgentHost + Send>) {
        self.hosts.insert(host, Running { host: running, gone: false });
    }

    fn with(&mut self, host: HostId, act: impl FnOnce(&mut (dyn AgentHost + Send))) {
        if let Some(running) = self.hosts.get_mut(&host) {
            act(running.host.as_mut());
        }
    }

    /// A restart goes on if the program that is to follow can start. Else nothing has changed.
    fn tried(&mut self, tried: Tried, out: &mut Batch) {
        let Tried { client, id, result } = tried;
        let Err(failure) = result else {
            if let Some(why) = self.hub.refuses_restart() {
                return self.send(client, Op::Line(build::error(&id, &why)), out);
            }
            self.restart = true;
            return self.leave_for(client, &id, out);
        };
        tracing::warn!(reason = failure.message(), "the daemon is not restarted");
        let text = format!("acpd would not start again: {}", failure.message());
        let mut fault = Fault::new(Reason::Other, text);
        if let Some(hint) = failure.hint() {
            fault = fault.hint(hint);
        }
        self.send(client, Op::Line(build::error(&id, &fault.object())), out);
    }

    /// Ends the daemon because a person wants it.
    fn leave_for(&mut self, client: ClientId, id: &Id, out: &mut Batch) {
        tracing::info!(restart = self.restart, "leaving");
        self.send(client, Op::Line(build::response(id, &Empty {})), out);
        self.leave(out);
    }
}

async fn sleep_until(at: Option<tokio::time::Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
