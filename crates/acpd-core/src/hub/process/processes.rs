//! The machine of agents' processes ([`Processes`]) in the hub: the facts that it gets of sessions and clients, and
//! their reactions to its events.
//!
//! [`Processes`]: crate::process::table::Processes

use acp_wire::{locate, str_at};
use acpd_api::Reason;
use bytes::Bytes;

use crate::clients::Clients;
use crate::event::EngineEvent;
use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{ClientId, HostId, SlotId};
use crate::mcp::client_servers::CallEnd;
use crate::offer::is_offered;
use crate::params::with_logins;
use crate::process::Demand;
use crate::process::logins::logins_of_others;
use crate::process::slot::{Asker, Slot, StopWhy, WaitFor, Waiting};
use crate::profile::Profile;
use crate::requests::Requests;
use crate::requests::purpose::Purpose;
use crate::session::table::Sessions;
use crate::shutdown::Shutdown;
use crate::timers::Timer;

/// Returns whether no session and no request uses a process.
fn free(sessions: &Sessions, requests: &Requests) -> impl Fn(SlotId, HostId) -> bool {
    move |id, host| sessions.of_slot(id).is_empty() && !requests.may_name_session(host)
}

/// Returns what wants the process of a slot.
fn demands(
    sessions: &Sessions,
    clients: &Clients,
    shutdown: &Shutdown,
) -> impl Fn(SlotId) -> Demand {
    move |id| Demand {
        urgency: sessions.urgency_of(id, |key| clients.is_attended(key)),
        ending: shutdown.is_begun(),
    }
}

impl Hub {
    pub(crate) fn profile_of(&self, id: SlotId) -> &Profile {
        self.processes.profile(id, &self.cx.config)
    }

    pub(crate) fn demand(&self, id: SlotId) -> Demand {
        demands(&self.sessions, &self.clients, &self.shutdown)(id)
    }

    /// The slot of a session that is to be made or taken over, for a client with this offer.
    pub(crate) fn slot_for_new(&mut self, profile: &str, offer: Option<&str>) -> SlotId {
        let is_free = free(&self.sessions, &self.requests);
        self.processes.slot_for_new(&mut self.cx, profile, offer, is_free)
    }

    /// Makes sure that a process is running or on its way, as far as the asker may.
    ///
    /// # Errors
    /// When there will be no process: stopped by a person, crash loop, shutdown.
    pub(crate) fn need_agent(&mut self, id: SlotId, asker: Asker) -> Result<(), Fault> {
        self.check_stays()?;
        self.is_configured(self.processes[&id].profile())?;
        self.processes.need(&mut self.cx, id, asker)
    }

    pub(crate) fn agent_fault(&self, id: SlotId, reason: Reason) -> Fault {
        self.processes.fault(id, reason, &self.cx.config)
    }

    /// Gives out the places that have become free.
    pub(crate) fn start_queued(&mut self) {
        loop {
            let demand = demands(&self.sessions, &self.clients, &self.shutdown);
            let started = self.processes.start_queued(&mut self.cx, demand);
            let Some(id) = started else { return };
            self.remove_unused_slot(id);
        }
    }

    /// Processes that are being started, and those that wait for that; for tests.
    #[doc(hidden)]
    pub fn cold_starts(&self) -> (usize, usize) {
        (self.processes.starting(), self.processes.waiting_to_start())
    }

    /// The slot that is asked for a client's `initialize`.
    pub(crate) fn slot_for_offer(&mut self, profile: &str, offer: Option<&str>) -> SlotId {
        let is_free = free(&self.sessions, &self.requests);
        self.processes.slot_for_offer(&mut self.cx, profile, offer, is_free)
    }

    /// The offer of the client that a process is started for.
    fn offer_for(&self, id: SlotId) -> Option<String> {
        let slot = &self.processes[&id];
        if let Some(session) = slot.dedicated().and_then(|key| self.sessions.get(&key)) {
            return session.row.client_meta.clone();
        }
        let mut waiting = slot.waiting().iter();
        if let Some(client) = waiting.find_map(|waiting| self.clients.get(&waiting.to.client)) {
            return client.offer.clone();
        }
        let mut by_urgency =
            self.sessions.sessions_by_urgency(id, |key| self.clients.is_attended(key)).into_iter();
        match by_urgency.find(|key| self.sessions.wants_host(*key)) {
            Some(key) => self.session(key).row.client_meta.clone(),
            None => self.processes.known_of(id).row.client_meta.clone(),
        }
    }

    /// Returns the stored offer of the client that makes a session.
    pub(crate) fn offer_of_maker(&self, slot: SlotId, client: ClientId) -> Option<String> {
        match self.clients.get(&client) {
            Some(client) => client.offer.clone(),
            None => self.processes[&slot].offer().map(str::to_owned),
        }
    }

    /// An agent's `initialize` result with the ways to log in that this client can take.
    pub(crate) fn with_own_logins(&self, client: ClientId, profile: &str, result: &Bytes) -> Bytes {
        let client = &self.clients[&client];
        let (offer, has_terminal) = (client.offer.as_deref(), client.capabilities.auth_terminal);
        let others = logins_of_others(profile, offer, &self.cx.config);
        with_logins(result, |method| {
            let says = |member: &str| locate(method, &["_meta", member]).is_some();
            let is_terminal = str_at(method, &["type"]).as_deref() == Some("terminal");
            let can = has_terminal || (is_offered(offer, "terminal-auth") && says("terminal-auth"));
            (!is_terminal || can) && !others.iter().any(|member| says(member))
        })
    }

    /// A process runs, and is asked for its capabilities.
    pub(crate) fn initialize_agent(&mut self, id: SlotId) {
        let Some(host) = self.processes[&id].host().map(|host| host.id) else { return };
        let ask = self.ask(host, Purpose::Initialize);
        let offer = self.offer_for(id);
        self.processes.initialize(&mut self.cx, id, ask, offer);
    }

    /// A process is usable for the first time.
    pub(crate) fn agent_ready(&mut self, id: SlotId) {
        self.tally.agent_start(self.processes[&id].start_took());
        self.ask_auth_status(id);
        self.agent_usable(id);
    }

    /// All work that waited for this process continues.
    pub(crate) fn agent_usable(&mut self, id: SlotId) {
        self.answer_watchers(id);
        for waiting in self.processes.take_waiting(id) {
            self.serve_waiting(id, waiting);
        }
        for key in self.sessions.sessions_by_urgency(id, |key| self.clients.is_attended(key)) {
            self.wake_session(key);
        }
        self.check_idle(id);
    }

    /// Answers the clients that wait for a start or a stop.
    pub(crate) fn answer_watchers(&mut self, id: SlotId) {
        for requester in self.processes.take_watchers(id) {
            self.answer_agent(&requester, id);
        }
    }

    /// Treats an agent of the user's own like the known program that it is by its `agentInfo.name`.
    pub(crate) fn take_quirks(&mut self, profile: &str) {
        let info = self.processes.known(profile).info.as_ref();
        let quirks = info.and_then(|info| self.cx.config.quirks.get(&info.name));
        let own = self.cx.config.agents.get_mut(profile).filter(|own| own.takes_quirks);
        if let (Some(own), Some(quirks)) = (own, quirks) {
            own.take_quirks(quirks);
        }
    }

    /// A process of the last daemon continues, and so does everything that it holds.
    pub(crate) fn agent_adopted(&mut self, id: SlotId) {
        let host = self.processes[&id].host().map(|host| host.id);
        for key in self.sessions.of_slot(id) {
            // A summary that is still owed is owed by the level.
            if self.session(key).row.host == host && !self.session(key).owes_summary() {
                self.session_mut(key).row.edit().restore = Some(acpd_api::RestoreLevel::Exact);
            }
        }
        self.lease(id);
        if self.processes[&id].is_up() {
            self.agent_usable(id);
        }
    }

    pub(crate) fn on_slot_timer(&mut self, id: SlotId) {
        let demand = self.demand(id);
        self.processes.on_timer(&mut self.cx, id, demand);
    }

    /// Refuses everything that waits for a process that will not come, prompts included.
    pub(crate) fn fail_waiters(&mut self, id: SlotId, fault: &Fault) {
        self.refuse_waiters(id, fault);
        let for_good = self.processes.stays_down(id, self.shutdown.is_begun());
        for key in self.sessions.of_slot(id) {
            // Prompts that wait for a login run after it, independent of processes until then.
            if for_good || !self.sessions.waits_for_login(key) {
                self.fail_queue(key, fault);
            } else {
                self.refuse_relayed(key, fault);
            }
        }
    }

    /// Refuses the requests that wait for the process itself. Its answer to `initialize` may be known without it.
    pub(crate) fn refuse_waiters(&mut self, id: SlotId, fault: &Fault) {
        let profile = self.processes[&id].profile().to_owned();
        let watchers = self.processes.take_watchers(id);
        let waiting = self.processes.take_waiting(id);
        for requester in watchers {
            self.refuse(&requester, fault);
        }
        for Waiting { to, what } in waiting {
            let is_first = matches!(what, WaitFor::Initialize);
            if !(is_first && self.initialize_from_memory(&to, &profile)) {
                self.refuse(&to, fault);
            }
        }
    }

    /// There will be no process: nothing wants it back.
    pub(crate) fn agent_given_up(&mut self, id: SlotId, fault: &Fault) {
        self.fail_waiters(id, fault);
        for key in self.sessions.of_slot(id) {
            self.session_mut(key).eager = false;
        }
    }

    pub(crate) fn begin_stop(&mut self, id: SlotId, why: StopWhy, reason: Option<String>) {
        let has_turns = self.has_turns(id);
        self.processes.stop(&mut self.cx, id, why, reason, has_turns);
    }

    fn has_turns(&self, id: SlotId) -> bool {
        self.sessions.of_slot(id).iter().any(|key| self.session(*key).running.is_some())
    }

    /// A turn has ended, perhaps of an agent that is being stopped.
    pub(crate) fn turn_ended_while_stopping(&mut self, id: SlotId) {
        if !self.has_turns(id) {
            self.processes.on_turns_ended(&mut self.cx, id);
        }
    }

    /// Answers everything that was open at a process that is gone.
    pub(crate) fn process_lost(
        &mut self,
        (id, host): (SlotId, HostId),
        fault: &Fault,
        ended_late: bool,
    ) {
        for why in self.unanswered(host) {
            match why {
                Purpose::Relay { to, .. } => self.refuse(&to, fault),
                Purpose::NewSession(new) => self.refuse(&new.to, fault),
                Purpose::Steer(steer) => self.steer_lost(&steer, fault),
                Purpose::Adopt(adoption) => self.refuse_adoption(&adoption, fault),
                Purpose::List { to, wanted } => self.listed(id, &to, &wanted, None),
                Purpose::Prompt { .. }
                | Purpose::Abandoned { .. }
                | Purpose::Restore { .. }
                | Purpose::Preset { .. }
                | Purpose::GivenUp { .. }
                | Purpose::Initialize
                | Purpose::AuthStatus
                | Purpose::LoginAgain
                | Purpose::Title { .. }
                | Purpose::Farewell => {}
            }
        }
        let asked =
            self.questions.which(|open| open.host() == Some(host) && open.session().is_none());
        self.close_questions(asked);
        self.services.on_process_gone(&mut self.cx, host);
        self.end_server_calls(&CallEnd::ProcessGone(host));
        let sessions = self.sessions.of_slot(id);
        let mut cut_off = sessions.clone();
        cut_off.retain(|key| ended_late && self.sessions.is_at_agent(*key));
        for key in sessions {
            self.session_lost_host(key, fault);
        }
        for key in &cut_off {
            self.load_cut_off(*key, cut_off.len() == 1);
        }
    }

    /// A process and its tree are gone: what comes next depends on what still wants one.
    pub(crate) fn process_gone(&mut self, id: SlotId) {
        let demand = self.demand(id);
        self.processes.judge(&mut self.cx, id, demand);
        self.cx.report(EngineEvent::SlotFreed(id));
    }

    /// Remembers how long a process may outlive the daemon, which depends on whether it works on something.
    pub(crate) fn lease(&mut self, id: SlotId) {
        let Some(host) = self.processes.get(&id).and_then(Slot::host) else { return };
        let busy =
            self.sessions.is_at_work(id) || self.requests.abandoned(host.id).next().is_some();
        self.processes.lease(&mut self.cx, id, busy);
    }

    fn is_used(&self, id: SlotId) -> bool {
        let slot = &self.processes[&id];
        !slot.waiting().is_empty()
            || slot.host().is_some_and(|host| self.requests.is_working(host.id))
            || self.processes.stays_up(id)
            || self.sessions.of_slot(id).iter().any(|key| self.is_in_use(*key))
    }

    /// A client has come to a session of the process.
    pub(crate) fn begin_use(&mut self, id: SlotId) {
        if self.processes.contains_key(&id) {
            self.watch_sleep(id);
            self.cx.timers.clear(Timer::Idle(id));
        }
    }

    /// Arms the idle timer of a process that nothing uses, disarms it otherwise.
    pub(crate) fn check_idle(&mut self, id: SlotId) {
        let Some(slot) = self.processes.get(&id) else { return };
        let is_used = !slot.is_up() || self.is_used(id);
        let is_orphan = self.is_orphan(id);
        self.watch_sleep(id);
        self.processes.check_idle(&mut self.cx, id, is_used, is_orphan);
    }

    /// Not every use disarms the timer; the end of every use arms it.
    pub(crate) fn on_idle(&mut self, id: SlotId) {
        if self.processes[&id].is_up() && !self.is_used(id) {
            self.processes.on_unused(&mut self.cx, id);
        }
    }

    /// Returns whether the session of a dedicated slot was never made or is deleted.
    fn is_orphan(&self, id: SlotId) -> bool {
        self.processes[&id].dedicated().is_some_and(|key| !self.sessions.contains_key(&key))
    }

    /// A dedicated slot goes with its session and its process.
    pub(crate) fn remove_unused_slot(&mut self, id: SlotId) {
        if self.processes.contains_key(&id)
            && self.is_orphan(id)
            && self.processes.remove_orphan(&mut self.cx.timers, id)
        {
            self.sessions.unroute_slot(id);
        }
    }
}
