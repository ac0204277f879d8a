//! Words about logins that agents, processes and sessions share. `process/logins.rs` has the logins.

use crate::cx::Cx;
use crate::input::Effect;

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
