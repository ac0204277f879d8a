//! The input of hooks: the JSON that commands of the configuration's `[hooks]` table get.

use serde::{Deserialize, Serialize};

use crate::{InteractionInfo, Outcome, Untrusted};

/// Input of a hook on stdin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum HookInfo {
    /// An agent asks a person: a permission, a form or a page.
    Permission(InteractionInfo),
    /// A turn is over.
    TurnEnd(TurnEndInfo),
    /// An agent's process ended unexpectedly.
    Crash(AgentTroubleInfo),
    /// An agent wants a login.
    Login(AgentTroubleInfo),
}

impl HookInfo {
    /// Returns the kind of this event.
    pub fn event(&self) -> HookEvent {
        match self {
            HookInfo::Permission(_) => HookEvent::Permission,
            HookInfo::TurnEnd(_) => HookEvent::TurnEnd,
            HookInfo::Crash(_) => HookEvent::Crash,
            HookInfo::Login(_) => HookEvent::Login,
        }
    }
}

/// Events that can run a command of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookEvent {
    /// An agent asks a person.
    Permission,
    /// A turn has ended.
    TurnEnd,
    /// An agent's process ended unexpectedly.
    Crash,
    /// An agent wants a login.
    Login,
}

impl HookEvent {
    /// All events that can have a hook.
    pub const ALL: [HookEvent; 4] =
        [HookEvent::Permission, HookEvent::TurnEnd, HookEvent::Crash, HookEvent::Login];

    /// The word for it in `event`, and in `ACPD_EVENT`.
    pub fn word(self) -> &'static str {
        match self {
            HookEvent::Permission => "permission",
            HookEvent::TurnEnd => "turn_end",
            HookEvent::Crash => "crash",
            HookEvent::Login => "login",
        }
    }
}

/// A turn that is over.
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
    /// When it ended (ms since the epoch).
    pub at: u64,
    /// Number of the turn in its session, from 1.
    pub turn: u64,
    /// Outcome of the turn.
    pub outcome: Outcome,
}

/// Something that happened to an agent's process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentTroubleInfo {
    /// Name of the agent's profile.
    pub agent: Untrusted,
    /// The session, if the process is that session's own (`sharing = "session"`).
    pub session_id: Option<Untrusted>,
    /// Name of the session.
    pub name: Option<Untrusted>,
    /// Working directory of the session.
    pub cwd: Option<Untrusted>,
    /// When (ms since the epoch).
    pub at: u64,
    /// The reason, for people.
    pub reason: Untrusted,
}
