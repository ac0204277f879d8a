//! Lines between acpd and agents, as they go.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::resume::RawId;
use crate::{SessionRef, Untrusted};

/// Parameters of `_acpd/trace`: one session, or one agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TraceParams {
    /// The lines about this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionRef>,
    /// All lines of this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Also those between acpd and its clients.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub clients: bool,
    /// With what is in them, without secrets.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub full: bool,
    /// Only methods that fit this pattern, in which `*` stands for anything, and the answers to them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
}

/// Notification `_acpd/traced`: a line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Traced {
    /// When acpd had it (ms since the epoch).
    pub at: u64,
    /// From whom to whom.
    pub direction: Direction,
    /// The agent, for a line from or to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Untrusted>,
    /// Number of the client's connection, for a line from or to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<u64>,
    /// What it is.
    pub kind: LineKind,
    /// Its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<RawId>,
    /// Its method; of an answer that of its request, if that was traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<Untrusted>,
    /// What a `session/update` tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update: Option<Untrusted>,
    /// The session that it names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Untrusted>,
    /// Its size.
    pub bytes: u64,
    /// Of an answer, the time since its request (ms), if that was traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took: Option<f64>,
    /// So many lines before it are missing, because the reader was too slow.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missed: u64,
    /// What is in it, without secrets, if that is wanted and it is not too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Box<RawValue>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// From whom to whom a line goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From acpd to an agent.
    ToAgent,
    /// From an agent to acpd.
    FromAgent,
    /// From acpd to a client.
    ToClient,
    /// From a client to acpd.
    FromClient,
}

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineKind {
    /// A request.
    Request,
    /// A notification.
    Notification,
    /// The answer to a request.
    Response,
    /// The error in the place of an answer.
    Error,
    /// No message that acpd can read.
    Unreadable,
}
