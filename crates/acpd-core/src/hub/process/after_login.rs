//! Work that waits for a login.

use acp_wire::ErrorObject;

use crate::hub::Hub;
use crate::ids::{SessionKey, SlotId};
use crate::process::slot::{Asker, StopWhy};
use crate::session::State;

impl Hub {
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
        keys.retain(|key| self.sessions.waits_for_login(*key));
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
            if self.sessions.wants_host(key) {
                self.session_needs_login(key, error);
            }
        }
        self.begin_stop(slot, StopWhy::NoLogin, Some(error.message.clone()));
    }

    pub(crate) fn on_login_timer(&mut self, ask: u64) {
        let host = self.requests.get(ask).map(|asked| asked.host);
        let Some(slot) = host.and_then(|host| self.processes.slot_of(host)) else { return };
        self.give_up_ask(ask, None);
        self.logged_in_again(slot, false);
    }
}
