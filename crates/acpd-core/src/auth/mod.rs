//! What acpd says and tells apart about logins. No state lives here; the hub's `process` files call it.

use crate::input::{Batch, Effect};

pub(crate) fn login_hint(agent: &str) -> String {
    format!("`acpctl auth login {agent}`, then try again")
}

/// What an error of an agent says about the login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Nothing.
    Other,
    /// One is wanted.
    NeedsLogin,
    /// The process is started anew, with fresh credentials.
    Renewed,
}

/// Whether a method changes the login of a whole process.
pub(crate) fn changes_login(method: &str) -> bool {
    matches!(method, "authenticate" | "logout")
}

/// The next process of an agent gets no value of a credential that was looked up for another login.
pub(crate) fn forget_credentials(profile: &str, out: &mut Batch) {
    out.effects.push(Effect::ForgetCredentials { agent: profile.to_owned() });
}
