//! Decision about the next process after the end of one.
//!
//! ```text
//!  tree gone ─▶ count the failure ─▶ start at once | Backoff | Stopped | Failed
//! ```
//!
//! Architecture invariant: each waiting client is answered as soon as it is clear that no process
//! will come, and prompts are kept only if one will.

use acpd_api::Reason;

use crate::cx::Cx;
use crate::event::EngineEvent;
use crate::ids::{SlotId, Urgency};
use crate::process::slot::{Failures, State, StopWhy};
use crate::process::table::Processes;
use crate::timers::Timer;

impl Processes {
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
            slot.failures.at.push(cx.now);
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
        let Failures { at, in_a_row } = &mut self.slot_mut(id).failures;
        at.push(cx.now);
        at.retain(|at| cx.now.since(*at) <= rules.window);
        *in_a_row += 1;
        if at.len() >= rules.budget as usize {
            return Err(Reason::AgentCrashLoop);
        }
        let doubled = rules.delay.saturating_mul(1 << (*in_a_row - 1).min(16)).min(rules.max_delay);
        Ok(self.jitter(doubled))
    }
}
