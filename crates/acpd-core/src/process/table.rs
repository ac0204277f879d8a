//! All process slots, and what is known of their profiles. Only this table puts processes into slots and
//! takes them out, so its index of processes is exact. The hub changes slot states, so the start queue may
//! hold ids that no longer wait: [`Processes::queued`] removes them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::LazyLock;

use crate::ids::{HostId, SessionKey, SlotId, Time};
use crate::input::{Batch, Effect, ToHost};
use crate::process::slot::{AgentInfo, Host, Slot, State};
use crate::record::{AgentRow, Record};

/// Every `BY_AGE`-th place goes to the longest waiter.
const BY_AGE: u32 = 4;

/// Facts about a profile whose agent never ran.
static NEVER_RAN: LazyLock<AgentInfo> = LazyLock::new(|| AgentInfo::new(AgentRow::default()));

/// Up to where the output of a process is read, and whether that is inside of a line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutputEnd {
    pub(crate) offset: u64,
    pub(crate) inside: bool,
}

#[derive(Debug)]
pub(crate) struct Processes {
    slots: BTreeMap<SlotId, Slot>,
    next_slot: u32,
    /// The slot of each process that a slot has.
    by_host: BTreeMap<HostId, SlotId>,
    known: BTreeMap<String, AgentInfo>,
    queue: Vec<SlotId>,
    /// Places that were given to them.
    given: u32,
    /// Output that will be committed with this batch.
    read: BTreeMap<HostId, OutputEnd>,
    /// State of the random numbers that spread restarts.
    random: u64,
    /// The profiles of which something may have changed.
    changed: BTreeSet<String>,
}

impl Processes {
    pub(crate) fn new(known: BTreeMap<String, AgentRow>, seed: u64) -> Processes {
        Processes {
            slots: BTreeMap::new(),
            next_slot: 0,
            by_host: BTreeMap::new(),
            known: known.into_iter().map(|(name, row)| (name, AgentInfo::new(row))).collect(),
            queue: Vec::new(),
            given: 0,
            read: BTreeMap::new(),
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            changed: BTreeSet::new(),
        }
    }

    pub(crate) fn get_mut(&mut self, id: SlotId) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(&id)?;
        mark(&mut self.changed, &slot.profile);
        Some(slot)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (SlotId, &mut Slot)> {
        self.slots.values().for_each(|slot| mark(&mut self.changed, &slot.profile));
        self.slots.iter_mut().map(|(id, slot)| (*id, slot))
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut Slot> {
        self.iter_mut().map(|(_, slot)| slot)
    }

    pub(crate) fn of_profile(&self, profile: &str) -> Vec<SlotId> {
        let slots = self.iter().filter(|(_, slot)| slot.profile == profile);
        slots.map(|(id, _)| *id).collect()
    }

    /// The slot that all sessions of a profile share, made on first use.
    pub(crate) fn shared(&mut self, profile: &str, now: Time) -> SlotId {
        let is_it = |slot: &Slot| slot.profile == profile && slot.dedicated.is_none();
        let shared = self.iter().find(|(_, slot)| is_it(slot)).map(|(id, _)| *id);
        shared.unwrap_or_else(|| self.add(profile, None, now))
    }

    pub(crate) fn add(
        &mut self,
        profile: &str,
        dedicated: Option<SessionKey>,
        now: Time,
    ) -> SlotId {
        let id = SlotId(self.next_slot);
        self.next_slot += 1;
        mark(&mut self.changed, profile);
        self.slots.insert(id, Slot::new(profile.to_owned(), dedicated, now));
        id
    }

    /// A slot without a process is not needed any more.
    pub(crate) fn remove(&mut self, id: SlotId) {
        if let Some(slot) = self.slots.remove(&id) {
            mark(&mut self.changed, &slot.profile);
        }
    }

    /// The slot of a process that is not gone yet.
    pub(crate) fn slot_of(&self, host: HostId) -> Option<SlotId> {
        self.by_host.get(&host).copied()
    }

    pub(crate) fn with_process(&self) -> impl Iterator<Item = &Slot> {
        self.by_host.values().map(|id| &self[id])
    }

    pub(crate) fn put(&mut self, id: SlotId, host: Host) {
        self.by_host.insert(host.id, id);
        if let Some(slot) = self.get_mut(id) {
            slot.put(host);
        }
    }

    /// A process is gone; what was known of it, and of which slot it was.
    pub(crate) fn take(&mut self, host: HostId) -> Option<(SlotId, Host)> {
        let id = self.by_host.remove(&host)?;
        self.get_mut(id)?.take().map(|host| (id, host))
    }

    pub(crate) fn known(&self, profile: &str) -> &AgentInfo {
        self.known.get(profile).unwrap_or(&NEVER_RAN)
    }

    /// Returns the facts about a slot's profile.
    pub(crate) fn known_of(&self, id: SlotId) -> &AgentInfo {
        self.known(&self[&id].profile)
    }

    pub(crate) fn known_mut(&mut self, profile: &str) -> &mut AgentInfo {
        mark(&mut self.changed, profile);
        self.known.entry(profile.to_owned()).or_insert_with(|| {
            AgentInfo::new(AgentRow { name: profile.to_owned(), ..AgentRow::default() })
        })
    }

    /// Changes what the disk knows of a profile.
    pub(crate) fn edit_known(
        &mut self,
        profile: &str,
        change: impl FnOnce(&mut AgentRow),
        out: &mut Batch,
    ) {
        let row = &mut self.known_mut(profile).row;
        change(row);
        out.records.push(Record::Agent(row.clone()));
    }

    /// The profiles of which something may have changed since this was asked last.
    pub(crate) fn take_changed(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut self.changed)
    }

    /// The profiles of which something is known.
    pub(crate) fn all_known(&self) -> impl Iterator<Item = (&String, &AgentInfo)> {
        self.known.iter()
    }

    /// Number of slots whose `initialize` is not answered yet.
    pub(crate) fn starting(&self) -> usize {
        let starts = |slot: &&Slot| matches!(slot.state, State::Starting | State::Initializing);
        self.values().filter(starts).count()
    }

    pub(crate) fn queue_is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// A slot waits for a place to start.
    pub(crate) fn enqueue(&mut self, id: SlotId) {
        if !self.queue.contains(&id) {
            self.queue.push(id);
        }
    }

    /// The slots that wait for a place to start, in the order in which they came.
    pub(crate) fn queued(&mut self) -> Vec<SlotId> {
        let slots = &self.slots;
        self.queue.retain(|id| slots.get(id).is_some_and(|slot| slot.state == State::Queued));
        self.queue.clone()
    }

    /// Takes out whose turn it is, given the most urgent of [`Processes::queued`].
    pub(crate) fn take_queued(&mut self, most_urgent: SlotId) -> SlotId {
        let by_age = self.given % BY_AGE == BY_AGE - 1;
        self.given = self.given.wrapping_add(1);
        let id = self.queue.first().filter(|_| by_age).map_or(most_urgent, |oldest| *oldest);
        self.queue.retain(|waits| *waits != id);
        id
    }

    /// All output up to here is dealt with in this batch.
    pub(crate) fn note_read(&mut self, host: HostId, end: OutputEnd) {
        self.read.insert(host, end);
    }

    /// Completes a batch: the output that it commits.
    pub(crate) fn commit_read(&mut self, out: &mut Batch) {
        for (host, OutputEnd { offset, inside }) in std::mem::take(&mut self.read) {
            if self.by_host.contains_key(&host) {
                out.records.push(Record::HostOffset { host, offset, inside });
                out.effects.push(Effect::Host(host, ToHost::Ack { offset }));
            }
        }
    }

    /// A delay ± 20 %, so that agents that fell together do not start together.
    pub(crate) fn jitter(&mut self, ms: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        ms * (80 + self.random % 41) / 100
    }
}

fn mark(changed: &mut BTreeSet<String>, profile: &str) {
    if !changed.contains(profile) {
        changed.insert(profile.to_owned());
    }
}

/// The slots are read as a map, and come and go through methods alone.
impl Deref for Processes {
    type Target = BTreeMap<SlotId, Slot>;

    fn deref(&self) -> &BTreeMap<SlotId, Slot> {
        &self.slots
    }
}
