//! How many sessions a process brings back at the same time, and whose turn it is.
//!
//! A process that dies with many sessions gets them all back. If it had to load them together, a prompt would wait until the
//! last of them is there, and if the process dies again before that, none of it was of use. So a session that somebody waits
//! for comes back at once, and of the others only a few at a time, while nobody waits for one:
//!
//! ```text
//!  somebody waits for it ───────────────────────▶ restored
//!  it is open, or was cut off ─ parked ─ place ─▶ restored ─▶ a place for the next
//! ```
//!
//! Places are given out after each input in which a restore was over, well or not: first to sessions that somebody has open,
//! then to the rest; within each of these to the one that was used last.
//!
//! Architecture invariant: whoever waits for a place gets one. A session waits only while another one of its process is
//! being restored, and each restore ends, if only by its timeout.

use crate::hub::Hub;
use crate::hub::process::start_queue::Urgency;
use crate::ids::SessionKey;
use crate::input::Batch;
use crate::process::slot::Slot;
use crate::session::State;

/// Sessions that nobody waits for and that a process brings back at once.
const AT_ONCE: usize = 4;

impl Hub {
    /// Whether its restore may begin.
    pub(crate) fn may_restore(&self, key: SessionKey) -> bool {
        if self.urgency(key) == Urgency::Awaited {
            return true;
        }
        let mut places = AT_ONCE;
        for other in self.sessions.restoring(self.session(key).slot) {
            places -= 1;
            if places == 0 || self.urgency(other) == Urgency::Awaited {
                return false;
            }
        }
        true
    }

    /// Gives out the places that have become free.
    pub(crate) fn restore_queued(&mut self, out: &mut Batch) {
        for slot in self.sessions.restores_over() {
            if !self.processes.get(&slot).is_some_and(Slot::is_up) {
                continue;
            }
            for key in self.sessions_by_urgency(slot) {
                let is_dormant = matches!(self.session(key).state, State::Dormant);
                if is_dormant && self.urgency(key) != Urgency::Awaited {
                    self.wake_session(key, out);
                }
            }
        }
    }
}
