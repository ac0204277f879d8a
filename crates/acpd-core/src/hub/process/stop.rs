//! Going down and what comes after: the stop ladder, the end of a process, the judgement.
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
use crate::hub::Hub;
use crate::ids::{HostId, SlotId};
use crate::input::{Batch, Effect, StopStep, ToHost};
use crate::mcp::client_servers::CallEnd;
use crate::process::slot::{Failed, Host, KILL_AGAIN, Slot, Stage, State, StopWhy};
use crate::record::Record;
use crate::requests::purpose::Purpose;
use crate::timers::Timer;

impl Hub {
    /// Starts the stop ladder, or moves a running one to a more urgent purpose.
    pub(crate) fn begin_stop(
        &mut self,
        id: SlotId,
        why: StopWhy,
        reason: Option<String>,
        out: &mut Batch,
    ) {
        let Some(host) = self.processes[&id].host().map(|host| (host.id, host.pid)) else {
            self.timers.clear(Timer::Slot(id));
            let state = &self.processes[&id].state;
            if *state == State::Queued && why == StopWhy::Restart {
                // The process is about to start.
                return;
            }
            let parked = matches!(state, State::Queued | State::Backoff | State::Failed(_));
            if parked {
                // A person has looked at it.
                self.slot_mut(id).forgive();
                self.set_agent_state(id, State::Stopped, reason, out);
            }
            return;
        };
        if let State::Stopping { stage, why: old } = &self.processes[&id].state {
            // A person's wish is what counts after the tree is gone; the ladder itself goes on. And
            // the want of a login says more than that nothing was heard.
            let wish =
                matches!(why, StopWhy::ByPerson | StopWhy::Restart) && *old != StopWhy::ByPerson;
            let late = why == StopWhy::NoLogin && matches!(old, StopWhy::BadStart { .. });
            if wish || late {
                let state = State::Stopping { why, stage: *stage };
                self.set_agent_state(id, state, reason, out);
            }
            return;
        }
        self.timers.clear(Timer::Idle(id));
        if let Some(host) = self.slot_mut(id).host_mut() {
            // Output of the old process is no longer needed.
            host.overdue = false;
        }
        let times = self.profile_of(id).stop;
        let turns = matches!(why, StopWhy::ByPerson | StopWhy::Restart)
            && self.cancel_turns_of(id, reason.as_deref(), out);
        let (stage, time) =
            if turns { (Stage::Cancelling, times.eof) } else { (Stage::Eof, times.eof) };
        self.set_agent_state(id, State::Stopping { why, stage }, reason, out);
        self.save_host(id, out);
        if stage == Stage::Eof && host.1.is_some() {
            out.effects.push(Effect::Host(host.0, ToHost::Stop(StopStep::CloseStdin)));
        }
        self.timers.set(Timer::Slot(id), self.now.after(time));
    }

    /// A turn of an agent that is being stopped has ended: nothing to wait for any more?
    pub(crate) fn turn_ended_while_stopping(&mut self, id: SlotId, out: &mut Batch) {
        let cancelling =
            matches!(self.processes[&id].state, State::Stopping { stage: Stage::Cancelling, .. });
        if cancelling
            && !self.sessions.of_slot(id).iter().any(|key| self.session(*key).running.is_some())
        {
            self.next_stage(id, out);
        }
    }

    pub(crate) fn next_stage(&mut self, id: SlotId, out: &mut Batch) {
        let times = self.profile_of(id).stop;
        let agent = &self.processes[&id];
        let (State::Stopping { why, stage }, Some(host)) = (agent.state.clone(), agent.host())
        else {
            return;
        };
        let host = host.id;
        let (stage, step, time) = match stage {
            Stage::Cancelling => (Stage::Eof, StopStep::CloseStdin, times.eof),
            Stage::Eof => (Stage::Term, StopStep::Term, times.term),
            // SIGKILL is sent again until the tree is gone: new children may have been made.
            Stage::Term | Stage::Kill => (Stage::Kill, StopStep::Kill, KILL_AGAIN),
        };
        let reason = agent.reason.clone();
        self.set_agent_state(id, State::Stopping { why, stage }, reason, out);
        out.effects.push(Effect::Host(host, ToHost::Stop(step)));
        if stage == Stage::Kill {
            self.count_kill(id, out);
        }
        self.timers.set(Timer::Slot(id), self.now.after(time));
    }

    pub(crate) fn on_host_exited(
        &mut self,
        host: HostId,
        ending: &str,
        stderr: &str,
        out: &mut Batch,
    ) {
        let Some(id) = self.processes.slot_of(host) else { return };
        let leftovers = self.profile_of(id).stop.leftovers;
        let now = self.now;
        let agent = self.slot_mut(id);
        stderr.clone_into(&mut agent.stderr);
        if let Some(h) = agent.host_mut() {
            h.exited.get_or_insert(now);
        }
        let was_starting = matches!(agent.state, State::Starting | State::Initializing);
        let was_stopping = matches!(agent.state, State::Stopping { .. });
        let state = match agent.state.clone() {
            State::Stopping { why, .. } => State::Stopping { why, stage: Stage::Term },
            _ if was_starting => State::Stopping {
                why: StopWhy::BadStart { reason: Reason::AgentStartFailed, permanent: false },
                stage: Stage::Term,
            },
            _ => State::Stopping { why: StopWhy::Crashed, stage: Stage::Term },
        };
        let reason = match &state {
            State::Stopping { why: StopWhy::Crashed, .. } => format!("it {ending}"),
            State::Stopping { why: StopWhy::BadStart { .. }, .. } if was_starting => {
                let printed = agent.what_it_printed();
                format!("it {ending} before it answered `initialize`{printed}")
            }
            _ => agent.reason.clone().unwrap_or_else(|| format!("it {ending}")),
        };
        if !was_stopping {
            self.hook_crash(id, &reason, out);
        }
        self.set_agent_state(id, state, Some(reason), out);
        // The leader is gone: remaining processes get a second.
        out.effects.push(Effect::Host(host, ToHost::Stop(StopStep::CloseStdin)));
        out.effects.push(Effect::Host(host, ToHost::Stop(StopStep::Term)));
        self.timers.set(Timer::Slot(id), self.now.after(leftovers));
        self.save_host(id, out);
        self.lose_host(id, host, out);
        if let State::Stopping { why: StopWhy::BadStart { reason, .. }, .. } =
            self.processes[&id].state
        {
            self.fail_waiters(id, reason, out);
        }
    }

    /// Answers everything that was open at a process that is gone.
    pub(crate) fn lose_host(&mut self, id: SlotId, host: HostId, out: &mut Batch) {
        self.slot_mut(id).parked.clear();
        let by_person = matches!(
            &self.processes[&id].state,
            State::Stopping { why: StopWhy::ByPerson | StopWhy::Restart | StopWhy::Idle, .. }
        );
        let reason = if by_person { Reason::AgentStopped } else { Reason::AgentExited };
        let fault = self.agent_fault(id, reason);
        for why in self.unanswered(host, out) {
            match why {
                Purpose::Relay { to, .. } => self.refuse(&to, &fault, out),
                Purpose::NewSession(new) => self.refuse(&new.to, &fault, out),
                Purpose::Steer(steer) => self.steer_lost(&steer, &fault, out),
                Purpose::Adopt(adoption) => self.refuse_adoption(&adoption, &fault, out),
                Purpose::List { to, wanted } => self.listed(id, &to, &wanted, None, out),
                Purpose::Prompt { .. }
                | Purpose::Abandoned { .. }
                | Purpose::Restore { .. }
                | Purpose::Preset { .. }
                | Purpose::GivenUp { .. }
                | Purpose::Initialize
                | Purpose::AuthStatus
                | Purpose::LoginAgain
                | Purpose::Title { .. }
                | Purpose::Farewell => {}
            }
        }
        self.close_about_requests(host, out);
        self.services.on_process_gone(&mut cx!(self, out), host);
        self.end_server_calls(&CallEnd::ProcessGone(host), out);
        let slot = &self.processes[&id];
        let crashed = matches!(slot.state, State::Stopping { why: StopWhy::Crashed, .. });
        let ended_late =
            crashed && slot.host().is_some_and(|host| self.has_run_long_enough(host, id));
        let sessions = self.sessions.of_slot(id);
        let mut cut_off = sessions.clone();
        cut_off.retain(|key| ended_late && self.sessions.is_at_agent(*key));
        for key in sessions {
            self.session_lost_host(key, &fault, out);
        }
        for key in &cut_off {
            self.load_cut_off(*key, cut_off.len() == 1, out);
        }
    }

    /// Returns whether an ended process was ready for long enough that its end is no failure.
    fn has_run_long_enough(&self, host: &Host, id: SlotId) -> bool {
        let ready_after = self.profile_of(id).restart.ready_after;
        let run = host.ready_since.zip(host.exited);
        run.is_some_and(|(since, until)| until.since(since) >= ready_after)
    }

    pub(crate) fn on_host_gone(&mut self, host: HostId, out: &mut Batch) {
        out.records.push(Record::HostGone { host });
        out.effects.push(Effect::Host(host, ToHost::Forget));
        let slot = self.processes.slot_of(host).map(|id| &self.processes[&id]);
        if slot.and_then(Slot::host).is_some_and(|host| host.exited.is_none()) {
            self.on_host_exited(host, "ended with an unknown status", "", out);
        }
        let Some((id, was)) = self.processes.take(host) else { return };
        self.timers.clear(Timer::Slot(id));
        let State::Stopping { why, .. } = self.processes[&id].state.clone() else { return };
        if self.has_run_long_enough(&was, id) {
            if why == StopWhy::Crashed {
                let now = self.now;
                self.slot_mut(id).crashed_after_a_good_run(now);
                return self.after_gone(id, None, out);
            }
            self.slot_mut(id).forgive();
        }
        self.after_gone(id, Some(why), out);
    }

    /// The old tree is gone: judge what comes next.
    pub(crate) fn after_gone(&mut self, id: SlotId, why: Option<StopWhy>, out: &mut Batch) {
        let reason = self.processes[&id].reason.clone();
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
            Some(StopWhy::BadStart { .. } | StopWhy::Crashed) => self.count_failure(id),
            Some(StopWhy::NoLogin)
                if self.logins.state(&self.processes[&id].profile).wants_login() =>
            {
                Verdict::Fail(Reason::NeedsLogin)
            }
            _ => Verdict::Start { delay: 0 },
        };
        match verdict {
            Verdict::Fail(kind) => {
                let reason = if kind == Reason::AgentCrashLoop {
                    let last = reason.unwrap_or_default();
                    Some(format!(
                        "it failed {} times in a row, last: {last}",
                        self.processes[&id].failures()
                    ))
                } else {
                    reason
                };
                self.set_agent_state(id, State::Failed(kind), reason, out);
                self.give_up(id, kind, out);
            }
            Verdict::Start { delay } if self.comes_back(id, unexpected) => {
                if unexpected {
                    self.tally.restarted(&self.processes[&id].profile);
                }
                if delay == 0 {
                    self.start_agent(id, out);
                } else {
                    let until = self.now.after(delay);
                    self.set_agent_state(id, State::Backoff, reason, out);
                    self.timers.set(Timer::Slot(id), until);
                }
            }
            Verdict::Start { .. } => {
                self.set_agent_state(id, State::Stopped, stopped_reason, out);
                for requester in std::mem::take(&mut self.slot_mut(id).watchers) {
                    self.answer_agent(&requester, id, out);
                }
                let kind = if self.shutdown.is_begun() {
                    Reason::ShuttingDown
                } else {
                    Reason::AgentStopped
                };
                self.give_up(id, kind, out);
            }
        }
        self.remove_unused_slot(id);
        self.check_stopped(out);
    }

    /// Returns whether a stopped process is started again.
    fn comes_back(&mut self, id: SlotId, unexpected: bool) -> bool {
        let by_itself = self.profile_of(id).restart.on_failure || !unexpected;
        if by_itself { self.is_needed(id) } else { self.is_wanted(id) }
    }

    /// There will be no process: answers who waited for it, and wants nothing back any more.
    pub(crate) fn give_up(&mut self, id: SlotId, reason: Reason, out: &mut Batch) {
        self.fail_waiters(id, reason, out);
        for key in self.sessions.of_slot(id) {
            self.session_mut(key).eager = false;
        }
    }

    /// A crash or a failed start: how long to wait, or to give up.
    fn count_failure(&mut self, id: SlotId) -> Verdict {
        let rules = self.profile_of(id).restart;
        let now = self.now;
        let Failed { in_a_row, of_late } = self.slot_mut(id).failed(now, rules.window);
        if of_late >= rules.budget {
            return Verdict::Fail(Reason::AgentCrashLoop);
        }
        let doubled = rules.delay.saturating_mul(1 << (in_a_row - 1).min(16)).min(rules.max_delay);
        Verdict::Start { delay: self.processes.jitter(doubled) }
    }
}

enum Verdict {
    Start { delay: u64 },
    Fail(Reason),
}
