//! The input of hooks: JSON for commands of the configuration's `[hooks]` table.

use serde::{Deserialize, Serialize};
use strum::{EnumDiscriminants, IntoStaticStr};

use crate::{InteractionInfo, Outcome, Untrusted};

/// Input of a hook on stdin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, EnumDiscriminants)]
#[serde(tag = "event", rename_all = "snake_case")]
#[strum_discriminants(
    name(HookEvent),
    doc = "Events that can run a command of the configuration, with the word in `event`.",
    derive(PartialOrd, Ord, IntoStaticStr),
    strum(serialize_all = "snake_case")
)]
pub enum HookInfo {
    /// An agent has a question: a permission, a form or a page.
    Permission(InteractionInfo),
    /// A turn is over.
    TurnEnd(TurnEndInfo),
    /// An agent's process ended unexpectedly.
    Crash(AgentTroubleInfo),
    /// An agent requires a login.
    Login(AgentTroubleInfo),
}

/// A turn that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnEndInfo {
    /// Name of the agent's profile.
    pub agent: Untrusted,
    /// Id of the session.
    pub session_id: Untrusted,
    /// Name of the session.
    pub name: Option<Untrusted>,
    /// Working directory of the session.
    pub cwd: Untrusted,
    /// Time of the end (ms since the epoch).
    pub at: u64,
    /// Number of the turn in its session, from 1.
    pub turn: u64,
    /// Outcome of the turn.
    pub outcome: Outcome,
}

/// Trouble with an agent's process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentTroubleInfo {
    /// Name of the agent's profile.
    pub agent: Untrusted,
    /// The session, if the process belongs to it alone (`sharing = "session"`).
    pub session_id: Option<Untrusted>,
    /// Name of the session.
    pub name: Option<Untrusted>,
    /// Working directory of the session.
    pub cwd: Option<Untrusted>,
    /// Time (ms since the epoch).
    pub at: u64,
    /// The reason, for people.
    pub reason: Untrusted,
}
