//! Sessions that end without a user; [`crate::session::lifecycle`] has the diagram.

use acp_wire::{Id, build};
use serde_json::json;

use crate::fault::Fault;
use crate::hub::Hub;
use crate::hub::session::sessions::forget_journal;
use crate::ids::{ClientId, HostId, SessionKey, SlotId, Time};
use crate::record::SessionRow;
use crate::requests::purpose::Purpose;
use crate::session::Session;
use crate::session::lifecycle::deleted_gone_at;
use crate::session::table::Aside;
use crate::timers::Timer;

/// Time to the next look if a due session cannot end yet: it is open, or its agent is down (ms).
const PAUSE: u64 = 10 * 60_000;

impl Hub {
    /// Deletes a closed session whose history is not kept. The agent decides about its copy.
    pub(crate) fn forget_unless_kept(&mut self, key: SessionKey) {
        if !self.keeps_history(key) {
            self.forget_session(key, "session/close");
        }
    }

    pub(crate) fn can_archive(&self, key: SessionKey) -> Result<(), Fault> {
        if self.keeps_history(key) {
            return Ok(());
        }
        let row = &self.session(key).row;
        let text = format!("conversations of agent `{}` are not kept", row.agent);
        let fault = Fault::invalid(text).session(&row.public_id);
        Err(fault.hint("`persist_history = false` of the configuration says so; close the session to delete it"))
    }

    /// An unused session is listed only to its maker, and while a client has it open.
    pub(crate) fn is_listed_for(&self, client: ClientId, key: SessionKey) -> bool {
        let session = self.session(key);
        let is_its_own = || self.clients.get(&client).is_some_and(|of| of.made.contains(&key));
        !session.is_unused() || self.clients.is_attended(key) || is_its_own()
    }

    pub(crate) fn arm_lifecycle_for(&mut self, key: SessionKey) {
        if let Some(at) = self.next_look(self.session(key)) {
            self.cx.timers.advance(Timer::Lifecycle, at);
        }
    }

    /// Arms the timer for the first session that may end; deleted ones not before `earliest`.
    pub(crate) fn arm_lifecycle(&mut self, earliest: Time) {
        let own = self.sessions.values().filter_map(|session| self.next_look(session));
        let deleted = self.sessions.aside().filter_map(|row| {
            Some(deleted_gone_at(row.removed?, self.cx.config.keep_deleted, false).max(earliest))
        });
        if let Some(first) = own.chain(deleted).min() {
            self.cx.timers.advance(Timer::Lifecycle, first);
        }
    }

    fn next_look(&self, session: &Session) -> Option<Time> {
        let is_kept = self.profile_of(session.slot).persist_history;
        // One that is not kept may be closed at any time.
        let gone = if is_kept { session.gone_at(true)? } else { self.cx.now };
        Some(gone.max(self.cx.now.after(PAUSE)))
    }

    /// Call after [`Hub::end_unused`] and its reactions.
    pub(crate) fn on_lifecycle_timer(&mut self) {
        self.end_deleted();
        self.arm_lifecycle(self.cx.now.after(PAUSE));
    }

    /// Forgets sessions that were never used. The agent keeps its copy, which others may have used.
    pub(crate) fn end_unused(&mut self) {
        // A client that is away may have any session open.
        if self.clients.are_awaited() {
            return;
        }
        let is_over = |session: &Session| {
            let is_kept = self.profile_of(session.slot).persist_history;
            session.gone_at(is_kept).is_some_and(|at| at <= self.cx.now)
        };
        let over = self.sessions.iter().filter(|(_, session)| is_over(session));
        let over: Vec<SessionKey> = over.map(|(key, _)| *key).collect();
        for key in over {
            if !self.is_in_use(key) {
                self.forget_session(key, "session/close");
            }
        }
    }

    fn end_deleted(&mut self) {
        let is_over = |row: &&SessionRow| {
            let waits = self.deletes_copy(row) && self.process_of(row).is_none();
            let keep = self.cx.config.keep_deleted;
            row.removed.is_some_and(|at| deleted_gone_at(at, keep, waits) <= self.cx.now)
        };
        let gone: Vec<SessionKey> =
            self.sessions.aside().filter(is_over).map(|row| row.key).collect();
        for key in gone {
            let Some(Aside { row, .. }) = self.sessions.take_from_aside(key) else { continue };
            if let Some((slot, host)) = self.process_of(&row).filter(|_| self.deletes_copy(&row)) {
                let ask = Id::issued(self.ask(host, Purpose::Farewell));
                let params = json!({ "sessionId": row.agent_id });
                self.processes.write(
                    &mut self.cx,
                    slot,
                    build::request(&ask, "session/delete", &params),
                );
            }
            self.forget_keys(key);
            forget_journal(&mut self.cx, key);
        }
    }

    /// Returns `false` if another session of acpd has the same copy.
    fn deletes_copy(&self, row: &SessionRow) -> bool {
        let is_it = |other: &SessionRow| other.agent == row.agent && other.agent_id == row.agent_id;
        self.processes.known(&row.agent).capabilities.delete
            && !self.sessions.values().any(|session| is_it(&session.row))
    }

    fn process_of(&self, row: &SessionRow) -> Option<(SlotId, HostId)> {
        let mut slots = self.processes.of_profile(&row.agent).into_iter();
        slots.find_map(|slot| Some((slot, self.processes[&slot].usable_host()?)))
    }
}
