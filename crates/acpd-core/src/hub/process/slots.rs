//! One agent process slot: what a profile's process is doing, and when it is started and stopped.
//!
//! ```text
//!            needed                 pid known              initialize answered
//! Stopped ─(Queued)─▶ Starting ───────────────▶ Initializing ────────────▶ Ready ◀──▶ NeedsAuth
//!    ▲                    │ cannot be made          │ error, timeout         │            │
//!    │ not needed         ▼                         ▼                        ▼            ▼
//!    ├──────────────── (judged) ◀── tree gone ── Stopping{why} ◀─ exit, stop, restart, idle, wedged
//!    │                    │
//!    │                    ├─▶ Backoff{until} ── time ─▶ Starting
//!    └── a person's start └─▶ Failed{reason} ── a person's start, prompt or login ─▶ Starting
//! ```
//!
//! Architecture invariant: a slot has at most one process, and the old tree is gone (`HostGone`)
//! before the next process starts. Several agents lock their sessions while any leftover lives; the
//! others silently fork the history.

use std::mem::discriminant;

use acp_wire::acp::{Implementation, InitializeParams, InitializeResult};
use acp_wire::bound::SENTENCE;
use acp_wire::{ErrorObject, Id, Outcome, build, clipped};
use acpd_api::{AgentNotice, Reason, method};
use bytes::Bytes;

use crate::fault::{Fault, about_agent, in_words};
use crate::hub::Hub;
use crate::ids::{HostId, SessionKey, SlotId, duration};
use crate::input::{Batch, Effect, SpawnError, StopStep, ToHost};
use crate::process::slot::{AgentInfo, Asker, Host, Slot, State, StopWhy, WaitFor, Waiting};
use crate::profile::{Profile, Sharing};
use crate::record::{AgentRow, Desired, HostRow, Record};
use crate::requests::purpose::Purpose;
use crate::timers::Timer;

impl Hub {
    pub(crate) fn profile_of(&self, id: SlotId) -> &Profile {
        self.config.profile(&self.processes[&id].profile)
    }

    pub(crate) fn slot_mut(&mut self, id: SlotId) -> &mut Slot {
        self.processes.get_mut(id).expect("slots are never removed while something refers to them")
    }

    /// The slot of a session that is to be made or taken over, for a client with this offer.
    pub(crate) fn slot_for_new(
        &mut self,
        profile: &str,
        offer: Option<&str>,
        out: &mut Batch,
    ) -> SlotId {
        match (self.config.agents[profile].sharing, self.unused_slot(profile, offer)) {
            (Sharing::Agent, _) => self.processes.shared(profile, self.now),
            (Sharing::Session, Some(unused)) => {
                self.slot_mut(unused).dedicated = Some(SessionKey::UNMADE);
                // The next daemon must not take it for the one without a session.
                self.save_host(unused, out);
                unused
            }
            (Sharing::Session, None) => {
                self.processes.add(profile, Some(SessionKey::UNMADE), self.now)
            }
        }
    }

    /// Returns the slot of a process without a session: it was started for the answer to `initialize`.
    fn unused_slot(&self, profile: &str, offer: Option<&str>) -> Option<SlotId> {
        let is_unused = |(id, slot): &(&SlotId, &Slot)| {
            slot.profile == profile
                && slot.dedicated.is_none()
                && slot.waiting.is_empty()
                && slot.client_meta.as_deref() == offer
                && self.sessions.of_slot(**id).is_empty()
                && slot.usable_host().is_some_and(|host| !self.requests.may_name_session(host))
        };
        self.processes.iter().find(is_unused).map(|(id, _)| *id)
    }

    /// The slot of a session that no process holds.
    pub(crate) fn slot_for(&mut self, key: SessionKey, profile: &str) -> SlotId {
        let mut slots = self.processes.iter();
        if let Some((own, _)) = slots.find(|(_, slot)| slot.dedicated == Some(key)) {
            return *own;
        }
        // The profile may have been removed from the configuration.
        let sharing = self.config.agents.get(profile).map(|profile| profile.sharing);
        match sharing.unwrap_or_default() {
            Sharing::Agent => self.processes.shared(profile, self.now),
            Sharing::Session => self.processes.add(profile, Some(key), self.now),
        }
    }

    pub(crate) fn set_agent_state(
        &mut self,
        id: SlotId,
        state: State,
        reason: Option<String>,
        out: &mut Batch,
    ) {
        let now = self.now;
        let reason = reason.map(|reason| clipped(&reason, SENTENCE));
        let agent = self.slot_mut(id);
        if agent.state == state && agent.reason == reason {
            return;
        }
        // With another reason, or at a later stage, the state began before.
        if discriminant(&agent.state) != discriminant(&state) {
            agent.since = now;
        }
        agent.state = state;
        agent.reason = reason;
        self.tell_agent_state(id, out);
    }

    pub(crate) fn tell_agent_state(&mut self, id: SlotId, out: &mut Batch) {
        let agent = &self.processes[&id];
        let notice = AgentNotice {
            agent: agent.profile.clone().into(),
            state: agent.api_state(),
            reason: agent.api_reason().map(Into::into),
        };
        let line = build::notification(method::AGENT_STATE, &notice);
        self.notify_profile(notice.agent.raw(), &line, out);
    }

    /// Makes sure that a process is running or on its way, as far as the asker may.
    ///
    /// # Errors
    /// When there will be no process: stopped by a person, crash loop, shutdown.
    pub(crate) fn need_agent(
        &mut self,
        id: SlotId,
        asker: Asker,
        out: &mut Batch,
    ) -> Result<(), Fault> {
        let profile = self.processes[&id].profile.clone();
        self.check_stays()?;
        if !self.config.agents.contains_key(&profile) {
            return Err(self.unknown_agent(&profile));
        }
        if self.processes.known(&profile).row.desired == Desired::Down {
            return Err(Fault::new(
                Reason::AgentStopped,
                format!("agent `{profile}` was stopped by a person"),
            )
            .hint(format!("`acpctl agent start {profile}` starts it again")));
        }
        match (&self.processes[&id].state, asker) {
            (State::Stopped, _) => self.start_agent(id, out),
            (State::Backoff | State::Failed(_), Asker::Person) => {
                self.slot_mut(id).forgive();
                self.start_agent(id, out);
            }
            (State::Failed(reason), Asker::Policy) => {
                return Err(self.agent_fault(id, *reason));
            }
            _ => self.may_start(id)?,
        }
        Ok(())
    }

    /// The error for who needed an agent that failed.
    pub(crate) fn agent_fault(&self, id: SlotId, reason: Reason) -> Fault {
        let agent = &self.processes[&id];
        if let Err(fault) = self.may_start(id) {
            return fault;
        }
        let what = agent.reason.as_deref().unwrap_or("it failed");
        if agent.state == State::Failed(Reason::NeedsLogin) {
            return self.login_fault(id, what);
        }
        let fault = Fault::new(reason, about_agent(&agent.profile, what));
        fault.stderr(&agent.stderr).hint(self.agent_hint(id))
    }

    /// Makes a process, now.
    pub(crate) fn launch_agent(&mut self, id: SlotId, out: &mut Batch) {
        let host = HostId(self.ids.issue());
        let slot = self.slot_mut(id);
        (slot.printed, slot.start_hint) = (None, None);
        let profile = slot.profile.clone();
        let timeout = self.profile_of(id).start_timeout;
        self.processes.put(id, Host { made: Some(self.now), ..Host::new(host) });
        self.set_agent_state(id, State::Starting, None, out);
        self.timers.clear(Timer::Idle(id));
        self.timers.set(Timer::Slot(id), self.now.after(timeout));
        // On disk before there is a process: a daemon that dies in between leaves nothing unknown.
        self.save_host(id, out);
        out.effects.push(Effect::Spawn { host, agent: profile });
    }

    pub(crate) fn on_host_started(&mut self, host: HostId, pid: u32, start: u64, out: &mut Batch) {
        let Some(id) = self.processes.slot_of(host) else { return };
        if let Some(h) = self.slot_mut(id).host_mut() {
            h.pid = Some(pid);
            h.start = start;
        }
        self.save_host(id, out);
        if self.processes[&id].state != State::Starting {
            // Stopped while it was being made: the ladder begins now that there is a process.
            out.effects.push(Effect::Host(host, ToHost::Stop(StopStep::CloseStdin)));
            return;
        }
        self.set_agent_state(id, State::Initializing, None, out);
        let implementation = Implementation {
            name: "acpd".to_owned(),
            title: Some("acpd".to_owned()),
            version: self.config.daemon.version.clone(),
        };
        let Profile { services, subagents, .. } = *self.profile_of(id);
        let params = InitializeParams::new(implementation, services).with_subagents(subagents);
        let ask = self.ask(host, Purpose::Initialize, out);
        let line = build::request(&Id::issued(ask), "initialize", &params);
        let line = self.with_offer(id, line);
        self.processes.write(id, line, out);
    }

    pub(crate) fn on_host_refused(&mut self, host: HostId, error: SpawnError, out: &mut Batch) {
        let Some((id, _)) = self.processes.take(host) else { return };
        out.records.push(Record::HostGone { host });
        out.effects.push(Effect::Host(host, ToHost::Forget));
        self.timers.clear(Timer::Slot(id));
        if let State::Stopping { .. } = self.processes[&id].state {
            self.set_agent_state(id, State::Stopped, None, out);
            self.after_gone(id, None, out);
            return;
        }
        let slot = self.slot_mut(id);
        slot.reason = Some(error.message.clone());
        slot.stderr.clear();
        slot.start_hint = error.hint;
        let why =
            StopWhy::BadStart { reason: Reason::AgentStartFailed, permanent: error.permanent };
        self.fail_waiters(id, Reason::AgentStartFailed, out);
        self.after_gone(id, Some(why), out);
    }

    pub(crate) fn on_initialized(&mut self, id: SlotId, outcome: Outcome<'_>, out: &mut Batch) {
        use StopWhy::BadStart;
        let is_late = match &self.processes[&id].state {
            State::Initializing => false,
            State::Stopping { why: BadStart { reason: Reason::AgentTimeout, .. }, .. } => true,
            _ => return,
        };
        let result = match outcome {
            Outcome::Error(error) => {
                let error = ErrorObject::from_raw(error);
                if let Some(source) = self.wants_login(id, "initialize", &error) {
                    return self.start_wants_login(id, source, &error, out);
                }
                if is_late {
                    return;
                }
                let reason = format!("`initialize` failed: {}", in_words(&error));
                return self.bad_start(id, Reason::AgentStartFailed, reason, false, out);
            }
            Outcome::Result(_) if is_late => return,
            Outcome::Result(result) => result,
        };
        let parsed = match InitializeResult::from_raw(result) {
            Ok(parsed) => parsed,
            Err(error) => {
                return self.bad_start(id, Reason::AgentProtocol, error.to_string(), true, out);
            }
        };
        if parsed.protocol_version != 1 {
            let reason = format!(
                "it speaks version {} of the protocol, acpd speaks 1",
                parsed.protocol_version
            );
            let hint = "install a version of it that speaks version 1, or set it to that version";
            self.slot_mut(id).start_hint = Some(hint.to_owned());
            return self.bad_start(id, Reason::AgentProtocol, reason, true, out);
        }
        self.remember_initialize(id, Bytes::copy_from_slice(result.get().as_bytes()), out);
        let now = self.now;
        self.timers.clear(Timer::Slot(id));
        if let Some(host) = self.slot_mut(id).host_mut() {
            host.ready_since = Some(now);
            let made = host.made.unwrap_or(now);
            self.tally.agent_start(now.since(made));
        }
        self.set_agent_state(id, State::Ready, None, out);
        self.save_host(id, out);
        self.ask_auth_status(id, out);
        self.agent_usable(id, out);
    }

    /// The program sends back its input, as `cat` does.
    pub(crate) fn initialize_echoed(&mut self, id: SlotId, out: &mut Batch) {
        let reason = "it is no ACP agent: it sends back what acpd sends to it";
        let hint = format!(
            "set the `command` of an agent that speaks ACP in `[agents.{}]`: `acpctl config edit`",
            self.processes[&id].profile
        );
        self.slot_mut(id).start_hint = Some(hint);
        self.bad_start(id, Reason::AgentProtocol, reason.to_owned(), true, out);
    }

    fn remember_initialize(&mut self, id: SlotId, raw: Bytes, out: &mut Batch) {
        let fingerprint = self.profile_of(id).fingerprint.clone();
        let Slot { profile, client_meta, .. } = &self.processes[&id];
        let (profile, client_meta) = (profile.clone(), client_meta.clone());
        let known = self.processes.known_mut(&profile);
        let before = known.row.clone();
        let row = AgentRow { initialize: Some(raw), fingerprint, client_meta, ..before.clone() };
        if row == before {
            return;
        }
        let (old, list_lies, begins_in) =
            (known.info.take(), known.list_lies, known.begins_in.take());
        *known = AgentInfo::new(row.clone());
        let is_same = match (&old, &known.info) {
            (Some(old), Some(new)) => old == new,
            _ => row.client_meta != before.client_meta,
        };
        if is_same && row.fingerprint == before.fingerprint {
            (known.list_lies, known.begins_in) = (list_lies, begins_in);
        } else {
            // Another version of the agent may keep what the last one only promised.
            known.forget_lies();
        }
        out.records.push(Record::Agent(known.row.clone()));
        self.take_quirks(&profile);
    }

    /// Treats an agent of the user's own like the known program that it is by its `agentInfo.name`.
    pub(crate) fn take_quirks(&mut self, profile: &str) {
        let info = self.processes.known(profile).info.as_ref();
        let quirks = info.and_then(|info| self.config.quirks.get(&info.name));
        let own = self.config.agents.get_mut(profile).filter(|own| own.takes_quirks);
        if let (Some(own), Some(quirks)) = (own, quirks) {
            own.take_quirks(quirks);
        }
    }

    /// All work that waited for this process continues.
    pub(crate) fn agent_usable(&mut self, id: SlotId, out: &mut Batch) {
        for requester in std::mem::take(&mut self.slot_mut(id).watchers) {
            self.answer_agent(&requester, id, out);
        }
        for waiting in std::mem::take(&mut self.slot_mut(id).waiting) {
            self.serve_waiting(id, waiting, out);
        }
        for key in self.sessions.sessions_by_urgency(id) {
            self.wake_session(key, out);
        }
        self.check_idle(id, out);
    }

    /// The process did not become usable: it goes down, and who waited for it is told why.
    fn bad_start(
        &mut self,
        id: SlotId,
        reason: Reason,
        text: String,
        permanent: bool,
        out: &mut Batch,
    ) {
        self.slot_mut(id).reason = Some(text.clone());
        self.fail_waiters(id, reason, out);
        self.begin_stop(id, StopWhy::BadStart { reason, permanent }, Some(text), out);
    }

    pub(crate) fn on_slot_timer(&mut self, id: SlotId, out: &mut Batch) {
        match self.processes[&id].state.clone() {
            State::Starting | State::Initializing => {
                let time = duration(self.profile_of(id).start_timeout);
                let printed = self.processes[&id].what_it_printed();
                let reason = format!("no answer to `initialize` within {time}{printed}");
                // Waiting clients get the error when the process has ended: its last words say
                // more.
                let why = StopWhy::BadStart { reason: Reason::AgentTimeout, permanent: false };
                self.begin_stop(id, why, Some(reason), out);
            }
            State::Stopping { .. } => self.next_stage(id, out),
            State::Backoff if self.is_needed(id) => self.start_agent(id, out),
            State::Backoff => {
                let reason = self.processes[&id].reason.clone();
                self.set_agent_state(id, State::Stopped, reason, out);
            }
            State::NeedsAuth | State::Ready => self.on_adoption_timer(id, out),
            State::Stopped | State::Queued | State::Failed(_) => {}
        }
    }

    /// Returns whether this process must run: it is needed, or the user keeps it up.
    pub(crate) fn is_needed(&self, id: SlotId) -> bool {
        self.is_wanted(id) || (self.stays_up(id) && !self.shutdown.is_begun())
    }

    /// A person has said that this process stays up.
    pub(crate) fn stays_up(&self, id: SlotId) -> bool {
        let is_shared = self.processes[&id].dedicated.is_none();
        is_shared && self.processes.known_of(id).row.desired == Desired::Up
    }

    /// Returns whether clients, prompts or interrupted sessions wait for this process.
    pub(crate) fn is_wanted(&self, id: SlotId) -> bool {
        let agent = &self.processes[&id];
        let waiting = !agent.waiting.is_empty() || !agent.watchers.is_empty();
        let wanted =
            waiting || self.sessions.of_slot(id).iter().any(|key| self.sessions.wants_host(*key));
        wanted && !self.stays_down(id)
    }

    /// Fails everything that waits for a process that the user stopped.
    fn stays_down(&self, id: SlotId) -> bool {
        self.shutdown.is_begun() || self.processes.known_of(id).row.desired == Desired::Down
    }

    /// Answers everyone who waited for a process that will not come, prompts included.
    pub(crate) fn fail_waiters(&mut self, id: SlotId, reason: Reason, out: &mut Batch) {
        let fault = self.agent_fault(id, reason);
        self.refuse_waiters(id, &fault, out);
        let for_good = self.stays_down(id);
        for key in self.sessions.of_slot(id) {
            // Prompts that wait for a login run after it, independent of processes until then.
            if for_good || !self.sessions.waits_for_login(key) {
                self.fail_queue(key, &fault, out);
            } else {
                self.refuse_relayed(key, &fault, out);
            }
        }
    }

    /// Answers who waits for the process itself. What it says to `initialize` may be known without it.
    pub(crate) fn refuse_waiters(&mut self, id: SlotId, fault: &Fault, out: &mut Batch) {
        let agent = self.slot_mut(id);
        let (watchers, waiting) =
            (std::mem::take(&mut agent.watchers), std::mem::take(&mut agent.waiting));
        let profile = agent.profile.clone();
        for requester in watchers {
            self.refuse(&requester, fault, out);
        }
        for Waiting { to, what } in waiting {
            let is_first = matches!(what, WaitFor::Initialize);
            if !(is_first && self.initialize_from_memory(&to, &profile, out)) {
                self.refuse(&to, fault, out);
            }
        }
    }

    /// Returns the row of the process for the disk.
    pub(crate) fn save_host(&self, id: SlotId, out: &mut Batch) {
        let agent = &self.processes[&id];
        let Some(host) = agent.host() else { return };
        out.records.push(Record::Host(HostRow {
            host: host.id,
            agent: agent.profile.clone(),
            pid: host.pid.unwrap_or(0),
            start: host.start,
            session: agent.dedicated,
            ready: host.ready_since,
            stopping: matches!(agent.state, State::Stopping { .. }),
        }));
    }

    /// How long a process may outlive the daemon depends on whether it works on something.
    pub(crate) fn lease(&mut self, id: SlotId, out: &mut Batch) {
        let works = self.sessions.is_at_work(id);
        let Some(host) = self.processes.get_mut(id).and_then(Slot::host_mut) else { return };
        let busy = works || self.requests.abandoned(host.id).next().is_some();
        if host.reachable && host.leased != Some(busy) {
            host.leased = Some(busy);
            out.effects.push(Effect::Host(host.id, ToHost::Lease { busy }));
        }
    }

    fn is_used(&self, id: SlotId) -> bool {
        let agent = &self.processes[&id];
        !agent.waiting.is_empty()
            || agent.host().is_some_and(|host| self.requests.is_working(host.id))
            || self.stays_up(id)
            || self.sessions.of_slot(id).iter().any(|key| self.is_in_use(*key))
    }

    /// A client has come to a session of the process.
    pub(crate) fn begin_use(&mut self, id: SlotId) {
        if self.processes.contains_key(&id) {
            self.watch_sleep(id);
            self.timers.clear(Timer::Idle(id));
        }
    }

    /// Arms the idle timer of a process that nothing uses, disarms it otherwise.
    pub(crate) fn check_idle(&mut self, id: SlotId, out: &mut Batch) {
        let Some(agent) = self.processes.get(&id) else { return };
        let (is_up, is_orphan) = (agent.is_up(), self.is_orphan(id));
        self.watch_sleep(id);
        let timeout = self.profile_of(id).idle_timeout;
        if !is_up || self.is_used(id) {
            self.timers.clear(Timer::Idle(id));
        } else if is_orphan {
            self.on_idle(id, out);
        } else if timeout > 0 && !self.timers.is_set(Timer::Idle(id)) {
            self.timers.set(Timer::Idle(id), self.now.after(timeout));
        }
    }

    /// Not every use disarms the timer; the end of every use arms it.
    pub(crate) fn on_idle(&mut self, id: SlotId, out: &mut Batch) {
        if self.processes[&id].is_up() && !self.is_used(id) {
            self.begin_stop(id, StopWhy::Idle, Some("nothing used it".to_owned()), out);
        }
    }

    /// A dedicated slot whose session was never made or is deleted.
    fn is_orphan(&self, id: SlotId) -> bool {
        self.processes[&id].dedicated.is_some_and(|key| !self.sessions.contains_key(&key))
    }

    /// A dedicated slot goes with its session and its process.
    pub(crate) fn remove_unused_slot(&mut self, id: SlotId) {
        let Some(agent) = self.processes.get(&id) else { return };
        if agent.host().is_none() && agent.waiting.is_empty() && self.is_orphan(id) {
            self.processes.remove(id);
            self.sessions.unroute_slot(id);
            self.timers.clear(Timer::Slot(id));
            self.timers.clear(Timer::Idle(id));
        }
    }
}
