//! Logins of agents: one state per profile, on disk, and the work that waits for a login.
//!
//! ```text
//!           a prompt works, no login offered
//! unknown ───────────────────────────────────▶ not_required ─┐
//!    │  │   a prompt works, auth/status, a login             │ a request wants a login
//!    │  └──────────────────────────────────▶ authenticated   │
//!    │                                        │      ▲       │
//!    │ a request wants one   wants one, again ▼      │ login │
//!    └──────────▶ needs_login ◀── logout   expired ──┘       │
//!                   │   ▲────────────────────────────────────┘
//!                   └───┴─ a login, or a request that proves one ─▶ authenticated
//! ```
//!
//! What wants a login is said by -32000, by `auth_errors` of the profile, or by `auth/status`. The session
//! that was refused waits with the prompts that were never dispatched; a login, or a person's next
//! prompt, goes on with it. None of this is a failure of the process: it costs no restart.

use acp_wire::{ErrorObject, Id, build, str_at};
use acpd_api::{
    AgentRef, AuthChanged, AuthInfo, AuthSource, AuthState, LoginMethod, Reason, method,
};
use serde_json::value::RawValue;

use crate::auth::{Refusal, forget_credentials, login_hint};
use crate::clients::{Asked, Served};
use crate::cx::Cx;
use crate::hub::Hub;
use crate::ids::{SessionKey, SlotId};
use crate::input::{Batch, Effect};
use crate::params::read;
use crate::process::slot::{Asker, LoginRepeat, State as AgentState, StopWhy};
use crate::record::{Desired, Dormant};
use crate::requests::purpose::Purpose;
use crate::session::State;

impl Hub {
    /// A request failed: what that says about the login, which is noted.
    pub(crate) fn note_refusal(
        &mut self,
        slot: SlotId,
        method: &str,
        error: &ErrorObject,
        out: &mut Batch,
    ) -> Refusal {
        let Some(source) = self.processes.login_source(slot, method, error, &self.config) else {
            return Refusal::Other;
        };
        // A login that fails says only that this login failed.
        if method == "authenticate" {
            return Refusal::NeedsLogin;
        }
        self.login_wanted(slot, source, &error.message, out)
    }

    fn login_wanted(
        &mut self,
        slot: SlotId,
        source: AuthSource,
        reason: &str,
        out: &mut Batch,
    ) -> Refusal {
        let profile = self.processes[&slot].profile.clone();
        forget_credentials(&profile, out);
        if self.renew_credentials(slot, out) || self.log_in_again(slot, out) {
            return Refusal::Renewed;
        }
        self.login_is_wanted(&profile, source, out);
        if self.processes[&slot].is_up() {
            let is_news = self.processes[&slot].state != AgentState::NeedsAuth;
            self.set_agent_state(slot, AgentState::NeedsAuth, Some(reason.to_owned()), out);
            if is_news {
                self.hook_login(slot, reason, out);
            }
        }
        Refusal::NeedsLogin
    }

    pub(crate) fn login_is_wanted(&mut self, profile: &str, source: AuthSource, out: &mut Batch) {
        if let Some(state) = self.logins.after_refusal(profile) {
            self.set_auth(profile, state, source, out);
        }
    }

    pub(crate) fn note_success(&mut self, slot: SlotId, method: &str, out: &mut Batch) {
        let profile = self.processes[&slot].profile.clone();
        let offers_login = !self.logins_of(&profile).is_empty();
        if let Some(state) = self.logins.after_success(&profile, method, offers_login) {
            let source = AuthSource::Worked { method: method.into() };
            self.set_auth(&profile, state, source, out);
            self.release(&profile, out);
        }
    }

    /// A login worked: every session that waited for it comes back.
    pub(crate) fn authenticated(&mut self, slot: SlotId, method: Option<String>, out: &mut Batch) {
        let profile = self.processes[&slot].profile.clone();
        forget_credentials(&profile, out);
        self.set_auth(&profile, AuthState::Authenticated, AuthSource::Login, out);
        self.logins.set_method(&profile, method, out);
        if let Some(host) = self.slot_mut(slot).host_mut() {
            host.login = LoginRepeat::Over;
        }
        self.release(&profile, out);
        self.ask_auth_status(slot, out);
    }

    /// A logout worked, for all who use the agent.
    pub(crate) fn logged_out(&mut self, slot: SlotId, out: &mut Batch) {
        let profile = self.processes[&slot].profile.clone();
        self.set_auth(&profile, AuthState::NeedsLogin, AuthSource::Logout, out);
        self.logins.set_method(&profile, None, out);
        if self.processes[&slot].is_up() {
            let reason = Some("logged out".to_owned());
            self.set_agent_state(slot, AgentState::NeedsAuth, reason, out);
        }
    }

    /// Goes on with what waited for a login, in the processes that there are.
    pub(crate) fn release(&mut self, profile: &str, out: &mut Batch) {
        for slot in self.processes.of_profile(profile) {
            match self.processes[&slot].state {
                AgentState::NeedsAuth => {
                    self.set_agent_state(slot, AgentState::Ready, None, out);
                }
                AgentState::Failed(Reason::NeedsLogin) => {
                    self.set_agent_state(slot, AgentState::Stopped, None, out);
                }
                _ => {}
            }
            for key in self.unblock(slot, out) {
                self.need_session(key, Asker::Policy, out);
            }
            let demand = self.demand(slot);
            let events = self.processes.start_needed(&mut cx!(self, out), slot, demand);
            self.route(events, out);
        }
    }

    /// Takes the mark off the sessions that wait for a login.
    pub(crate) fn unblock(&mut self, slot: SlotId, out: &mut Batch) -> Vec<SessionKey> {
        let mut keys = self.sessions.of_slot(slot);
        keys.retain(|key| self.sessions.waits_for_login(*key));
        for key in &keys {
            let session = self.session_mut(*key);
            let row = session.row.edit();
            row.rest = Dormant::Parked;
            row.reason = None;
            session.eager = matches!(session.state, State::Dormant);
            self.tell_state(*key, out);
        }
        keys
    }

    /// The agent wants a login before it goes on with a session that it holds: what was not given to
    /// it waits.
    pub(crate) fn hold_for_login(&mut self, key: SessionKey, reason: &str, out: &mut Batch) {
        let row = self.session_mut(key).row.edit();
        row.rest = Dormant::NeedsLogin;
        row.reason = Some(reason.to_owned());
        self.tell_state(key, out);
    }

    /// The user tries again despite a missing login.
    pub(crate) fn try_without_login(&mut self, key: SessionKey, out: &mut Batch) {
        if self.sessions.waits_for_login(key) {
            let row = self.session_mut(key).row.edit();
            row.rest = Dormant::Parked;
            row.reason = None;
            self.tell_state(key, out);
        }
    }

    pub(crate) fn auth_done(&mut self, asked: Asked<'_>, out: &mut Batch) -> Served {
        let Asked { to, params, .. } = asked;
        let AgentRef { agent } = read(params)?;
        if !self.config.agents.contains_key(&agent) {
            return Err(self.unknown_agent(&agent));
        }
        self.login_found(&agent, AuthSource::Login, out);
        let slot = self.processes.shared(&agent, self.now);
        let there = &self.processes[&slot];
        if there.state == AgentState::Queued || (there.host().is_some() && !there.is_up()) {
            self.processes.may_start(slot)?;
            self.slot_mut(slot).watchers.push(to.clone());
        } else {
            self.answer_agent(to, slot, out);
        }
        Ok(())
    }

    /// The file changed in which an agent keeps its login.
    pub(crate) fn on_login_seen(&mut self, agent: &str, out: &mut Batch) {
        if self.logins.state(agent).wants_login() {
            self.login_found(agent, AuthSource::LoginFile, out);
        }
    }

    /// A login that a process does not know: the process is restarted unless it works. A failed
    /// agent is started, as by the user.
    fn login_found(&mut self, profile: &str, source: AuthSource, out: &mut Batch) {
        forget_credentials(profile, out);
        self.set_auth(profile, AuthState::Authenticated, source, out);
        let may_run = self.processes.known(profile).row.desired != Desired::Down;
        for slot in self.processes.of_profile(profile).into_iter().filter(|_| may_run) {
            if self.sessions.is_at_work(slot) {
                continue;
            }
            // Those that it holds come back with it; what waits is not given to the old one.
            for key in self.unblock(slot, out) {
                self.session_mut(key).eager = true;
            }
            let runs = self.processes[&slot].host().is_some();
            let reason = runs.then(|| "restarted after a login".to_owned());
            self.begin_stop(slot, StopWhy::Restart, reason, out);
        }
        self.release(profile, out);
    }

    /// Asks an agent that can tell whether it is logged in.
    pub(crate) fn ask_auth_status(&mut self, slot: SlotId, out: &mut Batch) {
        let Some(host) = self.processes[&slot].usable_host() else { return };
        if self.processes.known_of(slot).capabilities.auth_status {
            let ask = self.ask(host, Purpose::AuthStatus, out);
            let line = build::request(&Id::issued(ask), "auth/status", &acpd_api::Empty {});
            self.processes.write(slot, line, out);
        }
    }

    /// The result of `auth/status`, or the params of its notification.
    pub(crate) fn auth_status_told(&mut self, slot: SlotId, told: &RawValue, out: &mut Batch) {
        match str_at(told.get().as_bytes(), &["state"]).as_deref() {
            Some("authenticated") => self.agent_says(slot, AuthState::Authenticated, out),
            Some("not_required") => self.agent_says(slot, AuthState::NotRequired, out),
            Some("unauthenticated") => self.agent_says(slot, AuthState::NeedsLogin, out),
            _ => {}
        }
    }

    /// The params of `_auth/status_update`, which is older than the protocol's own notification: the
    /// adapters of Claude and Codex tell with it whose account is used.
    pub(crate) fn account_told(&mut self, slot: SlotId, told: &RawValue, out: &mut Batch) {
        match str_at(told.get().as_bytes(), &["authStatus", "kind"]).as_deref() {
            Some("none") => self.agent_says(slot, AuthState::NeedsLogin, out),
            Some(_) => self.agent_says(slot, AuthState::Authenticated, out),
            None => self.auth_status_told(slot, told, out),
        }
    }

    fn agent_says(&mut self, slot: SlotId, state: AuthState, out: &mut Batch) {
        if state.wants_login() {
            let reason = "the agent says that it is not logged in";
            self.login_wanted(slot, AuthSource::Status, reason, out);
            return;
        }
        let profile = self.processes[&slot].profile.clone();
        if self.logins.state(&profile) != state {
            self.set_auth(&profile, state, AuthSource::Status, out);
            self.release(&profile, out);
        }
    }

    pub(crate) fn set_auth(
        &mut self,
        profile: &str,
        state: AuthState,
        source: AuthSource,
        out: &mut Batch,
    ) {
        if !self.logins.set(profile, state, source, self.now, out) {
            return;
        }
        self.watch.agent_changed(profile);
        self.watch_login(profile, out);
        let notice = AuthChanged { agent: profile.into(), auth: self.auth_info(profile) };
        let line = build::notification(method::AUTH_CHANGED, &notice);
        self.notify_profile(profile, &line, out);
    }

    /// Watches the file in which an agent keeps its login for as long as it wants one.
    pub(crate) fn watch_login(&self, profile: &str, out: &mut Batch) {
        if self.config.agents.get(profile).is_some_and(|known| known.has_login_file) {
            let wanted = self.logins.state(profile).wants_login();
            out.effects.push(Effect::WatchLogin { agent: profile.to_owned(), wanted });
        }
    }

    /// Returns the state of an agent's login for clients.
    pub(crate) fn auth_info(&self, profile: &str) -> AuthInfo {
        let row = self.logins.get(profile);
        let methods = self.logins_of(profile);
        let state = self.logins.state(profile);
        let config = self.config.agents.get(profile);
        AuthInfo {
            state,
            since: row.map_or(0, |row| row.since.0),
            source: row.map(|row| row.source.clone()),
            methods: methods
                .iter()
                .map(|method| LoginMethod {
                    id: method.id.clone().into(),
                    name: method.name.clone().into(),
                    kind: if method.terminal.is_some() { "terminal" } else { &method.kind }.into(),
                })
                .collect(),
            hint: state.wants_login().then(|| login_hint(profile).into()),
            command: config.and_then(|known| known.login_hint.as_deref().map(Into::into)),
        }
    }

    /// A restore was refused: the newest prompt with a waiting sender is answered, so that the user
    /// can log in; the others wait.
    pub(crate) fn session_needs_login(
        &mut self,
        key: SessionKey,
        error: &ErrorObject,
        out: &mut Batch,
    ) {
        let slot = self.session(key).slot;
        self.make_dormant(key, Dormant::NeedsLogin, Some(error.message.clone()), out);
        let id = self.session(key).row.public_id.clone();
        let fault = self.processes.login_fault(slot, &error.message).session(&id);
        let queue = &mut self.session_mut(key).queue;
        let newest = queue.iter().rposition(|prompt| !prompt.senders.is_empty());
        let newest = newest.and_then(|at| queue.remove(at));
        let kept = std::mem::take(queue);
        self.session_mut(key).queue.extend(newest);
        self.fail_queue(key, &fault, out);
        self.session_mut(key).queue = kept;
    }
}
