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

use std::collections::{BTreeMap, BTreeSet};

use acp_wire::bound::SENTENCE;
use acp_wire::{build, clipped, remove_member};
use acpd_api::{ClientName, SessionGone, SessionInfo, method};
use bytes::Bytes;

use crate::cx::Cx;
use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{SessionKey, SlotId};
use crate::input::{Batch, Effect};
use crate::record::{Counter, Dormant, Record, Replayable, SessionRow, Used};
use crate::requests::purpose::NewSession;
use crate::session::turn::Cancel;
use crate::session::{Session, State, numbered};
use crate::timers::Timer;

impl Hub {
    pub(crate) fn session_info(&self, key: SessionKey) -> SessionInfo {
        let session = self.session(key);
        let host = self.processes[&session.slot]
            .host()
            .filter(|_| !matches!(session.state, State::Dormant));
        SessionInfo {
            pid: host.and_then(|host| host.pid),
            ..session.info(self.questions.waiting(key), self.clients_at(key))
        }
    }

    /// How many clients are at a session. What says that it is the same program at the same place is one: a screen
    /// has a connection of its own for each turn.
    fn clients_at(&self, key: SessionKey) -> u32 {
        let mut known = BTreeSet::new();
        let attached = self.session(key).attached.keys();
        let clients = attached.filter(|id| match self.clients.get(id).map(|client| &client.name) {
            Some(ClientName { name, place: Some(place), .. }) => {
                known.insert((name.raw(), place.raw()))
            }
            _ => true,
        });
        clients.count() as u32
    }

    /// Takes over a session that the agent has just made for a client.
    pub(crate) fn adopt_new(
        &mut self,
        slot: SlotId,
        new: &NewSession,
        agent_id: &str,
        out: &mut Batch,
    ) -> SessionKey {
        let agent = self.processes[&slot].profile.clone();
        let key = self.sessions.next_key();
        // Some agents count from 0 after each start: the second "0" gets another public id.
        let taken = self.sessions.is_taken(&agent, agent_id);
        let public_id = if taken { numbered(agent_id, key) } else { agent_id.to_owned() };
        let mcp_servers = acp_wire::locate(&new.params, &["mcpServers"])
            .map(|range| Bytes::copy_from_slice(&new.params[range]));
        let row = SessionRow {
            key,
            agent,
            public_id,
            agent_id: agent_id.to_owned(),
            name: new.name.clone(),
            cwd: new.cwd.clone(),
            params: remove_member(&new.params, &["mcpServers"]),
            host: self.processes[&slot].host().map(|host| host.id),
            rest: Dormant::Parked,
            reason: None,
            restore: None,
            mode: None,
            options: BTreeMap::new(),
            open_tools: BTreeSet::new(),
            children: BTreeMap::new(),
            title: None,
            own_title: None,
            info: None,
            archived: false,
            removed: None,
            client_meta: self.offer_of_maker(slot, new.to.client),
            prompts: 0,
            heard: false,
            last_prompt: 0,
            replayable: Replayable::default(),
            last_outcome: None,
            usage: Used { counter: Counter::NewProcess(None), ..Used::default() },
            created: self.now,
            updated: self.now,
        };
        out.records.push(Record::Session(Box::new(row.clone())));
        if let Some(servers) = &mcp_servers {
            out.records.push(Record::Secret { session: key, mcp_servers: servers.clone() });
        }
        out.durable = true;
        let held_since = self.now;
        let session = Session { mcp_servers, held_since, ..Session::new(row, slot, State::Live) };
        if self.processes[&slot].dedicated.is_some() {
            self.slot_mut(slot).dedicated = Some(key);
            self.save_host(slot, out);
        }
        self.sessions.insert(session);
        self.sessions.route(key);
        self.watch_sleep(slot);
        if let Some(client) = self.clients.get_mut(new.to.client) {
            client.made.insert(key);
        }
        self.watch_unused();
        key
    }

    /// Returns whether the process must not be stopped for idleness.
    pub(crate) fn is_in_use(&self, key: SessionKey) -> bool {
        let session = self.session(key);
        let busy = session.running.is_some() || matches!(session.state, State::Restoring(_));
        busy || self.sessions.wants_host(key)
            || self.questions.are_open(key)
            || !session.attached.is_empty()
            || session.has_busy_child()
    }

    /// The process that held the session is gone.
    pub(crate) fn session_lost_host(&mut self, key: SessionKey, fault: &Fault, out: &mut Batch) {
        let was_live = match self.session(key).state {
            State::Live => true,
            State::Restoring(_) => false,
            State::Dormant => return self.wait_in_vain(key),
        };
        self.timers.clear(Timer::Restore(key));
        self.sessions.unroute(key);
        // No process is left to answer.
        self.close_questions(self.questions_of(key, |_| true), out);
        let row = &self.sessions[&key].row;
        let why = "ended with the agent";
        let events = self.services.end_mirrors(&mut cx!(self, out), row, why);
        self.route(events, out);
        self.close_tools(key, out);
        let goes_on = self.is_to_go_on(key);
        self.interrupt_turn(key, fault, out);
        if goes_on {
            self.go_on(key, out);
        }
        let again = self.restarts_by_itself(self.session(key).slot);
        // Work that waits for fresh credentials continues with them.
        if !self.is_renewed(self.session(key).slot) {
            self.refuse_relayed(key, fault, out);
        }
        let session = self.session_mut(key);
        // A session that starts over does so with a prompt.
        session.eager = again && (was_live || session.eager) && !session.owes_summary();
        if self.sessions.waits_for_login(key) {
            // The restore would be refused again.
            let reason = self.session(key).row.reason.clone();
            return self.make_dormant(key, Dormant::NeedsLogin, reason, out);
        }
        self.make_dormant(key, Dormant::Parked, Some(fault.message.clone()), out);
    }

    /// The process at which a session waited for a place to be restored is gone. What was wanted of the next process
    /// while this one went down in an orderly way is still wanted.
    fn wait_in_vain(&mut self, key: SessionKey) {
        let slot = self.session(key).slot;
        if self.has_failed(slot) && !self.restarts_by_itself(slot) {
            self.session_mut(key).eager = false;
        }
    }

    /// Leaves a session without a process, for a reason.
    pub(crate) fn make_dormant(
        &mut self,
        key: SessionKey,
        rest: Dormant,
        reason: Option<String>,
        out: &mut Batch,
    ) {
        self.sessions.unroute(key);
        // A process that runs on waits for the answers to what its subagents asked.
        self.cancel_interactions(key, out);
        self.end_children(key, out);
        self.drop_terminals(key, out);
        let failed = match rest {
            Dormant::Parked | Dormant::Closed => None,
            Dormant::NeedsLogin => Some("session needs a login"),
            Dormant::Lost => Some("session lost"),
            Dormant::Failed => Some("session not restored"),
            Dormant::NoDirectory => Some("directory of the session missing"),
        };
        if let Some(failed) = failed {
            self.log_not_restored(key, failed, out);
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
        self.tell_state(key, out);
    }

    pub(crate) fn set_live(&mut self, key: SessionKey, out: &mut Batch) {
        let (host, now) = (self.processes[&self.session(key).slot].usable_host(), self.now);
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
        self.tell_state(key, out);
    }

    /// Deletes a session of acpd for good; a process that holds it is told `farewell`.
    pub(crate) fn forget_session(&mut self, key: SessionKey, farewell: &str, out: &mut Batch) {
        let slot = self.session(key).slot;
        self.end_session(key, farewell, None, out);
        self.sessions.remove(key);
        self.forget_keys(key);
        forget_journal(key, out);
        self.check_idle(slot, out);
        self.remove_unused_slot(slot);
    }

    /// Ends a session for all clients; a process that holds it gets `farewell`. `undo`: data for
    /// its restore, if it can be restored.
    pub(crate) fn end_session(
        &mut self,
        key: SessionKey,
        farewell: &str,
        undo: Option<String>,
        out: &mut Batch,
    ) {
        if matches!(self.session(key).state, State::Live) {
            self.cancel_running(key, Cancel::because("the session was deleted"), None, out);
            self.farewell(key, farewell, out);
        }
        self.give_up_restore(key, out);
        let mut gone = Fault::new(acpd_api::Reason::SessionRemoved, "the session was deleted")
            .session(&self.session(key).row.public_id);
        gone.data.hint = undo.map(Into::into);
        self.cancel_interactions(key, out);
        self.fail_queue(key, &gone, out);
        self.abandon_turn(key, &gone, out);
        self.sessions.unroute(key);
        self.end_children(key, out);
        let events = self.services.on_session_deleted(&mut cx!(self, out), key);
        self.route(events, out);
        self.calls_of_deleted(key, out);
        self.drop_terminals(key, out);
        let own = [Timer::Restore, Timer::Cancel, Timer::Stall, Timer::Limit, Timer::Sleep];
        for timer in own.map(|timer| timer(key)) {
            self.timers.clear(timer);
        }
        self.give_up_restore(key, out);
        let gone = SessionGone { session_id: self.session(key).row.public_id.clone().into() };
        let line = build::notification(method::SESSION_REMOVED, &gone);
        self.tell_attached(key, &line, out);
        let attached: Vec<_> = self.session(key).attached.keys().copied().collect();
        for client in attached {
            self.detach(client, key, out);
        }
    }
}

/// Nothing is left on disk of a session.
pub(crate) fn forget_journal(key: SessionKey, out: &mut Batch) {
    out.records.push(Record::SessionRemoved { session: key });
    out.effects.push(Effect::Index(key));
}
