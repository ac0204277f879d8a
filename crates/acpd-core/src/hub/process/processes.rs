//! Inputs of the process machine ([`crate::process::table`]), with facts from other machines.

use crate::clients::Clients;
use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{ClientId, SlotId, Time, Urgency};
use crate::process::slot::{Asker, Slot, StopWhy};
use crate::record::Purpose;
use crate::session::table::Sessions;
use crate::timers::Timer;

fn demands(sessions: &Sessions, clients: &Clients) -> impl Fn(SlotId) -> Option<Urgency> {
    move |id| sessions.urgency_of(id, |key| clients.is_attended(key))
}

impl Hub {
    pub(crate) fn demand(&self, id: SlotId) -> Option<Urgency> {
        demands(&self.sessions, &self.clients)(id)
    }

    /// Returns the slot for a session to be created or adopted, for a client with this offer.
    pub(crate) fn slot_for_new(&mut self, profile: &str, offer: Option<&str>) -> SlotId {
        let (sessions, requests) = (&self.sessions, &self.requests);
        let is_free =
            |id, host| sessions.of_slot(id).is_empty() && !requests.may_name_session(host);
        self.processes.slot_for_new(&mut self.cx, profile, offer, is_free)
    }

    /// Starts a process if the asker may. Errors: stopped by the user, crash loop, shutdown.
    pub(crate) fn need_agent(&mut self, id: SlotId, asker: Asker) -> Result<(), Fault> {
        self.check_stays()?;
        self.is_configured(self.processes[&id].profile())?;
        self.processes.need(&mut self.cx, id, asker)
    }

    pub(crate) fn start_queued(&mut self) {
        loop {
            let demand = demands(&self.sessions, &self.clients);
            let started = self.processes.start_queued(&mut self.cx, demand);
            let Some(id) = started else { return };
            self.remove_unused_slot(id);
        }
    }

    /// Numbers of starting processes, and of those that wait to start; for tests.
    #[doc(hidden)]
    pub fn cold_starts(&self) -> (usize, usize) {
        (self.processes.starting(), self.processes.waiting_to_start())
    }

    /// Returns the slot whose agent answers `initialize` for this offer. A client with a new offer
    /// gets its own process if sessions do; that process ends after the answer.
    pub(crate) fn slot_for_offer(&mut self, profile: &str, offer: Option<&str>) -> SlotId {
        let shared = self.processes.shared(profile, self.cx.now);
        let slot = &self.processes[&shared];
        let hears_other =
            slot.host().is_some() && offer.is_some() && slot.client_meta.as_deref() != offer;
        if hears_other { self.slot_for_new(profile, offer) } else { shared }
    }

    /// Returns the offer of the client that a process is started for.
    fn offer_for(&self, id: SlotId) -> Option<String> {
        let slot = &self.processes[&id];
        if let Some(session) = slot.dedicated.and_then(|key| self.sessions.get(&key)) {
            return session.row.client_meta.clone();
        }
        let mut waiting = slot.waiting.iter();
        if let Some(client) = waiting.find_map(|waiting| self.clients.get(&waiting.to.client)) {
            return client.offer.clone();
        }
        let mut by_urgency =
            self.sessions.sessions_by_urgency(id, |key| self.clients.is_attended(key)).into_iter();
        match by_urgency.find(|key| self.session(*key).wants_host()) {
            Some(key) => self.session(key).row.client_meta.clone(),
            None => self.processes.known_of(id).row.client_meta.clone(),
        }
    }

    pub(crate) fn offer_of_maker(&self, slot: SlotId, client: ClientId) -> Option<String> {
        match self.clients.get(&client) {
            Some(client) => client.offer.clone(),
            None => self.processes[&slot].client_meta.clone(),
        }
    }

    pub(crate) fn initialize_agent(&mut self, id: SlotId) {
        let Some(host) = self.processes[&id].host().map(|host| host.id) else { return };
        let ask = self.ask(host, Purpose::Initialize);
        let offer = self.offer_for(id);
        self.processes.initialize(&mut self.cx, id, ask, offer);
    }

    pub(crate) fn answer_watchers(&mut self, id: SlotId) {
        for requester in self.processes.take_watchers(id) {
            self.answer_agent(&requester, id);
        }
    }

    /// Applies the quirks of a program, known by `agentInfo.name`, to a user's own agent.
    pub(crate) fn take_quirks(&mut self, profile: &str) {
        let info = self.processes.known(profile).info.as_ref();
        let quirks = info.and_then(|info| self.cx.config.quirks.get(&info.name));
        let own = self.cx.config.agents.get_mut(profile).filter(|own| own.takes_quirks);
        if let (Some(own), Some(quirks)) = (own, quirks) {
            own.take_quirks(quirks);
        }
    }

    pub(crate) fn begin_stop(&mut self, id: SlotId, why: StopWhy, reason: &str) {
        let has_turns = self.has_turns(id);
        self.processes.stop(&mut self.cx, id, why, Some(reason.to_owned()), has_turns);
    }

    pub(crate) fn has_turns(&self, id: SlotId) -> bool {
        self.sessions.awake().any(|(_, session)| session.slot == id && session.running.is_some())
    }

    /// Records how long a process may outlive the daemon: longer while it works.
    pub(crate) fn lease(&mut self, id: SlotId) {
        let Some(host) = self.processes.get(&id).and_then(Slot::host) else { return };
        let busy =
            self.sessions.is_at_work(id) || self.requests.abandoned(host.id).next().is_some();
        self.processes.lease(&mut self.cx, id, busy);
    }

    pub(crate) fn check_idle(&mut self, id: SlotId) {
        if self.processes.contains_key(&id) {
            self.watch_sleep(id);
            // The session was never made or is deleted.
            self.end_if_unused(id, self.is_orphan(id));
        }
    }

    /// Ends an unused process, now or later. The end of every use calls this, but not every use
    /// disarms the timer.
    pub(crate) fn end_if_unused(&mut self, id: SlotId, is_due: bool) {
        let timeout = self.profile_of(id).idle_timeout;
        if !self.processes[&id].is_up() || self.is_used(id) {
            self.cx.timers.clear(Timer::Idle(id));
        } else if is_due
            && let Some(at) = self.last_call(id).map(|at| at.after(timeout))
            && at > self.cx.now
        {
            self.cx.timers.set(Timer::Idle(id), at);
        } else if is_due {
            let reason = Some("nothing used it".to_owned());
            self.processes.stop(&mut self.cx, id, StopWhy::Idle, reason, false);
        } else if timeout > 0 && !self.cx.timers.is_set(Timer::Idle(id)) {
            self.cx.timers.set(Timer::Idle(id), self.cx.now.after(timeout));
        }
    }

    /// The last line of a session with an open call: some agents go on with one after its turn, and do
    /// not call it work.
    fn last_call(&self, id: SlotId) -> Option<Time> {
        let its = self.sessions.awake().filter(|(_, session)| session.slot == id);
        let its = its.filter(|(_, session)| !session.row.open_tools.is_empty());
        its.filter_map(|(_, session)| session.activity.last_line).max()
    }

    /// Removes a dedicated slot whose session and process are gone.
    pub(crate) fn remove_unused_slot(&mut self, id: SlotId) {
        if self.processes.contains_key(&id)
            && self.is_orphan(id)
            && self.processes.remove_orphan(&mut self.cx.timers, id)
        {
            self.sessions.unroute_slot(id);
        }
    }

    pub(crate) fn watch_sleep(&mut self, slot: SlotId) {
        let timeout = self.profile_of(slot).session_idle_timeout;
        if timeout == 0 {
            return;
        }
        for (key, session) in self.sessions.awake() {
            let is_its = session.slot == slot && session.is_live();
            if is_its && !self.cx.timers.is_set(Timer::Sleep(key)) {
                self.cx.timers.set(Timer::Sleep(key), self.cx.now.after(timeout));
            }
        }
    }
}
