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

use acp_wire::bound::SENTENCE;
use acp_wire::{build, clipped};
use acpd_api::Reason;
use serde_json::json;

use crate::cx::Cx;
use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::SessionKey;
use crate::input::Effect;
use crate::record::{Dormant, Record};
use crate::requests::purpose::Purpose;
use crate::session::{Session, State};

impl Hub {
    pub(crate) fn make_dormant(&mut self, key: SessionKey, rest: Dormant, reason: Option<String>) {
        self.sessions.unroute(key);
        // A process that continues waits for the answers to its subagents' questions.
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

    pub(crate) fn log_not_restored(&mut self, key: SessionKey, what: &str) {
        let Session { state, slot, .. } = self.session(key);
        let code = match state {
            State::Restoring(restore) => restore.refused,
            _ => None,
        };
        self.log_failure(*slot, Some(key), what, code);
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
        let Some(host) = self.processes[&slot].usable_host().filter(|_| offered) else { return };
        let ask = self.ask(host, Purpose::Farewell);
        let line = build::request(&acp_wire::Id::issued(ask), name, &json!({ "sessionId": id }));
        self.processes.write(&mut self.cx, slot, line);
    }
}

pub(crate) fn forget_journal(cx: &mut Cx, key: SessionKey) {
    cx.record(Record::SessionRemoved { session: key });
    cx.send(Effect::Index(key));
}
