use serde::{Deserialize, Serialize};

use crate::{SessionInfo, Untrusted};

/// Parameters for searching conversations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchParams {
    /// Words that a hit must all have. One may be a phrase, and a `*` at its end stands for any
    /// ending. Case, accents and punctuation do not matter.
    pub words: Vec<String>,
    /// Restricts the result to sessions of this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Restricts the result to this working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Most hits to return: 20 if absent, and never more than 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Hits of a search.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SearchResult {
    /// The best first; of equal ones, the newest.
    pub hits: Vec<Hit>,
}

/// A matching message or tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hit {
    /// The session of the hit.
    pub session: SessionInfo,
    /// Sequence number of its first line.
    pub seq: u64,
    /// Time of that line (ms since the epoch).
    pub at: u64,
    /// Author of the message.
    pub by: Speaker,
    /// The text around the words; `…` stands for omitted text.
    pub snippet: Vec<Part>,
}

/// Author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// A message of the user.
    User,
    /// A message of the agent.
    Agent,
    /// The title of a tool call.
    Tool,
}

/// A piece of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The piece; joined, the pieces are the text.
    pub text: Untrusted,
    /// The piece is a searched word.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hit: bool,
}
