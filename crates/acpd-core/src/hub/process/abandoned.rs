//! Abandoned turns: their session was closed or deleted, and the agent still works.
//!
//! ```text
//!  close, delete ─▶ abandoned ── the agent answers the prompt ─▶ over: the session may come back
//!                      │  └───── process gone ─────────────────▶ over
//!                      └── no answer within `cancel_timeout` ──▶ agent stopped
//! ```
//!
//! Architecture invariant: while a turn runs in a process, its session is neither restored nor
//! prompted there for any client: two turns would write one history.

use crate::hub::Hub;
use crate::ids::{SlotId, duration};
use crate::process::slot::StopWhy;

impl Hub {
    pub(crate) fn on_abandoned_ended(&mut self, slot: SlotId) {
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
