//! Work that waits for an agent: it continues when the agent is up or has a login, and gets an
//! answer when the process is lost or will not start. Also requests of users that an agent does not
//! answer, and abandoned turns.
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

use acp_wire::{ErrorObject, Id, build, code};
use acpd_api::{Reason, Unanswered, method};

use crate::clients::Naming;
use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{ClientId, HostId, NOBODY, Requester, SessionKey, SlotId, duration};
use crate::mcp::client_servers::CallEnd;
use crate::process::slot::{Asker, StopWhy, WaitFor, Waiting};
use crate::record::Purpose;
use crate::requests::Asked;
use crate::timers::Timer;

impl Hub {
    pub(crate) fn agent_ready(&mut self, id: SlotId) {
        let profile = self.processes[&id].profile().to_owned();
        self.take_quirks(&profile);
        self.tally.agent_start.took_ms(self.processes[&id].start_took());
        self.ask_auth_status(id);
        self.agent_usable(id);
    }

    pub(crate) fn agent_adopted(&mut self, id: SlotId) {
        let host = self.processes[&id].host().map(|host| host.id);
        for key in self.sessions.of_slot(id) {
            // The level `reseeded` says that a summary is owed: keep it.
            if self.session(key).row.host == host && !self.session(key).owes_summary() {
                self.session_mut(key).row.edit().restore = Some(acpd_api::RestoreLevel::Exact);
            }
        }
        self.lease(id);
        if self.processes[&id].is_up() {
            self.agent_usable(id);
        }
    }

    pub(crate) fn agent_usable(&mut self, id: SlotId) {
        self.answer_watchers(id);
        for waiting in self.processes.take_waiting(id) {
            self.serve_waiting(id, waiting);
        }
        for key in self.sessions.sessions_by_urgency(id, |key| self.clients.is_attended(key)) {
            self.wake_session(key);
        }
        self.check_idle(id);
    }

    /// Waiting work continues in any case: if the login failed, the agent refuses it again.
    pub(crate) fn logged_in_again(&mut self, slot: SlotId, worked: bool) {
        self.processes.on_login_repeated(&mut self.cx, slot, worked);
        if !self.processes[&slot].is_up() {
            return;
        }
        for key in self.sessions.of_slot(slot) {
            self.ask_step_again(key);
        }
        self.agent_usable(slot);
    }

    pub(crate) fn login_worked(&mut self, profile: &str) {
        for slot in self.processes.of_profile(profile) {
            self.processes.on_login_worked(&mut self.cx, slot);
            for key in self.unblock(slot) {
                self.need_session(key, Asker::Policy);
            }
            let demand = self.demand(slot);
            self.processes.start_needed(&mut self.cx, slot, demand);
        }
    }

    fn unblock(&mut self, slot: SlotId) -> Vec<SessionKey> {
        let mut keys = self.sessions.of_slot(slot);
        keys.retain(|key| self.session(*key).waits_for_login());
        for key in &keys {
            self.try_without_login(*key);
            let session = self.session_mut(*key);
            session.eager = session.is_dormant();
        }
        keys
    }

    pub(crate) fn unblock_for_next(&mut self, slot: SlotId) {
        for key in self.unblock(slot) {
            self.session_mut(key).eager = true;
        }
    }

    /// Starts queued logins, one at a time per process.
    pub(crate) fn next_logins(&mut self) {
        for slot in self.processes.with_waiting_login() {
            if !self.is_logging_in(slot)
                && let Some(next) = self.processes.take_waiting_login(slot)
            {
                self.serve_waiting(slot, next);
            }
        }
    }

    /// A process does not start without a login: requests fail, and sessions wait for the login.
    pub(crate) fn start_wants_login(&mut self, slot: SlotId, error: &ErrorObject) {
        let fault = self.processes.login_fault(slot, &error.message);
        self.refuse_waiters(slot, &fault);
        for key in self.sessions.of_slot(slot) {
            if self.session(key).wants_host() {
                self.session_needs_login(key, error);
            }
        }
        self.begin_stop(slot, StopWhy::NoLogin, &error.message);
    }

    pub(crate) fn process_lost(
        &mut self,
        (id, host): (SlotId, HostId),
        fault: &Fault,
        ended_late: bool,
    ) {
        for why in self.drop_requests_of(host) {
            match why {
                Purpose::Steer(steer) => self.steer_lost(&steer, fault),
                why => self.refuse_askers(id, why, fault),
            }
        }
        let asked =
            self.questions.which(|open| open.host() == Some(host) && open.session().is_none());
        self.close_questions(asked);
        self.services.on_process_gone(&mut self.cx, host);
        self.client_servers.on_call_end(&mut self.cx, &CallEnd::ProcessGone(host));
        let sessions = self.sessions.of_slot(id);
        let mut cut_off = sessions.clone();
        cut_off.retain(|key| ended_late && self.session(*key).is_at_agent());
        for key in sessions {
            self.session_lost_host(key, fault);
        }
        for key in &cut_off {
            self.load_cut_off(*key, cut_off.len() == 1);
        }
    }

    /// Refuses the clients that wait for a request without an answer, except those of a message to
    /// a turn.
    pub(crate) fn refuse_askers(&mut self, slot: SlotId, why: Purpose, fault: &Fault) {
        match why {
            Purpose::Relay { to, .. } => self.refuse(&to, fault),
            Purpose::NewSession(new) => self.refuse(&new.to, fault),
            Purpose::Adopt(adoption) => self.refuse_adoption(&adoption, fault),
            Purpose::List { to, wanted } => self.listed(slot, &to, &wanted, None),
            _ => {}
        }
    }

    pub(crate) fn fail_waiters(&mut self, id: SlotId, fault: &Fault) {
        self.refuse_waiters(id, fault);
        let for_good = self.processes.stays_down(&self.cx, id);
        for key in self.sessions.of_slot(id) {
            // Prompts that wait for a login do not need a process until then.
            if for_good || !self.session(key).waits_for_login() {
                self.fail_queue(key, fault);
            } else {
                self.refuse_relayed(key, fault);
            }
        }
    }

    /// Refuses the requests that wait for the process, except `initialize` if its result is known.
    pub(crate) fn refuse_waiters(&mut self, id: SlotId, fault: &Fault) {
        let profile = self.processes[&id].profile().to_owned();
        let watchers = self.processes.take_watchers(id);
        let waiting = self.processes.take_waiting(id);
        self.refuse_all(&watchers, fault);
        for Waiting { to, what, .. } in waiting {
            let is_first = matches!(what, WaitFor::Initialize);
            if !(is_first && self.initialize_from_memory(&to, &profile)) {
                self.refuse(&to, fault);
            }
        }
    }

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
        self.begin_stop(slot, StopWhy::Wedged, &reason);
    }
}
