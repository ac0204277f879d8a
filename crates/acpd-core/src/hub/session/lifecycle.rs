//! The end of sessions without a person; [`crate::session::lifecycle`] has the diagram.

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

/// The time to the next look if one is older and still open, or may be open in a client that is away, or if its agent
/// does not run (ms).
const PAUSE: u64 = 10 * 60_000;

impl Hub {
    /// Deletes a session that was just closed, if its conversation is not kept. What the agent keeps of it is left to
    /// the agent.
    pub(crate) fn forget_unless_kept(&mut self, key: SessionKey) {
        if !self.keeps_history(key) {
            self.forget_session(key, "session/close");
        }
    }

    /// Refuses to put away what is not kept.
    pub(crate) fn can_archive(&self, key: SessionKey) -> Result<(), Fault> {
        if self.keeps_history(key) {
            return Ok(());
        }
        let row = &self.session(key).row;
        let text = format!("conversations of agent `{}` are not kept", row.agent);
        let fault = Fault::invalid(text).session(&row.public_id);
        Err(fault.hint("`persist_history = false` of the configuration says so; close the session to delete it"))
    }

    /// Returns whether a list for this client has the session: an unused one is listed to its maker, and while a client
    /// has it open.
    pub(crate) fn lists(&self, client: ClientId, key: SessionKey) -> bool {
        let session = self.session(key);
        let is_its_own = || self.clients.get(&client).is_some_and(|of| of.made.contains(&key));
        !session.is_unused() || self.clients.is_attended(key) || is_its_own()
    }

    /// Looks when this session may be gone.
    pub(crate) fn watch_life(&mut self, key: SessionKey) {
        if let Some(at) = self.look_for(self.session(key)) {
            self.cx.timers.advance(Timer::Lifecycle, at);
        }
    }

    /// Looks when the first one may be gone; for deleted ones not before `earliest`.
    pub(crate) fn watch_lives(&mut self, earliest: Time) {
        let own = self.sessions.values().filter_map(|session| self.look_for(session));
        let deleted = self.sessions.aside().filter_map(|row| {
            Some(deleted_gone_at(row.removed?, self.cx.config.keep_deleted, false).max(earliest))
        });
        if let Some(first) = own.chain(deleted).min() {
            self.cx.timers.advance(Timer::Lifecycle, first);
        }
    }

    fn look_for(&self, session: &Session) -> Option<Time> {
        let is_kept = self.profile_of(session.slot).persist_history;
        // One that is not kept may be closed at any time.
        let gone = if is_kept { session.gone_at(true)? } else { self.cx.now };
        Some(gone.max(self.cx.now.after(PAUSE)))
    }

    /// Forgets what can no longer be brought back, after [`Hub::end_unused`] and its reactions.
    pub(crate) fn on_lifecycle_timer(&mut self) {
        self.end_deleted();
        self.watch_lives(self.cx.now.after(PAUSE));
    }

    /// Forgets sessions that were never used. The agent keeps its copy, which may have been used without acpd.
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
            let waits = self.is_told(row) && self.teller(row).is_none();
            let keep = self.cx.config.keep_deleted;
            row.removed.is_some_and(|at| deleted_gone_at(at, keep, waits) <= self.cx.now)
        };
        let gone: Vec<SessionKey> =
            self.sessions.aside().filter(is_over).map(|row| row.key).collect();
        for key in gone {
            let Some(Aside { row, .. }) = self.sessions.take_from_aside(key) else { continue };
            if let Some((slot, host)) = self.teller(&row).filter(|_| self.is_told(&row)) {
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

    /// Returns whether to ask the agent to delete its copy: it can, and no other session of acpd is
    /// that copy.
    fn is_told(&self, row: &SessionRow) -> bool {
        let is_it = |other: &SessionRow| other.agent == row.agent && other.agent_id == row.agent_id;
        self.processes.known(&row.agent).capabilities.delete
            && !self.sessions.values().any(|session| is_it(&session.row))
    }

    /// A process of its agent, if one runs.
    fn teller(&self, row: &SessionRow) -> Option<(SlotId, HostId)> {
        let mut slots = self.processes.of_profile(&row.agent).into_iter();
        slots.find_map(|slot| Some((slot, self.processes[&slot].usable_host()?)))
    }
}
