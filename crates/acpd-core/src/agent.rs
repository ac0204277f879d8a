//! One agent process slot: what a profile's process is doing, and when it is started and stopped.
//!
//! ```text
//!            needed                 pid known              initialize answered
//! Stopped ──────────▶ Starting ───────────────▶ Initializing ────────────▶ Ready ◀──▶ NeedsAuth
//!    ▲                    │ cannot be made          │ error, timeout         │            │
//!    │ not needed         ▼                         ▼                        ▼            ▼
//!    ├──────────────── (judged) ◀── tree gone ── Stopping{why} ◀─ exit, stop, restart, idle, wedged
//!    │                    │
//!    │                    ├─▶ Backoff{until} ── time ─▶ Starting
//!    └── a person's start └─▶ Failed{reason} ── a person's start or prompt ─▶ Starting
//! ```
//!
//! Architecture invariant: a slot has at most one process, and the old tree is gone (`HostGone`)
//! before the next process starts. Several agents lock their sessions while any leftover lives; the
//! others silently fork the history.

use std::collections::{BTreeMap, VecDeque};

use acp_wire::acp::{AgentCapabilities, Implementation, InitializeParams, InitializeResult};
use acp_wire::{ErrorObject, Id, Outcome, build, code};
use acpd_api::{AgentNotice, AgentState, Reason, method};
use bytes::Bytes;

use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{HostId, SessionKey, Time};
use crate::input::{Batch, Effect, SpawnError, StopStep};
use crate::ledger::{Requester, Why};
use crate::profile::Profile;
use crate::record::{AgentRow, Desired, HostRow, Record};
use crate::timers::Timer;

/// A process slot: one per profile, or one per session for profiles that do not share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AgentId(pub(crate) u32);

/// A process slot and its process.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) profile: String,
    /// The only session of this slot, for profiles that do not share a process.
    pub(crate) dedicated: Option<SessionKey>,
    pub(crate) state: State,
    pub(crate) since: Time,
    pub(crate) reason: Option<String>,
    /// Last lines of stderr of the last run that failed.
    pub(crate) stderr: String,
    pub(crate) host: Option<Host>,
    pub(crate) restarts: u32,
    failures: VecDeque<Time>,
    attempt: u32,
    /// Requests that wait until the process is usable.
    pub(crate) waiting: Vec<Waiting>,
    /// Persons who wait for a start or stop to finish.
    pub(crate) watchers: Vec<Requester>,
    /// Lines for sessions whose `session/new` is not answered yet.
    pub(crate) parked: BTreeMap<String, Vec<Bytes>>,
    pub(crate) parked_bytes: usize,
}

/// The state of a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    Stopped,
    Starting,
    Initializing,
    NeedsAuth,
    Ready,
    Stopping { why: StopWhy, stage: Stage },
    Backoff,
    Failed(Reason),
}

/// Why a process goes down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StopWhy {
    /// Its leader ended by itself.
    Crashed,
    /// It never became usable.
    BadStart { reason: Reason, permanent: bool },
    /// A person stopped it.
    ByPerson,
    /// A person restarts it.
    Restart,
    /// Nothing used it.
    Idle,
    /// It ignored a cancel.
    Wedged,
}

/// How far the stop ladder has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Running turns were cancelled; they may end in peace.
    Cancelling,
    /// stdin is closed.
    Eof,
    /// SIGTERM was sent.
    Term,
    /// SIGKILL was sent.
    Kill,
}

/// The process of a slot.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) id: HostId,
    pub(crate) pid: Option<u32>,
    pub(crate) ready_since: Option<Time>,
    /// The leader has ended.
    pub(crate) exited: bool,
    next_chunk: u64,
}

/// A client's request that waits for the process.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) to: Requester,
    pub(crate) what: WaitFor,
}

#[derive(Debug)]
pub(crate) enum WaitFor {
    Initialize,
    New(crate::ledger::NewSession),
    /// A connection-scoped request to relay: method and the complete line.
    Relay {
        method: String,
        line: Bytes,
    },
}

/// The last known `initialize` result of a profile, shared by its slots.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) row: AgentRow,
    pub(crate) capabilities: AgentCapabilities,
    pub(crate) info: Option<Implementation>,
}

impl Known {
    pub(crate) fn new(row: AgentRow) -> Known {
        let parsed = row.initialize.as_ref().and_then(|raw| {
            let raw = serde_json::from_slice(raw).ok()?;
            InitializeResult::from_raw(raw).ok()
        });
        match parsed {
            Some(result) => {
                Known { row, capabilities: result.capabilities, info: result.agent_info }
            }
            None => Known { row, capabilities: AgentCapabilities::default(), info: None },
        }
    }
}

impl Agent {
    pub(crate) fn new(profile: String, dedicated: Option<SessionKey>, now: Time) -> Agent {
        Agent {
            profile,
            dedicated,
            state: State::Stopped,
            since: now,
            reason: None,
            stderr: String::new(),
            host: None,
            restarts: 0,
            failures: VecDeque::new(),
            attempt: 0,
            waiting: Vec::new(),
            watchers: Vec::new(),
            parked: BTreeMap::new(),
            parked_bytes: 0,
        }
    }

    /// `initialize` is answered and the process runs.
    pub(crate) fn is_up(&self) -> bool {
        matches!(self.state, State::Ready | State::NeedsAuth)
    }

    /// The running process, if it can be talked to.
    pub(crate) fn usable_host(&self) -> Option<HostId> {
        self.is_up().then_some(self.host.as_ref()?.id)
    }

    pub(crate) fn api_state(&self) -> AgentState {
        match self.state {
            State::Stopped => AgentState::Stopped,
            State::Starting => AgentState::Starting,
            State::Initializing => AgentState::Initializing,
            State::NeedsAuth => AgentState::NeedsAuth,
            State::Ready => AgentState::Ready,
            State::Stopping { .. } => AgentState::Stopping,
            State::Backoff => AgentState::Backoff,
            State::Failed(_) => AgentState::Failed,
        }
    }
}

/// Who asks for a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asker {
    /// A person's start or prompt: clears a crash loop and a back-off.
    Person,
    /// acpd itself: obeys back-off and budget.
    Policy,
}

impl Hub {
    pub(crate) fn profile_of(&self, id: AgentId) -> &Profile {
        let agent = &self.agents[&id];
        self.config.agents.get(&agent.profile).unwrap_or(&self.no_profile)
    }

    pub(crate) fn agent_mut(&mut self, id: AgentId) -> &mut Agent {
        self.agents.get_mut(&id).expect("slots are never removed while something refers to them")
    }

    /// The slot that all sessions of a profile share, made on first use.
    pub(crate) fn shared_slot(&mut self, profile: &str) -> AgentId {
        let shared =
            self.agents.iter().find(|(_, a)| a.profile == profile && a.dedicated.is_none());
        match shared {
            Some((id, _)) => *id,
            None => self.new_slot(profile, None),
        }
    }

    pub(crate) fn new_slot(&mut self, profile: &str, dedicated: Option<SessionKey>) -> AgentId {
        let id = AgentId(self.next_slot);
        self.next_slot += 1;
        self.agents.insert(id, Agent::new(profile.to_owned(), dedicated, self.now));
        id
    }

    pub(crate) fn known(&mut self, profile: &str) -> &mut Known {
        self.known.entry(profile.to_owned()).or_insert_with(|| {
            Known::new(AgentRow { name: profile.to_owned(), ..AgentRow::default() })
        })
    }

    pub(crate) fn set_agent_state(
        &mut self,
        id: AgentId,
        state: State,
        reason: Option<String>,
        out: &mut Batch,
    ) {
        let now = self.now;
        let agent = self.agent_mut(id);
        if agent.state == state && agent.reason == reason {
            return;
        }
        agent.state = state;
        agent.since = now;
        agent.reason = reason;
        let notice = AgentNotice {
            agent: agent.profile.clone(),
            state: agent.api_state(),
            reason: agent.reason.clone(),
        };
        let line = build::notification(method::AGENT_STATE, &notice);
        self.notify_profile(&notice.agent, &line, out);
    }

    /// Makes sure that a process is running or on its way, as far as the asker may.
    ///
    /// # Errors
    /// When there will be no process: stopped by a person, crash loop, shutdown.
    pub(crate) fn need_agent(
        &mut self,
        id: AgentId,
        asker: Asker,
        out: &mut Batch,
    ) -> Result<(), Fault> {
        let profile = self.agents[&id].profile.clone();
        if self.stopping {
            return Err(Fault::new(Reason::ShuttingDown, "acpd is shutting down"));
        }
        if !self.config.agents.contains_key(&profile) {
            return Err(self.unknown_agent(&profile));
        }
        if self.known(&profile).row.desired == Desired::Down {
            return Err(Fault::new(
                Reason::AgentStopped,
                format!("agent `{profile}` was stopped by a person"),
            )
            .hint(format!("`acpctl agent start {profile}` starts it again")));
        }
        let agent = &self.agents[&id];
        if !self.sweeping.is_empty() {
            // Leftovers of an earlier daemon are being ended; what is needed starts after them.
            return Ok(());
        }
        match (&agent.state, asker) {
            (State::Stopped, _) => self.start_agent(id, out),
            (State::Backoff | State::Failed(_), Asker::Person) => {
                let agent = self.agent_mut(id);
                agent.failures.clear();
                agent.attempt = 0;
                self.start_agent(id, out);
            }
            (State::Failed(reason), Asker::Policy) => {
                return Err(self.agent_fault(id, *reason));
            }
            _ => {}
        }
        Ok(())
    }

    /// The error for who needed an agent that failed.
    pub(crate) fn agent_fault(&self, id: AgentId, reason: Reason) -> Fault {
        let agent = &self.agents[&id];
        let what = agent.reason.as_deref().unwrap_or("it failed");
        let log = &self.profile_of(id).log;
        let fault = Fault::new(reason, format!("agent `{}`: {what}", agent.profile));
        let fault = fault.stderr(&agent.stderr);
        match &agent.state {
            State::Failed(Reason::AgentCrashLoop) => fault.hint(format!(
                "its output is in `{log}`; `acpctl agent start {}` tries again",
                agent.profile
            )),
            _ => match &self.start_hint {
                Some((of, hint)) if *of == id => fault.hint(hint.clone()),
                _ => fault.hint(format!("its output is in `{log}`")),
            },
        }
    }

    fn start_agent(&mut self, id: AgentId, out: &mut Batch) {
        let host = HostId(self.ids.issue());
        let profile = self.agents[&id].profile.clone();
        let timeout = self.profile_of(id).start_timeout;
        if self.start_hint.as_ref().is_some_and(|(of, _)| *of == id) {
            self.start_hint = None;
        }
        self.agent_mut(id).host =
            Some(Host { id: host, pid: None, ready_since: None, exited: false, next_chunk: 1 });
        self.hosts.insert(host, id);
        self.set_agent_state(id, State::Starting, None, out);
        self.timers.clear(Timer::Idle(id));
        self.timers.set(Timer::Agent(id), self.now.after(timeout));
        out.effects.push(Effect::Spawn { host, agent: profile });
    }

    pub(crate) fn on_host_started(&mut self, host: HostId, pid: u32, start: u64, out: &mut Batch) {
        let Some(&id) = self.hosts.get(&host) else { return };
        let agent = self.agent_mut(id);
        let profile = agent.profile.clone();
        if let Some(h) = agent.host.as_mut() {
            h.pid = Some(pid);
        }
        out.records.push(Record::Host(HostRow { host, agent: profile, pid, start }));
        if self.agents[&id].state != State::Starting {
            // Stopped while it was being made: the ladder begins now that there is a process.
            out.effects.push(Effect::HostStop { host, step: StopStep::CloseStdin });
            return;
        }
        self.set_agent_state(id, State::Initializing, None, out);
        let params = InitializeParams::new(Implementation {
            name: "acpd".to_owned(),
            title: Some("acpd".to_owned()),
            version: self.config.daemon.version.clone(),
        });
        let ask = self.ids.issue();
        self.ledger.ask(ask, host, Why::Initialize);
        let line = build::request(&Id::from(ask), "initialize", &params);
        self.host_write(id, line, out);
    }

    pub(crate) fn on_host_refused(&mut self, host: HostId, error: SpawnError, out: &mut Batch) {
        let Some(id) = self.hosts.remove(&host) else { return };
        self.timers.clear(Timer::Agent(id));
        self.agent_mut(id).host = None;
        if let State::Stopping { .. } = self.agents[&id].state {
            self.set_agent_state(id, State::Stopped, None, out);
            self.after_gone(id, None, out);
            return;
        }
        self.agent_mut(id).reason = Some(error.message.clone());
        self.agent_mut(id).stderr.clear();
        self.start_hint = error.hint.map(|hint| (id, hint));
        let why =
            StopWhy::BadStart { reason: Reason::AgentStartFailed, permanent: error.permanent };
        self.fail_waiters(id, Reason::AgentStartFailed, out);
        self.after_gone(id, Some(why), out);
    }

    pub(crate) fn on_initialized(&mut self, id: AgentId, outcome: Outcome<'_>, out: &mut Batch) {
        if self.agents[&id].state != State::Initializing {
            return;
        }
        let result = match outcome {
            Outcome::Error(error) => {
                let error = ErrorObject::from_raw(error);
                let reason = format!("`initialize` failed: {} ({})", error.message, error.code);
                return self.bad_start(id, Reason::AgentStartFailed, reason, false, out);
            }
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
            return self.bad_start(id, Reason::AgentProtocol, reason, true, out);
        }
        self.remember_initialize(id, Bytes::copy_from_slice(result.get().as_bytes()), out);
        let now = self.now;
        self.timers.clear(Timer::Agent(id));
        if let Some(host) = self.agent_mut(id).host.as_mut() {
            host.ready_since = Some(now);
        }
        self.set_agent_state(id, State::Ready, None, out);
        self.agent_usable(id, out);
    }

    fn remember_initialize(&mut self, id: AgentId, raw: Bytes, out: &mut Batch) {
        let fingerprint = self.profile_of(id).fingerprint.clone();
        let profile = self.agents[&id].profile.clone();
        let known = self.known(&profile);
        if known.row.initialize.as_ref() == Some(&raw) && known.row.fingerprint == fingerprint {
            return;
        }
        // Another build of the agent may keep what the last one only promised.
        let row = AgentRow {
            initialize: Some(raw),
            fingerprint,
            resume_lies: false,
            ..known.row.clone()
        };
        *known = Known::new(row.clone());
        out.records.push(Record::Agent(row));
    }

    /// Whatever waited for this process goes on.
    fn agent_usable(&mut self, id: AgentId, out: &mut Batch) {
        for requester in std::mem::take(&mut self.agent_mut(id).watchers) {
            self.answer_agent(&requester, id, out);
        }
        for waiting in std::mem::take(&mut self.agent_mut(id).waiting) {
            self.serve_waiting(id, waiting, out);
        }
        for key in self.sessions_of(id) {
            self.wake_session(key, out);
        }
        self.check_idle(id, out);
    }

    /// The process did not become usable: it goes down, and who waited for it is told why.
    fn bad_start(
        &mut self,
        id: AgentId,
        reason: Reason,
        text: String,
        permanent: bool,
        out: &mut Batch,
    ) {
        self.agent_mut(id).reason = Some(text.clone());
        self.fail_waiters(id, reason, out);
        self.begin_stop(id, StopWhy::BadStart { reason, permanent }, Some(text), out);
    }

    /// Starts the stop ladder, or moves a running one to a more urgent purpose.
    pub(crate) fn begin_stop(
        &mut self,
        id: AgentId,
        why: StopWhy,
        reason: Option<String>,
        out: &mut Batch,
    ) {
        let Some(host) = self.agents[&id].host.as_ref().map(|host| (host.id, host.pid)) else {
            self.timers.clear(Timer::Agent(id));
            let parked = matches!(self.agents[&id].state, State::Backoff | State::Failed(_));
            if parked {
                self.set_agent_state(id, State::Stopped, reason, out);
            }
            return;
        };
        if let State::Stopping { stage, why: old } = &self.agents[&id].state {
            // A person's wish is what counts after the tree is gone; the ladder itself goes on.
            if matches!(why, StopWhy::ByPerson | StopWhy::Restart) && *old != StopWhy::ByPerson {
                let state = State::Stopping { why, stage: *stage };
                self.set_agent_state(id, state, reason, out);
            }
            return;
        }
        self.timers.clear(Timer::Idle(id));
        let times = self.profile_of(id).stop;
        let turns =
            matches!(why, StopWhy::ByPerson | StopWhy::Restart) && self.cancel_turns_of(id, out);
        let (stage, time) =
            if turns { (Stage::Cancelling, times.eof) } else { (Stage::Eof, times.eof) };
        self.set_agent_state(id, State::Stopping { why, stage }, reason, out);
        if stage == Stage::Eof && host.1.is_some() {
            out.effects.push(Effect::HostStop { host: host.0, step: StopStep::CloseStdin });
        }
        self.timers.set(Timer::Agent(id), self.now.after(time));
    }

    /// A turn of an agent that is being stopped has ended: nothing to wait for any more?
    pub(crate) fn turn_ended_while_stopping(&mut self, id: AgentId, out: &mut Batch) {
        let cancelling =
            matches!(self.agents[&id].state, State::Stopping { stage: Stage::Cancelling, .. });
        if cancelling && !self.sessions_of(id).iter().any(|key| self.is_running(*key)) {
            self.next_stage(id, out);
        }
    }

    pub(crate) fn on_agent_timer(&mut self, id: AgentId, out: &mut Batch) {
        match self.agents[&id].state.clone() {
            State::Starting | State::Initializing => {
                let seconds = self.profile_of(id).start_timeout / 1000;
                let reason = format!("no answer to `initialize` within {seconds} s");
                self.bad_start(id, Reason::AgentTimeout, reason, false, out);
            }
            State::Stopping { .. } => self.next_stage(id, out),
            State::Backoff => self.start_agent(id, out),
            State::Stopped | State::NeedsAuth | State::Ready | State::Failed(_) => {}
        }
    }

    fn next_stage(&mut self, id: AgentId, out: &mut Batch) {
        let times = self.profile_of(id).stop;
        let agent = &self.agents[&id];
        let (State::Stopping { why, stage }, Some(host)) = (agent.state.clone(), &agent.host)
        else {
            return;
        };
        let host = host.id;
        let (stage, step, time) = match stage {
            Stage::Cancelling => (Stage::Eof, StopStep::CloseStdin, times.eof),
            Stage::Eof => (Stage::Term, StopStep::Term, times.term),
            // SIGKILL is sent again until the tree is gone: new children may have been made.
            Stage::Term | Stage::Kill => (Stage::Kill, StopStep::Kill, 1_000),
        };
        let reason = agent.reason.clone();
        self.set_agent_state(id, State::Stopping { why, stage }, reason, out);
        out.effects.push(Effect::HostStop { host, step });
        self.timers.set(Timer::Agent(id), self.now.after(time));
    }

    pub(crate) fn on_host_exited(
        &mut self,
        host: HostId,
        status: &str,
        stderr: &str,
        out: &mut Batch,
    ) {
        let Some(&id) = self.hosts.get(&host) else { return };
        let leftovers = self.profile_of(id).stop.leftovers;
        let agent = self.agent_mut(id);
        stderr.clone_into(&mut agent.stderr);
        if let Some(h) = agent.host.as_mut() {
            h.exited = true;
        }
        let was_starting = matches!(agent.state, State::Starting | State::Initializing);
        let state = match agent.state.clone() {
            State::Stopping { why, .. } => State::Stopping { why, stage: Stage::Term },
            _ if was_starting => State::Stopping {
                why: StopWhy::BadStart { reason: Reason::AgentStartFailed, permanent: false },
                stage: Stage::Term,
            },
            _ => State::Stopping { why: StopWhy::Crashed, stage: Stage::Term },
        };
        let reason = match &state {
            State::Stopping { why: StopWhy::Crashed, .. } => format!("it ended with {status}"),
            State::Stopping { why: StopWhy::BadStart { .. }, .. } if was_starting => {
                format!("it ended with {status} before it answered `initialize`")
            }
            _ => agent.reason.clone().unwrap_or_else(|| format!("it ended with {status}")),
        };
        self.set_agent_state(id, state, Some(reason), out);
        // There is no one left to be polite to: whatever still runs gets a second.
        out.effects.push(Effect::HostStop { host, step: StopStep::CloseStdin });
        out.effects.push(Effect::HostStop { host, step: StopStep::Term });
        self.timers.set(Timer::Agent(id), self.now.after(leftovers));
        self.lose_host(id, host, out);
        if was_starting {
            self.fail_waiters(id, Reason::AgentStartFailed, out);
        }
    }

    /// Answers everything that was open at a process that is gone.
    fn lose_host(&mut self, id: AgentId, host: HostId, out: &mut Batch) {
        let agent = self.agent_mut(id);
        agent.parked.clear();
        agent.parked_bytes = 0;
        let by_person = matches!(
            &self.agents[&id].state,
            State::Stopping { why: StopWhy::ByPerson | StopWhy::Restart | StopWhy::Idle, .. }
        );
        let reason = if by_person { Reason::AgentStopped } else { Reason::AgentExited };
        let fault = self.agent_fault(id, reason);
        for why in self.ledger.drop_host(host) {
            match why {
                Why::Relay { to, .. } => self.refuse(&to, &fault, out),
                Why::NewSession(new) => self.refuse(&new.to, &fault, out),
                Why::Prompt { .. } | Why::Restore { .. } | Why::Initialize | Why::Farewell => {}
            }
        }
        for key in self.sessions_of(id) {
            self.session_lost_host(key, host, &fault, out);
        }
    }

    pub(crate) fn on_host_gone(&mut self, host: HostId, out: &mut Batch) {
        out.records.push(Record::HostGone { host });
        self.swept(host, out);
        let Some(id) = self.hosts.remove(&host) else { return };
        self.timers.clear(Timer::Agent(id));
        let ready_since = self.agents[&id].host.as_ref().and_then(|host| host.ready_since);
        self.agent_mut(id).host = None;
        let State::Stopping { why, .. } = self.agents[&id].state.clone() else { return };
        let ready_after = self.profile_of(id).restart.ready_after;
        if ready_since.is_some_and(|since| self.now.since(since) >= ready_after) {
            // It was usable for long enough: whatever failed before does not count any more.
            let now = self.now;
            let agent = self.agent_mut(id);
            agent.attempt = 0;
            agent.failures.clear();
            if why == StopWhy::Crashed {
                agent.failures.push_back(now);
                return self.after_gone(id, None, out);
            }
        }
        self.after_gone(id, Some(why), out);
    }

    /// The old tree is gone: judge what comes next.
    fn after_gone(&mut self, id: AgentId, why: Option<StopWhy>, out: &mut Batch) {
        let reason = self.agents[&id].reason.clone();
        let stopped_reason = match &why {
            Some(StopWhy::ByPerson) => Some("stopped by a person".to_owned()),
            Some(StopWhy::Idle) => Some("nothing used it".to_owned()),
            _ => reason.clone(),
        };
        let verdict = match why {
            Some(StopWhy::BadStart { reason, permanent: true }) => Verdict::Fail(reason),
            Some(StopWhy::BadStart { .. } | StopWhy::Crashed) => self.count_failure(id),
            _ => Verdict::Start { delay: 0 },
        };
        match verdict {
            Verdict::Fail(kind) => {
                let reason = if kind == Reason::AgentCrashLoop {
                    let last = reason.unwrap_or_default();
                    Some(format!(
                        "it failed {} times in a row, last: {last}",
                        self.agents[&id].attempt
                    ))
                } else {
                    reason
                };
                self.set_agent_state(id, State::Failed(kind), reason, out);
                self.fail_waiters(id, kind, out);
            }
            Verdict::Start { delay } if self.is_needed(id) => {
                self.agent_mut(id).restarts += 1;
                if delay == 0 {
                    self.start_agent(id, out);
                } else {
                    let until = self.now.after(delay);
                    self.set_agent_state(id, State::Backoff, reason, out);
                    self.timers.set(Timer::Agent(id), until);
                }
            }
            Verdict::Start { .. } => {
                self.set_agent_state(id, State::Stopped, stopped_reason, out);
                for requester in std::mem::take(&mut self.agent_mut(id).watchers) {
                    self.answer_agent(&requester, id, out);
                }
            }
        }
        self.remove_unused_slot(id);
        self.check_stopped(out);
    }

    /// A crash or a failed start: how long to wait, or to give up.
    fn count_failure(&mut self, id: AgentId) -> Verdict {
        let rules = self.profile_of(id).restart;
        let now = self.now;
        let agent = self.agent_mut(id);
        agent.failures.push_back(now);
        while agent.failures.front().is_some_and(|at| now.since(*at) > rules.window) {
            agent.failures.pop_front();
        }
        agent.attempt += 1;
        let attempt = agent.attempt;
        let failures = agent.failures.len() as u32;
        if failures >= rules.budget {
            return Verdict::Fail(Reason::AgentCrashLoop);
        }
        let doubled = rules.delay.saturating_mul(1 << (attempt - 1).min(16)).min(rules.max_delay);
        Verdict::Start { delay: self.jitter(doubled) }
    }

    /// Whether something wants this process: people, prompts, sessions that were cut off.
    pub(crate) fn is_needed(&mut self, id: AgentId) -> bool {
        if self.stopping {
            return false;
        }
        let agent = &self.agents[&id];
        let profile = agent.profile.clone();
        let waiting = !agent.waiting.is_empty() || !agent.watchers.is_empty();
        match self.known(&profile).row.desired {
            Desired::Down => false,
            Desired::Up => true,
            Desired::OnDemand => {
                waiting || self.sessions_of(id).iter().any(|key| self.wants_host(*key))
            }
        }
    }

    /// Answers everyone who waited for a process that will not come, prompts included.
    fn fail_waiters(&mut self, id: AgentId, reason: Reason, out: &mut Batch) {
        let fault = self.agent_fault(id, reason);
        for requester in std::mem::take(&mut self.agent_mut(id).watchers) {
            self.refuse(&requester, &fault, out);
        }
        for waiting in std::mem::take(&mut self.agent_mut(id).waiting) {
            self.refuse(&waiting.to, &fault, out);
        }
        for key in self.sessions_of(id) {
            self.fail_queue(key, &fault, out);
        }
    }

    /// `-32000` was seen, or a request that needs a login has worked.
    pub(crate) fn note_auth(&mut self, id: AgentId, error: Option<&ErrorObject>, out: &mut Batch) {
        match error {
            Some(error) if error.code == code::AUTH_REQUIRED && self.agents[&id].is_up() => {
                self.set_agent_state(id, State::NeedsAuth, Some(error.message.clone()), out);
            }
            None if self.agents[&id].state == State::NeedsAuth => {
                self.set_agent_state(id, State::Ready, None, out);
            }
            _ => {}
        }
    }

    /// Writes a line to the process: an outbox row first, the write after the commit.
    pub(crate) fn host_write(&mut self, id: AgentId, line: Bytes, out: &mut Batch) -> u64 {
        let Some(host) = self.agent_mut(id).host.as_mut() else { return 0 };
        let (host, chunk) = {
            let chunk = host.next_chunk;
            host.next_chunk += 1;
            (host.id, chunk)
        };
        out.records.push(Record::Outbox { host, chunk, line: line.clone() });
        out.effects.push(Effect::HostWrite { host, chunk, line });
        chunk
    }

    /// Arms the idle timer of a process that nothing uses, disarms it otherwise.
    pub(crate) fn check_idle(&mut self, id: AgentId, _out: &mut Batch) {
        let timeout = self.profile_of(id).idle_timeout;
        let Some(agent) = self.agents.get(&id) else { return };
        let profile = agent.profile.clone();
        let in_use = !agent.is_up()
            || agent.host.as_ref().is_some_and(|host| self.ledger.open_of_host(host.id))
            || self.known(&profile).row.desired == Desired::Up
            || self.sessions_of(id).iter().any(|key| self.is_in_use(*key));
        if in_use || timeout == 0 {
            self.timers.clear(Timer::Idle(id));
        } else if !self.timers.is_set(Timer::Idle(id)) {
            self.timers.set(Timer::Idle(id), self.now.after(timeout));
        }
    }

    pub(crate) fn on_idle(&mut self, id: AgentId, out: &mut Batch) {
        if self.agents[&id].is_up() {
            self.begin_stop(id, StopWhy::Idle, Some("nothing used it".to_owned()), out);
        }
    }

    /// A dedicated slot goes with its process; the session gets a new one when it comes back.
    fn remove_unused_slot(&mut self, id: AgentId) {
        let agent = &self.agents[&id];
        let unused = agent.dedicated.is_some_and(|key| !self.sessions.contains_key(&key));
        if unused && agent.host.is_none() && agent.waiting.is_empty() {
            self.agents.remove(&id);
            self.timers.clear(Timer::Agent(id));
            self.timers.clear(Timer::Idle(id));
        }
    }
}

enum Verdict {
    Start { delay: u64 },
    Fail(Reason),
}
