//! A queue of sessions that a process restores, and the limit for restores at the same time.
//!
//! A process that dies with many sessions gets them all back. If it loaded them together, a prompt would wait
//! for the last of them, and another death before that would waste all loads. So a session that a client
//! waits for comes back at once, and of the others only a few at a time, while no client waits for one:
//!
//! ```text
//!  a client waits for it ───────────────────────▶ restored
//!  it is open, or was cut off ─ parked ─ place ─▶ restored ─▶ a place for the next
//! ```
//!
//! A session over which the agent has ended before comes back alone, with no other restore at the same time,
//! for any client. Else the sessions that are loaded with it would look as if they were to blame.
//!
//! Places are given out after each input with which a restore was over, well or not, or lost its last waiting
//! client: first to sessions that a client waits for, then to those that a client has open, then to the rest;
//! within each of these to the one that was used last.
//!
//! The queue is in memory alone. The next daemon continues the restores that the agent was asked for; queued
//! sessions that no client waits for stay parked, until a prompt or a client that opens them.
//!
//! Architecture invariant: each session that waits for a place gets one. A session waits only while another
//! one of its process is being restored. A restore ends with its answer, its process, or its timeout when
//! nothing comes; if lines put that off for ever, a person ends it (`acpctl session reseed --discard`).

use crate::hub::Hub;
use crate::process::slot::Slot;
use crate::session::State;

impl Hub {
    /// Gives out the places that have become free.
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
