//! Logins of agents. Only [`Logins`] changes them, and each change is a record. `process/logins.rs`
//! decides what clients and processes do then.

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

    pub(crate) fn set_method(&mut self, cx: &mut Cx, profile: &str, method: Option<String>) {
        if let Some(row) = self.by_profile.get_mut(profile)
            && row.method != method
        {
            row.method = method;
            cx.record(Record::Auth(row.clone()));
        }
    }

    /// Returns the new state after a login error, if it differs.
    pub(crate) fn after_refusal(&self, profile: &str) -> Option<AuthState> {
        match self.state(profile) {
            AuthState::Authenticated => Some(AuthState::Expired),
            AuthState::Unknown | AuthState::NotRequired => Some(AuthState::NeedsLogin),
            AuthState::NeedsLogin | AuthState::Expired => None,
        }
    }

    /// Returns the new state after a successful request, if the request proves a login. After a
    /// refused prompt only a prompt proves one, because many agents make and load sessions without
    /// a login.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Other,
    NeedsLogin,
    Renewed,
}

pub(crate) fn changes_login(method: &str) -> bool {
    matches!(method, "authenticate" | "logout")
}

/// Makes the next process look up fresh credentials, because the login has changed.
pub(crate) fn forget_credentials(cx: &mut Cx, profile: &str) {
    cx.send(Effect::ForgetCredentials { agent: profile.to_owned() });
}
