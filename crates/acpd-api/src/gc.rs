use serde::{Deserialize, Serialize};

use crate::Untrusted;

/// Parameters for deleting sessions over a limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GcParams {
    /// List the sessions without deleting them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Delete for good, so that no session can be restored.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub now: bool,
    /// Restricts the deletion to sessions with these numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only: Option<Vec<u32>>,
}

/// Sessions over a limit, listed or deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GcResult {
    /// The sessions, least recently used first.
    pub sessions: Vec<GcSession>,
    /// Bytes of all their journals.
    pub bytes: u64,
    /// Number of sessions that the next call may delete. 0 after a dry run.
    pub left: u32,
    /// Time until which they can be restored (ms since the epoch).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    /// Time of the next automatic deletion (ms since the epoch).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// A session over a limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GcSession {
    /// Public id of the session.
    pub session_id: Untrusted,
    /// Number of the session.
    pub number: u32,
    /// Name of its agent.
    pub agent: Untrusted,
    /// Name of the session, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Untrusted>,
    /// Title of the session, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Untrusted>,
    /// Working directory of the session.
    pub cwd: Untrusted,
    /// Last use of the session (ms since the epoch).
    pub updated: u64,
    /// Bytes of its journal.
    pub bytes: u64,
    /// The exceeded limit.
    pub limit: GcLimit,
    /// The directory of `[[workspace]]` that has the limit; absent for one of `[retention]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Untrusted>,
}

/// Kind of an exceeded limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GcLimit {
    /// The session was unused for longer than `max_age`.
    MaxAge,
    /// `max_sessions` others were used later.
    MaxSessions,
    /// The journals of later used sessions already fill `max_size`.
    MaxSize,
    /// A newer limit than this client knows.
    #[serde(other)]
    Other,
}
