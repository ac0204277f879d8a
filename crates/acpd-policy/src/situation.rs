//! Session of a permission request, and verdicts.

use std::fmt;

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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Allow,
    Reject,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
