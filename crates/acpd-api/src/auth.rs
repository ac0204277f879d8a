//! Whether an agent is logged in, as far as acpd knows.

use serde::{Deserialize, Serialize};

use crate::Untrusted;

/// Whether an agent is logged in, how acpd knows that, and the ways to log in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthInfo {
    /// The state.
    pub state: AuthState,
    /// Since when (ms since the epoch); 0 while nothing is known.
    pub since: u64,
    /// What it was learned from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<AuthSource>,
    /// The ways to log in that the agent offered last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<LoginMethod>,
    /// The way out, while a login is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<Untrusted>,
    /// The command of the configuration that logs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Untrusted>,
}

/// Whether an agent is logged in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthState {
    /// Nothing has told it yet.
    #[default]
    Unknown,
    /// It works without a login.
    NotRequired,
    /// It is logged in.
    Authenticated,
    /// It wants a login.
    NeedsLogin,
    /// It was logged in, and wants a login again.
    Expired,
}

impl AuthState {
    /// Whether a person has to log in before the agent works.
    pub fn wants_login(self) -> bool {
        matches!(self, AuthState::NeedsLogin | AuthState::Expired)
    }
}

/// What the state of a login was learned from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AuthSource {
    /// A request was refused with -32000.
    Refused {
        /// Its method.
        method: Untrusted,
    },
    /// A request failed with an error that `auth_errors` of the configuration describes.
    Pattern {
        /// Its method.
        method: Untrusted,
    },
    /// A request worked that would not have without a login.
    Worked {
        /// Its method.
        method: Untrusted,
    },
    /// The agent said so: `auth/status`, or its notification.
    Status,
    /// A person logged in.
    Login,
    /// The file changed in which the agent keeps its login.
    LoginFile,
    /// A person logged out.
    Logout,
}

/// A way to log in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoginMethod {
    /// Its id.
    pub id: Untrusted,
    /// Its name for people.
    pub name: Untrusted,
    /// `agent` (a call of `authenticate`), `terminal` (a command in a person's terminal), or another.
    pub kind: Untrusted,
}

/// Notice: it changed whether an agent is logged in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthChanged {
    /// Profile name.
    pub agent: Untrusted,
    /// How it is now.
    pub auth: AuthInfo,
}
