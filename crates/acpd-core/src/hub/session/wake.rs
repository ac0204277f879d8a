//! Going on with a session: whatever waits in it gets its turn.

use crate::hub::Hub;
use crate::ids::SessionKey;
use crate::input::{Batch, Effect};
use crate::process::slot::Asker;
use crate::session::restore::Restore;
use crate::session::{Session, State};
use crate::timers::Timer;

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

    fn begin_restore(&mut self, key: SessionKey, out: &mut Batch) {
        let question = self.ids.issue();
        let session = self.session(key);
        let row = &session.row;
        let (agent, cwd) = (row.agent.clone(), row.cwd.clone());
        let restore = Restore::new(question, row, self.now);
        let timeout = self.profile_of(session.slot).restore_timeout;
        self.session_mut(key).state = State::Restoring(Box::new(restore));
        self.sessions.restore_begins(key);
        self.tell_state(key, out);
        self.timers.set(Timer::Restore(key), self.now.after(timeout));
        out.effects.push(Effect::FindDirectory { question, agent, cwd });
    }

    /// Makes sure that the session is live or on its way; refuses what waits in it otherwise. Who goes on
    /// with a session takes it out of the archive.
    pub(crate) fn need_session(&mut self, key: SessionKey, asker: Asker, out: &mut Batch) {
        self.set_archived(key, false, out);
        let slot = self.session(key).slot;
        let needed = match self.session(key).state {
            State::Dormant => self.need_agent(slot, asker, out),
            State::Live | State::Restoring(_) => self.processes.may_start(slot),
        };
        if let Err(fault) = needed {
            self.session_mut(key).eager = false;
            return self.fail_queue(key, &fault, out);
        }
        self.wake_session(key, out);
    }
}
