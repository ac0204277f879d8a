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
//! Each profile has one state, on disk. A login is missing if a request fails with -32000 or one of
//! the profile's `auth_errors`, or if `auth/status` says so. The refused session waits with its
//! undispatched prompts for a login or the user's next prompt. A missing login is no failure of the
//! process and costs no restart.
//!
//! Before it asks the user, acpd restarts a process with expired credentials, and repeats the
//! agent's last login where each process needs one.

use acp_wire::acp::AuthMethod;
use acp_wire::{ErrorObject, build, code, str_at};
use acpd_api::{AuthChanged, AuthInfo, AuthSource, AuthState, LoginMethod, Reason, method};
use serde_json::value::RawValue;

use crate::cx::Cx;
use crate::event::EngineEvent;
use crate::fault::{Refusal, login_hint};
use crate::ids::{HostId, SlotId, Time};
use crate::input::Effect;
use crate::offer::is_offered;
use crate::process::slot::{LoginRepeat, Slot, State, StopWhy, WaitFor, Waiting};
use crate::process::table::{Processes, mark};
use crate::profile::Config;
use crate::record::{AuthRow, Desired, Row};

const PROMPT: &str = "session/prompt";

/// Work of a process that a login must not disturb.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Activity {
    pub(crate) is_at_work: bool,
    pub(crate) is_logging_in: bool,
}

impl Waiting {
    fn is_login(&self) -> bool {
        matches!(&self.what, WaitFor::Relay { method, .. } if changes_login(method))
    }
}

impl Processes {
    pub(crate) fn auth_state(&self, profile: &str) -> AuthState {
        self.logins.get(profile).map_or(AuthState::Unknown, |row| row.state)
    }

    fn set_auth(&mut self, cx: &mut Cx, profile: &str, state: AuthState, source: AuthSource) {
        let old = self.logins.get(profile);
        if old.is_some_and(|row| row.state == state && row.source == source) {
            return;
        }
        let since = old.filter(|row| row.state == state).map_or(cx.now, |row| row.since);
        let method = old.and_then(|row| row.method.clone());
        let row = AuthRow { agent: profile.to_owned(), state, since, source, method };
        self.logins.insert(profile.to_owned(), row.clone());
        cx.put(Row::Auth(row));
        mark(&mut self.changed, profile);
        self.watch_login(cx, profile);
        let notice =
            AuthChanged { agent: profile.into(), auth: self.auth_info(profile, &cx.config) };
        let line = build::notification(method::AUTH_CHANGED, &notice);
        cx.report(EngineEvent::AgentNotified { agent: profile.to_owned(), line });
    }

    fn set_login_method(&mut self, cx: &mut Cx, profile: &str, method: Option<String>) {
        if let Some(row) = self.logins.get_mut(profile)
            && row.method != method
        {
            row.method = method;
            cx.put(Row::Auth(row.clone()));
        }
    }

    pub(crate) fn watch_logins(&self, cx: &mut Cx) {
        self.logins.keys().for_each(|profile| self.watch_login(cx, profile));
    }

    /// Watches the file with an agent's login while a login is missing.
    fn watch_login(&self, cx: &mut Cx, profile: &str) {
        if cx.config.profile(profile).has_login_file {
            let wanted = self.auth_state(profile).wants_login();
            cx.send(Effect::WatchLogin { agent: profile.to_owned(), wanted });
        }
    }

    pub(crate) fn auth_info(&self, profile: &str, config: &Config) -> AuthInfo {
        let row = self.logins.get(profile);
        let state = self.auth_state(profile);
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

    /// Returns the login methods that every client can use.
    fn logins_of(&self, profile: &str, config: &Config) -> Vec<&AuthMethod> {
        let others = logins_of_others(profile, None, config);
        let is_for_all =
            |login: &&AuthMethod| !login.meta.iter().any(|member| others.contains(&&**member));
        self.known(profile).methods.iter().filter(is_for_all).collect()
    }

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
            // A failed login says nothing about other logins.
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
        cx.forget_credentials(&profile);
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
        let state = match self.auth_state(profile) {
            AuthState::Authenticated => AuthState::Expired,
            AuthState::Unknown | AuthState::NotRequired => AuthState::NeedsLogin,
            AuthState::NeedsLogin | AuthState::Expired => return,
        };
        self.set_auth(cx, profile, state, source);
    }

    /// The next process starts with a login or the user's next prompt.
    pub(super) fn on_start_refused(
        &mut self,
        cx: &mut Cx,
        id: SlotId,
        source: AuthSource,
        error: ErrorObject,
    ) {
        let profile = self[&id].profile.clone();
        let is_news = !self.auth_state(&profile).wants_login();
        cx.forget_credentials(&profile);
        self.miss_login(cx, &profile, source);
        if is_news {
            let reason = error.message.clone();
            cx.report(EngineEvent::LoginWanted { slot: id, reason });
        }
        cx.report(EngineEvent::StartWantsLogin { slot: id, error });
    }

    /// Handles a successful request, which may prove a login. After a refused prompt only a prompt
    /// proves one, because many agents make and load sessions without a login.
    pub(crate) fn on_success(&mut self, cx: &mut Cx, id: SlotId, method: &str) {
        if method == PROMPT {
            self.slot_mut(id).renewed = false;
        }
        let profile = self[&id].profile.clone();
        let proves = match self.logins.get(&profile) {
            Some(AuthRow { state: AuthState::Authenticated | AuthState::NotRequired, .. }) => false,
            Some(AuthRow {
                source: AuthSource::Refused { method: of } | AuthSource::Pattern { method: of },
                ..
            }) => method == PROMPT || of != PROMPT,
            _ => method == PROMPT,
        };
        if proves {
            let has_one = self.auth_state(&profile).wants_login()
                || !self.logins_of(&profile, &cx.config).is_empty();
            let state = if has_one { AuthState::Authenticated } else { AuthState::NotRequired };
            self.log_in(cx, &profile, state, AuthSource::Worked { method: method.into() });
        }
    }

    fn log_in(&mut self, cx: &mut Cx, profile: &str, state: AuthState, source: AuthSource) {
        self.set_auth(cx, profile, state, source);
        cx.report(EngineEvent::LoginWorked(profile.to_owned()));
    }

    pub(crate) fn on_login(&mut self, cx: &mut Cx, id: SlotId, method: Option<String>) {
        let profile = self[&id].profile.clone();
        cx.forget_credentials(&profile);
        self.log_in(cx, &profile, AuthState::Authenticated, AuthSource::Login);
        self.set_login_method(cx, &profile, method);
        self.end_login_repeat(id);
    }

    pub(crate) fn on_logout(&mut self, cx: &mut Cx, id: SlotId) {
        let profile = self[&id].profile.clone();
        self.set_auth(cx, &profile, AuthState::NeedsLogin, AuthSource::Logout);
        self.set_login_method(cx, &profile, None);
        if self[&id].is_up() {
            self.set_state(cx, id, State::NeedsAuth, Some("logged out".to_owned()));
        }
    }

    pub(crate) fn on_login_worked(&mut self, cx: &mut Cx, id: SlotId) {
        match self[&id].state {
            State::NeedsAuth => self.set_state(cx, id, State::Ready, None),
            State::Failed(Reason::NeedsLogin) => self.set_state(cx, id, State::Stopped, None),
            _ => {}
        }
    }

    /// Handles a login outside of the processes. Idle ones are restarted, and a failed agent is
    /// started.
    pub(crate) fn on_login_found(
        &mut self,
        cx: &mut Cx,
        profile: &str,
        source: AuthSource,
        is_at_work: impl Fn(SlotId) -> bool,
    ) {
        cx.forget_credentials(profile);
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

    /// Sessions and waiting requests move to the next process.
    fn renew(&mut self, cx: &mut Cx, id: SlotId, reason: Option<String>) {
        cx.report(EngineEvent::CredentialsRenewed(id));
        self.stop(cx, id, StopWhy::Restart, reason, false);
    }

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
        if self.auth_state(&profile) != state {
            self.log_in(cx, &profile, state, AuthSource::Status);
        }
    }

    pub(crate) fn on_credentials_good(&mut self, host: HostId, until: Time) {
        let slot = self.slot_of(host).and_then(|id| self.get_mut(id));
        if let Some(host) = slot.and_then(Slot::host_mut) {
            host.stale_from = Some(until);
        }
    }

    pub(crate) fn on_slept(&mut self, time: u64) {
        for host in self.iter_mut().filter_map(|(_, slot)| slot.host_mut()) {
            host.stale_from = host.stale_from.map(|from| Time(from.0.saturating_sub(time)));
        }
    }

    /// Restarts an idle process with expired credentials, once until a prompt succeeds. Returns
    /// whether it is being restarted.
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

    /// Returns the last method: once per process, and only without a program that the user runs.
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

    /// Some agents need a login in each process. Returns whether the refused request can be sent
    /// again.
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

    /// A failed login is not repeated, because it may open a window each time.
    pub(crate) fn on_login_repeated(&mut self, cx: &mut Cx, id: SlotId, worked: bool) {
        self.end_login_repeat(id);
        let profile = self[&id].profile.clone();
        if worked {
            self.log_in(cx, &profile, AuthState::Authenticated, AuthSource::Login);
        } else {
            self.set_login_method(cx, &profile, None);
        }
    }

    fn end_login_repeat(&mut self, id: SlotId) {
        if let Some(host) = self.slot_mut(id).host_mut() {
            host.login = LoginRepeat::Over;
        }
    }

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

pub(crate) fn changes_login(method: &str) -> bool {
    matches!(method, "authenticate" | "logout")
}

pub(crate) fn reported_login(status: &RawValue) -> Option<AuthState> {
    match str_at(status.get().as_bytes(), &["state"])?.as_ref() {
        "authenticated" => Some(AuthState::Authenticated),
        "not_required" => Some(AuthState::NotRequired),
        "unauthenticated" => Some(AuthState::NeedsLogin),
        _ => None,
    }
}

/// Reads `_auth/status_update`, which is older than ACP's notification. The adapters of Claude and
/// Codex name the account in it.
pub(crate) fn reported_account(status: &RawValue) -> Option<AuthState> {
    match str_at(status.get().as_bytes(), &["authStatus", "kind"]).as_deref() {
        Some("none") => Some(AuthState::NeedsLogin),
        Some(_) => Some(AuthState::Authenticated),
        None => reported_login(status),
    }
}

/// Returns marks of login methods that exist because of other clients' offers for `auth`.
pub(crate) fn logins_of_others<'c>(
    profile: &str,
    offer: Option<&str>,
    config: &'c Config,
) -> Vec<&'c str> {
    let others = config.profile(profile).client_meta.iter().filter(|name| !is_offered(offer, name));
    others.filter_map(|name| name.strip_prefix("auth.")).collect()
}
