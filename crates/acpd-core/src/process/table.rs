//! All process slots, and facts about their profiles. Only this table sets and removes the
//! processes of slots, so its index is exact. The start queue may hold slots that no longer wait;
//! [`Processes::start_queued`] removes them.
//!
//! Writing to agents: each line is a record and an effect, with a number from the outbox of its
//! process.
//!
//! ```text
//!  line ─▶ row on disk ── commit ─▶ written to the process ─▶ row removed
//!            └── too many unwritten bytes: the agent is clogged, and gets no new lines
//! ```
//!
//! Architecture invariant: all lines to agents are written here, and are on disk before.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::{discriminant, take};
use std::ops::Deref;
use std::sync::LazyLock;

use acp_wire::bound::SENTENCE;
use acp_wire::dialect::{Heard, Translator};
use acp_wire::{Version, build, clipped};
use acpd_api::{AgentNotice, Reason, method};
use bytes::Bytes;

use crate::cx::Cx;
use crate::event::EngineEvent;
use crate::fault::Fault;
use crate::ids::{ClientId, HostId, Process, Requester, SessionKey, SlotId, Time, Urgency};
use crate::input::{Effect, ToHost};
use crate::own::without_own;
use crate::process::slot::{
    AgentInfo, Directory, Host, OutputEnd, Parked, Slot, State, StopWhy, WaitFor, Waiting,
};
use crate::profile::{Config, Profile};
use crate::record::{AgentRow, AuthRow, Desired, HostRow, Record, Row};
use crate::timers::{Timer, Timers};

/// Bytes for new sessions of one process. An adoption has its own limit.
const PARKED_BYTES: usize = 4 << 20;
static NEVER_RAN: LazyLock<AgentInfo> = LazyLock::new(|| AgentInfo::new(AgentRow::default()));
/// Unwritten bytes before requests are refused and notifications dropped.
const UNWRITTEN: usize = 8 << 20;

#[derive(Debug, Default)]
pub(crate) struct Processes {
    pub(super) slots: BTreeMap<SlotId, Slot>,
    next_slot: u32,
    by_host: BTreeMap<HostId, SlotId>,
    known: BTreeMap<String, AgentInfo>,
    pub(super) queue: Vec<SlotId>,
    /// Number of assigned places.
    pub(super) given: u32,
    /// Output that is committed with this batch.
    pub(super) read: BTreeMap<HostId, OutputEnd>,
    pub(super) random: u64,
    pub(super) logins: BTreeMap<String, AuthRow>,
    pub(super) changed: BTreeSet<String>,
}

impl Processes {
    pub(crate) fn new(
        known: BTreeMap<String, AgentRow>,
        logins: BTreeMap<String, AuthRow>,
        seed: u64,
    ) -> Processes {
        Processes {
            known: known.into_iter().map(|(name, row)| (name, AgentInfo::new(row))).collect(),
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            logins,
            ..Processes::default()
        }
    }

    pub(super) fn get_mut(&mut self, id: SlotId) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(&id)?;
        mark(&mut self.changed, &slot.profile);
        Some(slot)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (SlotId, &mut Slot)> {
        self.slots.values().for_each(|slot| mark(&mut self.changed, &slot.profile));
        self.slots.iter_mut().map(|(id, slot)| (*id, slot))
    }

    pub(crate) fn of_profile(&self, profile: &str) -> Vec<SlotId> {
        let slots = self.iter().filter(|(_, slot)| slot.profile == profile);
        slots.map(|(id, _)| *id).collect()
    }

    /// Returns the slot that all sessions of a profile share, made on first use.
    pub(crate) fn shared(&mut self, profile: &str, now: Time) -> SlotId {
        let is_it = |slot: &Slot| slot.profile == profile && slot.dedicated.is_none();
        let shared = self.iter().find(|(_, slot)| is_it(slot)).map(|(id, _)| *id);
        shared.unwrap_or_else(|| self.add(profile, None, now))
    }

    pub(super) fn add(
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

    pub(crate) fn slot_of(&self, host: HostId) -> Option<SlotId> {
        self.by_host.get(&host).copied()
    }

    pub(crate) fn with_process(&self) -> impl Iterator<Item = &Slot> {
        self.by_host.values().map(|id| &self[id])
    }

    pub(super) fn put(&mut self, id: SlotId, host: Host) {
        self.by_host.insert(host.id, id);
        if let Some(slot) = self.get_mut(id) {
            slot.host = Some(host);
        }
    }

    pub(super) fn take(&mut self, host: HostId) -> Option<(SlotId, Host)> {
        let id = self.by_host.remove(&host)?;
        self.get_mut(id)?.host.take().map(|host| (id, host))
    }

    pub(crate) fn known(&self, profile: &str) -> &AgentInfo {
        self.known.get(profile).unwrap_or(&NEVER_RAN)
    }

    pub(crate) fn known_of(&self, id: SlotId) -> &AgentInfo {
        self.known(&self[&id].profile)
    }

    pub(crate) fn known_mut(&mut self, profile: &str) -> &mut AgentInfo {
        mark(&mut self.changed, profile);
        self.known.entry(profile.to_owned()).or_insert_with(|| {
            AgentInfo::new(AgentRow { name: profile.to_owned(), ..AgentRow::default() })
        })
    }

    pub(crate) fn edit_known(
        &mut self,
        cx: &mut Cx,
        profile: &str,
        change: impl FnOnce(&mut AgentRow),
    ) {
        let row = &mut self.known_mut(profile).row;
        change(row);
        cx.put(Row::Agent(row.clone()));
    }

    pub(crate) fn set_desired(&mut self, cx: &mut Cx, profile: &str, desired: Desired) {
        if self.known(profile).row.desired != desired {
            self.edit_known(cx, profile, |row| row.desired = desired);
        }
    }

    /// Lets acpd try again the methods that the agent did not support.
    pub(crate) fn forget_lies(&mut self, cx: &mut Cx, profile: &str) {
        if !self.known(profile).lies().is_empty() {
            self.known_mut(profile).forget_lies();
            self.edit_known(cx, profile, |_| {});
        }
    }

    pub(crate) fn take_changed(&mut self) -> BTreeSet<String> {
        take(&mut self.changed)
    }

    pub(crate) fn all_known(&self) -> impl Iterator<Item = (&String, &AgentInfo)> {
        self.known.iter()
    }

    /// Number of slots whose `initialize` is not answered yet.
    pub(crate) fn starting(&self) -> usize {
        let starts = |slot: &&Slot| matches!(slot.state, State::Starting | State::Initializing);
        self.values().filter(starts).count()
    }

    /// Returns whether clients wait at a process that is up.
    pub(crate) fn has_waiting(&self) -> bool {
        self.values().any(|slot| slot.is_up() && !slot.waiting.is_empty())
    }

    /// Returns whether slots wait to start, or no longer do but have kept their turn so far.
    pub(crate) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    pub(crate) fn waiting_to_start(&self) -> usize {
        self.values().filter(|slot| slot.state == State::Queued).count()
    }

    pub(crate) fn commit_read(&mut self, cx: &mut Cx) {
        for (host, end) in take(&mut self.read) {
            let Some(id) = self.slot_of(host) else { continue };
            // `get_mut` would mark the agent as changed, and watchers see no offsets.
            let process = self.slots.get_mut(&id).and_then(Slot::host_mut);
            let Some(process) = process else { continue };
            process.read = end;
            self.save(cx, id);
            cx.pressing = true;
            cx.send(Effect::Host(host, ToHost::Ack(end.offset)));
        }
    }

    /// Returns whether the end of a run is no failure.
    pub(crate) fn has_run_long_enough(&self, host: &Host, id: SlotId, config: &Config) -> bool {
        let ready_after = self.profile(id, config).restart.ready_after;
        let run = host.ready_since.zip(host.exited);
        run.is_some_and(|(since, until)| until.since(since) >= ready_after)
    }

    pub(super) fn slot_mut(&mut self, id: SlotId) -> &mut Slot {
        self.get_mut(id).expect("slots are never removed while something refers to them")
    }

    pub(crate) fn profile<'c>(&self, id: SlotId, config: &'c Config) -> &'c Profile {
        config.profile(&self[&id].profile)
    }

    pub(super) fn set_state(
        &mut self,
        cx: &mut Cx,
        id: SlotId,
        state: State,
        reason: Option<String>,
    ) {
        let reason = reason.map(|reason| clipped(&reason, SENTENCE));
        let slot = self.slot_mut(id);
        if slot.state == state && slot.reason == reason {
            return;
        }
        // The state itself is not new if only its reason or step changed.
        if discriminant(&slot.state) != discriminant(&state) {
            slot.since = cx.now;
        }
        slot.state = state;
        slot.reason = reason;
        self.notify_state(cx, id);
    }

    pub(super) fn notify_state(&self, cx: &mut Cx, id: SlotId) {
        let slot = &self[&id];
        let notice = AgentNotice {
            agent: slot.profile.clone().into(),
            state: slot.api_state(),
            reason: slot.api_reason().map(Into::into),
        };
        let line = build::notification(method::AGENT_STATE, &notice);
        cx.report(EngineEvent::AgentNotified { agent: slot.profile.clone(), line });
    }

    pub(super) fn save(&self, cx: &mut Cx, id: SlotId) {
        let slot = &self[&id];
        let Some(host) = slot.host() else { return };
        let row = HostRow {
            host: host.id,
            agent: slot.profile.clone(),
            pid: host.pid.unwrap_or(0),
            start: host.start,
            session: slot.dedicated,
            ready: host.ready_since,
            stopping: matches!(slot.state, State::Stopping { .. }),
            offset: host.read.offset,
            inside: host.read.inside,
            written: host.outbox.written,
            version: host.version,
        };
        // Effects for the process make the batch press.
        cx.record_later(Record::Put(Row::Host(row)));
    }

    pub(crate) fn is_needed(&self, cx: &Cx, id: SlotId, demand: Option<Urgency>) -> bool {
        self.is_wanted(cx, id, demand) || (self.stays_up(id) && !cx.shutdown.is_begun())
    }

    pub(crate) fn stays_up(&self, id: SlotId) -> bool {
        let is_shared = self[&id].dedicated.is_none();
        is_shared && self.known_of(id).row.desired == Desired::Up
    }

    pub(crate) fn is_wanted(&self, cx: &Cx, id: SlotId, demand: Option<Urgency>) -> bool {
        (self[&id].is_awaited() || demand.is_some()) && !self.stays_down(cx, id)
    }

    pub(crate) fn stays_down(&self, cx: &Cx, id: SlotId) -> bool {
        cx.shutdown.is_begun() || self.known_of(id).row.desired == Desired::Down
    }

    pub(crate) fn has_failed(&self, id: SlotId) -> bool {
        use StopWhy::{BadStart, Crashed, Lost};
        matches!(self[&id].stop_why(), Some(Crashed | Lost | BadStart { .. }))
    }

    /// Returns whether a stopped process returns for its sessions.
    pub(crate) fn restarts_by_itself(&self, id: SlotId, config: &Config) -> bool {
        let is_restart = matches!(self[&id].stop_why(), Some(StopWhy::Restart | StopWhy::Wedged));
        is_restart || (self.has_failed(id) && self.profile(id, config).restart.on_failure)
    }

    pub(crate) fn lease(&mut self, cx: &mut Cx, id: SlotId, busy: bool) {
        let Some(host) = self.get_mut(id).and_then(Slot::host_mut) else { return };
        if host.reachable && host.leased != Some(busy) {
            host.leased = Some(busy);
            cx.send(Effect::Host(host.id, ToHost::Lease(busy)));
        }
    }

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
        let asked = |waiting: &mut Waiting| waiting.directory == Directory::Asked(question);
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

    pub(crate) fn park(&mut self, cx: &mut Cx, process: Process, session: &str, line: &Bytes) {
        let slot = self.slot_mut(process.slot);
        slot.last_parked += 1;
        let (host, place, session) = (process.host, slot.last_parked, session.to_owned());
        slot.parked.entry(session.clone()).or_default().push(place, line.clone());
        cx.put(Row::Parked { host, place, session, line: line.clone() });
    }

    /// Skips a line about an unknown session, for lack of room.
    pub(crate) fn skip(&mut self, cx: &mut Cx, process: Process, session: &str) {
        if let Some(parked) = self.slot_mut(process.slot).parked.get_mut(session) {
            parked.is_cut = true;
        }
        cx.note(process.host, &format!("skipped a line for the unknown session `{session}`"));
    }

    pub(crate) fn has_room_for(
        &self,
        id: SlotId,
        len: usize,
        is_new: impl Fn(&str) -> bool,
    ) -> bool {
        let parked = self[&id].parked.iter().filter(|(session, _)| is_new(session));
        parked.map(|(_, parked)| parked.bytes).sum::<usize>() + len <= PARKED_BYTES
    }

    pub(crate) fn parked(&self, id: SlotId, session: &str) -> Option<&Parked> {
        self[&id].parked.get(session)
    }

    pub(crate) fn parked_mut(&mut self, id: SlotId, session: &str) -> Option<&mut Parked> {
        self.slot_mut(id).parked.get_mut(session)
    }

    pub(crate) fn take_parked(
        &mut self,
        cx: &mut Cx,
        process: Process,
        session: &str,
    ) -> Vec<Bytes> {
        let parked = self.slot_mut(process.slot).parked.remove(session);
        let Some(parked) = parked else { return Vec::new() };
        parked.delete(cx, process.host);
        parked.lines
    }

    /// Drops all lines, because no open request can name a session.
    pub(crate) fn drop_parked(&mut self, cx: &mut Cx, process: Process) {
        let parked = take(&mut self.slot_mut(process.slot).parked);
        for (session, parked) in parked {
            parked.delete(cx, process.host);
            let count = parked.lines.len();
            let text = format!("skipped {count} lines for the unknown session `{session}`");
            cx.note(process.host, &text);
        }
    }

    /// Returns whether the slot was removed.
    pub(crate) fn remove_orphan(&mut self, timers: &mut Timers, id: SlotId) -> bool {
        let is_empty = |slot: &Slot| slot.host().is_none() && slot.waiting.is_empty();
        if !self.get(&id).is_some_and(is_empty) {
            return false;
        }
        if let Some(slot) = self.slots.remove(&id) {
            mark(&mut self.changed, &slot.profile);
        }
        timers.clear(Timer::Slot(id));
        timers.clear(Timer::Idle(id));
        true
    }

    /// Writes an outbox row, then the line after the commit. Returns the line's number, or 0
    /// without a process.
    pub(crate) fn write(&mut self, cx: &mut Cx, id: SlotId, line: Bytes) -> u64 {
        self.write_named(cx, id, without_own(&line))
    }

    /// Like [`Processes::write`], for lines with names of MCP servers, which the daemon resolves.
    pub(crate) fn write_named(&mut self, cx: &mut Cx, id: SlotId, line: Bytes) -> u64 {
        let Some(process) = self.get_mut(id).and_then(Slot::host_mut) else { return 0 };
        let line = match &mut process.translator {
            Some(translator) => translator.to_agent(&line),
            None => line,
        };
        let (host, chunk) = (process.id, process.outbox.push(line.len()));
        cx.put(Row::Outbox { host, chunk, line: line.clone() });
        cx.send(Effect::Host(host, ToHost::Write { chunk, line }));
        chunk
    }

    /// What a line of an agent says, if the agent does not speak version 1.
    pub(crate) fn heard(&mut self, id: SlotId, line: &Bytes) -> Option<Vec<Heard>> {
        Some(self.translator(id)?.from_agent(line))
    }

    pub(crate) fn translator(&mut self, id: SlotId) -> Option<&mut Translator> {
        self.get_mut(id)?.host_mut()?.translator.as_deref_mut()
    }

    pub(crate) fn answer(&mut self, cx: &mut Cx, host: HostId, line: Bytes) {
        if let Some(slot) = self.slot_of(host) {
            self.write(cx, slot, line);
        }
    }

    /// Writes a notification. It is dropped if the agent does not read, or the journal fails.
    pub(crate) fn notify(&mut self, cx: &mut Cx, id: SlotId, line: Bytes) {
        if !self.is_clogged(id) && !cx.is_failing() {
            self.write(cx, id, line);
        }
    }

    pub(crate) fn on_written(&mut self, cx: &mut Cx, host: HostId, chunk: u64) {
        let Some(id) = self.slot_of(host) else { return };
        if let Some(process) = self.get_mut(id).and_then(Slot::host_mut) {
            process.outbox.take_written(cx, host, chunk);
            self.save(cx, id);
        }
    }

    /// Returns whether the agent does not read its lines, so no more are added.
    pub(crate) fn is_clogged(&self, id: SlotId) -> bool {
        let process = self.get(&id).and_then(Slot::host);
        process.is_some_and(|process| process.outbox.bytes > UNWRITTEN)
    }

    pub(crate) fn clogged_fault(&self, id: SlotId) -> Fault {
        let agent = &self[&id].profile;
        Fault::new(Reason::TooMany, format!("agent `{agent}` does not read what it is sent"))
            .hint(format!("try again later, or restart it: `acpctl agent restart {agent}`"))
    }

    /// The version of a slot's process; that of no process is the first one.
    pub(crate) fn version_of(&self, id: SlotId) -> Version {
        self[&id].host().map_or_else(Version::default, |host| host.version)
    }

    /// Returns whether it is unknown if an ended process got this line. `is_taken`: it did, and told
    /// what its version tells.
    pub(crate) fn is_undecided(&self, id: SlotId, chunk: u64, is_taken: bool) -> bool {
        self[&id].host().is_some_and(|host| {
            host.lost && host.outbox.has(chunk) || host.exited.is_some() && !is_taken
        })
    }
}

pub(super) fn mark(changed: &mut BTreeSet<String>, profile: &str) {
    if !changed.contains(profile) {
        changed.insert(profile.to_owned());
    }
}

impl Deref for Processes {
    type Target = BTreeMap<SlotId, Slot>;

    fn deref(&self) -> &BTreeMap<SlotId, Slot> {
        &self.slots
    }
}
