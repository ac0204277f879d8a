//! Clients and requests that wait for a process.

use std::mem::take;

use crate::ids::{ClientId, Requester, SlotId};
use crate::process::slot::{Slot, WaitFor, Waiting};
use crate::process::table::Processes;
use crate::requests::purpose::Directory;

impl Slot {
    pub(crate) fn waiting(&self) -> &[Waiting] {
        &self.waiting
    }

    pub(crate) fn is_awaited(&self) -> bool {
        !self.waiting.is_empty() || !self.watchers.is_empty()
    }
}

impl Processes {
    pub(crate) fn wait(&mut self, id: SlotId, waiting: Waiting) {
        self.slot_mut(id).waiting.push(waiting);
    }

    pub(crate) fn watch(&mut self, id: SlotId, to: Requester) {
        self.slot_mut(id).watchers.push(to);
    }

    pub(crate) fn take_waiting(&mut self, id: SlotId) -> Vec<Waiting> {
        take(&mut self.slot_mut(id).waiting)
    }

    pub(crate) fn take_watchers(&mut self, id: SlotId) -> Vec<Requester> {
        take(&mut self.slot_mut(id).watchers)
    }

    pub(crate) fn take_waiting_for(&mut self, question: u64) -> Option<(SlotId, Waiting)> {
        let asked = |waiting: &mut Waiting| {
            let directory = waiting.what.directory();
            directory.is_some_and(|(_, known)| *known == Directory::Asked(question))
        };
        let mut slots = self.iter_mut();
        slots.find_map(|(id, slot)| Some((id, slot.waiting.extract_if(.., asked).next()?)))
    }

    pub(crate) fn forget_waiting(&mut self, to: &Requester) -> bool {
        let slots = self.iter_mut();
        let gone = slots.flat_map(|(_, slot)| slot.waiting.extract_if(.., |wait| wait.to == *to));
        gone.count() > 0
    }

    pub(crate) fn forget_client(&mut self, client: ClientId) {
        for (_, slot) in self.iter_mut() {
            slot.waiting.retain(|waiting| waiting.to.client != client);
        }
    }

    pub(crate) fn is_initializing(&self, client: ClientId) -> bool {
        let waits = |waiting: &Waiting| {
            waiting.to.client == client && matches!(waiting.what, WaitFor::Initialize)
        };
        self.values().any(|slot| slot.waiting.iter().any(waits))
    }
}
