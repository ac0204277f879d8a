//! Logins of agents. Only [`Logins`] changes them, and each change is a record; the hub notifies
//! clients and starts or stops processes (`process/logins.rs` decides, `hub/process/logins.rs` has the reactions).

use std::collections::BTreeMap;

use acpd_api::{AuthSource, AuthState};

use crate::cx::Cx;
use crate::ids::Time;
use crate::input::Effect;
use crate::record::{AuthRow, Record};

const PROMPT: &str = "session/prompt";

#[derive(Debug, Default)]
pub(crate) struct Logins {
    by_profile: BTreeMap<String, AuthRow>,
}

impl Logins {
    pub(crate) fn new(by_profile: BTreeMap<String, AuthRow>) -> Logins {
        Logins { by_profile }
    }

    pub(crate) fn get(&self, profile: &str) -> Option<&AuthRow> {
        self.by_profile.get(profile)
    }

    pub(crate) fn profiles(&self) -> impl Iterator<Item = &String> {
        self.by_profile.keys()
    }

    pub(crate) fn state(&self, profile: &str) -> AuthState {
        self.get(profile).map_or(AuthState::Unknown, |row| row.state)
    }

    /// Returns whether that is news.
    pub(crate) fn set(
        &mut self,
        cx: &mut Cx,
        profile: &str,
        state: AuthState,
        source: AuthSource,
        now: Time,
    ) -> bool {
        let old = self.get(profile);
        if old.is_some_and(|row| row.state == state && row.source == source) {
            return false;
        }
        let since = old.filter(|row| row.state == state).map_or(now, |row| row.since);
        let method = old.and_then(|row| row.method.clone());
        let row = AuthRow { agent: profile.to_owned(), state, since, source, method };
        self.by_profile.insert(profile.to_owned(), row.clone());
        cx.record(Record::Auth(row));
        true
    }

    /// Remembers the method of the last login, or that there is none to repeat.
    pub(crate) fn set_method(&mut self, cx: &mut Cx, profile: &str, method: Option<String>) {
        if let Some(row) = self.by_profile.get_mut(profile)
            && row.method != method
        {
            row.method = method;
            cx.record(Record::Auth(row.clone()));
        }
    }

    /// The state after a login is wanted; nothing if that is known.
    pub(crate) fn after_refusal(&self, profile: &str) -> Option<AuthState> {
        match self.state(profile) {
            AuthState::Authenticated => Some(AuthState::Expired),
            AuthState::Unknown | AuthState::NotRequired => Some(AuthState::NeedsLogin),
            AuthState::NeedsLogin | AuthState::Expired => None,
        }
    }

    /// The state after a request worked; nothing if that proves no login. After a prompt was refused only
    /// a prompt proves that there is one: many agents make and load sessions without it.
    pub(crate) fn after_success(
        &self,
        profile: &str,
        method: &str,
        offers_login: bool,
    ) -> Option<AuthState> {
        let proves = match self.get(profile) {
            Some(AuthRow { state: AuthState::Authenticated | AuthState::NotRequired, .. }) => false,
            Some(AuthRow {
                source: AuthSource::Refused { method: of } | AuthSource::Pattern { method: of },
                ..
            }) => method == PROMPT || of != PROMPT,
            _ => method == PROMPT,
        };
        let has_one = self.state(profile).wants_login() || offers_login;
        let state = if has_one { AuthState::Authenticated } else { AuthState::NotRequired };
        proves.then_some(state)
    }
}

pub(crate) fn login_hint(agent: &str) -> String {
    format!("`acpctl auth login {agent}`, then try again")
}

/// The meaning of an agent's error for the login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Other,
    NeedsLogin,
    /// The process is restarted with fresh credentials.
    Renewed,
}

/// Returns whether a method changes the login of a whole process.
pub(crate) fn changes_login(method: &str) -> bool {
    matches!(method, "authenticate" | "logout")
}

/// The next process of an agent gets no value of a credential that was looked up for another login.
pub(crate) fn forget_credentials(cx: &mut Cx, profile: &str) {
    cx.send(Effect::ForgetCredentials { agent: profile.to_owned() });
}
