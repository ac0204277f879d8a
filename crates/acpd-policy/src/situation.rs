//! The session of a question, and the possible verdicts.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a question comes up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Situation<'a> {
    /// The name of the agent's profile.
    pub agent: &'a str,
    /// The working directory of the session.
    pub cwd: &'a str,
    /// The answer that was given beforehand for this one run (`--yes`, `--deny`).
    pub once: Option<Verdict>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It may be done.
    Allow,
    /// It may not be done.
    Reject,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
