//! Restoring a session in a new process of its agent, by the best means that the agent has.
//!
//! ```text
//!            never had a prompt
//! begin ─▶ Directory ───────────────────▶ New ──────────────────────────────┐
//!   │ there, can resume                                                    │
//!   ├──────────▶ Resume ── ok ────────────────────────────────────────────┤
//!   │              │ any error but -32000                                 ▼
//!   │ can load     ▼                     ok                            Settings ─▶ live
//!   ├──────────▶ List ── listed ─▶ Load ────▶ (Settle: late replay) ──────┘
//!   │              │ not listed    │  ▲ other error, three times
//!   │              ▼               │  └── Retry
//!   │ can neither  ListAll (same)  ▼ -32002, -32601
//!   └───────────▶ lost           lost              -32000 anywhere ─▶ blocked until a login
//! ```
//!
//! A lost session starts over with the next prompt, if it may (`reseed.rs`).
//!
//! Architecture invariant: `session/new` is asked for only when there is nothing left to lose, and
//! every loss is reported.
//!
//! The queue of sessions that a process restores.
//!
//! A process that dies with many sessions gets all of them back. Restored together, they would
//! delay a prompt until the last one is back, and another death would waste all loads. So a session
//! that a client waits for is restored at once; of the others only a few at a time, while no client
//! waits:
//!
//! ```text
//!  a client waits for it ───────────────────────▶ restored
//!  it is open, or was cut off ─ parked ─ place ─▶ restored ─▶ a place for the next
//! ```
//!
//! A session during whose restore the agent has ended is restored alone, for any client: others
//! restored with it would seem to be at fault.
//!
//! Places are given out after each input that has ended a restore, or its last wait: first to
//! sessions that a client waits for, then to open ones, then to the rest; within each, to the one
//! used last.
//!
//! The queue is in memory alone. The next daemon continues restores that the agent was asked for;
//! other queued sessions stay parked until a prompt, or a client that opens them.
//!
//! Architecture invariant: each session that waits for a place gets one. A session waits only while
//! another one of its process is being restored. A restore ends with its answer, its process, or
//! its timeout; if lines put that off for ever, the user ends it (`session reseed --discard`).

use acp_wire::acp::{NewSessionResult, SessionList};
use acp_wire::{ErrorObject, Outcome, code};
use acpd_api::{Reason, RestoreLevel};
use serde_json::value::RawValue;

use crate::fault::{Refusal, in_words};
use crate::hub::Hub;
use crate::hub::session::restore_ask::{QUIET, REPLAY_TIMES};
use crate::ids::{Process, SessionKey, SlotId, duration};
use crate::process::slot::Slot;
use crate::profile::OnLost;
use crate::record::{Dormant, Replayable};
use crate::session::restore::{Event, Facts, Next, Step};
use crate::session::{Session, State};
use crate::timers::Timer;

/// Longest time of a replay that continues after the response (ms).
const QUIET_CAP: u64 = 5_000;

impl Hub {
    pub(crate) fn restore_there(&mut self, key: SessionKey) {
        if self.session(key).owes_summary() {
            let reason = self.session(key).why_given_up();
            return self.reseed(key, reason);
        }
        let Session { slot, row, .. } = self.session(key);
        let is_fresh = row.prompts == 0 && !row.heard;
        let is_held = self.sessions.is_held(*slot, &row.agent_id);
        if !is_fresh && !is_held {
            self.sessions.route(key);
        }
        self.restore_goes_on(key, Event::Begun { is_fresh, is_held });
    }

    fn restore_goes_on(&mut self, key: SessionKey, event: Event<'_>) {
        let has_gap = event == Event::Accepted && self.restored_with_gap(key).is_some();
        let Session { slot, row, state, .. } = self.session(key);
        let State::Restoring(restore) = state else { return };
        let (profile, known) = (self.profile_of(*slot), self.processes.known(&row.agent));
        let facts = Facts {
            agent: &row.agent,
            resumes: known.resumes(profile),
            loads: known.loads(profile),
            lists: known.lists(),
            // With a gap, any agent may still send the missing lines.
            late_replay: profile.late_replay || has_gap,
            has_servers: self.has_servers(key),
            too_young: profile
                .load_after
                .saturating_sub(self.cx.now.since(self.session(key).began)),
            timeout: match restore.step() {
                Step::Load if self.cx.now >= restore.cap => {
                    profile.restore_timeout.saturating_mul(REPLAY_TIMES)
                }
                _ => profile.restore_timeout,
            },
        };
        let (progress, next) = restore.progress.next(&facts, event);
        if let Some(restore) = self.sessions.restore_mut(key) {
            restore.progress = progress;
        }
        match next {
            Next::Ask(_) => self.ask_step(key, None),
            Next::AskPage(cursor) => self.ask_step(key, Some(cursor)),
            Next::Pause(time) => self.cx.timers.set(Timer::Restore(key), self.cx.now.after(time)),
            Next::Ripen(time) => {
                self.cx.timers.set(Timer::Restore(key), self.cx.now.after(time));
                let text = format!(
                    "the agent loses a session that is loaded soon after it began: acpd waits for {} (`load_after`)",
                    duration(time)
                );
                self.notice(key, "info", &text);
            }
            Next::Settle => {
                let now = self.cx.now;
                if let Some(restore) = self.sessions.restore_mut(key) {
                    restore.cap = now.after(QUIET_CAP);
                }
                self.cx.timers.set(Timer::Restore(key), now.after(QUIET));
            }
            Next::SetAgain => self.next_setting(key),
            Next::Lost(text) => self.session_is_lost(key, text),
            Next::Failed(reason, text) => self.restore_failed(key, reason, &text),
        }
    }

    pub(crate) fn ask_step_again(&mut self, key: SessionKey) {
        let is_asked = self.requests.restore_ask(key).is_some();
        let Some(restore) = self.sessions.restore_mut(key).filter(|_| !is_asked) else { return };
        match restore.step() {
            Step::Directory(_) | Step::Retry | Step::Settle => {}
            Step::Settings => self.next_setting(key),
            _ => self.ask_step(key, None),
        }
    }

    pub(crate) fn restore_answered(&mut self, key: SessionKey, outcome: Outcome<'_>) {
        let Some(step) = self.sessions.restore_mut(key).map(|restore| restore.step()) else {
            return;
        };
        if matches!(step, Step::Directory(_) | Step::Retry | Step::Settle) {
            // No request is open, and the timer belongs to the step.
            return;
        }
        self.cx.timers.clear(Timer::Restore(key));
        let result = match outcome {
            Outcome::Result(result) => result,
            Outcome::Error(error) => {
                let error = ErrorObject::from_raw(error);
                if let Some(restore) = self.sessions.restore_mut(key) {
                    restore.refused = Some(error.code);
                }
                let slot = self.session(key).slot;
                match self.note_refusal(slot, step.method(), &error) {
                    Refusal::Other => {}
                    Refusal::NeedsLogin => return self.session_needs_login(key, &error),
                    // The next process is asked the same, or this one after a login.
                    Refusal::Renewed => return,
                }
                if step == Step::Settings {
                    self.setting_failed(key, &in_words(&error), false);
                    return self.next_setting(key);
                }
                let code = error.code;
                let mut gone_errors = self.profile_of(slot).gone_errors.iter();
                let is_gone =
                    code == code::NOT_FOUND || gone_errors.any(|like| error.is_like(like));
                if code == code::METHOD_NOT_FOUND && !(step == Step::Load && is_gone) {
                    self.remember_lie(key, step);
                }
                let event = Event::Refused { code, is_gone, text: &in_words(&error) };
                return self.restore_goes_on(key, event);
            }
        };
        let event = match step {
            Step::List | Step::ListAll => {
                let page = SessionList::from_raw(result);
                let wanted = &self.session(key).row.agent_id;
                let is_there = page.sessions.iter().any(|session| session.session_id == *wanted);
                Event::Listed { is_there, more: page.next_cursor }
            }
            Step::New if !self.session_renewed(key, result) => return,
            Step::Settings => return self.setting_answered(key, result),
            _ => {
                self.sessions.session_mut(key).take_restored_values(&mut self.cx, result);
                Event::Accepted
            }
        };
        self.restore_goes_on(key, event);
    }

    fn remember_lie(&mut self, key: SessionKey, step: Step) {
        let agent = self.session(key).row.agent.clone();
        match step {
            Step::Resume => {
                self.processes.edit_known(&mut self.cx, &agent, |row| row.resume_lies = true);
            }
            Step::Load => {
                self.processes.edit_known(&mut self.cx, &agent, |row| row.load_lies = true);
            }
            Step::List | Step::ListAll => self.processes.known_mut(&agent).list_lies = true,
            _ => {}
        }
    }

    /// Returns the session that an agent has made, or why it cannot be used.
    pub(crate) fn made_in<'a>(
        &mut self,
        slot: SlotId,
        method: &str,
        result: &'a RawValue,
    ) -> Result<NewSessionResult<'a>, String> {
        let made = NewSessionResult::from_raw(result)
            .map_err(|error| format!("the agent's answer to `{method}` cannot be used: {error}"))?;
        if self.claim_id(slot, &made.session_id) {
            return Ok(made);
        }
        Err(format!("the agent gave the id `{}` to two sessions", made.session_id))
    }

    /// Returns whether the new session can be used.
    fn session_renewed(&mut self, key: SessionKey, result: &RawValue) -> bool {
        let slot = self.session(key).slot;
        let agent_id = match self.made_in(slot, "session/new", result) {
            Ok(made) => made.session_id.into_owned(),
            Err(text) => {
                self.restore_failed(key, Reason::AgentProtocol, &text);
                return false;
            }
        };
        let level = self.sessions.restore_mut(key).map(|restore| restore.progress.level);
        let row = self.session_mut(key).row.edit();
        row.agent_id.clone_from(&agent_id);
        row.replayable = Replayable::default();
        if level == Some(RestoreLevel::Reseeded) {
            // From now on a summary is owed, also by the next daemon.
            row.restore = level;
            row.heard = false;
        }
        self.session_mut(key).began = self.cx.now;
        self.sessions.route(key);
        self.cx.out.durable = true;
        if let Some(host) = self.processes[&slot].usable_host() {
            self.deliver_parked(Process { slot, host }, &agent_id);
        }
        true
    }

    /// Frees an id for a session that the agent has just made: a session to be restored under it is
    /// lost. Returns `false` if the process holds another session under the id.
    pub(crate) fn claim_id(&mut self, slot: SlotId, agent_id: &str) -> bool {
        let Some(other) = self.sessions.routed(slot, agent_id) else { return true };
        if self.sessions.is_held(slot, agent_id)
            || self.session(other).row.children.contains_key(agent_id)
        {
            return false;
        }
        self.give_up_restore(other);
        self.cx.timers.clear(Timer::Restore(other));
        let text = "the agent has given its id to another session";
        self.session_is_lost(other, text.to_owned());
        true
    }

    pub(crate) fn on_restore_timer(&mut self, key: SessionKey) {
        // A late setting leaves no lines of a replay behind.
        if self.sessions.restore_mut(key).is_some_and(|restore| restore.step() == Step::Settings) {
            self.give_up_restore_step(key);
            let time = duration(self.profile_of(self.session(key).slot).restore_timeout);
            self.setting_failed(key, &format!("the agent did not answer within {time}"), true);
            return self.next_setting(key);
        }
        self.give_up_restore(key);
        self.restore_goes_on(key, Event::Late);
    }

    fn session_is_lost(&mut self, key: SessionKey, reason: String) {
        let session = self.sessions.session_mut(key);
        let is_empty = !session.row.heard && !session.owes_summary();
        // Without output of the agent, there is nothing to lose.
        if is_empty && let State::Restoring(restore) = &mut session.state {
            restore.progress.step = Step::New;
            let text = format!(
                "the session begins anew: {reason}, and the first prompt was interrupted before any answer"
            );
            self.notice(key, "warning", &text);
            self.log_not_restored(key, "session lost, begins anew");
            self.sessions.unroute(key);
            return self.ask_step(key, None);
        }
        if self.profile_of(self.session(key).slot).on_lost == OnLost::Reseed {
            return self.reseed(key, reason);
        }
        self.session_mut(key).row.edit().restore = Some(RestoreLevel::Lost);
        self.tell_restored(key, RestoreLevel::Lost, Some(reason.clone()));
        self.make_dormant(key, Dormant::Lost, Some(reason));
        let fault = self.session(key).lost_fault();
        self.fail_queue(key, &fault);
    }

    pub(crate) fn restore_queued(&mut self) {
        for slot in self.sessions.places_freed() {
            if !self.processes.get(&slot).is_some_and(Slot::is_up) {
                continue;
            }
            for key in self.sessions.sessions_by_urgency(slot, |key| self.clients.is_attended(key))
            {
                if self.session(key).is_dormant() {
                    self.wake_session(key);
                    if self.sessions.keeps_places(key) {
                        break;
                    }
                }
            }
        }
    }
}
