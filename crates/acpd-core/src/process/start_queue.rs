//! The slots that wait for a place to start, in the order in which they came.

use crate::ids::SlotId;

/// Every `BY_AGE`-th place goes to the longest waiter.
const BY_AGE: u32 = 4;

#[derive(Debug, Default)]
pub(super) struct StartQueue {
    slots: Vec<SlotId>,
    given: u32,
}

impl StartQueue {
    pub(super) fn slots(&self) -> &[SlotId] {
        &self.slots
    }

    pub(super) fn push(&mut self, id: SlotId) {
        if !self.slots.contains(&id) {
            self.slots.push(id);
        }
    }

    pub(super) fn retain(&mut self, waits: impl Fn(SlotId) -> bool) {
        self.slots.retain(|id| waits(*id));
    }

    /// Takes out whose turn it is, given the most urgent one.
    pub(super) fn take(&mut self, most_urgent: SlotId) -> SlotId {
        let by_age = self.given % BY_AGE == BY_AGE - 1;
        self.given = self.given.wrapping_add(1);
        let id = self.slots.first().filter(|_| by_age).map_or(most_urgent, |oldest| *oldest);
        self.slots.retain(|waits| *waits != id);
        id
    }
}
