//! Notices: notifications `_acpd/…` for clients that asked for them.
//!
//! Notices about a session have its `sessionId`. Journalled ones also have `_meta._acpd.seq`, like
//! every `session/update`, for clients that asked for sequence numbers.

use serde::{Deserialize, Serialize};

use crate::{
    AgentState, CutShort, GcSession, Reseed, RestoreLevel, SessionState, TurnState, TurnUsage,
    Untrusted,
};

/// The agent got a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnStarted {
    /// Public id of the session.
    pub session_id: Untrusted,
    /// Number of the turn in its session, from 1.
    pub turn: u64,
    /// Time of the start (ms since the epoch).
    pub at: u64,
}

/// A turn has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnEnded {
    /// Public id of the session.
    pub session_id: Untrusted,
    /// Number of the turn in its session, from 1.
    pub turn: u64,
    /// Time of the start (ms since the epoch).
    #[serde(default)]
    pub started_at: u64,
    /// Time of the end (ms since the epoch).
    pub at: u64,
    /// Outcome of the turn.
    pub outcome: Outcome,
    /// Reason and client, if the turn was cancelled or its agent stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_short: Option<CutShort>,
    /// Number of tool calls, up to 256; absent if a daemon has ended during the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<u32>,
    /// Files that these calls changed, up to 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<Untrusted>,
    /// Tokens and cost, if the agent reported any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TurnUsage>,
}

/// Outcome of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    /// The agent answered with a stop reason.
    Stopped {
        /// The agent's stop reason, unchanged.
        #[serde(rename = "stopReason")]
        stop_reason: Untrusted,
    },
    /// The agent answered with an error.
    Error {
        /// Code of the JSON-RPC error.
        code: i64,
        /// Message of the agent.
        message: Untrusted,
    },
    /// The agent died or was stopped during the turn; its output stays.
    Interrupted {
        /// The reason, for people.
        reason: Untrusted,
    },
    /// The turn was cancelled, but the agent ignored that for too long and was stopped.
    Unwedged {
        /// The reason, for people.
        reason: Untrusted,
    },
    /// The agent may or may not have got the prompt; acpd does not repeat it.
    OutcomeUnknown {
        /// The reason, for people.
        reason: Untrusted,
    },
}

impl Outcome {
    /// Why the turn was cut off, if it was.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Outcome::Stopped { .. } | Outcome::Error { .. } => None,
            Outcome::Interrupted { reason }
            | Outcome::Unwedged { reason }
            | Outcome::OutcomeUnknown { reason } => Some(reason.raw()),
        }
    }

    /// All words of [`Outcome::word`], except stop reasons that the protocol does not name.
    pub const WORDS: [&str; 9] = [
        "end_turn",
        "max_tokens",
        "max_turn_requests",
        "refusal",
        "cancelled",
        "error",
        "interrupted",
        "unwedged",
        "outcome_unknown",
    ];

    /// Stands for all stop reasons that are not among the [words](Outcome::WORDS).
    pub const OTHER: &str = "other";

    /// Returns the word if it is a known one, else [`Outcome::OTHER`].
    pub fn known_word(word: &str) -> &'static str {
        Outcome::WORDS.into_iter().find(|known| *known == word).unwrap_or(Outcome::OTHER)
    }

    /// One word for lists: the stop reason or the kind of the outcome.
    pub fn word(&self) -> &str {
        match self {
            Outcome::Stopped { stop_reason } => stop_reason.raw(),
            Outcome::Error { .. } => "error",
            Outcome::Interrupted { .. } => "interrupted",
            Outcome::Unwedged { .. } => "unwedged",
            Outcome::OutcomeUnknown { .. } => "outcome_unknown",
        }
    }
}

/// A session was restored, or is lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Restored {
    /// Public id of the session.
    pub session_id: Untrusted,
    /// Completeness of the conversation.
    pub level: RestoreLevel,
    /// Time of the restore (ms since the epoch).
    pub at: u64,
    /// The reason for [`RestoreLevel::Reseeded`] and [`RestoreLevel::Lost`]; the missing part for
    /// [`RestoreLevel::Partial`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Untrusted>,
    /// The part of the conversation for the agent's new session, for [`RestoreLevel::Reseeded`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gets: Option<Reseed>,
}

/// The state of a session or of its turn has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StateChanged {
    /// Public id of the session.
    pub session_id: Untrusted,
    /// The new state.
    pub state: SessionState,
    /// The session is archived.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub archived: bool,
    /// State of its turn.
    pub turn: TurnState,
    /// Number of queued prompts.
    pub queued: u32,
    /// Tool calls and subagents that wait for an answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<Untrusted>,
    /// Reason of the state, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Untrusted>,
    /// Advice for the user, if the session waits for the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<Untrusted>,
}

/// A session was deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionGone {
    /// Public id of the session.
    pub session_id: Untrusted,
}

/// acpd has deleted sessions over a limit of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionsExpired {
    /// Up to 16 sessions, the least recently used first.
    pub sessions: Vec<GcSession>,
    /// Time of the deletion (ms since the epoch): `_acpd/session/undo` with this as `since`
    /// restores them.
    pub at: u64,
    /// Time until which they can be restored (ms since the epoch), if they can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

/// A sentence for the user of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionNotice {
    /// Public id of the session.
    pub session_id: Untrusted,
    /// Severity: `info` or `warning`.
    pub severity: Untrusted,
    /// Text of the notice.
    pub text: Untrusted,
}

/// A line of the agent was too long and was not relayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Skipped {
    /// The session, if the beginning of the line names one.
    pub session_id: Untrusted,
    /// Length of the line in bytes.
    pub bytes: u64,
    /// The limit in bytes.
    pub limit: u64,
}

/// The prompt with this request id is queued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptQueued {
    /// Public id of the session.
    pub session_id: Untrusted,
    /// Prompts before it, with the running one.
    pub ahead: u32,
}

/// A prompt was sent before under its idempotency key; this is its turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptRepeated {
    /// Public id of the session.
    pub session_id: Untrusted,
    /// Number of the turn, which runs or has ended.
    pub turn: u64,
}

/// Everything that was journalled at the time of the attach has been sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CaughtUp {
    /// Public id of the session.
    pub session_id: Untrusted,
    /// Last sent sequence number.
    pub seq: u64,
}

/// An agent has not answered a request of this client for long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unanswered {
    /// Name of the agent's profile.
    pub agent: Untrusted,
    /// Method of the request.
    pub method: Untrusted,
    /// The session in question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Untrusted>,
    /// Waiting time in milliseconds, as this daemon knows it.
    pub waited: u64,
}

/// The state of an agent has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentNotice {
    /// Name of the agent's profile.
    pub agent: Untrusted,
    /// The new state.
    pub state: AgentState,
    /// Reason of the state, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Untrusted>,
}

#[cfg(test)]
mod tests {
    use super::Outcome;

    #[test]
    fn every_outcome_of_acpd_is_a_known_word_and_an_agents_own_is_none() {
        let reason = || "why".into();
        let outcomes = [
            Outcome::Stopped { stop_reason: "end_turn".into() },
            Outcome::Error { code: -32603, message: reason() },
            Outcome::Interrupted { reason: reason() },
            Outcome::Unwedged { reason: reason() },
            Outcome::OutcomeUnknown { reason: reason() },
        ];
        for outcome in outcomes {
            assert_eq!(Outcome::known_word(outcome.word()), outcome.word());
        }
        assert_eq!(Outcome::known_word("the agent's secret"), Outcome::OTHER);
    }
}
