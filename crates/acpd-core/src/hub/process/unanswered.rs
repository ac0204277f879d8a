//! Requests of users that an agent does not answer, and abandoned turns.
//!
//! ```text
//!  asked ─┬─ stall_notice ────▶ notice to the sender and the log; again after the same time
//!         └─ $/cancel_request ▶ relayed to the agent ─ cancel_timeout ─▶ the sender gets -32800
//! ```
//!
//! acpd sets no time limit: only the user knows how long a new session may take. A late answer
//! still counts, also after its sender has left.
//!
//! A turn is abandoned if its session was closed or deleted while the agent worked.
//!
//! ```text
//!  close, delete ─▶ abandoned ── the agent answers the prompt ─▶ over: the session may come back
//!                      │  └───── process gone ─────────────────▶ over
//!                      └── no answer within `cancel_timeout` ──▶ agent stopped
//! ```
//!
//! Architecture invariant: while a turn runs in a process, its session is neither restored nor
//! prompted there for any client: two turns would write one history.

use acp_wire::{Id, build, code};
use acpd_api::{Reason, Unanswered, method};

use crate::clients::Naming;
use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{ClientId, NOBODY, Requester, SlotId, duration};
use crate::process::slot::StopWhy;
use crate::record::purpose::Purpose;
use crate::requests::Asked;
use crate::timers::Timer;

impl Hub {
    pub(crate) fn cancel_relayed(&mut self, to: &Requester) {
        let Some((id, host)) = self.requests.ask_for(to) else { return };
        let Some(slot) = self.processes.slot_of(host) else { return };
        self.processes.write(&mut self.cx, slot, build::cancel_request(&Id::issued(id)));
        if self.requests.cancel(id) {
            let timeout = self.profile_of(slot).cancel_timeout;
            self.cx.timers.set(Timer::Asked(id), self.cx.now.after(timeout));
            self.save_asked(id);
        }
    }

    pub(crate) fn on_unanswered_timer(&mut self, ask: u64, slot: SlotId, asked: Asked) {
        let Asked { host, purpose: why, since, cancelled } = asked;
        self.watch_answer(ask, host, &why);
        if cancelled {
            return self.free_asker(ask, slot);
        }
        let profile = self.processes[&slot].profile().to_owned();
        let askers = self.askers_of(&profile, &why);
        // While a person is asked about it, the agent is not late.
        let session = why.session();
        let is_asked = session.is_some_and(|key| self.questions.are_open(key));
        if askers.is_empty() || is_asked || !self.questions.about(&Id::issued(ask)).is_empty() {
            return;
        }
        let waited = self.cx.now.since(since);
        let what = format!("{}: no answer for {}", why.what(), duration(waited));
        self.log_failure(slot, session, &what, None);
        let row = session.and_then(|key| self.sessions.get(&key)).map(|session| &session.row);
        let notice = Unanswered {
            agent: profile.into(),
            method: why.what().into(),
            session_id: row.map(|row| row.public_id.clone().into()),
            waited,
        };
        let line = build::notification(method::UNANSWERED, &notice);
        for client in askers {
            self.clients.tell(&mut self.cx, client, &line);
        }
    }

    /// Returns the waiting clients: the sender, and those that want the name of the new session.
    fn askers_of(&self, profile: &str, why: &Purpose) -> Vec<ClientId> {
        let own = why.requester().map(|to| to.client).filter(|client| *client != NOBODY);
        let is_behind = |wait: &&Naming| match why {
            Purpose::NewSession(new) => {
                wait.profile == profile
                    && wait.cwd == new.cwd
                    && new.name.as_ref() == Some(&wait.name)
            }
            _ => false,
        };
        let behind = self.naming.iter().filter(is_behind).map(|wait| wait.to.client);
        own.into_iter().chain(behind).collect()
    }

    /// Answers the sender of a cancelled request instead of the agent.
    fn free_asker(&mut self, ask: u64, slot: SlotId) {
        let Some(to) = self.requests.disown(ask) else { return };
        let time = duration(self.profile_of(slot).cancel_timeout);
        let text = format!("cancelled, and no answer of the agent within {time}");
        let hint = format!("`acpctl agent restart {}` ends it", self.processes[&slot].profile());
        let fault = Fault::new(Reason::Interrupted, text).with_code(code::CANCELLED).hint(hint);
        self.refuse(&to, &fault);
        self.cancel_questions(self.questions.about(&Id::issued(ask)));
        self.save_asked(ask);
    }

    pub(crate) fn on_abandoned_ended(&mut self, slot: SlotId) {
        self.lease(slot);
        if self.processes[&slot].is_up() {
            self.agent_usable(slot);
        }
    }

    pub(crate) fn on_abandoned_timer(&mut self, slot: SlotId) {
        if self.processes[&slot].is_stopping() {
            return;
        }
        let time = duration(self.profile_of(slot).cancel_timeout);
        let reason = format!("it worked on for {time} in a session that was closed");
        self.begin_stop(slot, StopWhy::Wedged, Some(reason));
    }
}
