//! The way of a process down, and what comes after: the stop ladder, the end of a process, the judgement.
//!
//! ```text
//!  Cancelling ── turns ended, time ─▶ Eof ── time ─▶ Term ── time ─▶ Kill ─┐
//!   (only for a person's stop)         │               ▲              ▲    │ every second
//!                                      └─ leader ended ┘              └────┘
//!  tree gone ─▶ count the failure ─▶ start at once | Backoff | Stopped | Failed
//! ```
//!
//! Architecture invariant: each client that waited for the process is answered when it is clear
//! that it will not come, and prompts are only kept for a process that does.

use acpd_api::Reason;

use crate::cx::Cx;
use crate::event::EngineEvent;
use crate::fault::about_agent;
use crate::ids::{HostId, SlotId};
use crate::input::{Effect, StopStep, ToHost};
use crate::process::Demand;
use crate::process::slot::{Failed, Host, KILL_AGAIN, Stage, State, StopWhy};
use crate::process::table::Processes;
use crate::profile::Config;
use crate::record::Record;
use crate::timers::Timer;

/// Number of SIGKILLs after which acpd looks for the remaining processes.
const LOOK_EVERY: u32 = 5;

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
            // One that is queued is about to start.
            let is_down = match state {
                State::Queued => why != StopWhy::Restart,
                state => matches!(state, State::Backoff | State::Failed(_)),
            };
            if is_down {
                // A person has looked at it.
                self.slot_mut(id).forgive();
                self.set_state(cx, id, State::Stopped, reason);
            }
            return;
        };
        if let State::Stopping { stage, why: old } = state {
            // A person's wish is what counts after the tree is gone; the ladder itself continues. And
            // the want of a login says more than that nothing was heard.
            let wish =
                matches!(why, StopWhy::ByPerson | StopWhy::Restart) && old != StopWhy::ByPerson;
            let late = why == StopWhy::NoLogin && matches!(old, StopWhy::BadStart { .. });
            if wish || late {
                self.set_state(cx, id, State::Stopping { why, stage }, reason);
            }
            return;
        }
        cx.timers.clear(Timer::Idle(id));
        if let Some(host) = self.slot_mut(id).host_mut() {
            // Output of the old process is no longer needed.
            host.overdue = false;
        }
        let cancels = has_turns && matches!(why, StopWhy::ByPerson | StopWhy::Restart);
        let stage = if cancels {
            let because = reason.as_deref().unwrap_or("it is being stopped");
            let because = about_agent(&self[&id].profile, because);
            cx.report(EngineEvent::TurnsCancelled { slot: id, because });
            Stage::Cancelling
        } else {
            Stage::Eof
        };
        self.set_state(cx, id, State::Stopping { why, stage }, reason);
        self.save(cx, id);
        if stage == Stage::Eof && pid.is_some() {
            cx.order(host, ToHost::Stop(StopStep::CloseStdin));
        }
        cx.timers.set(Timer::Slot(id), cx.now.after(self.profile(id, &cx.config).stop.eof));
    }

    /// The turns of a process that is being stopped have ended.
    pub(crate) fn on_turns_ended(&mut self, cx: &mut Cx, id: SlotId) {
        if let State::Stopping { stage: Stage::Cancelling, .. } = self[&id].state {
            self.next_stage(cx, id);
        }
    }

    pub(super) fn next_stage(&mut self, cx: &mut Cx, id: SlotId) {
        let times = self.profile(id, &cx.config).stop;
        let slot = &self[&id];
        let (State::Stopping { why, stage }, Some(host)) = (slot.state.clone(), slot.host()) else {
            return;
        };
        let (host, reason) = (host.id, slot.reason.clone());
        let (stage, step, time) = match stage {
            Stage::Cancelling => (Stage::Eof, StopStep::CloseStdin, times.eof),
            Stage::Eof => (Stage::Term, StopStep::Term, times.term),
            // SIGKILL is sent again until the tree is gone: new children may have been made.
            Stage::Term | Stage::Kill => (Stage::Kill, StopStep::Kill, KILL_AGAIN),
        };
        self.set_state(cx, id, State::Stopping { why, stage }, reason);
        cx.order(host, ToHost::Stop(step));
        if let Some(process) = self.slot_mut(id).host_mut().filter(|_| stage == Stage::Kill) {
            process.kills += 1;
            if process.kills.is_multiple_of(LOOK_EVERY) {
                cx.send_behind(Effect::FindLeftovers { host });
            }
        }
        cx.timers.set(Timer::Slot(id), cx.now.after(time));
    }

    /// The leader of a process has ended.
    pub(crate) fn on_exited(&mut self, cx: &mut Cx, host: HostId, ending: &str, stderr: &str) {
        let Some(id) = self.slot_of(host) else { return };
        let slot = self.slot_mut(id);
        stderr.clone_into(&mut slot.stderr);
        if let Some(process) = slot.host_mut() {
            process.exited.get_or_insert(cx.now);
        }
        let was_starting = matches!(slot.state, State::Starting | State::Initializing);
        let was_stopping = matches!(slot.state, State::Stopping { .. });
        let why = match &slot.state {
            State::Stopping { why, .. } => why.clone(),
            _ if was_starting => {
                StopWhy::BadStart { reason: Reason::AgentStartFailed, permanent: false }
            }
            _ => StopWhy::Crashed,
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
        let state = State::Stopping { why, stage: Stage::Term };
        self.set_state(cx, id, state, Some(reason));
        // The leader is gone: remaining processes get a second.
        cx.order(host, ToHost::Stop(StopStep::CloseStdin));
        cx.order(host, ToHost::Stop(StopStep::Term));
        let leftovers = self.profile(id, &cx.config).stop.leftovers;
        cx.timers.set(Timer::Slot(id), cx.now.after(leftovers));
        self.save(cx, id);
        self.lose(cx, id, host);
        if let State::Stopping { why: StopWhy::BadStart { reason, .. }, .. } = self[&id].state {
            let fault = self.fault(id, reason, &cx.config);
            cx.report(EngineEvent::WaitersRefused { slot: id, fault });
        }
    }

    /// Everything that is open at a process gets no answer.
    fn lose(&mut self, cx: &mut Cx, id: SlotId, host: HostId) {
        self.slot_mut(id).parked.clear();
        let slot = &self[&id];
        let why = match &slot.state {
            State::Stopping { why, .. } => Some(why),
            _ => None,
        };
        let by_person = matches!(why, Some(StopWhy::ByPerson | StopWhy::Restart | StopWhy::Idle));
        let reason = if by_person { Reason::AgentStopped } else { Reason::AgentExited };
        let has_run =
            slot.host().is_some_and(|host| self.has_run_long_enough(host, id, &cx.config));
        let ended_late = has_run && why == Some(&StopWhy::Crashed);
        let fault = self.fault(id, reason, &cx.config);
        cx.report(EngineEvent::ProcessLost { slot: id, host, fault, ended_late });
    }

    /// acpd can no longer speak with a process of the last daemon: for its sessions that is a crash,
    /// but not one that counts against the agent.
    pub(crate) fn on_lost(&mut self, cx: &mut Cx, host: HostId, reason: &str) {
        let Some(id) = self.slot_of(host) else { return };
        let slot = self.slot_mut(id);
        slot.stderr.clear();
        if let Some(known) = slot.host_mut() {
            known.exited.get_or_insert(cx.now);
            known.lost = true;
            known.overdue = false;
        }
        let why = match &slot.state {
            State::Stopping { why, .. } => why.clone(),
            _ => StopWhy::Lost,
        };
        // The process is being stopped already; acpd checks regularly for remaining processes.
        cx.timers.set(Timer::Slot(id), cx.now.after(KILL_AGAIN));
        let state = State::Stopping { why, stage: Stage::Kill };
        self.set_state(cx, id, state, Some(reason.to_owned()));
        self.save(cx, id);
        self.lose(cx, id, host);
    }

    /// Returns whether an ended process was ready for long enough that its end is no failure.
    fn has_run_long_enough(&self, host: &Host, id: SlotId, config: &Config) -> bool {
        let ready_after = self.profile(id, config).restart.ready_after;
        let run = host.ready_since.zip(host.exited);
        run.is_some_and(|(since, until)| until.since(since) >= ready_after)
    }

    /// A process and its tree are gone.
    pub(crate) fn on_gone(&mut self, cx: &mut Cx, host: HostId) {
        cx.record(Record::HostGone { host });
        cx.order(host, ToHost::Forget);
        let Some(id) = self.slot_of(host) else { return };
        if self[&id].host().is_some_and(|host| host.exited.is_none()) {
            self.on_exited(cx, host, "ended with an unknown status", "");
        }
        cx.report(EngineEvent::ProcessGone(id));
    }

    /// Takes the process that is gone out of its slot. Returns the purpose of its end, if that counts.
    fn bury(&mut self, cx: &mut Cx, id: SlotId) -> Option<StopWhy> {
        let Some(host) = self[&id].host().map(|host| host.id) else {
            return self.slot_mut(id).ended.take();
        };
        let (_, was) = self.take(host)?;
        cx.timers.clear(Timer::Slot(id));
        let State::Stopping { why, .. } = self[&id].state.clone() else { return None };
        if !self.has_run_long_enough(&was, id, &cx.config) {
            return Some(why);
        }
        if why == StopWhy::Crashed {
            self.slot_mut(id).crashed_after_a_good_run(cx.now);
            return None;
        }
        self.slot_mut(id).forgive();
        Some(why)
    }

    /// Decides what comes after a process that is gone.
    pub(crate) fn judge(&mut self, cx: &mut Cx, id: SlotId, demand: Demand) {
        let why = self.bury(cx, id);
        let profile = self[&id].profile.clone();
        let reason = self[&id].reason.clone();
        let stopped_reason = match &why {
            Some(StopWhy::ByPerson) => Some("stopped by a person".to_owned()),
            Some(StopWhy::Idle) => Some("nothing used it".to_owned()),
            _ => reason.clone(),
        };
        let planned = |why: &StopWhy| {
            use StopWhy::{ByPerson, Idle, Lost, NoLogin, Restart};
            matches!(why, ByPerson | Restart | Idle | Lost | NoLogin)
        };
        let unexpected = !why.as_ref().is_some_and(planned);
        let verdict = match why {
            Some(StopWhy::BadStart { reason, permanent: true }) => Verdict::Fail(reason),
            Some(StopWhy::BadStart { .. } | StopWhy::Crashed) => self.count_failure(cx, id),
            Some(StopWhy::NoLogin) if self.auth_state(&profile).wants_login() => {
                Verdict::Fail(Reason::NeedsLogin)
            }
            _ => Verdict::Start { delay: 0 },
        };
        match verdict {
            Verdict::Fail(kind) => {
                let reason = if kind == Reason::AgentCrashLoop {
                    let (times, last) = (self[&id].failures(), reason.unwrap_or_default());
                    Some(format!("it failed {times} times in a row, last: {last}"))
                } else {
                    reason
                };
                self.set_state(cx, id, State::Failed(kind), reason);
                self.give_up(cx, id, kind);
            }
            Verdict::Start { delay } if self.comes_back(id, unexpected, demand, &cx.config) => {
                if unexpected {
                    cx.report(EngineEvent::AgentRestarted(profile));
                }
                if delay == 0 {
                    self.start(cx, id);
                } else {
                    self.set_state(cx, id, State::Backoff, reason);
                    cx.timers.set(Timer::Slot(id), cx.now.after(delay));
                }
            }
            Verdict::Start { .. } => {
                self.set_state(cx, id, State::Stopped, stopped_reason);
                cx.report(EngineEvent::ProcessStopped(id));
                let ending = demand.ending;
                let kind = if ending { Reason::ShuttingDown } else { Reason::AgentStopped };
                self.give_up(cx, id, kind);
            }
        }
    }

    /// There will be no process.
    pub(crate) fn give_up(&mut self, cx: &mut Cx, id: SlotId, reason: Reason) {
        let fault = self.fault(id, reason, &cx.config);
        cx.report(EngineEvent::ProcessGivenUp { slot: id, fault });
    }

    /// Returns whether a stopped process is started again.
    fn comes_back(&self, id: SlotId, unexpected: bool, demand: Demand, config: &Config) -> bool {
        let by_itself = self.profile(id, config).restart.on_failure || !unexpected;
        if by_itself { self.is_needed(id, demand) } else { self.is_wanted(id, demand) }
    }

    /// A crash or a failed start: how long to wait, or to give up.
    fn count_failure(&mut self, cx: &mut Cx, id: SlotId) -> Verdict {
        let rules = self.profile(id, &cx.config).restart;
        let Failed { in_a_row, of_late } = self.slot_mut(id).failed(cx.now, rules.window);
        if of_late >= rules.budget {
            return Verdict::Fail(Reason::AgentCrashLoop);
        }
        let doubled = rules.delay.saturating_mul(1 << (in_a_row - 1).min(16)).min(rules.max_delay);
        Verdict::Start { delay: self.jitter(doubled) }
    }
}

enum Verdict {
    Start { delay: u64 },
    Fail(Reason),
}
