//! Session of a permission request, and verdicts.

use serde::{Deserialize, Serialize};

/// The session of a permission request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Situation<'a> {
    /// The name of the agent's profile.
    pub agent: &'a str,
    pub cwd: &'a str,
    /// `--yes` or `--deny` of this one run.
    pub once: Option<Verdict>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Verdict {
    Allow,
    Reject,
}
