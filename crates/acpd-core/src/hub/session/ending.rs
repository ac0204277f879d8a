//! The end of a session: closed, deleted for good, or set aside until its deletion can no longer be
//! undone. Everything open in it is closed first. The session leaves the table in the reaction to
//! `SessionEnded`, after its clients have seen that.

use acp_wire::build;
use acpd_api::{Reason, SessionGone, method};

use crate::event::EngineEvent;
use crate::fault::Fault;
use crate::hub::Hub;
use crate::hub::session::sessions::forget_journal;
use crate::ids::{SessionKey, Time};
use crate::mcp::client_servers::CallEnd;
use crate::mcp::server_list::lent;
use crate::record::{Dormant, Record};
use crate::session::table::Aside;
use crate::session::turn::Cancel;
use crate::session::{Session, State};
use crate::timers::Timer;

impl Hub {
    /// Frees the agent's copy; the session stays listed and returns with the next prompt.
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
            self.cx.timers.clear(Timer::Restore(key));
            self.make_dormant(key, Dormant::Closed, Some("closed".to_owned()));
        }
        self.check_idle(self.session(key).slot);
    }

    /// Deletes for good if wanted or nothing can be lost; else returns the end of the undo time.
    pub(crate) fn delete_for_person(&mut self, key: SessionKey, for_good: bool) -> Option<Time> {
        let is_kept = self.cx.config.keep_deleted > 0 && self.keeps_history(key);
        if for_good || !is_kept || self.session(key).is_unused() {
            self.delete_session(key);
            return None;
        }
        self.set_aside(key);
        Some(self.cx.now.after(self.cx.config.keep_deleted))
    }

    fn delete_session(&mut self, key: SessionKey) {
        let can_delete = self.processes.known(&self.session(key).row.agent).capabilities.delete;
        let farewell = if can_delete { "session/delete" } else { "session/close" };
        self.forget_session(key, farewell);
    }

    /// `farewell`: the request to a process that holds the session.
    pub(crate) fn forget_session(&mut self, key: SessionKey, farewell: &str) {
        self.end_session(key, farewell, None);
        self.cx.report(EngineEvent::SessionEnded { session: key, is_kept: false });
    }

    fn set_aside(&mut self, key: SessionKey) {
        let undo = format!("`acpctl session undo {}` brings it back", self.session(key).row.word());
        self.end_session(key, "session/close", Some(undo));
        self.cx.report(EngineEvent::SessionEnded { session: key, is_kept: true });
    }

    /// `undo`: a hint for clients how to restore the session.
    fn end_session(&mut self, key: SessionKey, farewell: &str, undo: Option<String>) {
        if matches!(self.session(key).state, State::Live) {
            self.cancel_running(key, Cancel::because("the session was deleted"), None);
            self.farewell(key, farewell);
        }
        self.give_up_restore(key);
        let mut gone = Fault::new(Reason::SessionRemoved, "the session was deleted")
            .session(&self.session(key).row.public_id);
        gone.data.hint = undo.map(Into::into);
        self.cancel_questions(self.questions.of_session(key));
        self.fail_queue(key, &gone);
        self.abandon_turn(key, &gone);
        self.sessions.unroute(key);
        self.end_children(key);
        self.services.on_session_deleted(&mut self.cx, key);
        let servers = lent(&self.session(key).servers());
        self.client_servers.on_call_end(&mut self.cx, &CallEnd::SessionDeleted(&servers));
        self.drop_terminals(key);
    }

    pub(crate) fn session_ended(&mut self, key: SessionKey, is_kept: bool) {
        let slot = self.session(key).slot;
        let own = [Timer::Restore, Timer::Cancel, Timer::Stall, Timer::Limit, Timer::Sleep];
        for timer in own.map(|timer| timer(key)) {
            self.cx.timers.clear(timer);
        }
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

    fn keep_aside(&mut self, session: Session) {
        let mut aside = Aside::from(session);
        let row = &mut aside.row;
        row.removed = Some(self.cx.now);
        row.host = None;
        if row.rest == Dormant::Parked {
            row.reason = None;
        }
        self.cx.record(Record::Session(Box::new(row.clone())));
        self.cx.out.durable = true;
        self.sessions.keep_aside(aside);
        let until = self.cx.now.after(self.cx.config.keep_deleted);
        self.cx.timers.advance(Timer::Lifecycle, until);
    }
}
