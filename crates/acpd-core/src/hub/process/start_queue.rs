//! A queue of processes to start, and the limit for starts at the same time.
//!
//! An agent costs most while it starts. If all of them die at once, or a daemon finds many sessions
//! to bring back, starting everything together would make every client wait longest. So a slot that
//! must start and finds no free place is [`State::Queued`], and gets one when another start is
//! over, well or not.
//!
//! Places are given out after each input, when it is known who waits: first to processes that a
//! client waits for, then to those with a session that a client has open, then to the rest; within
//! each of these to the one that came first.
//!
//! Architecture invariant: each slot that waits for a place gets one. Each start ends, if only by
//! its timeout, and every fourth place goes to the slot that has waited longest, for any reason.

use crate::hub::Hub;
use crate::ids::SlotId;
use crate::input::Batch;
use crate::process::slot::State;
use crate::session::table::Urgency;

impl Hub {
    /// Starts a process, or lets it wait for a place.
    pub(crate) fn start_agent(&mut self, id: SlotId, out: &mut Batch) {
        if self.processes.queue_is_empty() && self.has_place() {
            return self.launch_agent(id, out);
        }
        self.processes.enqueue(id);
        let reason = match self.config.cold_starts {
            1 => "waits for its turn: another agent is being started".to_owned(),
            most => format!("waits for its turn: {most} agents are being started"),
        };
        self.set_agent_state(id, State::Queued, Some(reason), out);
    }

    /// Gives out the places that have become free.
    pub(crate) fn start_queued(&mut self, out: &mut Batch) {
        loop {
            let queued = self.processes.queued();
            let most_urgent = queued.iter().min_by_key(|id| self.urgency_of(**id));
            let Some(most_urgent) = most_urgent.filter(|_| self.has_place()) else { return };
            let id = self.processes.take_queued(*most_urgent);
            if self.is_needed(id) {
                self.launch_agent(id, out);
            } else {
                self.set_agent_state(id, State::Stopped, None, out);
                self.remove_unused_slot(id);
            }
        }
    }

    fn has_place(&self) -> bool {
        self.processes.starting() < self.config.cold_starts as usize
    }

    pub(crate) fn urgency_of(&self, id: SlotId) -> Urgency {
        let agent = &self.processes[&id];
        if !agent.waiting.is_empty() || !agent.watchers.is_empty() {
            return Urgency::Awaited;
        }
        let sessions =
            self.sessions.of_slot(id).into_iter().filter(|key| self.sessions.wants_host(*key));
        sessions.map(|key| self.sessions.urgency(key)).min().unwrap_or(Urgency::Unattended)
    }

    /// Processes that are being started, and those that wait for that; for tests.
    #[doc(hidden)]
    pub fn cold_starts(&self) -> (usize, usize) {
        let waiting = self.processes.values().filter(|slot| slot.state == State::Queued).count();
        (self.processes.starting(), waiting)
    }
}
