//! Logins in the hub: what [`crate::process::logins`] has to know of sessions and requests, and what they do when a
//! login is missing or works.

use acp_wire::{ErrorObject, Id, build};
use acpd_api::{AuthSource, AuthState};
use serde_json::json;

use crate::auth::{Refusal, changes_login};
use crate::clients::{Asked, Served};
use crate::hub::Hub;
use crate::ids::{SessionKey, SlotId};
use crate::process::logins::Activity;
use crate::process::slot::{Asker, StopWhy};
use crate::record::Dormant;
use crate::requests::purpose::Purpose;
use crate::session::State;
use crate::session::turn::Queued;

impl Hub {
    fn activity(&self, slot: SlotId) -> Activity {
        Activity {
            is_at_work: self.sessions.is_at_work(slot),
            is_logging_in: self.is_logging_in(slot),
        }
    }

    /// A request failed: what that says about the login, which is noted.
    pub(crate) fn note_refusal(
        &mut self,
        slot: SlotId,
        method: &str,
        error: &ErrorObject,
    ) -> Refusal {
        let activity = self.activity(slot);
        self.processes.on_refusal(&mut self.cx, slot, method, error, activity)
    }

    pub(crate) fn note_success(&mut self, slot: SlotId, method: &str) {
        self.processes.on_success(&mut self.cx, slot, method);
    }

    /// A login worked: every session that waited for it comes back.
    pub(crate) fn authenticated(&mut self, slot: SlotId, method: Option<String>) {
        self.processes.on_login(&mut self.cx, slot, method);
        self.ask_auth_status(slot);
    }

    /// Continues what waited for a login, in the processes that there are.
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

    /// Takes the mark off the sessions that wait for a login.
    pub(crate) fn unblock(&mut self, slot: SlotId) -> Vec<SessionKey> {
        let mut keys = self.sessions.of_slot(slot);
        keys.retain(|key| self.sessions.waits_for_login(*key));
        for key in &keys {
            self.try_without_login(*key);
            let session = self.session_mut(*key);
            session.eager = matches!(session.state, State::Dormant);
        }
        keys
    }

    /// The sessions that wait for a login come back with the next process.
    pub(crate) fn unblock_for_next(&mut self, slot: SlotId) {
        for key in self.unblock(slot) {
            self.session_mut(key).eager = true;
        }
    }

    /// The agent wants a login before it continues a session that it holds: what was not given to
    /// it waits.
    pub(crate) fn hold_for_login(&mut self, key: SessionKey, reason: &str) {
        let row = self.session_mut(key).row.edit();
        row.rest = Dormant::NeedsLogin;
        row.reason = Some(reason.to_owned());
        self.tell_state(key);
    }

    /// The user tries again despite a missing login.
    pub(crate) fn try_without_login(&mut self, key: SessionKey) {
        if self.sessions.waits_for_login(key) {
            let row = self.session_mut(key).row.edit();
            row.rest = Dormant::Parked;
            row.reason = None;
            self.tell_state(key);
        }
    }

    pub(crate) fn auth_done(&mut self, asked: Asked<'_>) -> Served {
        let Asked { to, params, .. } = asked;
        let agent = self.agent_ref(params)?;
        self.login_found(&agent, AuthSource::Login);
        let slot = self.processes.shared(&agent, self.cx.now);
        let there = &self.processes[&slot];
        if there.is_queued() || (there.host().is_some() && !there.is_up()) {
            self.processes.may_start(slot)?;
            self.processes.watch(slot, to.clone());
        } else {
            self.answer_agent(to, slot);
        }
        Ok(())
    }

    /// The file changed in which an agent keeps its login.
    pub(crate) fn on_login_seen(&mut self, agent: &str) {
        if self.processes.auth_state(agent).wants_login() {
            self.login_found(agent, AuthSource::LoginFile);
        }
    }

    fn login_found(&mut self, profile: &str, source: AuthSource) {
        let sessions = &self.sessions;
        let is_at_work = |slot| sessions.is_at_work(slot);
        self.processes.on_login_found(&mut self.cx, profile, source, is_at_work);
    }

    /// Asks an agent that can tell whether it is logged in.
    pub(crate) fn ask_auth_status(&mut self, slot: SlotId) {
        let Some(host) = self.processes[&slot].usable_host() else { return };
        if self.processes.known_of(slot).capabilities.auth_status {
            let ask = self.ask(host, Purpose::AuthStatus);
            let line = build::request(&Id::issued(ask), "auth/status", &acpd_api::Empty {});
            self.processes.write(&mut self.cx, slot, line);
        }
    }

    /// An agent reports its login, if that can be read.
    pub(crate) fn login_reported(&mut self, slot: SlotId, state: Option<AuthState>) {
        let Some(state) = state else { return };
        let activity = self.activity(slot);
        self.processes.on_report(&mut self.cx, slot, state, activity);
    }

    /// A process does not start without a login: what waits for it fails, or waits for the login.
    pub(crate) fn start_wants_login(&mut self, slot: SlotId, error: &ErrorObject) {
        let fault = self.processes.login_fault(slot, &error.message);
        self.refuse_waiters(slot, &fault);
        for key in self.sessions.of_slot(slot) {
            if self.sessions.wants_host(key) {
                self.session_needs_login(key, error);
            }
        }
        self.begin_stop(slot, StopWhy::NoLogin, Some(error.message.clone()));
    }

    /// A restore was refused: the newest prompt with a waiting sender is answered, so that the user
    /// can log in; the others wait.
    pub(crate) fn session_needs_login(&mut self, key: SessionKey, error: &ErrorObject) {
        let slot = self.session(key).slot;
        self.make_dormant(key, Dormant::NeedsLogin, Some(error.message.clone()));
        let id = self.session(key).row.public_id.clone();
        let fault = self.processes.login_fault(slot, &error.message).session(&id);
        let queue = &mut self.session_mut(key).queue;
        let newest = queue.iter().rposition(|prompt| !prompt.senders.is_empty());
        let newest = newest.and_then(|at| queue.remove(at));
        let kept = std::mem::take(queue);
        self.session_mut(key).queue.extend(newest);
        self.fail_queue(key, &fault);
        self.session_mut(key).queue = kept;
    }

    /// Returns whether acpd may repeat the last login for a process, which it does when the agent wants one.
    pub(crate) fn may_log_in_again(&self, slot: SlotId) -> bool {
        let is_logging_in = || self.is_logging_in(slot);
        self.processes.login_to_repeat(slot, &self.cx.config, is_logging_in).is_some()
    }

    /// Repeats the last login for a process.
    pub(crate) fn log_in_again(&mut self, slot: SlotId, method: &str) {
        let Some(host) = self.processes[&slot].usable_host() else { return };
        let ask = self.ask(host, Purpose::LoginAgain);
        let params = json!({ "methodId": method });
        let line = build::request(&Id::issued(ask), "authenticate", &params);
        self.processes.write(&mut self.cx, slot, line);
    }

    /// A repeated login has ended. What waits for it continues: if it did not work, the agent refuses it again.
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

    pub(crate) fn on_login_timer(&mut self, ask: u64) {
        let host = self.requests.get(ask).map(|asked| asked.host);
        let Some(slot) = host.and_then(|host| self.processes.slot_of(host)) else { return };
        self.give_up_ask(ask, None);
        self.logged_in_again(slot, false);
    }

    /// A prompt was refused for want of a login that is being renewed. The agent has said nothing but that,
    /// so it gets the prompt again.
    pub(crate) fn prompt_again(&mut self, key: SessionKey, prompt: Queued) {
        let text = if self.processes[&self.session(key).slot].is_logged_in_again() {
            "the agent's new process wants a login: acpd repeats the last one, and gives it the prompt again"
        } else {
            "the agent's login has run out: it is started anew with fresh credentials, and gets the prompt again"
        };
        self.notice(key, "warning", text);
        self.session_mut(key).queue.push_front(prompt);
        self.save_queued(key, 0);
    }

    /// Logins that waited for another one continue, one in each process.
    pub(crate) fn next_logins(&mut self) {
        for slot in self.processes.with_waiting_login() {
            if !self.is_logging_in(slot)
                && let Some(next) = self.processes.take_waiting_login(slot)
            {
                self.serve_waiting(slot, next);
            }
        }
    }

    /// Returns whether a login or logout of a connected client is under way in this process. One of
    /// a gone client may never end, and blocks no other.
    pub(crate) fn is_logging_in(&self, slot: SlotId) -> bool {
        let Some(host) = self.processes[&slot].usable_host() else { return false };
        self.requests.of_host(host).any(|why| match why {
            Purpose::Relay { to, method, .. } => {
                changes_login(method) && self.clients.may_get_answers(to.client)
            }
            _ => false,
        })
    }
}
