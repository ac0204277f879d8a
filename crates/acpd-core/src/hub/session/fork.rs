//! Forks: sessions that continue from the state of another one.
//!
//! ```text
//!  session/fork ─▶ the session is restored, if it is not live ─▶ its directory is looked for
//!                                                                              │
//!   a session of acpd's, which begins ◀── answered ── its process is asked, the point kept
//!   with the journal up to the point        │
//!                                           └── error, process gone ─▶ the client's error
//! ```
//!
//! The agent makes a new session, so a fork is a `session/new` that begins with a journal
//! (`Record::Forked`). It is created again as an empty one only if its original was empty.
//!
//! A fork begins in the process of its original. So agents with a process per session offer none:
//! not every agent could close the fork there and restore it elsewhere.

use acp_wire::acp::SessionParams;
use acp_wire::{build, set_member};
use acpd_api::{NAMESPACE, Outcome, SessionNotice, TurnEnded, method};
use bytes::Bytes;
use serde_json::json;

use crate::clients::{Asked, Served};
use crate::fault::{Fault, renewed_fault};
use crate::hub::Hub;
use crate::ids::SessionKey;
use crate::input::Effect;
use crate::mcp::undeclared;
use crate::params::{raw, raw_at};
use crate::record::{Child, Dormant, EventKind, ForkPoint, Forked, NewSession, Record, SessionRow};
use crate::session::Relayed;
use crate::session::replay::without_replay;

/// Maximum bytes of a journal that a fork copies, all of them in one transaction.
const MOST: u64 = 32 << 20;

impl Hub {
    pub(crate) fn fork_session(&mut self, asked: Asked<'_>, profile: &str) -> Served {
        let Asked { to, params, .. } = asked;
        // An agent that never ran shows its abilities when it does.
        if self.processes.known(profile).row.initialize.is_some() {
            self.can_fork(profile)?;
        }
        let params = params.ok_or_else(|| Fault::invalid("`params` is missing"))?;
        let cursor = raw_at(params.get().as_bytes(), &["cursorId"]);
        if cursor.is_some_and(|cursor| cursor.get() != "null") {
            return Err(Fault::invalid(
                "`cursorId` is not supported: a fork has the whole conversation",
            ));
        }
        let id = SessionParams::from_raw(params).session_id;
        let id = id.ok_or_else(|| Fault::invalid("`session/fork` needs a `sessionId`"))?;
        let key = self.sessions.by_public_id(profile, &id).ok_or_else(|| {
            Fault::no_session(&id)
                .hint("only sessions that acpd knows can be forked; `session/load` makes it one")
        })?;
        self.clients.may_control(to.client, key)?;
        if self.session(key).row.rest == Dormant::Lost {
            return Err(self.session(key).lost_fault());
        }
        self.read_fork(key, to, params)?;
        self.relay_later(asked, key);
        Ok(())
    }

    /// Queues a fork for the next process that a restarting process has refused.
    pub(crate) fn fork_again(&mut self, new: NewSession) {
        let NewSession { to, name, labels, params, fork, .. } = new;
        let key = fork.map(|point| point.session).filter(|key| self.sessions.contains_key(key));
        let Some(key) = key else { return self.refuse(&to, &renewed_fault()) };
        let id = json!(self.session(key).row.public_id).to_string();
        let mut params = set_member(&undeclared(&params), &["sessionId"], id.as_bytes());
        if let Some(name) = name {
            let name = json!(name).to_string();
            params = set_member(&params, &["_meta", NAMESPACE, "name"], name.as_bytes());
        }
        let labels = json!(labels).to_string();
        params = set_member(&params, &["_meta", NAMESPACE, "labels"], labels.as_bytes());
        let (method, line) =
            ("session/fork", build::request(&to.id, "session/fork", &raw(&params)));
        self.session_mut(key).waiting.push(Relayed { to, method: method.to_owned(), line });
    }

    pub(crate) fn begin_forked(&mut self, key: SessionKey, point: &ForkPoint) {
        let public_id = self.session(key).row.public_id.clone();
        let parent = self.sessions.get(&point.session);
        let parent = parent.map(|parent| SessionRow::clone(&parent.row));
        let row = self.session_mut(key).row.edit();
        row.heard = point.heard;
        let Some(parent) = parent else {
            let text = "the session that this one was forked from was deleted: what was said \
                        before is not shown";
            return self.notice(key, "warning", text);
        };
        row.title = parent.shown_title().map(str::to_owned);
        // Some agents continue the counter in a fork.
        row.usage.counter = parent.usage.counter;
        row.usage.counter.moved();
        row.prompts = point.prompts;
        row.last_prompt = point.last_prompt;
        row.open_tools.clone_from(&point.open_tools);
        let of = parent.public_id;
        self.session_mut(key).head = point.head;
        let left_out = SessionNotice {
            session_id: public_id.clone().into(),
            severity: "warning".into(),
            text: format!("only the last {} MiB of `{of}` were taken over", MOST >> 20).into(),
        };
        self.cx.record(Record::Forked(Forked {
            session: key,
            public_id: public_id.clone(),
            from: point.session,
            upto: point.head,
            most: MOST,
            left_out: build::notification(method::NOTICE, &left_out),
        }));
        if self.keeps_history(key) {
            self.cx.send(Effect::Index(key));
        }
        self.close_tools(key);
        // Children of the original continue there only.
        for child in &point.children {
            let is_own = child.parent == of;
            let parent = if is_own { public_id.clone() } else { child.parent.clone() };
            self.tell_child_over(key, &Child { parent, ..child.clone() });
        }
        if let Some(started) = point.turn {
            let ended = TurnEnded {
                cut_short: None,
                session_id: public_id.into(),
                turn: point.prompts,
                started_at: started.0,
                at: self.cx.now.0,
                outcome: Outcome::Interrupted {
                    reason: format!("it continues in `{of}` alone").into(),
                },
                tools: None,
                files: Vec::new(),
                usage: None,
            };
            let line = build::notification(method::TURN_ENDED, &ended);
            self.append(key, EventKind::Notice, line, None);
        }
        self.notice(key, "info", &format!("forked from `{of}`"));
    }

    /// Drops the conversation that some agents replay into a fork: the journal has it.
    pub(crate) fn drop_replay_of_fork(&mut self, key: SessionKey, of: SessionKey) {
        // Without the original, the replay is all there is.
        if !self.sessions.contains_key(&of) {
            return;
        }
        let session = self.session(key);
        let (slot, last_prompt) = (session.slot, session.row.last_prompt);
        let id = session.row.agent_id.clone();
        if let Some(parked) = self.processes.parked_mut(slot, &id) {
            let lines = std::mem::take(&mut parked.lines);
            let (lines, last_prompt) = without_replay(lines, last_prompt, parked.is_cut);
            parked.bytes = lines.iter().map(Bytes::len).sum();
            parked.lines = lines;
            self.session_mut(key).row.edit().last_prompt = last_prompt;
        }
    }
}
