//! The world around the hub: who exists, and what one step of it does.

use std::collections::{BTreeMap, VecDeque};

use acp_wire::build;
use acpd_core::ids::{ClientId, HostId, Time};
use acpd_core::profile::{Config, DaemonFacts, Profile, Sharing};
use acpd_core::{Batch, Effect, Hub, Input, SpawnError, StatusPart, StopStep};
use bytes::Bytes;
use serde_json::{Value, json};

use super::agent::{Disk, Process, Quirks};
use super::client::Client;
use super::rng::Rng;
use super::store::Store;
use super::truth::Truth;

/// Operations that may wait for a client before it counts as lagging.
const LAG: usize = 12;
/// Things that a trace remembers.
const TRACE: usize = 400;
/// Lines in one piece of journal.
const PIECE: usize = 7;

/// A running process.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) agent: String,
    pub(super) process: Process,
    pid: u32,
    /// Made, but the daemon does not know yet.
    unborn: bool,
    stdin: VecDeque<Bytes>,
    closed: bool,
    chunks: u64,
    told_chunks: u64,
    out: VecDeque<Bytes>,
    offset: u64,
    acked: u64,
    pub(super) leader: Leader,
    /// The daemon that started it is gone.
    orphan: bool,
    /// Does not end when stdin ends or SIGTERM comes.
    stubborn: bool,
}

/// Where the leader of a process stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leader {
    Runs,
    /// Has ended; the daemon does not know yet.
    Ended,
    /// The daemon knows; descendants live.
    Leftovers,
    /// Nothing is left; the daemon does not know yet.
    Gone,
}

/// Everything.
#[derive(Debug)]
pub(super) struct World {
    pub(super) rng: Rng,
    pub(super) now: u64,
    pub(super) hub: Option<Hub>,
    config: Config,
    quirks: BTreeMap<String, Quirks>,
    pub(super) disks: BTreeMap<String, Disk>,
    pub(super) store: Store,
    batch: Batch,
    pub(super) effects: VecDeque<Effect>,
    pub(super) hosts: BTreeMap<HostId, Host>,
    pub(super) clients: BTreeMap<ClientId, Client>,
    pub(super) truth: Truth,
    pub(super) faults: bool,
    /// Less breaks in this run, so that more gets done.
    pub(super) calm: bool,
    next_client: u64,
    next_pid: u32,
    pub(super) next_text: u64,
    refusals: VecDeque<(HostId, bool)>,
    /// The last things that happened, when somebody wants to read them.
    pub(super) trace: Option<VecDeque<String>>,
}

/// The agent profiles of every run.
pub(super) const AGENTS: [&str; 3] = ["alpha", "beta", "solo"];

impl World {
    pub(super) fn new(seed: u64, trace: bool) -> World {
        let mut rng = Rng::new(seed);
        let calm = rng.permille(600);
        let mut agents = BTreeMap::new();
        let mut quirks = BTreeMap::new();
        let mut disks = BTreeMap::new();
        for name in AGENTS {
            let load = rng.permille(800);
            let from_zero = !load && rng.permille(500);
            let quirk = Quirks {
                load,
                list: rng.permille(500),
                resume: !from_zero && rng.permille(500),
                close: rng.permille(700),
                resume_lies: rng.permille(300),
                from_zero,
                echo: rng.permille(300),
                late_replay: load && rng.permille(300),
            };
            let profile = Profile {
                sharing: if name == "solo" { Sharing::Session } else { Sharing::Agent },
                late_replay: quirk.late_replay,
                fingerprint: "1".to_owned(),
                idle_timeout: 60_000,
                ..Profile::default()
            };
            agents.insert(name.to_owned(), profile);
            quirks.insert(name.to_owned(), quirk);
            disks.insert(name.to_owned(), Disk::default());
        }
        let config = Config {
            default_agent: AGENTS[0].to_owned(),
            agents,
            line_limit: 1 << 20,
            daemon: DaemonFacts::default(),
        };
        let mut world = World {
            rng,
            now: 1_000_000,
            hub: None,
            config,
            quirks,
            disks,
            store: Store::default(),
            batch: Batch::default(),
            effects: VecDeque::new(),
            hosts: BTreeMap::new(),
            clients: BTreeMap::new(),
            truth: Truth::default(),
            faults: true,
            calm,
            next_client: 0,
            next_pid: 100,
            next_text: 0,
            refusals: VecDeque::new(),
            trace: trace.then(VecDeque::new),
        };
        world.boot();
        world
    }

    /// A daemon starts.
    pub(super) fn boot(&mut self) {
        let snapshot = self.store.snapshot.clone();
        let mut batch = Batch::default();
        let mut hub = Hub::recover(snapshot, self.config.clone(), Time(self.now), &mut batch);
        hub.seal(&mut batch);
        self.hub = Some(hub);
        self.store.waiting.push_back(batch);
    }

    /// The daemon dies where it stands: what is not committed, and what is not done, is lost.
    pub(super) fn crash(&mut self) {
        self.note("---", &"daemon crash");
        self.truth.hit("daemon crash");
        if !self.effects.is_empty() {
            self.truth.hit("daemon crash between commit and effect");
        }
        self.hub = None;
        self.batch = Batch::default();
        self.store.waiting.clear();
        self.store.failing = false;
        self.effects.clear();
        self.clients.clear();
        self.refusals.clear();
        // Whatever runs must be swept: it was on disk before it was started.
        self.hosts.retain(|_, host| host.leader != Leader::Gone);
        for host in self.hosts.values_mut() {
            host.orphan = true;
            host.closed = true;
        }
    }

    fn note(&mut self, way: &str, what: &impl std::fmt::Debug) {
        if let Some(trace) = &mut self.trace {
            trace.push_back(format!("{} {way} {what:?}", self.now));
            if trace.len() > TRACE {
                trace.pop_front();
            }
        }
    }

    /// Tells the hub.
    pub(super) fn feed(&mut self, input: Input) -> Result<(), String> {
        self.note("in ", &input);
        let Some(hub) = self.hub.as_mut() else { return Ok(()) };
        hub.handle(Time(self.now), input, &mut self.batch);
        for effect in std::mem::take(&mut self.batch.urgent) {
            self.truth.hit("answer while the store fails");
            self.perform(effect)?;
        }
        if self.rng.permille(600) {
            self.seal();
        }
        Ok(())
    }

    /// Ends the batch and gives it to the store.
    pub(super) fn seal(&mut self) {
        let Some(hub) = self.hub.as_mut() else { return };
        hub.seal(&mut self.batch);
        if !self.batch.is_empty() {
            self.store.waiting.push_back(std::mem::take(&mut self.batch));
        }
    }

    pub(super) fn commit(&mut self) -> Result<bool, String> {
        if self.store.failing {
            return Ok(false);
        }
        let Some(batch) = self.store.waiting.pop_front() else { return Ok(false) };
        self.store.commit(&batch.records)?;
        self.effects.extend(batch.effects);
        Ok(true)
    }

    /// Performs one effect.
    pub(super) fn perform(&mut self, effect: Effect) -> Result<(), String> {
        self.note("out", &effect);
        match effect {
            Effect::Send { client, .. }
            | Effect::SendStatus { client, .. }
            | Effect::ReadLog { client, .. }
            | Effect::SendValues { client, .. } => self.for_client(client, effect)?,
            Effect::Read(ref read) => self.for_client(read.client, effect.clone())?,
            Effect::Spawn { host, agent } => self.spawn(host, agent)?,
            Effect::Sweep { host, pid, .. } => match self.hosts.get_mut(&host) {
                // The daemon may have died before it knew the pid; the mark tells whose it is.
                Some(swept) if pid == 0 || swept.pid == pid => swept.leader = Leader::Gone,
                Some(_) => return Err(format!("{host:?} is swept under another pid")),
                None => {
                    self.feed(Input::HostGone { host })?;
                }
            },
            Effect::HostWrite { host, chunk, line } => self.write(host, chunk, line)?,
            Effect::HostAck { host, offset } => self.ack(host, offset)?,
            Effect::HostStop { host, step } => self.stop(host, step),
            Effect::Note { .. } => self.truth.hit("odd line noted"),
            Effect::Abort => {
                // The daemon ends all trees itself, without the hub.
                self.truth.hit("daemon aborted");
                self.hosts.clear();
                self.crash();
            }
            Effect::Exit => {
                if let Some((id, _)) = self.hosts.first_key_value() {
                    return Err(format!("the daemon ends, but {id:?} runs"));
                }
                self.truth.hit("daemon stopped");
                self.crash();
            }
        }
        Ok(())
    }

    fn for_client(&mut self, id: ClientId, effect: Effect) -> Result<(), String> {
        let Some(client) = self.clients.get_mut(&id) else { return Ok(()) };
        client.ops.push_back(effect);
        if client.ops.len() > LAG && !client.lagged {
            client.lagged = true;
            self.truth.hit("client lagged");
            self.feed(Input::ClientLagged { client: id })?;
        }
        Ok(())
    }

    fn spawn(&mut self, id: HostId, agent: String) -> Result<(), String> {
        if self.faults && self.rng.permille(if self.calm { 20 } else { 80 }) {
            self.truth.hit("start refused");
            let permanent = self.rng.permille(200);
            self.refusals.push_back((id, permanent));
            return Ok(());
        }
        let alone = agent != "solo";
        if alone && let Some((old, _)) = self.hosts.iter().find(|(_, host)| host.agent == agent) {
            return Err(format!("{id:?} of {agent} starts while {old:?} is not gone"));
        }
        self.next_pid += 1;
        if self.rng.permille(100)
            && let Some(disk) = self.disks.get_mut(&agent)
        {
            self.truth.hit("session used elsewhere");
            disk.goes_on_elsewhere(&format!("X{}.", self.next_pid));
        }
        let process = Process::new(&agent, self.quirks[&agent].clone());
        let host = Host {
            agent,
            process,
            pid: self.next_pid,
            unborn: true,
            stdin: VecDeque::new(),
            closed: false,
            chunks: 0,
            told_chunks: 0,
            out: VecDeque::new(),
            offset: 0,
            acked: 0,
            leader: Leader::Runs,
            orphan: false,
            stubborn: self.rng.permille(200),
        };
        self.hosts.insert(id, host);
        self.truth.hit("process started");
        Ok(())
    }

    fn write(&mut self, id: HostId, chunk: u64, line: Bytes) -> Result<(), String> {
        let Some(host) = self.hosts.get_mut(&id).filter(|host| !host.orphan) else { return Ok(()) };
        if chunk != host.chunks + 1 {
            return Err(format!("{id:?}: chunk {chunk} after {}", host.chunks));
        }
        host.chunks = chunk;
        if !host.closed {
            host.stdin.push_back(line);
        }
        Ok(())
    }

    fn ack(&mut self, id: HostId, offset: u64) -> Result<(), String> {
        let committed = self.store.snapshot.hosts.get(&id).map_or(offset, |state| state.offset);
        let Some(host) = self.hosts.get_mut(&id) else { return Ok(()) };
        if offset < host.acked || offset > host.offset || offset > committed {
            return Err(format!(
                "{id:?}: ack of {offset} after {}, handed over {}, committed {committed}",
                host.acked, host.offset
            ));
        }
        host.acked = offset;
        Ok(())
    }

    fn stop(&mut self, id: HostId, step: StopStep) {
        let Some(host) = self.hosts.get_mut(&id) else { return };
        match step {
            StopStep::CloseStdin => host.closed = true,
            StopStep::Term if host.stubborn => {}
            StopStep::Term | StopStep::Kill => {
                host.stdin.clear();
                host.leader = match host.leader {
                    Leader::Runs | Leader::Ended => Leader::Ended,
                    Leader::Leftovers | Leader::Gone => Leader::Gone,
                };
                if step == StopStep::Kill {
                    self.truth.hit("killed");
                    host.stubborn = false;
                }
            }
        }
    }

    /// A client's connection does the next thing that waits for it.
    pub(super) fn serve(&mut self, id: ClientId) -> Result<bool, String> {
        let Some(client) = self.clients.get_mut(&id) else { return Ok(false) };
        let Some(op) = client.ops.pop_front() else { return Ok(false) };
        let mut done = None;
        let lines: Vec<Bytes> = match op {
            Effect::Send { line, .. } => vec![line],
            Effect::Read(read) => {
                let (rows, upto) = self.store.read(&read, PIECE);
                done = Some(Input::ReadDone { client: id, session: read.session, upto });
                let shown = rows.iter().filter_map(|row| {
                    acpd_core::view::render(&row.line, row.kind, row.seq, &read.view)
                });
                shown.collect()
            }
            Effect::SendValues { id, session, extra, .. } => {
                let mut members = self.store.values(session);
                if !extra.is_empty() {
                    members.insert(0, extra);
                }
                let result = format!("{{{}}}", members.join(","));
                vec![Bytes::from(format!("{{\"id\":{id},\"result\":{result}}}"))]
            }
            Effect::SendStatus { id, mut status, part, .. } => vec![match part {
                StatusPart::All => build::response(&id, &status),
                StatusPart::Agents => build::response(&id, &status.agents),
                StatusPart::Agent(_) => build::response(&id, &status.agents.pop()),
            }],
            Effect::ReadLog { id, .. } => vec![build::response(&id, &json!({"entries":[]}))],
            _ => Vec::new(),
        };
        for line in lines {
            client
                .receive(&line, &self.store, &mut self.truth)
                .map_err(|e| format!("client {}: {e}", id.0))?;
        }
        let drained = client.ops.is_empty() && client.lagged;
        if drained {
            client.lagged = false;
        }
        if let Some(done) = done {
            self.truth.hit("piece of journal read");
            self.feed(done)?;
        }
        if drained {
            self.feed(Input::ClientDrained { client: id })?;
        }
        Ok(true)
    }

    /// A client connects.
    pub(super) fn connect(&mut self, agent: &str) -> Result<ClientId, String> {
        self.next_client += 1;
        let id = ClientId(self.next_client);
        let mut client = Client::new(agent, &mut self.rng);
        let line = client.initialize(&mut self.rng);
        self.clients.insert(id, client);
        self.feed(Input::ClientOpened { client: id })?;
        self.feed(Input::ClientLine { client: id, line })?;
        Ok(id)
    }

    /// A start that could not be made is reported.
    pub(super) fn refuse(&mut self) -> Result<bool, String> {
        let Some((host, permanent)) = self.refusals.pop_front() else { return Ok(false) };
        let message = "it cannot be started".to_owned();
        let error = SpawnError { message, hint: None, permanent };
        self.feed(Input::HostRefused { host, error })?;
        Ok(true)
    }

    /// Something happens at a process; whether anything could.
    pub(super) fn run(&mut self, id: HostId) -> Result<bool, String> {
        let Some(host) = self.hosts.get_mut(&id) else { return Ok(false) };
        if host.unborn && self.hub.is_some() && !host.orphan {
            host.unborn = false;
            let (pid, start) = (host.pid, u64::from(host.pid));
            self.feed(Input::HostStarted { host: id, pid, start })?;
            return Ok(true);
        }
        if host.leader == Leader::Gone && (host.out.is_empty() || host.orphan) {
            self.hosts.remove(&id);
            self.truth.hit("process gone");
            self.feed(Input::HostGone { host: id })?;
            return Ok(true);
        }
        // Output goes to the daemon, but not while the store fails.
        if !host.out.is_empty() && self.rng.permille(500) {
            return self.deliver(id);
        }
        match host.leader {
            Leader::Runs => Ok(self.work(id)? || self.deliver(id)?),
            Leader::Ended => {
                if !host.orphan && !host.out.is_empty() {
                    return self.deliver(id);
                }
                host.leader = Leader::Leftovers;
                let (status, stderr) = ("exit status 1".to_owned(), "oh no".to_owned());
                if !host.orphan {
                    self.feed(Input::HostExited { host: id, status, stderr })?;
                }
                Ok(true)
            }
            Leader::Leftovers => {
                if self.rng.permille(300) {
                    host.leader = Leader::Gone;
                }
                Ok(true)
            }
            Leader::Gone => Ok(false),
        }
    }

    fn deliver(&mut self, id: HostId) -> Result<bool, String> {
        let heard = self.hub.is_some() && !self.store.failing;
        let host = self.hosts.get_mut(&id).filter(|host| heard && !host.orphan);
        let Some(host) = host else { return Ok(false) };
        let Some(line) = host.out.pop_front() else { return Ok(false) };
        host.offset += line.len() as u64 + 1;
        let end = host.offset;
        self.feed(Input::HostLine { host: id, line, end })?;
        Ok(true)
    }

    fn work(&mut self, id: HostId) -> Result<bool, String> {
        let faults = self.faults;
        let Some(host) = self.hosts.get_mut(&id) else { return Ok(false) };
        let Some(disk) = self.disks.get_mut(&host.agent) else { return Ok(false) };
        let (rng, truth) = (&mut self.rng, &mut self.truth);
        let rare = if self.calm { 1 } else { 4 };
        if faults && rng.permille(rare) {
            truth.hit("agent crash");
            disk.lose();
            host.leader = Leader::Ended;
            return Ok(true);
        }
        if faults && rng.permille(2) {
            host.process.hang();
            truth.hit("agent hung");
        }
        if faults && rng.permille(2) {
            host.process.ignores_cancel = true;
        }
        if host.told_chunks < host.chunks && !host.orphan {
            host.told_chunks += 1 + rng.below((host.chunks - host.told_chunks) as usize) as u64;
            let chunk = host.told_chunks;
            self.feed(Input::HostWritten { host: id, chunk })?;
            return Ok(true);
        }
        if host.stdin.is_empty() && host.closed && !host.stubborn {
            host.leader = Leader::Ended;
            return Ok(true);
        }
        if host.process.hung {
            return Ok(false);
        }
        let mut said = Vec::new();
        if faults && rng.permille(5) {
            truth.hit("garbage line");
            host.out.push_back(Bytes::from_static(b"npm WARN something"));
        }
        let reads = !host.stdin.is_empty() && (!host.process.is_busy() || rng.permille(500));
        if reads && let Some(line) = host.stdin.pop_front() {
            host.process
                .read(&line, disk, rng, truth, &mut said)
                .map_err(|e| format!("{id:?}: {e}"))?;
        } else if host.process.is_busy() {
            said = host.process.work(disk, rng, truth);
        } else {
            return Ok(false);
        }
        host.out.extend(said.iter().map(|line: &Value| Bytes::from(line.to_string())));
        Ok(true)
    }

    /// Lets time pass: to the next deadline, or a little.
    pub(super) fn pass(&mut self, most: u64) -> Result<bool, String> {
        // A replay that is late is not that late.
        let replaying = |host: &Host| {
            let rest = (host.process.is_replaying() && host.leader == Leader::Runs)
                || !host.out.is_empty();
            self.quirks[&host.agent].late_replay && !host.orphan && rest
        };
        if self.hosts.values().any(replaying) {
            return Ok(true);
        }
        let deadline = self.hub.as_ref().and_then(Hub::deadline);
        match deadline {
            Some(Time(at)) if at <= self.now + most => {
                self.now = self.now.max(at);
                self.feed(Input::Tick)?;
                Ok(true)
            }
            _ => {
                self.now += most.min(50);
                Ok(false)
            }
        }
    }
}
