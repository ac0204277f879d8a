//! How many processes may be started at the same time, and whose turn it is.
//!
//! An agent costs most while it starts. If all of them die at once, or a daemon finds many sessions
//! to bring back, starting everything together would make everybody wait longest. So a slot that is
//! to start and finds no free place is [`State::Queued`], and gets one when another start is over,
//! well or not.
//!
//! Places are given out after each input, when it is known who waits for what: first to processes
//! that somebody waits for, then to those with a session that somebody has open, then to the rest;
//! within each of these to who came first.
//!
//! Architecture invariant: whoever waits for a place gets one. Each start ends, if only by its
//! timeout, and every fourth place goes to who has waited longest, whatever it is for.

use crate::hub::Hub;
use crate::ids::{SessionKey, SlotId};
use crate::input::Batch;
use crate::process::slot::State;

/// Every `BY_AGE`-th place goes to the longest waiter.
const BY_AGE: u32 = 4;

/// Who a process or a session is wanted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Urgency {
    /// Somebody waits for an answer.
    Awaited,
    /// Somebody has the session open.
    Watched,
    /// Nobody is there.
    Unattended,
}

impl Hub {
    /// Starts a process, or lets it wait for a place.
    pub(crate) fn start_agent(&mut self, id: SlotId, out: &mut Batch) {
        if self.start_queue.slots.is_empty() && self.has_place() {
            return self.launch_agent(id, out);
        }
        if !self.start_queue.slots.contains(&id) {
            self.start_queue.slots.push(id);
        }
        let reason = match self.config.cold_starts {
            1 => "waits for its turn: another agent is being started".to_owned(),
            most => format!("waits for its turn: {most} agents are being started"),
        };
        self.set_agent_state(id, State::Queued, Some(reason), out);
    }

    /// Gives out the places that have become free.
    pub(crate) fn start_queued(&mut self, out: &mut Batch) {
        if self.start_queue.slots.is_empty() {
            return;
        }
        let agents = &self.slots;
        let waits = |id: &SlotId| agents.get(id).is_some_and(|slot| slot.state == State::Queued);
        self.start_queue.slots.retain(waits);
        while !self.start_queue.slots.is_empty() && self.has_place() {
            let id = self.take_next();
            if self.is_needed(id) {
                self.launch_agent(id, out);
            } else {
                self.set_agent_state(id, State::Stopped, None, out);
                self.remove_unused_slot(id);
            }
        }
    }

    fn has_place(&self) -> bool {
        self.starting() < self.config.cold_starts as usize
    }

    fn starting(&self) -> usize {
        let starts = |state: &State| matches!(state, State::Starting | State::Initializing);
        self.slots.values().filter(|slot| starts(&slot.state)).count()
    }

    /// Takes out whose turn it is; there is one.
    fn take_next(&mut self) -> SlotId {
        let queue = &self.start_queue;
        let by_age = queue.given % BY_AGE == BY_AGE - 1;
        let first = queue.slots.iter().enumerate().min_by_key(|(_, id)| self.urgency_of(**id));
        let at = first.filter(|_| !by_age).map_or(0, |(at, _)| at);
        self.start_queue.given = self.start_queue.given.wrapping_add(1);
        self.start_queue.slots.remove(at)
    }

    /// Slots in the order in which they are to be started.
    pub(crate) fn most_urgent_first(&self, slots: &mut [SlotId]) {
        slots.sort_by_key(|id| self.urgency_of(*id));
    }

    /// The sessions of a process in the order in which they are to be brought back.
    pub(crate) fn sessions_by_urgency(&self, id: SlotId) -> Vec<SessionKey> {
        let mut keys = self.sessions_of(id);
        keys.sort_by_key(|key| self.urgency(*key));
        keys
    }

    fn urgency_of(&self, id: SlotId) -> Urgency {
        let agent = &self.slots[&id];
        if !agent.waiting.is_empty() || !agent.watchers.is_empty() {
            return Urgency::Awaited;
        }
        let sessions = self.sessions_of(id).into_iter().filter(|key| self.wants_host(*key));
        sessions.map(|key| self.urgency(key)).min().unwrap_or(Urgency::Unattended)
    }

    fn urgency(&self, key: SessionKey) -> Urgency {
        let session = self.session(key);
        if !session.queue.is_empty() || !session.waiting.is_empty() {
            Urgency::Awaited
        } else if session.attached.is_empty() {
            Urgency::Unattended
        } else {
            Urgency::Watched
        }
    }

    /// Processes that are being started, and those that wait for that; for tests.
    #[doc(hidden)]
    pub fn cold_starts(&self) -> (usize, usize) {
        let waiting = self.slots.values().filter(|slot| slot.state == State::Queued).count();
        (self.starting(), waiting)
    }
}
