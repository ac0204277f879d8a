//! Agents that are up: what has waited for one continues.

use crate::hub::Hub;
use crate::ids::SlotId;

impl Hub {
    /// A process is usable for the first time.
    pub(crate) fn agent_ready(&mut self, id: SlotId) {
        self.tally.agent_start(self.processes[&id].start_took());
        self.ask_auth_status(id);
        self.agent_usable(id);
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

    /// A repeated login has ended. What waits for it continues: if it did not work, the agent refuses it again.
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
