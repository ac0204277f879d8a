//! Logins of agents, and of their processes.
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
//! The state is one per profile, and on disk. That a login is wanted is said by -32000, by `auth_errors` of the
//! profile, or by `auth/status`. The session that was refused waits with the prompts that were never dispatched; a
//! login, or a person's next prompt, continues it. None of this is a failure of the process: it costs no restart.
//!
//! Before a person is asked, a process with expired credentials is restarted with fresh ones, and the last login of
//! the agent is repeated where each process wants one.

use acp_wire::acp::AuthMethod;
use acp_wire::{ErrorObject, build, code, str_at};
use acpd_api::{AuthChanged, AuthInfo, AuthSource, AuthState, LoginMethod, Reason, method};
use serde_json::value::RawValue;

use crate::auth::{Refusal, changes_login, forget_credentials, login_hint};
use crate::cx::Cx;
use crate::event::EngineEvent;
use crate::ids::{HostId, SlotId, Time};
use crate::input::Effect;
use crate::offer::is_offered;
use crate::process::slot::{LoginRepeat, Slot, State, StopWhy, WaitFor, Waiting};
use crate::process::table::{Processes, mark};
use crate::profile::Config;
use crate::record::Desired;

/// The work of a process that a login must not disturb.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Activity {
    /// A turn or a subagent works.
    pub(crate) is_at_work: bool,
    /// A client logs in or out.
    pub(crate) is_logging_in: bool,
}

impl Waiting {
    fn is_login(&self) -> bool {
        matches!(&self.what, WaitFor::Relay { method, .. } if changes_login(method))
    }
}

impl Processes {
    pub(crate) fn auth_state(&self, profile: &str) -> AuthState {
        self.logins.state(profile)
    }

    /// Changes the login of an agent, and notifies its clients if that is news.
    fn set_auth(&mut self, cx: &mut Cx, profile: &str, state: AuthState, source: AuthSource) {
        if !self.logins.set(cx, profile, state, source, cx.now) {
            return;
        }
        mark(&mut self.changed, profile);
        self.watch_login(cx, profile);
        let notice =
            AuthChanged { agent: profile.into(), auth: self.auth_info(profile, &cx.config) };
        let line = build::notification(method::AUTH_CHANGED, &notice);
        cx.report(EngineEvent::AgentNotified { agent: profile.to_owned(), line });
    }

    /// Watches the files in which agents keep their logins.
    pub(crate) fn watch_logins(&self, cx: &mut Cx) {
        self.logins.profiles().for_each(|profile| self.watch_login(cx, profile));
    }

    /// Watches such a file for as long as the agent wants a login.
    fn watch_login(&self, cx: &mut Cx, profile: &str) {
        if cx.config.profile(profile).has_login_file {
            let wanted = self.logins.state(profile).wants_login();
            cx.send(Effect::WatchLogin { agent: profile.to_owned(), wanted });
        }
    }

    /// Returns the state of an agent's login for clients.
    pub(crate) fn auth_info(&self, profile: &str, config: &Config) -> AuthInfo {
        let row = self.logins.get(profile);
        let state = self.logins.state(profile);
        let methods = self.logins_of(profile, config).into_iter().map(|method| LoginMethod {
            id: method.id.clone().into(),
            name: method.name.clone().into(),
            kind: if method.terminal.is_some() { "terminal" } else { &method.kind }.into(),
        });
        AuthInfo {
            state,
            since: row.map_or(0, |row| row.since.0),
            source: row.map(|row| row.source.clone()),
            methods: methods.collect(),
            hint: state.wants_login().then(|| login_hint(profile).into()),
            command: config.profile(profile).login_hint.as_deref().map(Into::into),
        }
    }

    /// Login methods of an agent for all clients.
    fn logins_of(&self, profile: &str, config: &Config) -> Vec<&AuthMethod> {
        let others = logins_of_others(profile, None, config);
        let is_for_all =
            |login: &&AuthMethod| !login.meta.iter().any(|member| others.contains(&&**member));
        self.known(profile).methods.iter().filter(is_for_all).collect()
    }

    /// Returns the meaning of an error for the login, if it wants one.
    pub(crate) fn login_source(
        &self,
        id: SlotId,
        method: &str,
        error: &ErrorObject,
        config: &Config,
    ) -> Option<AuthSource> {
        let method = method.into();
        if error.code == code::AUTH_REQUIRED {
            return Some(AuthSource::Refused { method });
        }
        let is_known = self.profile(id, config).auth_errors.iter().any(|like| error.is_like(like));
        is_known.then_some(AuthSource::Pattern { method })
    }

    /// Notes that a request failed. Returns what the error says about the login.
    pub(crate) fn on_refusal(
        &mut self,
        cx: &mut Cx,
        id: SlotId,
        method: &str,
        error: &ErrorObject,
        activity: Activity,
    ) -> Refusal {
        match self.login_source(id, method, error, &cx.config) {
            None => Refusal::Other,
            // A login that fails says only that this login failed.
            Some(_) if method == "authenticate" => Refusal::NeedsLogin,
            Some(source) => self.want_login(cx, id, source, &error.message, activity),
        }
    }

    fn want_login(
        &mut self,
        cx: &mut Cx,
        id: SlotId,
        source: AuthSource,
        reason: &str,
        activity: Activity,
    ) -> Refusal {
        let profile = self[&id].profile.clone();
        forget_credentials(cx, &profile);
        if self.renew_credentials(cx, id, activity.is_at_work)
            || self.repeat_login(cx, id, activity.is_logging_in)
        {
            return Refusal::Renewed;
        }
        self.miss_login(cx, &profile, source);
        if self[&id].is_up() {
            let is_news = self[&id].state != State::NeedsAuth;
            self.set_state(cx, id, State::NeedsAuth, Some(reason.to_owned()));
            if is_news {
                cx.report(EngineEvent::LoginWanted { slot: id, reason: reason.to_owned() });
            }
        }
        Refusal::NeedsLogin
    }

    fn miss_login(&mut self, cx: &mut Cx, profile: &str, source: AuthSource) {
        if let Some(state) = self.logins.after_refusal(profile) {
            self.set_auth(cx, profile, state, source);
        }
    }

    /// A process does not even answer `initialize` without a login. The next one comes with a login or the user's
    /// next prompt.
    pub(super) fn on_start_refused(
        &mut self,
        cx: &mut Cx,
        id: SlotId,
        source: AuthSource,
        error: ErrorObject,
    ) {
        let profile = self[&id].profile.clone();
        let is_news = !self.logins.state(&profile).wants_login();
        forget_credentials(cx, &profile);
        self.miss_login(cx, &profile, source);
        if is_news {
            let reason = error.message.clone();
            cx.report(EngineEvent::LoginWanted { slot: id, reason });
        }
        cx.report(EngineEvent::StartWantsLogin { slot: id, error });
    }

    /// A request worked, which may prove a login.
    pub(crate) fn on_success(&mut self, cx: &mut Cx, id: SlotId, method: &str) {
        let profile = self[&id].profile.clone();
        let offers_login = !self.logins_of(&profile, &cx.config).is_empty();
        if let Some(state) = self.logins.after_success(&profile, method, offers_login) {
            self.log_in(cx, &profile, state, AuthSource::Worked { method: method.into() });
        }
    }

    /// An agent has a login, or needs none: what waited for one continues.
    fn log_in(&mut self, cx: &mut Cx, profile: &str, state: AuthState, source: AuthSource) {
        self.set_auth(cx, profile, state, source);
        cx.report(EngineEvent::LoginWorked(profile.to_owned()));
    }

    /// A client's login worked, by this method.
    pub(crate) fn on_login(&mut self, cx: &mut Cx, id: SlotId, method: Option<String>) {
        let profile = self[&id].profile.clone();
        forget_credentials(cx, &profile);
        self.log_in(cx, &profile, AuthState::Authenticated, AuthSource::Login);
        self.logins.set_method(cx, &profile, method);
        self.end_login_repeat(id);
    }

    /// A client's logout worked, for all who use the agent.
    pub(crate) fn on_logout(&mut self, cx: &mut Cx, id: SlotId) {
        let profile = self[&id].profile.clone();
        self.set_auth(cx, &profile, AuthState::NeedsLogin, AuthSource::Logout);
        self.logins.set_method(cx, &profile, None);
        if self[&id].is_up() {
            self.set_state(cx, id, State::NeedsAuth, Some("logged out".to_owned()));
        }
    }

    /// A login of the agent works, so its slot needs no other.
    pub(crate) fn on_login_worked(&mut self, cx: &mut Cx, id: SlotId) {
        match self[&id].state {
            State::NeedsAuth => self.set_state(cx, id, State::Ready, None),
            State::Failed(Reason::NeedsLogin) => self.set_state(cx, id, State::Stopped, None),
            _ => {}
        }
    }

    /// A login was made that the processes do not know: those that do not work are restarted. A failed
    /// agent is started, as by the user.
    pub(crate) fn on_login_found(
        &mut self,
        cx: &mut Cx,
        profile: &str,
        source: AuthSource,
        is_at_work: impl Fn(SlotId) -> bool,
    ) {
        forget_credentials(cx, profile);
        self.set_auth(cx, profile, AuthState::Authenticated, source);
        let may_run = self.known(profile).row.desired != Desired::Down;
        for id in self.of_profile(profile) {
            if may_run && !is_at_work(id) {
                let runs = self[&id].host().is_some();
                self.renew(cx, id, runs.then(|| "restarted after a login".to_owned()));
            }
        }
        cx.report(EngineEvent::LoginWorked(profile.to_owned()));
    }

    /// The sessions of a slot come back with its next process; what waits is not given to the old one.
    fn renew(&mut self, cx: &mut Cx, id: SlotId, reason: Option<String>) {
        cx.report(EngineEvent::CredentialsRenewed(id));
        self.stop(cx, id, StopWhy::Restart, reason, false);
    }

    /// An agent reports its login.
    pub(crate) fn on_report(
        &mut self,
        cx: &mut Cx,
        id: SlotId,
        state: AuthState,
        activity: Activity,
    ) {
        if state.wants_login() {
            let reason = "the agent says that it is not logged in";
            self.want_login(cx, id, AuthSource::Status, reason, activity);
            return;
        }
        let profile = self[&id].profile.clone();
        if self.logins.state(&profile) != state {
            self.log_in(cx, &profile, state, AuthSource::Status);
        }
    }

    /// Sets the lifetime of a process's credentials.
    pub(crate) fn on_credentials_good(&mut self, host: HostId, until: Time) {
        let slot = self.slot_of(host).and_then(|id| self.get_mut(id));
        if let Some(host) = slot.and_then(Slot::host_mut) {
            host.stale_from = Some(until);
        }
    }

    /// Credentials aged while the machine was asleep.
    pub(crate) fn on_slept(&mut self, time: u64) {
        for host in self.iter_mut().filter_map(|(_, slot)| slot.host_mut()) {
            host.stale_from = host.stale_from.map(|from| Time(from.0.saturating_sub(time)));
        }
    }

    /// Restarts a process with expired credentials, once until a prompt succeeds, unless it works. Returns whether it
    /// is restarted; then no login is missing.
    fn renew_credentials(&mut self, cx: &mut Cx, id: SlotId, is_at_work: bool) -> bool {
        let slot = &self[&id];
        if slot.renewed {
            return slot.is_renewed();
        }
        let stale_from = slot.host().and_then(|host| host.stale_from);
        let is_stale = stale_from.is_some_and(|from| from <= cx.now);
        if !slot.is_up() || !is_stale || is_at_work {
            return false;
        }
        self.slot_mut(id).renewed = true;
        self.renew(cx, id, Some("restarted with fresh credentials".to_owned()));
        true
    }

    /// A prompt has succeeded with the credentials of the process.
    pub(crate) fn on_prompt_succeeded(&mut self, id: SlotId) {
        self.slot_mut(id).renewed = false;
    }

    /// Returns the method of the last login, if acpd may repeat it for this process: once, and only without a
    /// program that a person runs.
    pub(crate) fn login_to_repeat(
        &self,
        id: SlotId,
        config: &Config,
        is_logging_in: impl FnOnce() -> bool,
    ) -> Option<String> {
        let slot = &self[&id];
        let is_untried = slot.host().is_some_and(|host| host.login == LoginRepeat::Untried);
        if !slot.is_up() || !is_untried || is_logging_in() {
            return None;
        }
        let method = self.logins.get(&slot.profile)?.method.clone()?;
        let known = self.logins_of(&slot.profile, config);
        known.iter().any(|one| one.id == method && one.terminal.is_none()).then_some(method)
    }

    /// Some agents want a login in each process, although they keep it: the last one is repeated. Returns whether
    /// what was refused is to be asked again.
    fn repeat_login(&mut self, cx: &mut Cx, id: SlotId, is_logging_in: bool) -> bool {
        if self[&id].is_logged_in_again() {
            return true;
        }
        let method = self.login_to_repeat(id, &cx.config, || is_logging_in);
        let Some(method) = method else { return false };
        let Some(host) = self.slot_mut(id).host_mut() else { return false };
        host.login = LoginRepeat::Asked;
        cx.report(EngineEvent::LoginRepeated { slot: id, method });
        true
    }

    /// A repeated login has ended. One that fails is not repeated, because it may open a window each time.
    pub(crate) fn on_login_repeated(&mut self, cx: &mut Cx, id: SlotId, worked: bool) {
        self.end_login_repeat(id);
        let profile = self[&id].profile.clone();
        if worked {
            self.log_in(cx, &profile, AuthState::Authenticated, AuthSource::Login);
        } else {
            self.logins.set_method(cx, &profile, None);
        }
    }

    fn end_login_repeat(&mut self, id: SlotId) {
        if let Some(host) = self.slot_mut(id).host_mut() {
            host.login = LoginRepeat::Over;
        }
    }

    /// Returns the slots in which logins wait for another one.
    pub(crate) fn with_waiting_login(&self) -> Vec<SlotId> {
        let waits = |slot: &Slot| slot.is_up() && slot.waiting.iter().any(Waiting::is_login);
        self.iter().filter(|(_, slot)| waits(slot)).map(|(id, _)| *id).collect()
    }

    pub(crate) fn take_waiting_login(&mut self, id: SlotId) -> Option<Waiting> {
        let waiting = &mut self.slot_mut(id).waiting;
        let at = waiting.iter().position(Waiting::is_login)?;
        Some(waiting.remove(at))
    }
}

/// Returns the login that the result of `auth/status`, or the params of its notification, reports.
pub(crate) fn reported_login(status: &RawValue) -> Option<AuthState> {
    match str_at(status.get().as_bytes(), &["state"])?.as_ref() {
        "authenticated" => Some(AuthState::Authenticated),
        "not_required" => Some(AuthState::NotRequired),
        "unauthenticated" => Some(AuthState::NeedsLogin),
        _ => None,
    }
}

/// Returns the login that the params of `_auth/status_update` report. It is older than the protocol's own
/// notification: the adapters of Claude and Codex name the account in it.
pub(crate) fn reported_account(status: &RawValue) -> Option<AuthState> {
    match str_at(status.get().as_bytes(), &["authStatus", "kind"]).as_deref() {
        Some("none") => Some(AuthState::NeedsLogin),
        Some(_) => Some(AuthState::Authenticated),
        None => reported_login(status),
    }
}

/// Marks in `_meta` of login methods that exist because of other clients' offers for `auth`.
pub(crate) fn logins_of_others<'c>(
    profile: &str,
    offer: Option<&str>,
    config: &'c Config,
) -> Vec<&'c str> {
    let others = config.profile(profile).client_meta.iter().filter(|name| !is_offered(offer, name));
    others.filter_map(|name| name.strip_prefix("auth.")).collect()
}
