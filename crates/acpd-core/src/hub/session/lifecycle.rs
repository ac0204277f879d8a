//! Life of a session, and its automatic end.
//!
//! ```text
//!             archive
//!  active ◀────────────▶ archived
//!    │  ▲                    │
//!    │  │ undo               │ the user, or a configured limit
//!    ├──┼────────────────────┴─▶ deleted: in no list, and the name is free
//!    │  └────────────────────────────┤
//!    │ unused for a day,             │ time for undo is over
//!    │ or closed and not kept        ▼
//!    └────────────────────────────▶ gone
//! ```
//!
//! Editors make a session per window, and most stay empty: these are unused. A client with the id
//! of an unused session can still use it.
//!
//! The archive is acpd's own, so every agent has one; the agent only sees that the session is
//! closed. A client that opens an archived session reads it, and wakes no agent. A prompt, or work
//! that needs the agent, takes the session out of the archive.
//!
//! A session that ends is closed, deleted for good, or set aside until its deletion can no longer
//! be undone. Everything open in it is closed first. The session leaves the table in the reaction
//! to `SessionEnded`, after its clients have seen that.
//!
//! Architecture invariant: no agent holds an archived session, and acpd asks an agent to delete one
//! only when nothing can restore it.

use acp_wire::build;
use acpd_api::{Reason, RemoveParams, RemoveResult, SessionGone, UndoParams, UndoResult, method};
use serde_json::json;

use crate::clients::Served;
use crate::event::EngineEvent;
use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{ClientId, SessionKey, SlotId, Time};
use crate::input::Effect;
use crate::mcp::client_servers::CallEnd;
use crate::mcp::lent;
use crate::record::{Dormant, Purpose, Record, Row, SessionRow, SessionState};
use crate::session::turn::Cancel;
use crate::session::{Session, State};
use crate::timers::Timer;

/// Lifetime of an unused session (ms).
const KEPT: u64 = 24 * 60 * 60_000;

/// Time to the next look if a due session cannot end yet: it is open, or its agent is down (ms).
const PAUSE: u64 = 10 * 60_000;

impl Hub {
    /// `of`: a client that leaves the session.
    pub(crate) fn archive_for(&mut self, of: Option<ClientId>, key: SessionKey) -> Served {
        if !self.keeps_history(key) {
            let row = &self.session(key).row;
            let text = format!("conversations of agent `{}` are not kept", row.agent);
            let fault = Fault::invalid(text).session(&row.public_id);
            return Err(fault.hint("`persist_history = false` of the configuration says so; close the session to delete it"));
        }
        if let Some(client) = of {
            self.detach(client, key);
        }
        self.set_archived(key, true);
        Ok(())
    }

    pub(crate) fn set_archived(&mut self, key: SessionKey, archived: bool) {
        if archived {
            self.close_session(key);
            // A session that waits for a login would return from the archive after it.
            if !matches!(self.session(key).row.rest, Dormant::Closed | Dormant::Lost) {
                self.make_dormant(key, Dormant::Closed, Some("closed".to_owned()));
            }
        }
        let row = &mut self.session_mut(key).row;
        if row.archived != archived {
            row.edit().archived = archived;
            self.tell_state(key);
        }
    }

    /// Frees the agent's copy; the session stays listed and returns with the next prompt.
    pub(crate) fn close_session(&mut self, key: SessionKey) {
        let live = self.session(key).is_live();
        let restoring = self.session(key).is_restoring();
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

    /// Deletes a closed session whose history is not kept. The agent decides about its copy.
    pub(crate) fn forget_unless_kept(&mut self, key: SessionKey) {
        if !self.keeps_history(key) {
            self.end_session(key, "session/close", false);
        }
    }

    pub(crate) fn session_remove(&mut self, params: RemoveParams) -> Result<RemoveResult, Fault> {
        let key = self.resolve(&params.session)?;
        let until = self.delete_for_person(key, params.now);
        Ok(RemoveResult { until: until.map(|until| until.0) })
    }

    /// Deletes for good if wanted or nothing can be lost; else returns the end of the undo time.
    pub(crate) fn delete_for_person(&mut self, key: SessionKey, for_good: bool) -> Option<Time> {
        let keep = self.cx.config.keep_deleted;
        let can_keep = keep > 0 && self.keeps_history(key);
        let is_kept = can_keep && !for_good && !self.session(key).is_unused();
        let can_delete = self.processes.known(&self.session(key).row.agent).capabilities.delete;
        let deletes = can_delete && !is_kept;
        self.end_session(key, if deletes { "session/delete" } else { "session/close" }, is_kept);
        is_kept.then(|| self.cx.now.after(keep))
    }

    /// `farewell`: the request to a process that holds the session. `is_kept`: the session can be
    /// restored.
    fn end_session(&mut self, key: SessionKey, farewell: &str, is_kept: bool) {
        if self.session(key).is_live() {
            self.cancel_running(key, Cancel::because("the session was deleted"), None);
            self.farewell(key, farewell);
        }
        self.give_up_restore(key);
        let row = &self.session(key).row;
        let text = "the session was deleted";
        let mut gone = Fault::new(Reason::SessionRemoved, text).session(&row.public_id);
        if is_kept {
            gone = gone.hint(format!("`acpctl session undo {}` brings it back", row.word()));
        }
        self.cancel_questions(self.questions.of_session(key));
        self.fail_queue(key, &gone);
        self.abandon_turn(key, &gone);
        self.sessions.unroute(key);
        self.end_children(key);
        self.end_background(key);
        self.services.on_session_deleted(&mut self.cx, key);
        let servers = lent(&self.session(key).servers());
        self.client_servers.on_call_end(&mut self.cx, &CallEnd::SessionDeleted(&servers));
        self.drop_terminals(key);
        self.cx.report(EngineEvent::SessionEnded { session: key, is_kept });
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
            Some(session) if is_kept => self.keep_aside(*session),
            _ => self.forget_session(key),
        }
        self.check_idle(slot);
        self.cx.report(EngineEvent::SlotFreed(slot));
    }

    fn keep_aside(&mut self, session: Session) {
        let Session { row, head, mcp_servers, doubtful, .. } = session;
        let mut row = SessionRow::clone(&row);
        row.removed = Some(self.cx.now);
        row.host = None;
        if row.rest == Dormant::Parked {
            row.reason = None;
        }
        self.cx.put(Row::Session(Box::new(row.clone())));
        self.cx.out.durable = true;
        self.sessions.keep_aside(SessionState { row, head, mcp_servers }, doubtful);
        let until = self.cx.now.after(self.cx.config.keep_deleted);
        self.cx.timers.advance(Timer::Lifecycle, until);
    }

    fn forget_session(&mut self, key: SessionKey) {
        self.prompt_keys.retain(|(of, _), _| *of != key);
        self.cx.record(Record::SessionRemoved { session: key });
        self.cx.send(Effect::Index(key));
    }

    pub(crate) fn session_undo(&mut self, wanted: UndoParams) -> Result<UndoResult, Fault> {
        let (kept, doubtful) = self.sessions.take_from_aside(&wanted)?;
        let (key, agent) = (kept.row.key, kept.row.agent.clone());
        let slot = self.processes.slot_for(key, &agent, &self.cx.config, self.cx.now);
        let mut session = Session { doubtful, ..Session::recovered(kept, slot, State::Dormant) };
        let row = session.row.edit();
        row.removed = None;
        row.updated = self.cx.now;
        let (cwd, name) = (row.cwd.clone(), row.name.clone());
        let name = name.filter(|name| self.name_is_free(&agent, &cwd, name, None).is_err());
        if name.is_some() {
            row.name = None;
        }
        self.cx.out.durable = true;
        self.sessions.insert(session);
        let kept = self.sessions.aside_of(&wanted).count() as u32;
        Ok(UndoResult { session: self.session_info(key), name_taken: name.map(Into::into), kept })
    }

    /// An unused session is listed only to its maker, and while a client has it open.
    pub(crate) fn is_listed_for(&self, client: ClientId, key: SessionKey) -> bool {
        let session = self.session(key);
        let is_its_own = || self.clients.get(&client).is_some_and(|of| of.made.contains(&key));
        !session.is_unused() || self.clients.is_attended(key) || is_its_own()
    }

    /// Arms the timer for the first session that may end; deleted ones not before `earliest`.
    pub(crate) fn arm_lifecycle(&mut self, earliest: Time) {
        let own = self.sessions.values().filter_map(|session| self.next_look(session));
        let keep = self.cx.config.keep_deleted;
        let deleted = self.sessions.aside().filter_map(|row| row.removed);
        let deleted = deleted.map(|removed| removed.after(keep).max(earliest));
        if let Some(first) = own.chain(deleted).min() {
            self.cx.timers.advance(Timer::Lifecycle, first);
        }
    }

    /// Returns when a session may end, at the earliest [`PAUSE`] from now.
    pub(crate) fn next_look(&self, session: &Session) -> Option<Time> {
        Some(self.gone_at(session)?.max(self.cx.now.after(PAUSE)))
    }

    fn gone_at(&self, session: &Session) -> Option<Time> {
        let unused = session.is_unused().then(|| session.row.created.after(KEPT));
        if self.profile_of(session.slot).persist_history {
            return unused;
        }
        let is_left = session.is_dormant() && session.queue.is_empty();
        // One that is not kept may be closed at any time.
        let closed = if is_left { Time::default() } else { self.cx.now.after(PAUSE) };
        Some(unused.map_or(closed, |unused| unused.min(closed)))
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
        let is_over = |session: &Session| self.gone_at(session).is_some_and(|at| at <= self.cx.now);
        let over = self.sessions.iter().filter(|(_, session)| is_over(session));
        let over: Vec<SessionKey> = over.map(|(key, _)| *key).collect();
        for key in over {
            if !self.is_in_use(key) {
                self.end_session(key, "session/close", false);
            }
        }
    }

    /// Waits twice as long for a process that must delete its copy.
    fn end_deleted(&mut self) {
        let is_over = |row: &&SessionRow| {
            let waits = self.deletes_copy(row) && self.process_of(row).is_none();
            let keep = self.cx.config.keep_deleted;
            let keep = if waits { keep.saturating_mul(2) } else { keep };
            row.removed.is_some_and(|at| at.after(keep) <= self.cx.now)
        };
        let gone: Vec<SessionKey> =
            self.sessions.aside().filter(is_over).map(|row| row.key).collect();
        for key in gone {
            let Some(SessionState { row, .. }) = self.sessions.drop_aside(key) else { continue };
            if let Some(slot) = self.process_of(&row).filter(|_| self.deletes_copy(&row)) {
                let params = json!({ "sessionId": row.agent_id });
                self.request(slot, Purpose::Farewell, "session/delete", &params);
            }
            self.forget_session(key);
        }
    }

    /// Returns `false` if another session of acpd has the same copy.
    fn deletes_copy(&self, row: &SessionRow) -> bool {
        let is_it = |other: &SessionRow| other.agent == row.agent && other.agent_id == row.agent_id;
        self.processes.known(&row.agent).capabilities.delete
            && !self.sessions.values().any(|session| is_it(&session.row))
    }

    /// Returns a slot whose process can be asked about the deleted session.
    fn process_of(&self, row: &SessionRow) -> Option<SlotId> {
        let slots = self.processes.of_profile(&row.agent);
        slots.into_iter().find(|slot| self.processes[slot].is_up())
    }
}

impl Session {
    /// Returns whether nothing was said, and no client has named, titled, labelled or archived the
    /// session.
    pub(crate) fn is_unused(&self) -> bool {
        let row = &self.row;
        let had_prompts = row.prompts > 0 || self.running.is_some() || !self.queue.is_empty();
        let had_words = row.heard || self.owes_summary();
        let is_named = row.name.is_some() || row.own_title.is_some() || !row.labels.is_empty();
        !had_prompts && !had_words && !is_named && !row.archived
    }
}
