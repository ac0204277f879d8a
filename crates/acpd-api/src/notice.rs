//! Notices: notifications `_acpd/…` for clients that asked for them.
//!
//! Those about a session carry its `sessionId`; those that are part of its journal also carry
//! `_meta._acpd.seq`, like every `session/update`, for clients that asked for sequence numbers.

use serde::{Deserialize, Serialize};

use crate::{
    AgentState, CutShort, GcSession, Reseed, RestoreLevel, SessionState, TurnState, TurnUsage,
    Untrusted,
};

/// A prompt was given to the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnStarted {
    /// Session.
    pub session_id: Untrusted,
    /// Number of the turn in its session, from 1.
    pub turn: u64,
    /// When (ms since the epoch).
    pub at: u64,
}

/// A turn is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnEnded {
    /// Session.
    pub session_id: Untrusted,
    /// Number of the turn in its session, from 1.
    pub turn: u64,
    /// When it began (ms since the epoch).
    #[serde(default)]
    pub started_at: u64,
    /// When (ms since the epoch).
    pub at: u64,
    /// How.
    pub outcome: Outcome,
    /// Who or what cut it short, if acpd knows: somebody cancelled it, or stopped its agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_short: Option<CutShort>,
    /// Tool calls of the agent in it, up to 256; not known if a daemon has ended during the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<u32>,
    /// Files that they have changed, as far as the agent has said, up to 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<Untrusted>,
    /// What it has used, as far as the agent has told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TurnUsage>,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    /// The agent answered with a stop reason.
    Stopped {
        /// The agent's stop reason, as it gave it.
        #[serde(rename = "stopReason")]
        stop_reason: Untrusted,
    },
    /// The agent answered with an error.
    Error {
        /// JSON-RPC error code.
        code: i64,
        /// The agent's message.
        message: Untrusted,
    },
    /// The agent died or was stopped in the middle; what was shown stays.
    Interrupted {
        /// Why, in words.
        reason: Untrusted,
    },
    /// The turn was cancelled, the agent ignored that for too long and was stopped.
    Unwedged {
        /// Why, in words.
        reason: Untrusted,
    },
    /// It is not known whether the agent got the prompt; it is never sent again by itself.
    OutcomeUnknown {
        /// Why, in words.
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

    /// The words that [`Outcome::word`] gives, but for stop reasons that the protocol does not
    /// name: an agent may say any number of those.
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

    /// The word that is one of the known ones, where an agent's own must not be told.
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

/// A session is usable again after its agent was restarted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Restored {
    /// Session.
    pub session_id: Untrusted,
    /// What was kept.
    pub level: RestoreLevel,
    /// When (ms since the epoch).
    pub at: u64,
    /// Why, for [`RestoreLevel::Reseeded`] and [`RestoreLevel::Lost`]; what is missing, for
    /// [`RestoreLevel::Partial`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Untrusted>,
    /// Part of the conversation that the agent's new session gets, for [`RestoreLevel::Reseeded`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gets: Option<Reseed>,
}

/// A session changed its state, or what its turn does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StateChanged {
    /// Session.
    pub session_id: Untrusted,
    /// New state.
    pub state: SessionState,
    /// It is in the archive.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub archived: bool,
    /// What its turn does.
    pub turn: TurnState,
    /// Prompts that wait for the running one.
    pub queued: u32,
    /// Why, when there is something to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Untrusted>,
    /// What a person can do, if the session waits for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<Untrusted>,
}

/// A session was deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionGone {
    /// Session.
    pub session_id: Untrusted,
}

/// Sessions that acpd has deleted because they were over a limit of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionsExpired {
    /// Up to 16 sessions, the one that was used longest ago first.
    pub sessions: Vec<GcSession>,
    /// When (ms since the epoch): `_acpd/session/undo` with this as `since` brings them back.
    pub at: u64,
    /// Until when they can be brought back (ms since the epoch), if they can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

/// A sentence for the person at a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionNotice {
    /// Session.
    pub session_id: Untrusted,
    /// `info` or `warning`.
    pub severity: Untrusted,
    /// The sentence.
    pub text: Untrusted,
}

/// A line of the agent was too long and was not relayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Skipped {
    /// Session, when the head of the line named one.
    pub session_id: Untrusted,
    /// Length of the line in bytes.
    pub bytes: u64,
    /// Limit in bytes.
    pub limit: u64,
}

/// The prompt with this request id waits behind others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptQueued {
    /// Session.
    pub session_id: Untrusted,
    /// Prompts before it, the running one included.
    pub ahead: u32,
}

/// A prompt was sent before under its idempotency key, and this is the turn that it has become.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptRepeated {
    /// Session.
    pub session_id: Untrusted,
    /// Number of the turn, which runs or has ended.
    pub turn: u64,
}

/// Everything that was journalled at the time of the attach has been sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CaughtUp {
    /// Session.
    pub session_id: Untrusted,
    /// The client has everything up to here.
    pub seq: u64,
}

/// An agent has not answered a request of this client for long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unanswered {
    /// Profile name.
    pub agent: Untrusted,
    /// Method of the request.
    pub method: Untrusted,
    /// The session that it is about, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Untrusted>,
    /// For how long, in milliseconds, as far as this daemon knows.
    pub waited: u64,
}

/// An agent changed its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentNotice {
    /// Profile name.
    pub agent: Untrusted,
    /// New state.
    pub state: AgentState,
    /// Why, when there is something to say.
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
