//! Going on with a session: whatever waits in it gets its turn.

use crate::hub::Hub;
use crate::ids::SessionKey;
use crate::input::Batch;
use crate::session::{Session, State};

impl Hub {
    /// Goes on with a session whose agent is usable: restore it, or dispatch what waits.
    pub(crate) fn wake_session(&mut self, key: SessionKey, out: &mut Batch) {
        if !self.sessions.contains_key(&key) {
            return;
        }
        match self.session(key).state {
            State::Live => {
                if !self.processes[&self.session(key).slot].is_up() {
                    // The process stops: waiting work continues with the next one, or is refused.
                    return;
                }
                // A mode that was set before a prompt counts for it.
                for relayed in std::mem::take(&mut self.session_mut(key).waiting) {
                    self.relay(key, relayed, out);
                }
                self.dispatch_next(key, out);
            }
            State::Restoring(_) => {}
            State::Dormant => {
                let Session { slot, row, .. } = self.session(key);
                let free = self.processes[slot].is_up() && !self.works_on(*slot, &row.agent_id);
                if free && self.sessions.wants_host(key) && self.sessions.may_restore(key) {
                    self.begin_restore(key, out);
                }
            }
        }
    }
}
