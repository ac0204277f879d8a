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
    /// All scopes.
    pub const ALL: [Scope; 3] = [Scope::Watch, Scope::Prompt, Scope::Answer];

    /// Returns the word of the scope.
    pub fn word(self) -> &'static str {
        match self {
            Scope::Watch => "watch",
            Scope::Prompt => "prompt",
            Scope::Answer => "answer",
        }
    }
}
