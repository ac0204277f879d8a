//! Inputs of [`crate::process::logins`], and sessions that lack a login.

use acp_wire::ErrorObject;
use acpd_api::{AuthSource, AuthState};

use crate::auth::Refusal;
use crate::hub::Hub;
use crate::ids::{SessionKey, SlotId};
use crate::process::logins::Activity;
use crate::record::Dormant;
use crate::record::purpose::Purpose;
use crate::session::turn::Queued;

impl Hub {
    fn activity(&self, slot: SlotId) -> Activity {
        Activity {
            is_at_work: self.sessions.is_at_work(slot),
            is_logging_in: self.is_logging_in(slot),
        }
    }

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

    pub(crate) fn authenticated(&mut self, slot: SlotId, method: Option<String>) {
        self.processes.on_login(&mut self.cx, slot, method);
        self.ask_auth_status(slot);
    }

    /// Keeps queued prompts until a login: the agent wants one before it continues the session.
    pub(crate) fn hold_for_login(&mut self, key: SessionKey, reason: &str) {
        let row = self.session_mut(key).row.edit();
        row.rest = Dormant::NeedsLogin;
        row.reason = Some(reason.to_owned());
        self.tell_state(key);
    }

    /// The file with an agent's login has changed.
    pub(crate) fn on_login_seen(&mut self, agent: &str) {
        if self.processes.auth_state(agent).wants_login() {
            self.login_found(agent, AuthSource::LoginFile);
        }
    }

    pub(crate) fn login_found(&mut self, profile: &str, source: AuthSource) {
        let sessions = &self.sessions;
        let is_at_work = |slot| sessions.is_at_work(slot);
        self.processes.on_login_found(&mut self.cx, profile, source, is_at_work);
    }

    pub(crate) fn ask_auth_status(&mut self, slot: SlotId) {
        if self.processes.known_of(slot).capabilities.auth_status {
            self.request(slot, Purpose::AuthStatus, "auth/status", &acpd_api::Empty {});
        }
    }

    pub(crate) fn login_reported(&mut self, slot: SlotId, state: Option<AuthState>) {
        let Some(state) = state else { return };
        let activity = self.activity(slot);
        self.processes.on_report(&mut self.cx, slot, state, activity);
    }

    /// Returns whether acpd would repeat the last login if the agent wanted one.
    pub(crate) fn may_log_in_again(&self, slot: SlotId) -> bool {
        let is_logging_in = || self.is_logging_in(slot);
        self.processes.login_to_repeat(slot, &self.cx.config, is_logging_in).is_some()
    }

    /// Queues a prompt again that the agent refused for want of a login, before it did anything.
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

    /// Answers only the newest prompt with a sender, so that its user can log in; the others wait.
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

    /// The user tries again despite a missing login.
    pub(crate) fn try_without_login(&mut self, key: SessionKey) {
        if self.session(key).waits_for_login() {
            let row = self.session_mut(key).row.edit();
            row.rest = Dormant::Parked;
            row.reason = None;
            self.tell_state(key);
        }
    }
}
