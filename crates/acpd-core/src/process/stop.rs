//! The stop ladder and the end of a process, and the reasons why an agent has no process.
//!
//! ```text
//!  turns cancelled ── ended, time ─▶ CloseStdin ── time ─▶ Term ── time ─▶ Kill ─┐
//!   (only for a person's stop)           │                  ▲              ▲    │ every second
//!                                        └── leader ended ──┘              └────┘
//!  tree gone ─▶ `start.rs`
//! ```
//!
//! Processes of the last run that survive SIGKILL block the next start until they exit or the user
//! forces it. An unresponsive process of the last daemon does the same.
//!
//! ```text
//!  SIGKILL ── repeated ─▶ acpd looks ── processes remain ─▶ waiting clients are refused
//!     │                                                        │ `agent restart` with `force`
//!     └──────── tree gone ─▶ normal start                      └─▶ left behind ─▶ start
//! ```
//!
//! Such a process hangs in the kernel, mostly on a disk or a network that does not answer. It never
//! runs again, because SIGKILL is pending (a process whose shim was unreachable gets it later, even
//! after it was left behind). But it may hold locks and ports, so the agent's next process waits
//! unless the user decides otherwise. Other agents do not wait.

use acp_wire::code;
use acpd_api::{Reason, Untrusted};

use crate::cx::Cx;
use crate::event::EngineEvent;
use crate::fault::{Fault, about_agent, login_hint};
use crate::ids::{HostId, SlotId};
use crate::input::{Effect, LeftProcess, StopStep, ToHost};
use crate::process::slot::{Host, KILL_AGAIN, Slot, State, StopWhy};
use crate::process::table::Processes;
use crate::profile::Config;
use crate::record::{Desired, Record};
use crate::timers::Timer;

/// Number of SIGKILLs before acpd looks for remaining processes.
const LOOK_EVERY: u32 = 5;
pub(crate) const HANGS: &str = "it hangs in the kernel, mostly on a disk or a network that does not answer, and is \
                     waited for";
const NAMED: usize = 3;

impl Processes {
    /// Starts the stop ladder, or moves a running one to a more urgent purpose.
    pub(crate) fn stop(
        &mut self,
        cx: &mut Cx,
        id: SlotId,
        why: StopWhy,
        reason: Option<String>,
        has_turns: bool,
    ) {
        let state = self[&id].state.clone();
        let Some((host, pid)) = self[&id].host().map(|host| (host.id, host.pid)) else {
            cx.timers.clear(Timer::Slot(id));
            // A queued slot is about to start.
            let is_down = match state {
                State::Queued => why != StopWhy::Restart,
                state => matches!(state, State::Backoff | State::Failed(_)),
            };
            if is_down {
                // The user has seen the failures.
                self.slot_mut(id).forgive();
                self.set_state(cx, id, State::Stopped, reason);
            }
            return;
        };
        if let State::Stopping { step, why: old } = state {
            // The user's wish decides about the next process; the ladder itself continues. A
            // missing login is a better reason than silence.
            let wish =
                matches!(why, StopWhy::ByPerson | StopWhy::Restart) && old != StopWhy::ByPerson;
            let late = why == StopWhy::NoLogin && matches!(old, StopWhy::BadStart { .. });
            if wish || late {
                self.set_state(cx, id, State::Stopping { why, step }, reason);
            }
            return;
        }
        cx.timers.clear(Timer::Idle(id));
        if let Some(host) = self.slot_mut(id).host_mut() {
            // Output of the old process is no longer needed.
            host.overdue = false;
        }
        let cancels = has_turns && matches!(why, StopWhy::ByPerson | StopWhy::Restart);
        let step = if cancels {
            let because = reason.as_deref().unwrap_or("it is being stopped");
            let because = about_agent(&self[&id].profile, because);
            cx.report(EngineEvent::TurnsCancelled { slot: id, because });
            None
        } else {
            Some(StopStep::CloseStdin)
        };
        self.set_state(cx, id, State::Stopping { why, step }, reason);
        self.save(cx, id);
        if let Some(step) = step.filter(|_| pid.is_some()) {
            cx.order(host, ToHost::Stop(step));
        }
        cx.timers.set(Timer::Slot(id), cx.now.after(self.profile(id, &cx.config).stop.eof));
    }

    pub(crate) fn on_turns_ended(&mut self, cx: &mut Cx, id: SlotId) {
        if let State::Stopping { step: None, .. } = self[&id].state {
            self.next_step(cx, id);
        }
    }

    pub(super) fn next_step(&mut self, cx: &mut Cx, id: SlotId) {
        let times = self.profile(id, &cx.config).stop;
        let slot = &self[&id];
        let (State::Stopping { why, step }, Some(host)) = (slot.state.clone(), slot.host()) else {
            return;
        };
        let (host, reason) = (host.id, slot.reason.clone());
        let (step, time) = match step {
            None => (StopStep::CloseStdin, times.eof),
            Some(StopStep::CloseStdin) => (StopStep::Term, times.term),
            // SIGKILL is repeated until the tree is gone, because new children may appear.
            Some(StopStep::Term | StopStep::Kill) => (StopStep::Kill, KILL_AGAIN),
        };
        self.set_state(cx, id, State::Stopping { why, step: Some(step) }, reason);
        cx.order(host, ToHost::Stop(step));
        if let Some(process) = self.slot_mut(id).host_mut().filter(|_| step == StopStep::Kill) {
            process.kills += 1;
            if process.kills.is_multiple_of(LOOK_EVERY) {
                cx.send_behind(Effect::FindLeftovers(host));
            }
        }
        cx.timers.set(Timer::Slot(id), cx.now.after(time));
    }

    pub(crate) fn on_exited(&mut self, cx: &mut Cx, host: HostId, ending: &str, stderr: &str) {
        let Some(id) = self.slot_of(host) else { return };
        let slot = self.slot_mut(id);
        stderr.clone_into(&mut slot.stderr);
        if let Some(process) = slot.host_mut() {
            process.exited.get_or_insert(cx.now);
        }
        let was_starting = matches!(slot.state, State::Starting | State::Initializing);
        let was_stopping = slot.is_stopping();
        let why = match slot.stop_why() {
            Some(why) => why.clone(),
            None if was_starting => {
                StopWhy::BadStart { reason: Reason::AgentStartFailed, permanent: false }
            }
            None => StopWhy::Crashed,
        };
        let reason = match &why {
            StopWhy::Crashed => format!("it {ending}"),
            StopWhy::BadStart { .. } if was_starting => {
                let printed = slot.what_it_printed();
                format!("it {ending} before it answered `initialize`{printed}")
            }
            _ => slot.reason.clone().unwrap_or_else(|| format!("it {ending}")),
        };
        if !was_stopping {
            cx.report(EngineEvent::ProcessCrashed { slot: id, reason: reason.clone() });
        }
        let state = State::Stopping { why, step: Some(StopStep::Term) };
        self.set_state(cx, id, state, Some(reason));
        cx.order(host, ToHost::Stop(StopStep::CloseStdin));
        cx.order(host, ToHost::Stop(StopStep::Term));
        let leftovers = self.profile(id, &cx.config).stop.leftovers;
        cx.timers.set(Timer::Slot(id), cx.now.after(leftovers));
        self.save(cx, id);
        self.lose(cx, id, host);
        if let Some(&StopWhy::BadStart { reason, .. }) = self[&id].stop_why() {
            self.refuse_waiters(cx, id, reason, false);
        }
    }

    fn lose(&mut self, cx: &mut Cx, id: SlotId, host: HostId) {
        self.slot_mut(id).parked.clear();
        let slot = &self[&id];
        let why = slot.stop_why();
        let by_person = matches!(why, Some(StopWhy::ByPerson | StopWhy::Restart | StopWhy::Idle));
        let reason = if by_person { Reason::AgentStopped } else { Reason::AgentExited };
        let has_run =
            slot.host().is_some_and(|host| self.has_run_long_enough(host, id, &cx.config));
        let ended_late = has_run && why == Some(&StopWhy::Crashed);
        let fault = self.fault(id, reason, &cx.config);
        cx.report(EngineEvent::ProcessLost { slot: id, host, fault, ended_late });
    }

    /// A lost process is a crash for its sessions, but does not count as one for the agent.
    pub(crate) fn on_lost(&mut self, cx: &mut Cx, host: HostId, reason: &str) {
        let Some(id) = self.slot_of(host) else { return };
        let slot = self.slot_mut(id);
        slot.stderr.clear();
        if let Some(known) = slot.host_mut() {
            known.exited.get_or_insert(cx.now);
            known.lost = true;
            known.overdue = false;
        }
        let why = slot.stop_why().cloned().unwrap_or(StopWhy::Lost);
        // The process is being stopped already; acpd only checks for remaining processes.
        cx.timers.set(Timer::Slot(id), cx.now.after(KILL_AGAIN));
        let state = State::Stopping { why, step: Some(StopStep::Kill) };
        self.set_state(cx, id, state, Some(reason.to_owned()));
        self.save(cx, id);
        self.lose(cx, id, host);
    }

    pub(crate) fn on_gone(&mut self, cx: &mut Cx, host: HostId) {
        cx.order(host, ToHost::Forget);
        let slot = self.slot_of(host);
        let is_lost = |id: &SlotId| self[id].host().is_some_and(|host| host.exited.is_none());
        if slot.as_ref().is_some_and(is_lost) {
            self.on_exited(cx, host, "ended with an unknown status", "");
        }
        // An exit writes the row once more.
        cx.record(Record::HostGone { host });
        cx.report_all(slot.map(EngineEvent::ProcessGone));
    }

    /// `for_good`: no process will come.
    pub(crate) fn refuse_waiters(&self, cx: &mut Cx, id: SlotId, reason: Reason, for_good: bool) {
        let fault = self.fault(id, reason, &cx.config);
        cx.report(EngineEvent::WaitersRefused { slot: id, fault, for_good });
    }

    pub(crate) fn on_leftovers(&mut self, cx: &mut Cx, host: HostId, left: &[LeftProcess]) {
        let Some(id) = self.slot_of(host) else { return };
        let slot = &self[&id];
        let is_killed = matches!(slot.state, State::Stopping { step: Some(StopStep::Kill), .. });
        let leftovers = described(left);
        if !is_killed || slot.leftovers() == Some(&leftovers) {
            return;
        }
        if slot.host().is_some_and(|host| host.exited.is_none()) {
            // A killed process sends nothing, so no request waits for it.
            self.on_exited(cx, host, "was killed (SIGKILL)", "");
        }
        if let Some(host) = self.slot_mut(id).host_mut() {
            host.leftovers = Some(leftovers);
        }
        self.notify_state(cx, id);
        cx.send_behind(Effect::Failure {
            agent: self[&id].profile.clone(),
            session: None,
            what: "what is left of its last run does not end".to_owned(),
            code: None,
        });
        // Prompts need not wait for processes whose end is unknown.
        self.refuse_waiters(cx, id, Reason::AgentLeftovers, false);
        cx.report(EngineEvent::EndPossible);
    }

    /// The user does not want to wait. Returns whether there were leftovers.
    pub(crate) fn leave_behind(&mut self, cx: &mut Cx, id: SlotId) -> bool {
        let host = self[&id].host().filter(|host| host.leftovers.is_some()).map(|host| host.id);
        let Some(host) = host else { return false };
        self.on_gone(cx, host);
        true
    }

    /// Returns an error for clients that wait for the daemon's end, if only leftovers remain.
    pub(crate) fn only_leftovers(&self) -> Option<Fault> {
        let mut slots = self.with_process();
        let slot = slots.next()?;
        let left = slot.leftovers()?;
        if slots.any(|slot| slot.leftovers().is_none()) {
            return None;
        }
        let text = format!("agent `{}`: {left}; acpd ends without it", slot.profile);
        let hint = format!("{HANGS}, also by the next acpd");
        Some(Fault::new(Reason::AgentLeftovers, text).hint(hint))
    }

    pub(crate) fn fault(&self, id: SlotId, reason: Reason, config: &Config) -> Fault {
        if let Err(fault) = self.may_start(id) {
            return fault;
        }
        let slot = &self[&id];
        let what = slot.reason.as_deref().unwrap_or("it failed");
        if slot.state == State::Failed(Reason::NeedsLogin) {
            return self.login_fault(id, what);
        }
        let fault = Fault::new(reason, about_agent(&slot.profile, what));
        fault.stderr(&slot.stderr).hint(self.hint(id, config))
    }

    pub(crate) fn login_fault(&self, id: SlotId, message: &str) -> Fault {
        Fault::new(Reason::NeedsLogin, message.to_owned())
            .with_code(code::AUTH_REQUIRED)
            .hint(login_hint(&self[&id].profile))
    }

    pub(crate) fn way_out(&self, id: SlotId, config: &Config) -> Option<Untrusted> {
        let slot = &self[&id];
        let name = &slot.profile;
        let is_down = self.known(name).row.desired == Desired::Down;
        match slot.state {
            State::Stopping { .. } | State::Ready => self.may_start(id).err()?.data.hint,
            // The login has its own advice.
            State::NeedsAuth | State::Failed(Reason::NeedsLogin) => None,
            State::Failed(_) => Some(self.hint(id, config).into()),
            State::Stopped if is_down => {
                Some(format!("`acpctl agent start {name}` starts it").into())
            }
            // These states end by themselves or with a prompt.
            State::Stopped
            | State::Queued
            | State::Starting
            | State::Initializing
            | State::Backoff => None,
        }
    }

    pub(crate) fn hint(&self, id: SlotId, config: &Config) -> String {
        let Slot { profile: name, state, start_hint, .. } = &self[&id];
        let hint = start_hint
            .clone()
            .unwrap_or_else(|| format!("its output is in `{}`", self.profile(id, config).log));
        match state {
            State::Failed(_) => {
                format!("{hint}; the next prompt or `acpctl agent start {name}` tries again")
            }
            _ => hint,
        }
    }

    /// Refuses requests that only the user can unblock: leftovers of the last run, or an
    /// unresponsive process of the last daemon.
    pub(crate) fn may_start(&self, id: SlotId) -> Result<(), Fault> {
        let slot = &self[&id];
        let profile = &slot.profile;
        let (reason, hint) = match slot.host() {
            Some(Host { leftovers: Some(_), .. }) => (
                Reason::AgentLeftovers,
                format!(
                    "{HANGS}; `acpctl agent restart {profile} --force` starts the agent beside it"
                ),
            ),
            Some(Host { overdue: true, .. }) => (
                Reason::AgentTimeout,
                format!(
                    "it is waited for; `acpctl agent restart {profile}` ends it and starts the agent again"
                ),
            ),
            _ => return Ok(()),
        };
        let why = slot.api_reason().unwrap_or_default();
        Err(Fault::new(reason, about_agent(profile, &why)).hint(hint))
    }
}

/// The names of processes come from outside.
fn described(left: &[LeftProcess]) -> String {
    let named = left.iter().take(NAMED).map(|process| {
        let name: String = process.name.chars().filter(|c| !c.is_control()).collect();
        if name.is_empty() {
            process.pid.to_string()
        } else {
            format!("{} (`{name}`)", process.pid)
        }
    });
    let named = named.collect::<Vec<_>>().join(", ");
    match left.len() {
        0 => "something of its last run does not end".to_owned(),
        1 => format!("process {named} of its last run does not end"),
        2..=NAMED => format!("processes {named} of its last run do not end"),
        count => format!("processes {named} and {} more of its last run do not end", count - NAMED),
    }
}
