//! The queue of sessions that a process restores.
//!
//! A process that dies with many sessions gets all of them back. Restored together, they would
//! delay a prompt until the last one is back, and another death would waste all loads. So a session
//! that a client waits for is restored at once; of the others only a few at a time, while no client
//! waits:
//!
//! ```text
//!  a client waits for it ───────────────────────▶ restored
//!  it is open, or was cut off ─ parked ─ place ─▶ restored ─▶ a place for the next
//! ```
//!
//! A session during whose restore the agent has ended is restored alone, for any client: others
//! restored with it would seem to be at fault.
//!
//! Places are given out after each input that has ended a restore, or its last wait: first to
//! sessions that a client waits for, then to open ones, then to the rest; within each, to the one
//! used last.
//!
//! The queue is in memory alone. The next daemon continues restores that the agent was asked for;
//! other queued sessions stay parked until a prompt, or a client that opens them.
//!
//! Architecture invariant: each session that waits for a place gets one. A session waits only while
//! another one of its process is being restored. A restore ends with its answer, its process, or
//! its timeout; if lines put that off for ever, the user ends it (`session reseed --discard`).

use crate::hub::Hub;
use crate::process::slot::Slot;
use crate::session::State;

impl Hub {
    pub(crate) fn restore_queued(&mut self) {
        for slot in self.sessions.places_freed() {
            if !self.processes.get(&slot).is_some_and(Slot::is_up) {
                continue;
            }
            for key in self.sessions.sessions_by_urgency(slot, |key| self.clients.is_attended(key))
            {
                if matches!(self.session(key).state, State::Dormant) {
                    self.wake_session(key);
                    if self.sessions.keeps_places(key) {
                        break;
                    }
                }
            }
        }
    }
}
