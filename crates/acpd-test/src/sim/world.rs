//! The world around the hub, and its steps.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use acp_wire::acp::Steering;
use acp_wire::{Body, Id, Version, Versions, build};
use acpd_api::HookEvent::{Crash, Login, Permission, TurnEnd};
use acpd_core::ids::{ClientId, HostId, SessionKey, Time};
use acpd_core::profile::{Config, OnLost, Profile, Sharing};
use acpd_core::record::{Record, TurnStage};
use acpd_core::{
    Batch, ClientEvent, ClientOrigin, Effect, Hub, Input, LogPage, StatusPart, ToClient, ToHost,
};
use bytes::Bytes;
use serde_json::{Value, json};

use super::Watch;
use super::agent::{Disk, Quirks};
use super::bad::{BROKEN, Days, TOKEN};
use super::client::Client;
use super::digest::Digester;
use super::host::{Adopting, Host, Leader};
use super::ride::Ride;
use super::store::Store;
use super::truth::Truth;
use super::watcher::Watchers;
use crate::rng::Rng;

/// Pending operations for a client above which it counts as lagging.
const LAG: usize = 12;
const TRACE: usize = 4_000;
/// Time until a client with a token is forgotten (ms).
const AWAY: u64 = 3_600_000;
/// Lines in one piece of journal.
const PIECE: usize = 7;

#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) rng: Rng,
    pub(super) now: u64,
    /// Milliseconds by which the clock was set back.
    set_back: u64,
    pub(super) hub: Option<Hub>,
    agents: BTreeMap<String, Profile>,
    cold_starts: u32,
    pub(super) keep_deleted: u64,
    pub(super) quirks: BTreeMap<String, Quirks>,
    pub(super) disks: BTreeMap<String, Disk>,
    pub(super) store: Store,
    batch: Batch,
    pub(super) effects: VecDeque<Effect>,
    pub(super) hosts: BTreeMap<HostId, Host>,
    pub(super) clients: BTreeMap<ClientId, Client>,
    pub(super) truth: Truth,
    pub(super) faults: bool,
    /// This run has fewer faults, so that more gets done.
    pub(super) calm: bool,
    /// Clients send messages into turns, and archive sessions.
    pub(super) steers: bool,
    pub(super) days: Days,
    pub(super) missing: BTreeSet<String>,
    /// Open requests to look for a directory, by number.
    pub(super) sought: VecDeque<(u64, String)>,
    pub(super) watched: BTreeSet<String>,
    /// Starts of each agent since the last request, and those in which it required a login first.
    pub(super) starts: BTreeMap<String, u64>,
    pub(super) refused_starts: BTreeMap<String, u64>,
    failures: BTreeMap<String, u32>,
    /// Shims of this run outlive the daemon.
    pub(super) survives: bool,
    next_client: u64,
    pub(super) next_pid: u32,
    pub(super) next_text: u64,
    /// The last prompts with an idempotency key, which is their text: session and text.
    pub(super) keyed: VecDeque<(SessionKey, String, String)>,
    pub(super) refusals: VecDeque<(HostId, bool)>,
    pub(super) adopting: Vec<Adopting>,
    /// Clients with a token that have no connection.
    pub(super) away: Vec<Client>,
    pub(super) watchers: Option<Watchers>,
    /// Lost connections that the daemon has not noticed.
    closing: Vec<ClientId>,
    pub(super) trace: Option<VecDeque<String>>,
    pub(super) digester: Option<Digester>,
}

pub(super) const AGENTS: [&str; 3] = ["alpha", "beta", "solo"];

impl World {
    pub(super) fn new(seed: u64, watch: Watch) -> World {
        let mut rng = Rng::new(seed);
        let calm = rng.permille(600);
        let survives = rng.permille(500);
        let days = Days::draw(&mut rng);
        let mut agents = BTreeMap::new();
        let mut quirks = BTreeMap::new();
        let mut disks = BTreeMap::new();
        // Not drawn from the seed, and not in the runs that have found something: these stay the
        // same.
        let steers = matches!(seed % 11, 4 | 6 | 8);
        for (at, name) in AGENTS.iter().copied().enumerate() {
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
                steering: match (seed / 11 + at as u64) % 3 {
                    0 if steers => Some(Steering::Inject),
                    1 if steers => Some(Steering::Extension),
                    _ => None,
                },
                second: false,
            };
            // Not drawn, and not in the runs that have found something.
            let second = seed % 17 > 9 && (seed / 3 + at as u64).is_multiple_of(2);
            let quirk = if second { quirk.of_version_2() } else { quirk };
            let profile = Profile {
                sharing: if name == "solo" { Sharing::Session } else { Sharing::Agent },
                late_replay: quirk.late_replay,
                fingerprint: "1".to_owned(),
                idle_timeout: 60_000,
                session_idle_timeout: 45_000,
                auth_errors: vec![TOKEN.to_owned()],
                gone_errors: if name == "beta" { vec![BROKEN.to_owned()] } else { Vec::new() },
                has_login_file: name != "beta",
                protocol: if second || seed % 17 == 9 { Versions::Auto } else { Versions::One },
                on_lost: if name == "solo" { OnLost::Stop } else { OnLost::Reseed },
                ..Profile::standard()
            };
            agents.insert(name.to_owned(), profile);
            quirks.insert(name.to_owned(), quirk);
            disks.insert(name.to_owned(), Disk::default());
        }
        World {
            rng,
            now: 1_000_000_000,
            agents,
            // Not drawn from the seed: older seeds still find what they found.
            cold_starts: 1 + (seed % 3) as u32,
            // Not drawn, either.
            keep_deleted: if seed.is_multiple_of(2) { 0 } else { 60 * 60_000 },
            quirks,
            disks,
            faults: true,
            calm,
            steers,
            days,
            survives,
            next_pid: 100,
            // Not drawn, and not in the runs that have found something.
            watchers: (seed % 13 == 10).then(|| Watchers::new(seed)),
            trace: watch.trace.then(VecDeque::new),
            digester: watch.digest.then(Digester::new),
            ..World::default()
        }
    }

    fn config(&self) -> Config {
        Config {
            default_agent: AGENTS[0].to_owned(),
            default_is_found: false,
            agents: self.agents.clone(),
            policy: acpd_core::profile::Policy::default(),
            line_limit: 1 << 20,
            max_clients: 1 << 10,
            newest: Version::V2,
            cold_starts: self.cold_starts,
            hooks: [Permission, TurnEnd, Crash, Login].into(),
            keep_deleted: self.keep_deleted,
            notify: true,
            quirks: BTreeMap::new(),
            workspaces: Vec::new(),
            retention: acpd_core::profile::Limits::default(),
            budget: None,
            delegation: acpd_core::profile::Delegation::default(),
            time_zone: || acpd_core::profile::TimeZone::UTC,
            daemon: acpd_api::DaemonInfo::default(),
            hides_plans: false,
        }
    }

    pub(super) fn boot(&mut self) -> Result<(), String> {
        self.check_hosts()?;
        self.failures.clear();
        if self.faults && self.days.jumps && self.rng.permille(300) {
            self.truth.hit("clock set back between two daemons");
            let back = self.now.min(self.rng.below(7_200_000) as u64);
            self.now -= back;
            self.set_back += back;
        }
        let snapshot = self.store.snapshot.clone();
        let mut batch = Batch::default();
        let mut hub = Hub::recover(snapshot, self.config(), Time(self.now), &mut batch);
        hub.seal(&mut batch);
        self.hub = Some(hub);
        self.store.waiting.push_back(batch);
        Ok(())
    }

    /// Kills the daemon: uncommitted records and effects are lost.
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
        for (_, client) in std::mem::take(&mut self.clients) {
            self.wait_for(client);
        }
        self.watchers.iter_mut().for_each(Watchers::drop_all);
        self.closing.clear();
        self.refusals.clear();
        self.adopting.clear();
        self.sought.clear();
        self.watched.clear();
        for host in self.hosts.values_mut() {
            host.cut_off(self.survives);
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

    pub(super) fn feed(&mut self, input: Input) -> Result<(), String> {
        self.note("in ", &input);
        if matches!(input, Input::Client(_, ClientEvent::Lines(_))) {
            // Requests restart the count.
            self.starts.clear();
            self.refused_starts.clear();
        }
        let Some(hub) = self.hub.as_mut() else { return Ok(()) };
        let looped = hub.crash_loops().count();
        hub.handle(Time(self.now), input, &mut self.batch);
        if hub.crash_loops().count() > looped {
            self.truth.hit("crash loop");
            self.check_crash_loops()?;
        }
        let Some(hub) = self.hub.as_mut() else { return Ok(()) };
        let (starting, waiting) = hub.cold_starts();
        let places = self.cold_starts as usize;
        if starting > places || (waiting > 0 && starting < places) {
            return Err(format!("{starting} of {places} starts, and {waiting} wait"));
        }
        if waiting > 0 {
            self.truth.hit("start waited for its turn");
        }
        for effect in std::mem::take(&mut self.batch.urgent) {
            self.truth.hit("answer while the store fails");
            self.perform(effect)?;
        }
        if self.rng.permille(600) {
            self.seal();
        }
        Ok(())
    }

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
        self.check_ends(&batch)?;
        self.store.commit(&batch.records, &mut self.truth)?;
        if let Some(digester) = &mut self.digester {
            digester.commit(&batch.records, &self.store.snapshot);
        }
        self.effects.extend(batch.effects);
        Ok(true)
    }

    /// The store fails from now on: waiting requests are answered.
    pub(super) fn fail_store(&mut self) -> Result<(), String> {
        self.store.failing = true;
        self.truth.hit("store failing");
        self.feed(Input::StoreFailing { reason: "disk full".to_owned(), hint: None })?;
        let Some(hub) = self.hub.as_mut() else { return Ok(()) };
        let mut batches = Vec::new();
        let mut accepted = Vec::new();
        for batch in self.store.waiting.iter_mut().chain([&mut self.batch]) {
            accepted.append(&mut batch.accepted);
            batches.push(&mut batch.effects);
        }
        let mut told = Batch::default();
        hub.answer_unwritten(accepted, &mut batches, &mut told);
        for effect in told.urgent {
            self.truth.hit("answer before its batch is written");
            self.perform(effect)?;
        }
        Ok(())
    }

    pub(super) fn perform(&mut self, effect: Effect) -> Result<(), String> {
        self.note("out", &effect);
        if let Some(digester) = &mut self.digester {
            digester.effect(&effect);
        }
        match effect {
            Effect::Client(client, what) => self.for_client(client, what)?,
            // For a client that has come back before the end of its last connection was seen.
            Effect::Close(client) if self.clients.contains_key(&client) => {
                return Err(format!("{client:?} was closed and is in nobody's way"));
            }
            Effect::Close(_) => self.truth.hit("old connection closed"),
            Effect::Spawn { host, agent } => self.spawn(host, agent)?,
            Effect::Adopt(adopt) => self.begin_adoption(adopt),
            Effect::ForgetCredentials(_) | Effect::Index(_) => {}
            Effect::WatchLogin { agent, wanted: true } => {
                self.watched.insert(agent);
            }
            Effect::WatchLogin { agent, wanted: false } => {
                self.watched.remove(&agent);
            }
            Effect::Host(host, order) => match order {
                ToHost::Forget => self.forget(host)?,
                ToHost::Write { chunk, line } => self.write(host, chunk, line),
                ToHost::Ack(offset) => self.ack(host, offset)?,
                ToHost::Stop(step) => self.stop(host, step),
                ToHost::Note(_) => self.truth.hit("odd line noted"),
                ToHost::Lease(_) => {}
            },
            Effect::FindLeftovers(host) => self.look_for_leftovers(host)?,
            Effect::Leave { client, id, .. } => self.leave(client, &id)?,
            Effect::Hook { event, about } => self.truth.tell(event, &about)?,
            Effect::Notify { .. } => self.truth.hit("notified"),
            Effect::FindDirectory { question, cwd, .. } => {
                self.sought.push_back((question, cwd));
                if self.rng.permille(700) {
                    self.find_directory()?;
                }
            }
            Effect::Summarize { session, .. } => {
                self.truth.hit("summary asked for");
                self.feed(Input::Summary { session, text: "all of it".to_owned() })?;
            }
            Effect::Measure { look, sessions } => {
                let size = |key| {
                    let lines = self.store.journals.get(&key).map_or(&[][..], |of| &of.rows);
                    (key, lines.iter().map(|row| row.line.len() as u64).sum())
                };
                let sizes = Ok(sessions.into_iter().map(size).collect());
                self.feed(Input::Measured { look, sizes })?;
            }
            Effect::Failure { .. } => self.truth.hit("failure logged"),
            Effect::Expired { .. } => self.truth.hit("expiry logged"),
            Effect::Trace(_) => self.truth.hit("trace begun"),
            // The agents of the simulation do everything themselves.
            Effect::Serve { request, .. }
            | Effect::CreateTerminal { terminal: request, .. }
            | Effect::TerminalOutput { request, .. }
            | Effect::LookAtTerminal(request)
            | Effect::KillTerminal(request)
            | Effect::ReleaseTerminal(request) => {
                return Err(format!("{request:?} was asked by nobody"));
            }
            Effect::Abort => {
                // The daemon ends all trees itself, without the hub.
                self.truth.hit("daemon aborted");
                self.hosts.clear();
                self.crash();
            }
            Effect::Exit => {
                let runs = |(_, host): &(_, &Host)| host.leader != Leader::Gone;
                if let Some((id, _)) = self.hosts.iter().find(runs) {
                    return Err(format!("the daemon ends, but {id:?} runs"));
                }
                self.truth.hit("daemon stopped");
                self.crash();
            }
        }
        Ok(())
    }

    fn leave(&mut self, id: ClientId, request: &Id) -> Result<(), String> {
        self.truth.hit("daemon restarted");
        if let Some(client) = self.clients.get_mut(&id) {
            let line = build::response(request, &json!({}));
            client.receive(&line, &self.store, &mut self.truth)?;
        }
        self.crash();
        Ok(())
    }

    /// Checks that a turn that its agent has not ended is over only if its process is, or was told
    /// to end.
    fn check_ends(&self, batch: &Batch) -> Result<(), String> {
        let snapshot = &self.store.snapshot;
        for record in &batch.records {
            let Record::Event(row) = record else { continue };
            let line: Value = serde_json::from_slice(&row.line).unwrap_or_default();
            let outcome = &line["params"]["outcome"];
            let reason = outcome["reason"].as_str().unwrap_or_default();
            let by_person = reason.contains("was closed") || reason.contains("was deleted");
            // The agent has ended the turn on request, before its process stops.
            let by_agent = reason.contains("was stopped in the turn");
            let is_cut =
                matches!(outcome["kind"].as_str(), Some("interrupted" | "outcome_unknown"));
            if line["method"] != acpd_api::method::TURN_ENDED || !is_cut || by_person || by_agent {
                continue;
            }
            let running = snapshot.turns.values().find_map(|turn| match turn.state {
                TurnStage::Dispatched { host, .. } if turn.session == row.session => Some(host),
                _ => None,
            });
            // A process that cannot be reached yet has not got its order to stop.
            let has_order = |host| self.adopting.iter().any(|waits| waits.has_order(host));
            let running = running.filter(|host| !has_order(*host));
            if let Some(host) =
                running.filter(|host| self.hosts.get(host).is_some_and(Host::is_well))
            {
                return Err(format!("{:?}: `{outcome}`, but {host:?} is well", row.session));
            }
        }
        Ok(())
    }

    pub(super) fn has_failed(&mut self, agent: &str) {
        *self.failures.entry(agent.to_owned()).or_default() += 1;
    }

    /// Checks that a daemon gives an agent up only after enough failures. Two starts may have timed
    /// out only because time passed.
    fn check_crash_loops(&self) -> Result<(), String> {
        let budget = Profile::standard().restart.budget;
        for agent in self.hub.iter().flat_map(Hub::crash_loops) {
            let failures = self.failures.get(agent).copied().unwrap_or_default();
            if failures + 2 < budget {
                return Err(format!("{agent} was given up after {failures} failures"));
            }
        }
        Ok(())
    }

    /// Answers one of the requests for a directory.
    pub(super) fn find_directory(&mut self) -> Result<bool, String> {
        let Some((question, cwd)) = self.sought.pop_front() else { return Ok(false) };
        let exists = !self.missing.contains(&cwd);
        if !exists {
            self.truth.hit("directory missing");
        }
        self.feed(Input::DirectoryFound { question, exists })?;
        Ok(true)
    }

    /// A login outside of acpd, a login that changes a file, a reported login; or one without a
    /// notification.
    pub(super) fn log_in_elsewhere(&mut self, agent: &str) -> Result<(), String> {
        let Some(disk) = self.disks.get_mut(agent) else { return Ok(()) };
        if disk.login.take().is_none() {
            return Ok(());
        }
        if self.rng.permille(300) {
            self.truth.hit("login came by itself");
            for host in self.hosts.values_mut().filter(|host| host.agent == agent) {
                host.process.refuses = None;
            }
        } else if self.watched.contains(agent) && self.rng.permille(600) {
            self.truth.hit("login seen in its file");
            self.feed(Input::LoginSeen(agent.to_owned()))?;
        } else {
            self.truth.hit("logged in in a terminal");
            let id = self.connect(agent)?;
            self.logged_in(id, agent)?;
        }
        Ok(())
    }

    fn for_client(&mut self, id: ClientId, what: ToClient) -> Result<(), String> {
        let what = match &mut self.watchers {
            Some(watchers) => watchers.take(id, what)?,
            None => Some(what),
        };
        let (Some(what), Some(client)) = (what, self.clients.get_mut(&id)) else { return Ok(()) };
        client.waiting.push_back(what);
        if client.waiting.len() > LAG && !client.lagged {
            if client.ride.is_some() && self.rng.permille(200) {
                self.truth.hit("client let go for lagging");
                return self.lose(id);
            }
            client.lagged = true;
            self.truth.hit("client lagged");
            self.feed(Input::Client(id, ClientEvent::Lagged))?;
        }
        Ok(())
    }

    /// A client's connection does its next pending operation.
    pub(super) fn serve(&mut self, id: ClientId) -> Result<bool, String> {
        let Some(client) = self.clients.get_mut(&id) else { return Ok(false) };
        let Some(what) = client.waiting.pop_front() else { return Ok(false) };
        let mut done = None;
        let lines: Vec<Bytes> = match what {
            ToClient::Line(line) => vec![line],
            ToClient::Read(read) => {
                let (rows, upto) = self.store.read(&read, PIECE);
                done =
                    Some(Input::Client(id, ClientEvent::ReadDone { session: read.session, upto }));
                read.show(rows)
            }
            ToClient::Values(asked) => vec![asked.line(&self.store.values(asked.session))],
            ToClient::Status { id, mut status, part } => vec![match part {
                StatusPart::All(_) => build::response(&id, &status),
                StatusPart::Agents => build::response(&id, &status.agents),
                StatusPart::Agent(_) => build::response(&id, &status.agents.pop()),
                StatusPart::Metrics(metrics) => build::response(&id, &metrics),
            }],
            ToClient::Log(LogPage { id, .. }) => vec![build::response(&id, &json!({"entries":[]}))],
            ToClient::Usage { id, .. } => vec![build::response(&id, &json!({"totals":[]}))],
            ToClient::LogLevel { id, .. } => vec![build::response(&id, &json!({"level":"info"}))],
            ToClient::Search { id, .. } => vec![build::response(&id, &json!({"hits":[]}))],
            ToClient::Rows(_) => return Err(format!("client {}: it does not watch", id.0)),
        };
        for line in lines {
            if let Some(digester) = &mut self.digester {
                digester.client_line(id.0, &line);
            }
            client
                .receive(&line, &self.store, &mut self.truth)
                .map_err(|e| format!("client {}: {e}", id.0))?;
        }
        let drained = client.waiting.is_empty() && client.lagged;
        if drained {
            client.lagged = false;
        }
        if let Some(done) = done {
            self.truth.hit("piece of journal read");
            self.feed(done)?;
        }
        if drained {
            self.feed(Input::Client(id, ClientEvent::Drained))?;
        }
        if self.clients.get(&id).is_some_and(|client| client.is_turned_away) {
            self.lose(id)?;
        }
        let ride = self.clients.get(&id).and_then(|client| client.ride.as_ref());
        if let Some(ride) = ride.filter(|ride| ride.refused) {
            self.truth.hit("client refused");
            if ride.is_known {
                self.lose(id)?;
            } else {
                self.clients.remove(&id);
                self.feed(Input::Client(id, ClientEvent::Closed))?;
            }
        }
        Ok(true)
    }

    pub(super) fn flush(&mut self, id: ClientId) -> Result<bool, String> {
        let ride = self.clients.get_mut(&id).and_then(|client| client.ride.as_mut());
        let Some(line) = ride.and_then(|ride| ride.wire.pop_front()) else { return Ok(false) };
        self.feed(client_line(id, line))?;
        Ok(true)
    }

    pub(super) fn connect(&mut self, agent: &str) -> Result<ClientId, String> {
        let mut client = Client::new(agent, &mut self.rng);
        if self.rng.permille(500) {
            client.ride = Some(Ride::new(self.next_client));
        }
        self.welcome(client)
    }

    pub(super) fn next_client(&mut self) -> ClientId {
        self.next_client += 1;
        ClientId(self.next_client)
    }

    fn welcome(&mut self, mut client: Client) -> Result<ClientId, String> {
        let id = self.next_client();
        let line = client.initialize(&mut self.rng);
        self.clients.insert(id, client);
        self.feed(Input::Client(id, ClientEvent::Opened(ClientOrigin::User)))?;
        self.feed(client_line(id, line))?;
        Ok(id)
    }

    /// A client loses its connection. The daemon notices at once, or later.
    pub(super) fn lose(&mut self, id: ClientId) -> Result<(), String> {
        let Some(client) = self.clients.remove(&id) else { return Ok(()) };
        self.wait_for(client);
        if self.rng.permille(500) {
            self.closing.push(id);
            return Ok(());
        }
        self.feed(Input::Client(id, ClientEvent::Closed))
    }

    fn wait_for(&mut self, mut client: Client) {
        if client.ride.is_none() {
            return;
        }
        if self.faults && self.rng.permille(100) {
            self.truth.hit("client never came back");
            return;
        }
        if client.cut_off(self.now + self.set_back) {
            self.away.push(client);
        }
    }

    pub(super) fn see_closed(&mut self) -> Result<bool, String> {
        let Some(client) = self.closing.pop() else { return Ok(false) };
        self.feed(Input::Client(client, ClientEvent::Closed))?;
        Ok(true)
    }

    pub(super) fn come_back(&mut self) -> Result<bool, String> {
        if self.away.is_empty() || self.hub.is_none() {
            return Ok(false);
        }
        let at = self.rng.below(self.away.len());
        let client = self.away.swap_remove(at);
        let since = client.ride.as_ref().map_or(0, |ride| ride.away);
        if self.now + self.set_back - since >= AWAY {
            self.truth.hit("client came back too late");
            return Ok(true);
        }
        self.truth.hit("client came back");
        self.welcome(client)?;
        Ok(true)
    }

    /// Lets time pass: to the next deadline, or a little.
    pub(super) fn pass(&mut self, most: u64) -> Result<bool, String> {
        // Time does not pass during a late replay, which is not that late.
        let replaying = |host: &Host| {
            let rest = host.process.is_replaying() && host.leader == Leader::Runs;
            self.quirks[&host.agent].late_replay && (rest || host.is_behind())
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

pub(super) fn client_line(client: ClientId, line: Bytes) -> Input {
    Input::Client(client, ClientEvent::Lines(vec![Body::Line(line)]))
}
