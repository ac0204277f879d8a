//! Work that waited for an agent to be up.

use crate::hub::Hub;
use crate::ids::SlotId;

impl Hub {
    pub(crate) fn agent_ready(&mut self, id: SlotId) {
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
}
