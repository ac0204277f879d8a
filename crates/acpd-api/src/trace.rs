use acp_wire::Id;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::shown::is_zero;
use crate::{SessionRef, Untrusted};

/// Parameters of `_acpd/trace`: one session, or one agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TraceParams {
    /// Trace the lines of this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionRef>,
    /// Trace all lines of this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Include lines between acpd and its clients.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub clients: bool,
    /// Include the messages, without secrets.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub full: bool,
    /// Pattern for methods, in which `*` stands for any text; answers follow their requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
}

/// Notification `_acpd/traced`: a line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Traced {
    /// Time in acpd (ms since the epoch).
    pub at: u64,
    /// Sender and receiver.
    pub direction: Direction,
    /// The agent, for a line from or to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Untrusted>,
    /// Number of the client's connection, for a line from or to a client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<u64>,
    /// Kind of the line.
    pub kind: LineKind,
    /// Id of the request, or of the answered one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Id>,
    /// Method of the line, or of the answered request, if that was traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<Untrusted>,
    /// Kind of a `session/update`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update: Option<Untrusted>,
    /// The session in the line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Untrusted>,
    /// Size of the line in bytes.
    pub bytes: u64,
    /// Time since the request (ms) for an answer, if the request was traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took: Option<f64>,
    /// Number of lines missing before this one, because the reader was too slow.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missed: u64,
    /// The message without secrets, if requested and not too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Box<RawValue>>,
}

/// Sender and receiver of a line.
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

/// Kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineKind {
    /// A JSON-RPC request, with an id.
    Request,
    /// A JSON-RPC notification, without an id.
    Notification,
    /// The answer to a request.
    Response,
    /// An error as the answer.
    Error,
    /// A line that is no message.
    Unreadable,
}
