//! Starts of processes: slots for sessions, the queue of starts, `initialize`.
//!
//! Starts are expensive. If all agents die at once, or a daemon restores many sessions,
//! simultaneous starts would delay every client. So a slot without a free place is
//! [`State::Queued`] until another start ends or fails.
//!
//! Places are assigned after each input, when the demand is known: first to processes that a client
//! waits for, then to those with a session that a client has open, then to the rest. Within each
//! group the longest waiting slot comes first.
//!
//! Architecture invariant: each waiting slot gets a place. Each start ends, at the latest by its
//! timeout, and every fourth place goes to the longest waiting slot.
//!
//! The end of a process decides about the next one:
//!
//! ```text
//!  tree gone ─▶ count the failure ─▶ start at once | Backoff | Stopped | Failed
//! ```
//!
//! Architecture invariant: each waiting client is answered as soon as it is clear that no process
//! will come, and prompts are kept only if one will.

use std::mem::take;

use acp_wire::acp::{Implementation, InitializeResult, initialize_params};
use acp_wire::dialect::{ask_version_2, initialized_from_agent};
use acp_wire::{ErrorObject, Id, Outcome, Version, build, code};
use acpd_api::Reason;
use bytes::Bytes;
use serde_json::value::RawValue;

use crate::cx::Cx;
use crate::event::EngineEvent;
use crate::fault::{Fault, in_words};
use crate::ids::{HostId, SessionKey, SlotId, Time, Urgency, duration};
use crate::input::{Effect, SpawnError, StopStep, ToHost};
use crate::offer::copy;
use crate::process::slot::{AgentInfo, Asker, Failures, Host, OutputEnd, Slot, State, StopWhy};
use crate::process::table::Processes;
use crate::profile::{Config, Profile, Sharing};
use crate::record::{AgentRow, Desired, HostState, Record, Row};
use crate::timers::Timer;

/// Every `BY_AGE`-th place goes to the longest waiting slot.
const BY_AGE: u32 = 4;
/// Maximum length of a quoted line from a program that is no agent, in characters.
const PRINTED: usize = 200;

impl Processes {
    /// `is_free`: no session and no request uses the process.
    pub(crate) fn slot_for_new(
        &mut self,
        cx: &mut Cx,
        profile: &str,
        offer: Option<&str>,
        is_free: impl Fn(SlotId, HostId) -> bool,
    ) -> SlotId {
        // A process without a session was started for the answer to `initialize`.
        let is_unused = |(id, slot): &(&SlotId, &Slot)| {
            slot.profile == profile
                && slot.dedicated.is_none()
                && slot.waiting.is_empty()
                && slot.client_meta.as_deref() == offer
                && slot.usable_host().is_some_and(|host| is_free(**id, host))
        };
        match cx.config.agents[profile].sharing {
            Sharing::Agent => self.shared(profile, cx.now),
            Sharing::Session => match self.iter().find(is_unused).map(|(id, _)| *id) {
                Some(unused) => {
                    self.dedicate(cx, unused, SessionKey::UNMADE);
                    unused
                }
                None => self.add(profile, Some(SessionKey::UNMADE), cx.now),
            },
        }
    }

    pub(crate) fn slot_for(
        &mut self,
        key: SessionKey,
        profile: &str,
        config: &Config,
        now: Time,
    ) -> SlotId {
        if let Some((own, _)) = self.iter().find(|(_, slot)| slot.dedicated == Some(key)) {
            return *own;
        }
        // The profile may have been removed from the configuration.
        let sharing = config.agents.get(profile).map(|profile| profile.sharing);
        match sharing.unwrap_or_default() {
            Sharing::Agent => self.shared(profile, now),
            Sharing::Session => self.add(profile, Some(key), now),
        }
    }

    /// Saves the session of a process, so that the next daemon does not use it for others.
    pub(crate) fn dedicate(&mut self, cx: &mut Cx, id: SlotId, key: SessionKey) {
        self.slot_mut(id).dedicated = Some(key);
        self.save(cx, id);
    }

    pub(crate) fn recover(&mut self, cx: &mut Cx, mut state: HostState) -> SlotId {
        let row = &state.row;
        let id = match row.session {
            Some(session) => self.add(&row.agent, Some(session), cx.now),
            None => self.shared(&row.agent, cx.now),
        };
        let Profile { start_timeout, credentials_ttl: ttl, .. } = *self.profile(id, &cx.config);
        // Processes with an unknown offer count as having got the last stored one.
        let client_meta = self.known(&row.agent).row.client_meta.clone();
        let slot = self.slot_mut(id);
        slot.client_meta = client_meta;
        slot.state = match (row.pid, row.ready) {
            (_, Some(_)) => State::Ready,
            (0, None) => State::Starting,
            (_, None) => State::Initializing,
        };
        slot.since = row.ready.unwrap_or(cx.now);
        slot.reason = Some("being taken over from the last daemon".to_owned());
        for (place, (session, line)) in take(&mut state.parked) {
            slot.parked.entry(session).or_default().push(place, line);
            slot.last_parked = place;
        }
        let mut host = Host::recovered(&state);
        // The credentials are at least as old as the process.
        host.stale_from = row.ready.zip(ttl).map(|(ready, ttl)| ready.after(ttl));
        self.put(id, host);
        cx.timers.set(Timer::Slot(id), cx.now.after(start_timeout));
        cx.send(Effect::Adopt(state));
        id
    }

    /// # Errors
    /// When no process will come: stopped by the user, crash loop.
    pub(crate) fn need(&mut self, cx: &mut Cx, id: SlotId, asker: Asker) -> Result<(), Fault> {
        let profile = &self[&id].profile;
        if self.known(profile).row.desired == Desired::Down {
            let text = format!("agent `{profile}` was stopped by a person");
            return Err(Fault::new(Reason::AgentStopped, text)
                .hint(format!("`acpctl agent start {profile}` starts it again")));
        }
        match (&self[&id].state, asker) {
            (State::Stopped, _) => self.start(cx, id),
            (State::Backoff | State::Failed(_), Asker::Person) => {
                self.slot_mut(id).forgive();
                self.start(cx, id);
            }
            (State::Failed(reason), Asker::Policy) => {
                return Err(self.fault(id, *reason, &cx.config));
            }
            _ => self.may_start(id)?,
        }
        Ok(())
    }

    pub(super) fn start(&mut self, cx: &mut Cx, id: SlotId) {
        if self.queue.is_empty() && self.has_place(cx) {
            return self.launch(cx, id);
        }
        if !self.queue.contains(&id) {
            self.queue.push(id);
        }
        let reason = match cx.config.cold_starts {
            1 => "waits for its turn: another agent is being started".to_owned(),
            most => format!("waits for its turn: {most} agents are being started"),
        };
        self.set_state(cx, id, State::Queued, Some(reason));
    }

    pub(crate) fn start_needed(&mut self, cx: &mut Cx, id: SlotId, demand: Option<Urgency>) {
        if self[&id].state == State::Stopped && self.is_needed(cx, id, demand) {
            self.start(cx, id);
        }
    }

    /// Returns the slot that got a place. Its process starts if it is still needed.
    pub(crate) fn start_queued(
        &mut self,
        cx: &mut Cx,
        demand: impl Fn(SlotId) -> Option<Urgency>,
    ) -> Option<SlotId> {
        let slots = &self.slots;
        self.queue.retain(|id| slots.get(id).is_some_and(|slot| slot.state == State::Queued));
        let most_urgent = self.queue.iter().min_by_key(|id| self.urgency(**id, demand(**id)));
        let most_urgent = *most_urgent.filter(|_| self.has_place(cx))?;
        let by_age = self.given % BY_AGE == BY_AGE - 1;
        self.given = self.given.wrapping_add(1);
        let id = if by_age { self.queue[0] } else { most_urgent };
        self.queue.retain(|waits| *waits != id);
        if self.is_needed(cx, id, demand(id)) {
            self.launch(cx, id);
        } else {
            self.set_state(cx, id, State::Stopped, None);
        }
        Some(id)
    }

    fn has_place(&self, cx: &Cx) -> bool {
        self.starting() < cx.config.cold_starts as usize
    }

    pub(crate) fn urgency(&self, id: SlotId, demand: Option<Urgency>) -> Urgency {
        if self[&id].is_awaited() {
            return Urgency::Awaited;
        }
        demand.unwrap_or(Urgency::Unattended)
    }

    fn launch(&mut self, cx: &mut Cx, id: SlotId) {
        let host = HostId(cx.ids.issue());
        let window = self.profile(id, &cx.config).restart.window;
        let slot = self.slot_mut(id);
        if cx.now.since(slot.failures.due) > window {
            slot.forgive();
        }
        (slot.printed, slot.start_hint) = (None, None);
        let agent = slot.profile.clone();
        self.put(id, Host { made: Some(cx.now), ..Host::new(host) });
        self.set_state(cx, id, State::Starting, None);
        cx.timers.clear(Timer::Idle(id));
        cx.timers.set(Timer::Slot(id), cx.now.after(cx.config.profile(&agent).start_timeout));
        // On disk before the process exists, so the next daemon can find it.
        self.save(cx, id);
        cx.send_behind(Effect::Spawn { host, agent });
    }

    pub(crate) fn on_started(&mut self, cx: &mut Cx, host: HostId, pid: u32, start: u64) {
        let Some(id) = self.slot_of(host) else { return };
        if let Some(process) = self.slot_mut(id).host_mut() {
            (process.pid, process.start) = (Some(pid), start);
        }
        self.save(cx, id);
        if self[&id].state != State::Starting {
            // Stopped during its start: the ladder begins now.
            return cx.order(host, ToHost::Stop(StopStep::CloseStdin));
        }
        self.set_state(cx, id, State::Initializing, None);
        cx.report(EngineEvent::ProcessStarted(id));
    }

    pub(crate) fn initialize(&mut self, cx: &mut Cx, id: SlotId, ask: u64, offer: Option<String>) {
        let Profile { services, subagents, client_meta: names, protocol, .. } =
            self.profile(id, &cx.config);
        let has_refused = self[&id].host().is_some_and(|host| host.refused_2);
        let implementation = Implementation {
            name: "acpd".to_owned(),
            title: Some("acpd".to_owned()),
            version: cx.config.daemon.version.raw().to_owned(),
        };
        let mut params = initialize_params(&implementation, *services, *subagents);
        if protocol.asks_for_2() && !has_refused {
            ask_version_2(&mut params);
        }
        let line = build::request(&Id::issued(ask), "initialize", &params);
        // The names may have changed since the offer was stored.
        let meta = offer.map(|offer| copy(names, offer.as_bytes(), &[], Bytes::from_static(b"{}")));
        let meta = meta.filter(|meta| *meta != "{}");
        let line = match &meta {
            Some(meta) => copy(names, meta, &["params", "clientCapabilities"], line),
            None => line,
        };
        let meta = meta.map(|meta| String::from_utf8_lossy(&meta).into_owned());
        self.slot_mut(id).client_meta = meta;
        self.write(cx, id, line);
    }

    pub(crate) fn on_refused(&mut self, cx: &mut Cx, host: HostId, error: SpawnError) {
        let Some((id, _)) = self.take(host) else { return };
        cx.record(Record::HostGone { host });
        cx.timers.clear(Timer::Slot(id));
        cx.order(host, ToHost::Forget);
        if let State::Stopping { .. } = self[&id].state {
            self.set_state(cx, id, State::Stopped, None);
        } else {
            let reason = Reason::AgentStartFailed;
            let slot = self.slot_mut(id);
            slot.reason = Some(error.message);
            slot.stderr.clear();
            slot.start_hint = error.hint;
            slot.ended = Some(StopWhy::BadStart { reason, permanent: error.permanent });
            self.refuse_waiters(cx, id, reason, false);
        }
        cx.report(EngineEvent::ProcessGone(id));
    }

    pub(crate) fn on_initialized(&mut self, cx: &mut Cx, id: SlotId, outcome: Outcome<'_>) {
        use StopWhy::BadStart;
        let is_late = match &self[&id].state {
            State::Initializing => false,
            State::Stopping { why: BadStart { reason: Reason::AgentTimeout, .. }, .. } => true,
            _ => return,
        };
        let result = match outcome {
            Outcome::Error(error) => {
                let error = ErrorObject::from_raw(error);
                if let Some(source) = self.login_source(id, "initialize", &error, &cx.config) {
                    return self.on_start_refused(cx, id, source, error);
                }
                if is_late {
                    return;
                }
                if self.may_ask_for_1(id, &error, &cx.config) {
                    return cx.report(EngineEvent::ProcessStarted(id));
                }
                let reason = format!("`initialize` failed: {}", in_words(&error));
                return self.bad_start(cx, id, Reason::AgentStartFailed, reason, false);
            }
            Outcome::Result(_) if is_late => return,
            Outcome::Result(result) => result,
        };
        let result = Bytes::copy_from_slice(result.get().as_bytes());
        let protocol = self.profile(id, &cx.config).protocol;
        let (version, result) = if protocol.asks_for_2() {
            initialized_from_agent(&result)
        } else {
            (Version::default(), result)
        };
        let raw = serde_json::from_slice(&result).unwrap_or(RawValue::NULL);
        let parsed = match InitializeResult::from_raw(raw) {
            Ok(parsed) => parsed,
            Err(error) => {
                return self.bad_start(cx, id, Reason::AgentProtocol, error.to_string(), true);
            }
        };
        if parsed.protocol_version != 1 {
            let version = parsed.protocol_version;
            let reason = format!("it speaks version {version} of the protocol, acpd speaks 1");
            let hint = "install a version of it that speaks version 1, or set it to that version";
            self.slot_mut(id).start_hint = Some(hint.to_owned());
            return self.bad_start(cx, id, Reason::AgentProtocol, reason, true);
        }
        if !protocol.allows(version) {
            let reason = "it does not speak version 2 of the protocol".to_owned();
            let hint = format!(
                "set `protocol` under `[agents.{}]` to \"auto\" or \"1\": `acpctl config edit`",
                self[&id].profile
            );
            self.slot_mut(id).start_hint = Some(hint);
            return self.bad_start(cx, id, Reason::AgentProtocol, reason, true);
        }
        self.remember_initialize(cx, id, result);
        cx.timers.clear(Timer::Slot(id));
        if let Some(host) = self.slot_mut(id).host_mut() {
            host.ready_since = Some(cx.now);
            (host.version, host.translator) = (version, version.translator());
        }
        self.set_state(cx, id, State::Ready, None);
        self.save(cx, id);
        cx.report(EngineEvent::ProcessReady(id));
    }

    /// Returns whether a process that has refused version 2 is to be asked for version 1.
    fn may_ask_for_1(&mut self, id: SlotId, error: &ErrorObject, config: &Config) -> bool {
        let protocol = self.profile(id, config).protocol;
        let is_about_it = [code::VERSION, code::INVALID_PARAMS].contains(&error.code);
        let may = is_about_it && protocol.asks_for_2() && protocol.allows(Version::default());
        let host = self.slot_mut(id).host_mut().filter(|_| may);
        host.is_some_and(|host| !std::mem::replace(&mut host.refused_2, true))
    }

    /// Handles a program that sends back its input, like `cat`.
    pub(crate) fn on_echo(&mut self, cx: &mut Cx, id: SlotId) {
        let reason = "it is no ACP agent: it sends back what acpd sends to it";
        let hint = format!(
            "set the `command` of an agent that speaks ACP in `[agents.{}]`: `acpctl config edit`",
            self[&id].profile
        );
        self.slot_mut(id).start_hint = Some(hint);
        self.bad_start(cx, id, Reason::AgentProtocol, reason.to_owned(), true);
    }

    /// The first line that is no message shows the kind of program.
    pub(crate) fn on_no_message(&mut self, id: SlotId, line: &[u8]) {
        let slot = self.slot_mut(id);
        if slot.printed.is_some() || slot.is_up() {
            return;
        }
        let line = String::from_utf8_lossy(line.trim_ascii()).into_owned();
        let shown = line.chars().take(PRINTED).map(|c| if c.is_control() { ' ' } else { c });
        slot.printed = Some(shown.collect()).filter(|shown: &String| !shown.trim().is_empty());
    }

    fn remember_initialize(&mut self, cx: &mut Cx, id: SlotId, raw: Bytes) {
        let fingerprint = self.profile(id, &cx.config).fingerprint.clone();
        let Slot { profile, client_meta, .. } = &self[&id];
        let (profile, client_meta) = (profile.clone(), client_meta.clone());
        let known = self.known_mut(&profile);
        let before = known.row.clone();
        let row = AgentRow { initialize: Some(raw), fingerprint, client_meta, ..before.clone() };
        if row == before {
            return;
        }
        let old = std::mem::replace(known, AgentInfo::new(row.clone()));
        known.restarts = old.restarts;
        let is_same = match (&old.info, &known.info) {
            (Some(old), Some(new)) => old == new,
            _ => row.client_meta != before.client_meta,
        };
        if is_same && row.fingerprint == before.fingerprint {
            (known.list_lies, known.begins_in) = (old.list_lies, old.begins_in);
        } else {
            // Another version of the agent may support its advertised methods.
            known.forget_lies();
        }
        cx.put(Row::Agent(known.row.clone()));
    }

    fn bad_start(
        &mut self,
        cx: &mut Cx,
        id: SlotId,
        reason: Reason,
        text: String,
        permanent: bool,
    ) {
        self.slot_mut(id).reason = Some(text.clone());
        self.refuse_waiters(cx, id, reason, false);
        self.stop(cx, id, StopWhy::BadStart { reason, permanent }, Some(text), false);
    }

    pub(crate) fn on_adopted(
        &mut self,
        cx: &mut Cx,
        host: HostId,
        (pid, start): (u32, u64),
        end: u64,
    ) {
        let Some(id) = self.slot_of(host) else { return };
        let Some(known) = self.slot_mut(id).host_mut() else { return };
        let is_new = known.pid.is_none();
        known.reachable = true;
        known.overdue = false;
        known.catch_up = (known.read.offset < end).then_some(end);
        if is_new {
            return self.on_started(cx, host, pid, start);
        }
        if matches!(self[&id].state, State::Ready | State::NeedsAuth) {
            cx.timers.clear(Timer::Slot(id));
        }
        self.show_catching_up(cx, id);
        cx.report(EngineEvent::ProcessAdopted(id));
    }

    pub(crate) fn on_read(&mut self, cx: &mut Cx, host: HostId, end: OutputEnd) {
        self.read.insert(host, end);
        let Some(id) = self.slot_of(host) else { return };
        let Some(process) = self.slot_mut(id).host_mut() else { return };
        if process.catch_up.take_if(|upto| *upto <= end.offset).is_some() {
            self.show_catching_up(cx, id);
        }
    }

    fn show_catching_up(&mut self, cx: &mut Cx, id: SlotId) {
        let state = self[&id].state.clone();
        if !matches!(state, State::Ready | State::NeedsAuth | State::Initializing) {
            return;
        }
        let behind = self[&id].host().is_some_and(|host| host.catch_up.is_some());
        let reason = behind.then(|| "catching up on what it wrote without acpd".to_owned());
        self.set_state(cx, id, state, reason);
    }

    pub(crate) fn on_timer(&mut self, cx: &mut Cx, id: SlotId, demand: Option<Urgency>) {
        match self[&id].state.clone() {
            State::Starting | State::Initializing => {
                let time = duration(self.profile(id, &cx.config).start_timeout);
                let printed = self[&id].what_it_printed();
                let reason = format!("no answer to `initialize` within {time}{printed}");
                // Waiting clients get the error after the end of the process, because its last
                // output says more.
                let why = StopWhy::BadStart { reason: Reason::AgentTimeout, permanent: false };
                self.stop(cx, id, why, Some(reason), false);
            }
            State::Stopping { .. } => self.next_step(cx, id),
            State::Backoff if self.is_needed(cx, id, demand) => self.start(cx, id),
            State::Backoff => {
                let reason = self[&id].reason.clone();
                self.set_state(cx, id, State::Stopped, reason);
            }
            State::NeedsAuth | State::Ready => self.on_adoption_overdue(cx, id),
            State::Stopped | State::Queued | State::Failed(_) => {}
        }
    }

    /// The process was not found within the time of a start. Waiting clients get an error and can
    /// end it. It may still be found.
    fn on_adoption_overdue(&mut self, cx: &mut Cx, id: SlotId) {
        let host = self.slot_mut(id).host_mut().filter(|host| !host.reachable);
        let Some(host) = host else { return };
        host.overdue = true;
        let reason = Some("the process that keeps it does not answer".to_owned());
        self.set_state(cx, id, self[&id].state.clone(), reason);
        self.refuse_waiters(cx, id, Reason::AgentTimeout, false);
    }

    pub(crate) fn judge(&mut self, cx: &mut Cx, id: SlotId, demand: Option<Urgency>) {
        let why = self.bury(cx, id);
        let profile = self[&id].profile.clone();
        let reason = self[&id].reason.clone();
        let stopped_reason = match &why {
            Some(StopWhy::ByPerson) => Some("stopped by a person".to_owned()),
            Some(StopWhy::Idle) => Some("nothing used it".to_owned()),
            _ => reason.clone(),
        };
        let planned = {
            use StopWhy::{ByPerson, Idle, Lost, NoLogin, Restart};
            matches!(why, Some(ByPerson | Restart | Idle | Lost | NoLogin))
        };
        let verdict = match why {
            Some(StopWhy::BadStart { reason, permanent: true }) => Err(reason),
            Some(StopWhy::BadStart { .. } | StopWhy::Crashed) => self.count_failure(cx, id),
            Some(StopWhy::NoLogin) if self.auth_state(&profile).wants_login() => {
                Err(Reason::NeedsLogin)
            }
            _ => Ok(0),
        };
        match verdict {
            Err(kind) => {
                let reason = if kind == Reason::AgentCrashLoop {
                    let (times, last) = (self[&id].failures.in_a_row, reason.unwrap_or_default());
                    Some(format!("it failed {times} times in a row, last: {last}"))
                } else {
                    reason
                };
                self.set_state(cx, id, State::Failed(kind), reason);
                self.refuse_waiters(cx, id, kind, true);
            }
            Ok(delay) if self.comes_back(cx, id, planned, demand) => {
                if !planned {
                    self.known_mut(&profile).restarts += 1;
                }
                if delay == 0 {
                    self.start(cx, id);
                } else {
                    self.set_state(cx, id, State::Backoff, reason);
                    cx.timers.set(Timer::Slot(id), cx.now.after(delay));
                }
            }
            Ok(_) => {
                self.set_state(cx, id, State::Stopped, stopped_reason);
                cx.report(EngineEvent::ProcessStopped(id));
                let ends = cx.shutdown.is_begun();
                let kind = if ends { Reason::ShuttingDown } else { Reason::AgentStopped };
                self.refuse_waiters(cx, id, kind, true);
            }
        }
        cx.report(EngineEvent::SlotFreed(id));
    }

    /// Returns the reason of the stop; `None` for a crash after a good run.
    fn bury(&mut self, cx: &mut Cx, id: SlotId) -> Option<StopWhy> {
        let Some(host) = self[&id].host().map(|host| host.id) else {
            return self.slot_mut(id).ended.take();
        };
        let (_, was) = self.take(host)?;
        cx.timers.clear(Timer::Slot(id));
        let why = self[&id].stop_why().cloned()?;
        if !self.has_run_long_enough(&was, id, &cx.config) {
            return Some(why);
        }
        let slot = self.slot_mut(id);
        slot.forgive();
        if why == StopWhy::Crashed {
            // This crash begins a new count.
            slot.failures = Failures { in_a_row: 1, due: cx.now };
            return None;
        }
        Some(why)
    }

    fn comes_back(&self, cx: &Cx, id: SlotId, planned: bool, demand: Option<Urgency>) -> bool {
        let by_itself = self.profile(id, &cx.config).restart.on_failure || planned;
        if by_itself { self.is_needed(cx, id, demand) } else { self.is_wanted(cx, id, demand) }
    }

    /// Returns the delay before the next start.
    fn count_failure(&mut self, cx: &mut Cx, id: SlotId) -> Result<u64, Reason> {
        let rules = self.profile(id, &cx.config).restart;
        let Failures { in_a_row, .. } = &mut self.slot_mut(id).failures;
        *in_a_row += 1;
        if *in_a_row >= rules.budget {
            return Err(Reason::AgentCrashLoop);
        }
        let doubled = rules.delay.saturating_mul(1 << (*in_a_row - 1).min(16)).min(rules.max_delay);
        // ± 20 %, so that agents that died together do not restart together.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let delay = doubled * (80 + self.random % 41) / 100;
        self.slot_mut(id).failures.due = cx.now.after(delay);
        Ok(delay)
    }
}
