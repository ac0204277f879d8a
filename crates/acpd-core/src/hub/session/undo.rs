//! Sessions that a person has deleted, with `acpctl` or in an editor, until they are gone for good: in no list, with
//! names that others may take, and brought back by `_acpd/session/undo`.
//!
//! ```text
//!  session ── delete ──▶ kept aside ── undo ─▶ session, without a process
//!     │                      └──────── its time is over ─▶ gone, also from its agent once that runs
//!     └────── delete, now ─▶ gone
//! ```
//!
//! Architecture invariant: an agent is asked to delete a session only when nothing can bring it back any more.

use acp_wire::{Id, build};
use acpd_api::{RemoveParams, RemoveResult, UndoParams, UndoResult};
use serde_json::json;

use crate::clients::{Asked, Served};
use crate::hub::Hub;
use crate::hub::session::sessions::forget_journal;
use crate::ids::{HostId, SessionKey, SlotId, Time};
use crate::input::Batch;
use crate::params::read;
use crate::record::{Dormant, Record, SessionRow};
use crate::requests::purpose::Purpose;
use crate::session::table::Aside;
use crate::timers::Timer;

/// Time between two looks for an agent that has to be told (ms).
const PAUSE: u64 = 10 * 60_000;

impl Hub {
    pub(crate) fn session_remove(&mut self, asked: Asked<'_>, out: &mut Batch) -> Served {
        let RemoveParams { session, now } = read(asked.params)?;
        let key = self.resolve(&session)?;
        let until = self.delete_for_person(key, now, out);
        self.answer(asked.to, &RemoveResult { until: until.map(|until| until.0) }, out);
        Ok(())
    }

    /// Deletes a session for good if that is wanted or nothing can be lost; else it is kept aside. Until when, if
    /// so.
    pub(crate) fn delete_for_person(
        &mut self,
        key: SessionKey,
        for_good: bool,
        out: &mut Batch,
    ) -> Option<Time> {
        let is_kept = self.config.keep_deleted > 0 && self.keeps_history(key);
        if for_good || !is_kept || self.session(key).is_unused() {
            self.delete_session(key, out);
            return None;
        }
        self.set_aside(key, out);
        Some(self.now.after(self.config.keep_deleted))
    }

    fn set_aside(&mut self, key: SessionKey, out: &mut Batch) {
        let slot = self.session(key).slot;
        let undo = format!("`acpctl session undo {}` brings it back", self.session(key).row.word());
        self.end_session(key, "session/close", Some(undo), out);
        if let Some(session) = self.sessions.remove(key) {
            let mut aside = Aside::from(session);
            let row = &mut aside.row;
            row.removed = Some(self.now);
            row.host = None;
            if row.rest == Dormant::Parked {
                row.reason = None;
            }
            out.records.push(Record::Session(Box::new(row.clone())));
            out.durable = true;
            self.sessions.keep_aside(aside);
        }
        self.check_idle(slot, out);
        self.remove_unused_slot(slot);
        self.watch_aside(self.now);
    }

    pub(crate) fn session_undo(&mut self, asked: Asked<'_>, out: &mut Batch) -> Served {
        let wanted: UndoParams = read(asked.params)?;
        let key = self.sessions.find_aside(&wanted)?;
        let Some(aside) = self.sessions.take_from_aside(key) else { return Ok(()) };
        let agent = aside.row.agent.clone();
        let mut session = aside.back(self.slot_for(key, &agent));
        let row = session.row.edit();
        row.removed = None;
        row.updated = self.now;
        let (cwd, name) = (row.cwd.clone(), row.name.clone());
        let name = name.filter(|name| self.name_is_free(&agent, &cwd, name, None).is_err());
        if name.is_some() {
            row.name = None;
        }
        out.durable = true;
        self.sessions.insert(session);
        // The row is marked as changed; what is looked at is what was touched.
        self.session_mut(key);
        let kept = self.sessions.aside_of(&wanted).count() as u32;
        let (session, name_taken) = (self.session_info(key), name.map(Into::into));
        let result = UndoResult { session, name_taken, kept };
        self.answer(asked.to, &result, out);
        Ok(())
    }

    /// Looks when the time of the first one is over, and not before this time.
    pub(crate) fn watch_aside(&mut self, earliest: Time) {
        let over = self.sessions.aside().filter_map(|row| self.kept_aside_until(row, 1));
        if let Some(first) = over.min() {
            self.timers.set(Timer::Aside, first.max(earliest));
        }
    }

    /// Those whose time is over go when their agent can be told, and without that after as much time again.
    pub(crate) fn on_aside_timer(&mut self, out: &mut Batch) {
        let is_over = |row: &SessionRow, times| {
            self.kept_aside_until(row, times).is_some_and(|at| at <= self.now)
        };
        let goes = |row: &&SessionRow| {
            is_over(row, 2) || is_over(row, 1) && (self.teller(row).is_some() || !self.is_told(row))
        };
        let gone: Vec<SessionKey> = self.sessions.aside().filter(goes).map(|row| row.key).collect();
        for key in gone {
            let Some(Aside { row, .. }) = self.sessions.take_from_aside(key) else { continue };
            if let Some((slot, host)) = self.teller(&row).filter(|_| self.is_told(&row)) {
                let ask = Id::issued(self.ask(host, Purpose::Farewell, out));
                let params = json!({ "sessionId": row.agent_id });
                self.host_write(slot, build::request(&ask, "session/delete", &params), out);
            }
            self.forget_keys(key);
            forget_journal(key, out);
        }
        // Those that are left wait for their agents.
        self.watch_aside(self.now.after(PAUSE));
    }

    /// When its time, or a multiple of that, is over.
    fn kept_aside_until(&self, row: &SessionRow, times: u64) -> Option<Time> {
        Some(row.removed?.after(self.config.keep_deleted.saturating_mul(times)))
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
