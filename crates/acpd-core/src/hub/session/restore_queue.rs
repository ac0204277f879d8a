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
//! A session over which the agent has ended before comes back alone: it begins when nothing else is being restored, and
//! nothing begins beside it, whoever waits. Else the sessions that are loaded with it would look as if they were to blame.
//!
//! Places are given out after each input with which a restore was over, well or not, or was awaited by nobody any more:
//! first to sessions that somebody waits for, then to those that somebody has open, then to the rest; within each of these
//! to the one that was used last.
//!
//! Who waits for a place is in memory alone. The next daemon goes on with the restores that the agent was asked for;
//! sessions that nobody waits for and whose turn had not come stay parked, until a prompt or whoever opens them.
//!
//! Architecture invariant: whoever waits for a place gets one. A session waits only while another one of its process is
//! being restored. A restore ends with its answer, with its process, or by its timeout when nothing comes; one that goes on
//! and on, whose every line puts the timeout off, is ended by a person (`acpctl session reseed --discard`).

use crate::hub::Hub;
use crate::input::Batch;
use crate::process::slot::Slot;
use crate::session::State;

impl Hub {
    /// Gives out the places that have become free.
    pub(crate) fn restore_queued(&mut self, out: &mut Batch) {
        for slot in self.sessions.places_freed() {
            if !self.processes.get(&slot).is_some_and(Slot::is_up) {
                continue;
            }
            for key in self.sessions.sessions_by_urgency(slot) {
                if matches!(self.session(key).state, State::Dormant) {
                    self.wake_session(key, out);
                    if self.sessions.keeps_places(key) {
                        break;
                    }
                }
            }
        }
    }
}
