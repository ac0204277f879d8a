//! What the limits of the configuration let go.

use serde::{Deserialize, Serialize};

use crate::Untrusted;

/// Parameters of `_acpd/gc`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GcParams {
    /// Only say what would go.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// For good: nothing brings it back.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub now: bool,
    /// Of those that may go only these, by their numbers: what a person has been shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only: Option<Vec<u32>>,
}

/// Result of `_acpd/gc`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GcResult {
    /// What would go, or has gone, the session that was used longest ago first.
    pub sessions: Vec<GcSession>,
    /// What was said in all of them, in bytes.
    pub bytes: u64,
    /// So many more may go: the next call deletes some of them. 0 after a dry run.
    pub left: u32,
    /// Until when what has gone can be brought back (ms since the epoch), if it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    /// When acpd deletes by itself what is over a limit then (ms since the epoch).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// A session that goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GcSession {
    /// Its public id.
    pub session_id: Untrusted,
    /// Its number.
    pub number: u32,
    /// Its agent.
    pub agent: Untrusted,
    /// Its name, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Untrusted>,
    /// Its title, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Untrusted>,
    /// The directory that it works in.
    pub cwd: Untrusted,
    /// When it was used last (ms since the epoch).
    pub updated: u64,
    /// What was said in it, in bytes.
    pub bytes: u64,
    /// The limit by which it goes.
    pub limit: GcLimit,
    /// The directory of `[[workspace]]` that has the limit; absent for one of `[retention]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Untrusted>,
}

/// Why a session goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GcLimit {
    /// It was not used for longer than that.
    MaxAge,
    /// As many others were used later.
    MaxSessions,
    /// Those that were used later take as much.
    MaxSize,
    /// A newer limit than this client knows.
    #[serde(other)]
    Other,
}
