//! Work that waited for an agent to be up, or for a login.

use acp_wire::ErrorObject;

use crate::hub::Hub;
use crate::ids::{SessionKey, SlotId};
use crate::process::slot::{Asker, StopWhy};
use crate::session::State;

impl Hub {
    pub(crate) fn agent_ready(&mut self, id: SlotId) {
        let profile = self.processes[&id].profile().to_owned();
        self.take_quirks(&profile);
        self.tally.agent_start(self.processes[&id].start_took());
        self.ask_auth_status(id);
        self.agent_usable(id);
    }

    pub(crate) fn agent_adopted(&mut self, id: SlotId) {
        let host = self.processes[&id].host().map(|host| host.id);
        for key in self.sessions.of_slot(id) {
            // The level `reseeded` says that a summary is owed: keep it.
            if self.session(key).row.host == host && !self.session(key).owes_summary() {
                self.session_mut(key).row.edit().restore = Some(acpd_api::RestoreLevel::Exact);
            }
        }
        self.lease(id);
        if self.processes[&id].is_up() {
            self.agent_usable(id);
        }
    }

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

    /// Waiting work continues in any case: if the login failed, the agent refuses it again.
    pub(crate) fn logged_in_again(&mut self, slot: SlotId, worked: bool) {
        self.processes.on_login_repeated(&mut self.cx, slot, worked);
        if !self.processes[&slot].is_up() {
            return;
        }
        for key in self.sessions.of_slot(slot) {
            self.ask_step_again(key);
        }
        self.agent_usable(slot);
    }

    pub(crate) fn login_worked(&mut self, profile: &str) {
        for slot in self.processes.of_profile(profile) {
            self.processes.on_login_worked(&mut self.cx, slot);
            for key in self.unblock(slot) {
                self.need_session(key, Asker::Policy);
            }
            let demand = self.demand(slot);
            self.processes.start_needed(&mut self.cx, slot, demand);
        }
    }

    fn unblock(&mut self, slot: SlotId) -> Vec<SessionKey> {
        let mut keys = self.sessions.of_slot(slot);
        keys.retain(|key| self.session(*key).waits_for_login());
        for key in &keys {
            self.try_without_login(*key);
            let session = self.session_mut(*key);
            session.eager = matches!(session.state, State::Dormant);
        }
        keys
    }

    pub(crate) fn unblock_for_next(&mut self, slot: SlotId) {
        for key in self.unblock(slot) {
            self.session_mut(key).eager = true;
        }
    }

    /// Starts queued logins, one at a time per process.
    pub(crate) fn next_logins(&mut self) {
        for slot in self.processes.with_waiting_login() {
            if !self.is_logging_in(slot)
                && let Some(next) = self.processes.take_waiting_login(slot)
            {
                self.serve_waiting(slot, next);
            }
        }
    }

    /// A process does not start without a login: requests fail, and sessions wait for the login.
    pub(crate) fn start_wants_login(&mut self, slot: SlotId, error: &ErrorObject) {
        let fault = self.processes.login_fault(slot, &error.message);
        self.refuse_waiters(slot, &fault);
        for key in self.sessions.of_slot(slot) {
            if self.session(key).wants_host() {
                self.session_needs_login(key, error);
            }
        }
        self.begin_stop(slot, StopWhy::NoLogin, Some(error.message.clone()));
    }
}
