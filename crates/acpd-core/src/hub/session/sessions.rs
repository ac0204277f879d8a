//! The states of a session.
//!
//! ```text
//!  session/new ─▶ Live ◀───────────────── restored ──────────────┐
//!                  │ process gone                                 │
//!                  ▼              needed, process usable          │
//!                Parked ───────────────────────────────────▶ Restoring
//!                  ▲  ▲                                        │  │  │
//!                  │  └──── process gone, error that may pass ─┘  │  │
//!                  │ login                       -32000           │  │
//!               Blocked ◀─────────────────────────────────────────┘  │
//!                Closed ── prompt ─▶ Parked      the agent no longer │
//!                 Lost  ◀───────────────────────── has it ───────────┘
//! ```
//!
//! Architecture invariant: only [`State::Live`] sessions get prompts, and a session that cannot be
//! restored is never replaced by a fresh one, except when it never had a prompt.
//!
//! A turn that was cut off with its process continues if the configuration says so.

use acp_wire::bound::SENTENCE;
use acp_wire::clipped;
use acpd_api::Reason;
use serde_json::json;

use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::SessionKey;
use crate::profile::OnInterrupted;
use crate::record::{Dormant, EventKind, Purpose};
use crate::session::State;
use crate::timers::Timer;

impl Hub {
    pub(crate) fn make_dormant(&mut self, key: SessionKey, rest: Dormant, reason: Option<String>) {
        self.sessions.unroute(key);
        // A process that continues waits for the answers to its subagents' questions.
        self.cancel_questions(self.questions.of_session(key));
        self.end_children(key);
        self.end_background(key);
        self.drop_terminals(key);
        let failed = match rest {
            Dormant::Parked | Dormant::Closed => None,
            Dormant::NeedsLogin => Some("session needs a login"),
            Dormant::Lost => Some("session lost"),
            Dormant::Failed => Some("session not restored"),
            Dormant::NoDirectory => Some("directory of the session missing"),
        };
        if let Some(failed) = failed {
            self.log_not_restored(key, failed);
        }
        let session = self.session_mut(key);
        session.state = State::Dormant;
        let row = session.row.edit();
        row.host = None;
        row.rest = rest;
        row.reason = reason.map(|reason| clipped(&reason, SENTENCE));
        if rest != Dormant::Parked {
            session.eager = false;
        }
        self.tell_state(key);
    }

    pub(crate) fn log_not_restored(&mut self, key: SessionKey, what: &str) {
        let session = self.session(key);
        let code = session.restore().and_then(|restore| restore.refused);
        self.log_failure(session.slot, Some(key), what, code);
    }

    /// This process may still replay, so none of its later replays counts as news.
    pub(crate) fn give_up_restore(&mut self, key: SessionKey) {
        if self.give_up_restore_step(key) {
            let host = self.processes[&self.session(key).slot].usable_host();
            self.session_mut(key).doubtful = host;
        }
    }

    /// The reason is temporary: the next prompt tries again.
    pub(crate) fn restore_failed(&mut self, key: SessionKey, reason: Reason, text: &str) {
        self.make_dormant(key, Dormant::Failed, Some(text.to_owned()));
        let session = self.session(key);
        let id = &session.row.public_id;
        let way_out = session.way_out().unwrap_or_default();
        let fault = Fault::new(reason, format!("session `{id}` could not be restored: {text}"))
            .session(id)
            .hint(format!("its history is intact; {way_out}"));
        self.fail_queue(key, &fault);
    }

    pub(crate) fn farewell(&mut self, key: SessionKey, name: &str) {
        let session = self.session(key);
        let (slot, id) = (session.slot, session.row.agent_id.clone());
        let capabilities = &self.processes.known(&session.row.agent).capabilities;
        let offered =
            if name == "session/delete" { capabilities.delete } else { capabilities.close };
        if offered {
            self.request(slot, Purpose::Farewell, name, &json!({ "sessionId": id }));
        }
    }

    pub(crate) fn session_lost_host(&mut self, key: SessionKey, fault: &Fault) {
        let slot = self.session(key).slot;
        let again = self.processes.restarts_by_itself(slot, &self.cx.config);
        let was_live = match self.session(key).state {
            State::Live => true,
            State::Restoring(_) => false,
            State::Dormant => {
                // After an orderly end, the next process restores the session.
                if self.processes.has_failed(slot) && !again {
                    self.session_mut(key).eager = false;
                }
                return;
            }
        };
        self.cx.timers.clear(Timer::Restore(key));
        self.sessions.unroute(key);
        // No process is left to answer.
        self.close_questions(self.questions.of_session(key));
        let row = &self.sessions[&key].row;
        let updates = self.services.end_mirrors(&mut self.cx, row, "ended with the agent");
        for line in updates {
            self.append(key, EventKind::Update, line, None);
        }
        self.close_tools(key);
        let goes_on = again && self.should_continue(key);
        self.interrupt_turn(key, fault);
        if goes_on {
            self.queue_continue(key, None);
            let text = "acpd asks the agent to continue (`on_interrupted = \"continue\"`)";
            self.notice(key, "info", text);
        }
        // Work that waits for fresh credentials continues with the next process.
        if !self.processes[&slot].is_renewed() {
            self.refuse_relayed(key, fault);
        }
        let session = self.session_mut(key);
        // A session that owes a summary starts over with a prompt only.
        session.eager = again && (was_live || session.eager) && !session.owes_summary();
        // A restore without a login would be refused again.
        let (rest, reason) = if session.waits_for_login() {
            (Dormant::NeedsLogin, session.row.reason.clone())
        } else {
            (Dormant::Parked, Some(fault.message.clone()))
        };
        self.make_dormant(key, rest, reason);
    }

    fn should_continue(&self, key: SessionKey) -> bool {
        let session = self.session(key);
        let on = self.profile_of(session.slot).on_interrupted == OnInterrupted::Continue;
        let Some(running) = session.running.as_ref().filter(|_| on) else { return false };
        // Asked only once. A turn that the user has cancelled or followed up, or that the agent may
        // not have read, is left to the user, too.
        let by_itself = !running.work.is_cancelled() && !running.continues;
        by_itself
            && session.queue.is_empty()
            && !self.processes.is_undecided(session.slot, running.chunk, running.message.is_some())
    }

    /// Counts a restore during which the agent ended, although its run was no failure. Else a
    /// session that always ends its agent would restart it for ever. Of several restores at once,
    /// only some may be at fault, so none is given up before it failed alone.
    pub(crate) fn load_cut_off(&mut self, key: SessionKey, was_alone: bool) {
        let most = self.profile_of(self.session(key).slot).restart.budget;
        let session = self.session_mut(key);
        session.loads_cut_off += 1;
        let times = session.loads_cut_off;
        if was_alone && times >= most {
            session.loads_cut_off = 0;
            let text = format!("the agent has ended {times} times in a row while it loaded it");
            self.restore_failed(key, Reason::AgentCrashLoop, &text);
        }
    }
}
