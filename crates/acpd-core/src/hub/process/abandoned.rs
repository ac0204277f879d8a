//! Abandoned turns: acpd has given up, the agent is still working. Their session was closed or deleted.
//!
//! ```text
//!  close, delete ─▶ abandoned ── the agent answers the prompt ─▶ over: the session may come back
//!                      │  └───── process gone ─────────────────▶ over
//!                      └── no answer in the time of a cancel ──▶ agent stopped
//! ```
//!
//! Architecture invariant: while a turn runs in a process, its session is neither restored nor prompted
//! there for any client: two turns would write one history.

use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{SessionKey, SlotId, duration};
use crate::process::slot::StopWhy;
use crate::timers::Timer;

impl Hub {
    /// Abandons the running turn of a session. The agent was asked to end it, and must.
    pub(crate) fn abandon_turn(&mut self, key: SessionKey, fault: &Fault) {
        let session = self.session(key);
        let (slot, id) = (session.slot, session.row.agent_id.clone());
        if let Some(ask) = self.abandon_prompt(key, id) {
            self.watch_abandoned(ask, slot);
        }
        self.interrupt_turn(key, fault);
    }

    /// Begins to count the time that the agent has to end such a turn.
    pub(crate) fn watch_abandoned(&mut self, ask: u64, slot: SlotId) {
        let timeout = self.profile_of(slot).cancel_timeout;
        self.cx.timers.set(Timer::Asked(ask), self.cx.now.after(timeout));
    }

    /// Returns whether an abandoned turn runs in the agent's process, under the agent's id for its
    /// session.
    pub(crate) fn works_on(&self, slot: SlotId, agent_id: &str) -> bool {
        let host = self.processes[&slot].host();
        host.is_some_and(|host| self.requests.abandoned(host.id).any(|id| id == agent_id))
    }

    /// The agent has ended such a turn: what waited for that continues.
    pub(crate) fn abandoned_ended(&mut self, slot: SlotId) {
        self.lease(slot);
        if self.processes[&slot].is_up() {
            self.agent_usable(slot);
        }
    }

    pub(crate) fn on_abandoned_timer(&mut self, ask: u64) {
        let host = self.requests.get(ask).map(|asked| asked.host);
        let Some(slot) = host.and_then(|host| self.processes.slot_of(host)) else { return };
        if self.processes[&slot].is_stopping() {
            return;
        }
        let time = duration(self.profile_of(slot).cancel_timeout);
        let reason = format!("it worked on for {time} in a session that was closed");
        self.begin_stop(slot, StopWhy::Wedged, Some(reason));
    }
}
