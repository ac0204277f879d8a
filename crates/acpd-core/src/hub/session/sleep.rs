//! Unused sessions (`session_idle_timeout`): the agent's copy is closed until the next prompt.
//!
//! Architecture invariant: a session does not sleep while a turn, a question, a terminal, a call or
//! a request of it is open, while its agent works without a prompt, or when its agent could not bring
//! it back as it was.

use crate::hub::Hub;
use crate::ids::SessionKey;
use crate::process::slot::StopWhy;
use crate::record::Dormant;
use crate::timers::Timer;

/// Time to the next look at a session in use (ms).
const PAUSE: u64 = 60_000;
const ASLEEP: &str = "not used for a while; the next prompt wakes it";

impl Hub {
    pub(crate) fn on_sleep_timer(&mut self, key: SessionKey) {
        let session = self.session(key);
        let slot = session.slot;
        let timeout = self.profile_of(slot).session_idle_timeout;
        if timeout == 0 || !session.is_live() || !self.processes[&slot].is_up() {
            return;
        }
        let used = session.row.updated.max(session.activity.last_line.unwrap_or_default());
        let due = used.after(timeout);
        if due > self.cx.now {
            return self.cx.timers.set(Timer::Sleep(key), due);
        }
        if self.has_work(key) || !self.can_sleep(key) {
            return self.cx.timers.set(Timer::Sleep(key), self.cx.now.after(PAUSE));
        }
        if self.processes[&slot].dedicated.is_some() {
            return self.begin_stop(slot, StopWhy::Idle, ASLEEP);
        }
        self.farewell(key, "session/close");
        self.make_dormant(key, Dormant::Parked, Some(ASLEEP.to_owned()));
        self.check_idle(slot);
    }

    fn has_work(&self, key: SessionKey) -> bool {
        let session = self.session(key);
        let host = self.processes[&session.slot].host().map(|host| host.id);
        // An agent may never end such a call, and it has been silent as long as the session.
        let outlives = self.processes.version_of(session.slot).calls_outlive_turns();
        let is_asked =
            |host| self.requests.of_host(host).any(|purpose| purpose.session() == Some(key));
        self.is_busy(key)
            // A prompt that waits for a login needs no process yet.
            || !session.queue.is_empty()
            || session.wants_host()
            || self.questions.are_open(key)
            || session.works_outside_turns()
            || !outlives && !session.row.open_tools.is_empty()
            || self.services.works_for(key)
            || host.is_some_and(is_asked)
    }

    fn can_sleep(&self, key: SessionKey) -> bool {
        let session = self.session(key);
        let (profile, slot) = (self.profile_of(session.slot), &self.processes[&session.slot]);
        let known = self.processes.known(&session.row.agent);
        let ends = match slot.dedicated {
            Some(_) => !self.processes.stays_up(session.slot),
            None => known.capabilities.close,
        };
        let comes_back = known.resumes(profile) || known.loads(profile);
        ends && comes_back && (profile.restore_mcp || !session.has_servers())
    }
}
