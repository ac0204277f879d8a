//! The hub: one owner of all state, stepped by inputs.

use std::collections::{BTreeMap, BTreeSet};

use acpd_api::Outcome;

use crate::agent::{Agent, AgentId, Asker, Known};
use crate::client::{Client, Naming};
use crate::ids::{ClientId, HostId, InteractionId, SessionKey, Time};
use crate::input::{Batch, Effect, Input};
use crate::interaction::Interaction;
use crate::ledger::{IdSource, Ledger, Requester};
use crate::profile::{Config, Profile, Sharing};
use crate::record::{Record, Rest, SessionState, Snapshot, TurnRest, TurnRow};
use crate::session::{Session, State};
use crate::timers::{Timer, Timers};
use crate::turn::{Queued, Running};

/// All state of the daemon. See the crate's documentation.
#[derive(Debug)]
pub struct Hub {
    pub(crate) now: Time,
    pub(crate) config: Config,
    /// Stands in for a profile that was removed from the configuration.
    pub(crate) no_profile: Profile,
    pub(crate) ids: IdSource,
    pub(crate) known: BTreeMap<String, Known>,
    pub(crate) agents: BTreeMap<AgentId, Agent>,
    pub(crate) next_slot: u32,
    pub(crate) hosts: BTreeMap<HostId, AgentId>,
    /// Processes of an earlier daemon that are being ended; nothing starts before they are gone.
    pub(crate) sweeping: BTreeSet<HostId>,
    pub(crate) sessions: BTreeMap<SessionKey, Session>,
    pub(crate) last_session: u32,
    /// Agent profile → public id → session.
    pub(crate) public: BTreeMap<String, BTreeMap<String, SessionKey>>,
    /// Process slot → the agent's own id → session that the process holds.
    pub(crate) routes: BTreeMap<AgentId, BTreeMap<String, SessionKey>>,
    pub(crate) clients: BTreeMap<ClientId, Client>,
    pub(crate) interactions: BTreeMap<InteractionId, Interaction>,
    pub(crate) ledger: Ledger,
    /// Requests that wait for a name.
    pub(crate) naming: Vec<Naming>,
    pub(crate) timers: Timers,
    /// Sessions whose row has to be written with this batch.
    pub(crate) dirty: BTreeSet<SessionKey>,
    /// Output that will be committed with this batch.
    pub(crate) acks: BTreeMap<HostId, u64>,
    pub(crate) store_failing: Option<String>,
    pub(crate) store_failing_since: Time,
    pub(crate) stopping: bool,
    pub(crate) stopped: bool,
    pub(crate) stop_watchers: Vec<Requester>,
    /// The way out of the last refused start.
    pub(crate) start_hint: Option<(AgentId, String)>,
    random: u64,
}

impl Hub {
    /// Goes on where the journal ends.
    ///
    /// Processes of an earlier daemon are ended first ([`Effect::Sweep`]): this hub's hosts are
    /// children of the daemon, so they hold no conversation any more. Turns that were running are
    /// told as interrupted, or as unknown if the agent may not have got the prompt; prompts that
    /// were not dispatched stay queued. [`Hub::seal`] completes the batch.
    pub fn recover(snapshot: Snapshot, config: Config, now: Time, out: &mut Batch) -> Hub {
        let boot = snapshot.boot + 1;
        out.records.push(Record::Boot { boot });
        out.durable = true;
        let mut hub = Hub {
            now,
            config,
            no_profile: Profile::default(),
            ids: IdSource::new(boot),
            known: BTreeMap::new(),
            agents: BTreeMap::new(),
            next_slot: 0,
            hosts: BTreeMap::new(),
            sweeping: BTreeSet::new(),
            sessions: BTreeMap::new(),
            last_session: snapshot.last_session,
            public: BTreeMap::new(),
            routes: BTreeMap::new(),
            clients: BTreeMap::new(),
            interactions: BTreeMap::new(),
            ledger: Ledger::default(),
            naming: Vec::new(),
            timers: Timers::default(),
            dirty: BTreeSet::new(),
            acks: BTreeMap::new(),
            store_failing: None,
            store_failing_since: now,
            stopping: false,
            stopped: false,
            stop_watchers: Vec::new(),
            start_hint: None,
            random: boot.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        };
        for (name, row) in &snapshot.agents {
            hub.known.insert(name.clone(), Known::new(row.clone()));
        }
        for (key, state) in snapshot.sessions.clone() {
            hub.recover_session(key, state);
        }
        for row in snapshot.turns.values() {
            hub.recover_turn(row, &snapshot, out);
        }
        for (host, state) in &snapshot.hosts {
            hub.sweeping.insert(*host);
            let (pid, start) = (state.row.pid, state.row.start);
            out.effects.push(Effect::Sweep { host: *host, pid, start });
        }
        if hub.sweeping.is_empty() {
            hub.start_needed(out);
        }
        hub
    }

    fn recover_session(&mut self, key: SessionKey, state: SessionState) {
        let agent = state.row.agent.clone();
        let sharing = self.config.agents.get(&agent).map(|profile| profile.sharing);
        let slot = match sharing.unwrap_or_default() {
            Sharing::Agent => self.shared_slot(&agent),
            Sharing::Session => self.new_slot(&agent, Some(key)),
        };
        self.public.entry(agent).or_default().insert(state.row.public_id.clone(), key);
        let session = Session {
            row: state.row,
            head: state.head,
            last_ticket: state.last_ticket,
            mcp_servers: state.mcp_servers,
            slot,
            state: State::Resting,
            queue: std::collections::VecDeque::new(),
            running: None,
            waiting: Vec::new(),
            attached: BTreeMap::new(),
            interactions: BTreeSet::new(),
            eager: false,
            doubtful: None,
        };
        self.sessions.insert(key, session);
    }

    fn recover_turn(&mut self, row: &TurnRow, snapshot: &Snapshot, out: &mut Batch) {
        let Some(session) = self.sessions.get_mut(&row.session) else { return };
        match (row.state, &row.line) {
            (TurnRest::Queued, Some(line)) => session.queue.push_back(Queued {
                ticket: row.ticket,
                sender: None,
                line: line.clone(),
                at: row.at,
            }),
            (TurnRest::Dispatched { host, chunk }, _) => {
                session.running = Some(Running {
                    ticket: row.ticket,
                    number: session.row.prompts,
                    sender: None,
                    started: row.at,
                    cancelling: None,
                    last_line: row.at,
                    echo: None,
                });
                let unwritten =
                    snapshot.hosts.get(&host).is_some_and(|host| host.outbox.contains_key(&chunk));
                let outcome = if unwritten {
                    let reason = "acpd ended before it knew that the agent had got the prompt";
                    Outcome::OutcomeUnknown { reason: reason.to_owned() }
                } else {
                    Outcome::Interrupted { reason: "acpd ended, and the agent with it".to_owned() }
                };
                session.eager = true;
                self.close_tools(row.session, out);
                self.end_turn(row.session, outcome, out);
            }
            (TurnRest::Queued | TurnRest::Ended, _) => {}
        }
    }

    /// Feeds one input. Records and effects are added to `out`; [`Hub::seal`] completes the batch.
    pub fn handle(&mut self, now: Time, input: Input, out: &mut Batch) {
        self.now = self.now.max(now);
        match input {
            Input::ClientOpened { client } => {
                self.clients.insert(client, Client::default());
            }
            Input::ClientLine { client, line } => self.on_client_line(client, line, out),
            Input::ClientOversized { client, head, len } => {
                self.on_client_oversized(client, &head, len, out);
            }
            Input::ClientClosed { client } => self.on_client_closed(client, out),
            Input::ClientLagged { client } => self.on_lagged(client),
            Input::ClientDrained { client } => self.on_drained(client, out),
            Input::ReadDone { client, session, upto } => {
                self.on_read_done(client, session, upto, out);
            }
            Input::HostStarted { host, pid, start } => self.on_host_started(host, pid, start, out),
            Input::HostRefused { host, error } => self.on_host_refused(host, error, out),
            Input::HostLine { host, line, end } => self.on_host_line(host, line, end, out),
            Input::HostOversized { host, head, len, end } => {
                self.on_host_oversized(host, &head, len, end, out);
            }
            Input::HostWritten { host, chunk } => self.on_host_written(host, chunk, out),
            Input::HostExited { host, status, stderr } => {
                self.on_host_exited(host, &status, &stderr, out);
            }
            Input::HostGone { host } => self.on_host_gone(host, out),
            Input::StoreFailing { reason } => {
                if self.store_failing.is_none() {
                    self.store_failing_since = self.now;
                }
                self.store_failing = Some(reason);
            }
            Input::StoreWorks => {
                if self.store_failing.take().is_some() {
                    self.timers.delay(self.now.since(self.store_failing_since));
                }
            }
            Input::Stop => self.begin_shutdown(out),
            Input::Tick => self.on_tick(out),
        }
        self.settle_names(out);
    }

    /// Completes a batch: rows that changed, and the output that it commits.
    pub fn seal(&mut self, out: &mut Batch) {
        for key in std::mem::take(&mut self.dirty) {
            if let Some(session) = self.sessions.get(&key) {
                out.records.push(Record::Session(Box::new(session.row.clone())));
            }
        }
        for (host, offset) in std::mem::take(&mut self.acks) {
            if self.hosts.contains_key(&host) {
                out.records.push(Record::HostOffset { host, offset });
                out.effects.push(Effect::HostAck { host, offset });
            }
        }
    }

    /// When [`Input::Tick`] is due. Never while the store fails: nobody is heard then, so nobody is
    /// late.
    pub fn deadline(&self) -> Option<Time> {
        self.timers.next().filter(|_| self.store_failing.is_none())
    }

    fn on_tick(&mut self, out: &mut Batch) {
        if self.store_failing.is_some() {
            return;
        }
        while let Some(timer) = self.timers.pop_due(self.now) {
            match timer {
                Timer::Agent(id) if self.agents.contains_key(&id) => self.on_agent_timer(id, out),
                Timer::Idle(id) if self.agents.contains_key(&id) => self.on_idle(id, out),
                Timer::Restore(key) if self.sessions.contains_key(&key) => {
                    self.on_restore_timer(key, out);
                }
                Timer::Cancel(key) if self.sessions.contains_key(&key) => {
                    self.on_cancel_timeout(key, out);
                }
                Timer::Stall(key) if self.sessions.contains_key(&key) => {
                    self.on_stall_timer(key, out);
                }
                Timer::Agent(_)
                | Timer::Idle(_)
                | Timer::Restore(_)
                | Timer::Cancel(_)
                | Timer::Stall(_) => {}
            }
        }
    }

    /// A process of an earlier daemon is gone.
    pub(crate) fn swept(&mut self, host: HostId, out: &mut Batch) {
        if self.sweeping.remove(&host) && self.sweeping.is_empty() {
            self.start_needed(out);
            self.check_stopped(out);
        }
    }

    /// Starts every process that something wants.
    fn start_needed(&mut self, out: &mut Batch) {
        let up: Vec<String> = self
            .known
            .iter()
            .filter(|(name, known)| {
                known.row.desired == crate::record::Desired::Up
                    && self.config.agents.contains_key(*name)
            })
            .map(|(name, _)| name.clone())
            .collect();
        for name in up {
            self.shared_slot(&name);
        }
        let slots: Vec<AgentId> = self.agents.keys().copied().collect();
        for slot in slots {
            let wanted = self.is_needed(slot)
                || self.sessions_of(slot).iter().any(|key| self.wants_host(*key));
            if wanted && let Err(fault) = self.need_agent(slot, Asker::Policy, out) {
                for key in self.sessions_of(slot) {
                    self.session_mut(key).eager = false;
                    self.fail_queue(key, &fault, out);
                }
            }
        }
    }

    /// A delay ± 20 %, so that agents that fell together do not start together.
    pub(crate) fn jitter(&mut self, ms: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        ms * (80 + self.random % 41) / 100
    }

    /// Whether every session that may come back is at rest for a reason; for tests.
    #[doc(hidden)]
    pub fn unsettled(&self) -> Vec<String> {
        let stuck = self.sessions.values().filter(|session| {
            let busy = !session.queue.is_empty() || session.running.is_some();
            let restoring = matches!(session.state, State::Restoring(_));
            restoring
                || (busy && !matches!(session.state, State::Live))
                || (session.eager && session.row.rest == Rest::Parked)
        });
        stuck.map(|session| format!("{}: {:?}", session.row.public_id, session.state)).collect()
    }
}
