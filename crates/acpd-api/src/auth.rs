use serde::{Deserialize, Serialize};

use crate::Untrusted;

/// An agent's login: state, evidence, and ways to log in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthInfo {
    /// State of the login.
    pub state: AuthState,
    /// Start of the state (ms since the epoch); 0 while it is unknown.
    pub since: u64,
    /// Evidence for the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<AuthSource>,
    /// The agent's last offered ways to log in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<LoginMethod>,
    /// The way out while a login is required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<Untrusted>,
    /// The configured command that logs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Untrusted>,
}

/// State of an agent's login.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthState {
    /// Not known yet.
    #[default]
    Unknown,
    /// The agent works without a login.
    NotRequired,
    /// The agent is logged in.
    Authenticated,
    /// The agent requires a login.
    NeedsLogin,
    /// The agent was logged in and requires a login again.
    Expired,
}

impl AuthState {
    /// Returns whether the user has to log in before the agent works.
    pub fn wants_login(self) -> bool {
        matches!(self, AuthState::NeedsLogin | AuthState::Expired)
    }
}

/// Evidence for the state of a login.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AuthSource {
    /// A request was refused with -32000.
    Refused {
        /// Method of that request.
        method: Untrusted,
    },
    /// A request failed with an error that `auth_errors` of the configuration describes.
    Pattern {
        /// Method of that request.
        method: Untrusted,
    },
    /// A request succeeded that needs a login.
    Worked {
        /// Method of that request.
        method: Untrusted,
    },
    /// The agent reported it: `auth/status`, or its notification.
    Status,
    /// The user logged in.
    Login,
    /// The file of the agent's login changed.
    LoginFile,
    /// The user logged out.
    Logout,
}

/// A way to log in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginMethod {
    /// Identifier of the method.
    pub id: Untrusted,
    /// Name for people.
    pub name: Untrusted,
    /// `agent` (a call of `authenticate`), `terminal` (a command in the user's terminal), or
    /// another.
    pub kind: Untrusted,
}

/// Notice: an agent's login has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthChanged {
    /// Name of the agent's profile.
    pub agent: Untrusted,
    /// The new state of the login.
    pub auth: AuthInfo,
}
