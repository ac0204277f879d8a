//! One session: a conversation with an agent, whether or not a process holds it.
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

use acp_wire::bound::SENTENCE;
use acp_wire::{build, clipped};
use acpd_api::{Reason, SessionGone, SessionInfo, method};
use serde_json::json;

use crate::cx::Cx;
use crate::event::EngineEvent;
use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{SessionKey, SlotId};
use crate::input::Effect;
use crate::mcp::client_servers::CallEnd;
use crate::mcp::server_list::lent;
use crate::record::{Dormant, Record};
use crate::requests::purpose::Purpose;
use crate::session::turn::Cancel;
use crate::session::{Session, State};
use crate::timers::Timer;

impl Hub {
    pub(crate) fn session_info(&self, key: SessionKey) -> SessionInfo {
        let session = self.session(key);
        let host = self.processes[&session.slot]
            .host()
            .filter(|_| !matches!(session.state, State::Dormant));
        SessionInfo {
            pid: host.and_then(|host| host.pid),
            ..session.info(self.questions.waiting(key), self.clients.count_at(key))
        }
    }

    /// Returns whether the process must not be stopped for idleness.
    pub(crate) fn is_in_use(&self, key: SessionKey) -> bool {
        let session = self.session(key);
        let busy = session.running.is_some() || matches!(session.state, State::Restoring(_));
        busy || self.sessions.wants_host(key)
            || self.questions.are_open(key)
            || self.clients.is_attended(key)
            || session.has_busy_child()
    }

    /// Leaves a session without a process, for a reason.
    pub(crate) fn make_dormant(&mut self, key: SessionKey, rest: Dormant, reason: Option<String>) {
        self.sessions.unroute(key);
        // A process that runs on waits for the answers to what its subagents asked.
        self.cancel_questions(self.questions.of_session(key));
        self.end_children(key);
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

    pub(crate) fn set_live(&mut self, key: SessionKey) {
        let (host, now) = (self.processes[&self.session(key).slot].usable_host(), self.cx.now);
        let session = self.session_mut(key);
        session.state = State::Live;
        session.held_since = now;
        session.eager = false;
        let row = session.row.edit();
        row.host = host;
        row.rest = Dormant::Parked;
        row.reason = None;
        row.usage.counter.moved();
        self.watch_sleep(self.session(key).slot);
        self.tell_state(key);
    }

    /// Deletes a session of acpd for good; a process that holds it is told `farewell`.
    pub(crate) fn forget_session(&mut self, key: SessionKey, farewell: &str) {
        self.end_session(key, farewell, None);
        self.cx.report(EngineEvent::SessionEnded { session: key, is_kept: false });
    }

    /// Ends a session for all clients; a process that holds it gets `farewell`. `undo`: data for
    /// its restore, if it can be restored.
    pub(crate) fn end_session(&mut self, key: SessionKey, farewell: &str, undo: Option<String>) {
        if matches!(self.session(key).state, State::Live) {
            self.cancel_running(key, Cancel::because("the session was deleted"), None);
            self.farewell(key, farewell);
        }
        self.give_up_restore(key);
        let mut gone = Fault::new(acpd_api::Reason::SessionRemoved, "the session was deleted")
            .session(&self.session(key).row.public_id);
        gone.data.hint = undo.map(Into::into);
        self.cancel_questions(self.questions.of_session(key));
        self.fail_queue(key, &gone);
        self.abandon_turn(key, &gone);
        self.sessions.unroute(key);
        self.end_children(key);
        self.services.on_session_deleted(&mut self.cx, key);
        let servers = lent(&self.session(key).servers());
        self.end_server_calls(&CallEnd::SessionDeleted(&servers));
        self.drop_terminals(key);
    }

    /// All that was open in a session is closed: takes it out of the table.
    pub(crate) fn session_ended(&mut self, key: SessionKey, is_kept: bool) {
        let slot = self.session(key).slot;
        let own = [Timer::Restore, Timer::Cancel, Timer::Stall, Timer::Limit, Timer::Sleep];
        for timer in own.map(|timer| timer(key)) {
            self.cx.timers.clear(timer);
        }
        self.give_up_restore(key);
        let gone = SessionGone { session_id: self.session(key).row.public_id.clone().into() };
        let line = build::notification(method::SESSION_REMOVED, &gone);
        self.clients.tell_attached(&mut self.cx, key, &line);
        for client in self.clients.at(key).collect::<Vec<_>>() {
            self.detach(client, key);
        }
        match self.sessions.remove(key) {
            Some(session) if is_kept => self.keep_aside(session),
            _ => {
                self.forget_keys(key);
                forget_journal(&mut self.cx, key);
            }
        }
        self.check_idle(slot);
        self.cx.report(EngineEvent::SlotFreed(slot));
    }

    /// Logs that a session could not be restored, with the code of the agent's refusal if there was one.
    pub(crate) fn log_not_restored(&mut self, key: SessionKey, what: &str) {
        let Session { state, slot, .. } = self.session(key);
        let code = match state {
            State::Restoring(restore) => restore.refused,
            _ => None,
        };
        self.log_failure(*slot, Some(key), what, code);
    }

    /// Stops waiting for a restore. What this process still replays for it cannot be told from what
    /// it replays for the next one, so no later replay of it counts as news.
    pub(crate) fn give_up_restore(&mut self, key: SessionKey) {
        if self.give_up_restore_step(key) {
            let host = self.processes[&self.session(key).slot].usable_host();
            self.session_mut(key).doubtful = host;
        }
    }

    /// The restore failed for a temporary reason: the next prompt tries again.
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

    /// Sets the timers of the live sessions of a process.
    pub(crate) fn watch_sleep(&mut self, slot: SlotId) {
        let timeout = self.profile_of(slot).session_idle_timeout;
        if timeout == 0 {
            return;
        }
        for key in self.sessions.of_slot(slot) {
            let is_live = matches!(self.session(key).state, State::Live);
            if is_live && !self.cx.timers.is_set(Timer::Sleep(key)) {
                self.cx.timers.set(Timer::Sleep(key), self.cx.now.after(timeout));
            }
        }
    }

    /// Frees the agent's copy of a session; it stays listed and comes back with the next prompt.
    pub(crate) fn close_session(&mut self, key: SessionKey) {
        let live = matches!(self.session(key).state, State::Live);
        let restoring = matches!(self.session(key).state, State::Restoring(_));
        let closed = Fault::new(Reason::SessionBlocked, "the session was closed");
        self.take_back_steers(key);
        self.cancel_running(key, Cancel::because("the session was closed"), None);
        self.abandon_turn(key, &closed);
        self.give_up_restore(key);
        self.cancel_questions(self.questions.of_session(key));
        self.fail_queue(key, &closed);
        if live {
            self.farewell(key, "session/close");
        }
        if live || restoring || self.session(key).row.rest == Dormant::Parked {
            self.cx.timers.clear(crate::timers::Timer::Restore(key));
            self.make_dormant(key, Dormant::Closed, Some("closed".to_owned()));
        }
        self.check_idle(self.session(key).slot);
    }

    /// Deletes a session, also the agent's copy if the process that holds it can.
    pub(crate) fn delete_session(&mut self, key: SessionKey) {
        let can_delete = self.processes.known(&self.session(key).row.agent).capabilities.delete;
        let farewell = if can_delete { "session/delete" } else { "session/close" };
        self.forget_session(key, farewell);
    }

    /// Tells the agent that a session is over, if it wants to know.
    pub(crate) fn farewell(&mut self, key: SessionKey, name: &str) {
        let session = self.session(key);
        let (slot, id) = (session.slot, session.row.agent_id.clone());
        let capabilities = &self.processes.known(&session.row.agent).capabilities;
        let offered =
            if name == "session/delete" { capabilities.delete } else { capabilities.close };
        let Some(host) = self.processes[&slot].usable_host().filter(|_| offered) else { return };
        let ask = self.ask(host, Purpose::Farewell);
        let line = build::request(&acp_wire::Id::issued(ask), name, &json!({ "sessionId": id }));
        self.processes.write(&mut self.cx, slot, line);
    }
}

/// Nothing is left on disk of a session.
pub(crate) fn forget_journal(cx: &mut Cx, key: SessionKey) {
    cx.record(Record::SessionRemoved { session: key });
    cx.send(Effect::Index(key));
}
