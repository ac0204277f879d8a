use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

/// The scope of a token of `acpctl web`.
///
/// Architecture invariant: a method without a scope never reaches the daemon from elsewhere. The
/// daemon's start and end, its agents' processes, logins, the policy and deletions are for the
/// terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// See everything, change nothing.
    Watch,
    /// Begin sessions, send and cancel prompts.
    Prompt,
    /// Decide: answer agents, and set what they ask about.
    Answer,
}

impl Scope {
    /// All scopes with their words.
    pub const ALL: [(&'static str, Scope); 3] =
        [("watch", Scope::Watch), ("prompt", Scope::Prompt), ("answer", Scope::Answer)];
}

impl FromStr for Scope {
    type Err = &'static str;

    fn from_str(word: &str) -> Result<Scope, Self::Err> {
        let known = Scope::ALL.into_iter().find(|(known, _)| *known == word);
        known.map(|(_, scope)| scope).ok_or("the scopes are: watch, prompt, answer")
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Scope::ALL.into_iter().find(|(_, known)| known == self);
        f.write_str(known.map_or("", |(word, _)| word))
    }
}
