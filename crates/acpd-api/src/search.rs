//! Full-text search: parameters and results.

use serde::{Deserialize, Serialize};

use crate::{SessionInfo, Untrusted};

/// Parameters of `_acpd/session/search`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SearchParams {
    /// A hit has all of them. One may be several words that follow each other, and a `*` at its end stands
    /// for the rest of a word. Case, accents and punctuation do not matter.
    pub words: Vec<String>,
    /// Only sessions of this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Only sessions with this working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The most hits to return; 20 when absent, and never more than 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Result of `_acpd/session/search`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SearchResult {
    /// The best first; of those that are as good, the newest.
    pub hits: Vec<Hit>,
}

/// A message or a tool call that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hit {
    /// The session that it is in.
    pub session: SessionInfo,
    /// Its first line in the session's journal.
    pub seq: u64,
    /// When that came, in milliseconds since the epoch.
    pub at: u64,
    /// Who said or did it.
    pub by: Speaker,
    /// The text around the words; `…` stands for what was left out.
    pub snippet: Vec<Part>,
}

/// Who said or did something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// The user said it.
    User,
    /// The agent said it.
    Agent,
    /// It is the title of a tool call.
    Tool,
}

/// A piece of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// The piece; put together, the pieces are the text.
    pub text: Untrusted,
    /// It is one of the words that were looked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hit: bool,
}
