//! Rows: what a daemon needs besides the journals to go on where another one ended.
//!
//! A row belongs to an owner (an agent, process, session or client). The rows of a process, session
//! or client are deleted with it.

use acp_wire::{Id, Version};
use acpd_policy::Remembered;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::ids::{HostId, InteractionId, Seq, SessionKey};
use crate::record::{
    AgentRow, AskedRow, AuthRow, HostRow, InteractionRow, PromptKeyRow, ReplyRow, SessionRow,
    TurnRow, ValueKey,
};

/// On disk, a row is its JSON and its [`Row::line`]. Names are on disk, too: a new name is a
/// migration. Readers pass over members that they do not know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Row {
    Client {
        token: String,
        #[serde(default, skip_serializing_if = "is_first")]
        version: Version,
        /// Lines that are processed in this or an earlier transaction.
        received: u64,
    },
    /// An answer, kept until the client confirms it.
    Reply(ReplyRow),
    /// Written before the first line to the process. Without a process id until it runs.
    Host(HostRow),
    /// A line to a process that may be unwritten.
    Outbox {
        host: HostId,
        /// From 1 per process.
        chunk: u64,
        /// Without its newline.
        #[serde(skip)]
        line: Bytes,
    },
    /// A line about a session that the agent has not named yet.
    Parked {
        host: HostId,
        /// From 1 per process.
        place: u64,
        session: String,
        #[serde(skip)]
        line: Bytes,
    },
    Asked(AskedRow),
    Interaction(InteractionRow),
    /// A turn that has not ended.
    Turn(TurnRow),
    /// The client's `session/prompt` line of a turn.
    Prompt {
        session: SessionKey,
        ticket: u64,
        #[serde(skip)]
        line: Bytes,
    },
    /// Written with the events of a session.
    Journal(JournalRow),
    Session(Box<SessionRow>),
    /// The client's `mcpServers` (JSON text). May hold secrets.
    Secret {
        session: SessionKey,
        #[serde(skip)]
        mcp_servers: Bytes,
    },
    /// A value from the agent's result, for later attaches.
    Value {
        session: SessionKey,
        key: ValueKey,
        #[serde(skip)]
        json: Bytes,
    },
    PromptKey(PromptKeyRow),
    Agent(AgentRow),
    Auth(AuthRow),
    Remembered(Remembered),
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_first(version: &Version) -> bool {
    *version == Version::default()
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalRow {
    pub session: SessionKey,
    /// Last position.
    pub head: Seq,
    /// Positions of the last event of each state key, in the order of
    /// [`StateKey::ALL`](acp_wire::StateKey::ALL); 0 or missing = none.
    pub states: Vec<Seq>,
}

/// Rows that are deleted one by one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowId {
    Reply(String, Id),
    Outbox(HostId, u64),
    Parked(HostId, u64),
    Asked(u64),
    Interaction(InteractionId),
    /// A turn and its prompt, by ticket.
    Turn(SessionKey, u64),
    Remembered(i64),
}

impl Row {
    /// Returns the bytes that are no part of the JSON: a line of a peer, or JSON text.
    pub fn line(&self) -> Option<&Bytes> {
        match self {
            Row::Outbox { line, .. }
            | Row::Parked { line, .. }
            | Row::Prompt { line, .. }
            | Row::Secret { mcp_servers: line, .. }
            | Row::Value { json: line, .. } => Some(line),
            Row::Reply(row) => Some(&row.line),
            Row::Interaction(row) => Some(&row.line),
            Row::Session(row) => Some(&row.params),
            Row::PromptKey(row) => Some(&row.outcome),
            Row::Agent(row) => row.initialize.as_ref(),
            _ => None,
        }
    }

    /// Completes a row that was read from its JSON.
    #[must_use]
    pub fn with_line(mut self, bytes: Bytes) -> Row {
        match &mut self {
            Row::Outbox { line, .. }
            | Row::Parked { line, .. }
            | Row::Prompt { line, .. }
            | Row::Secret { mcp_servers: line, .. }
            | Row::Value { json: line, .. } => *line = bytes,
            Row::Reply(row) => row.line = bytes,
            Row::Interaction(row) => row.line = bytes,
            Row::Session(row) => row.params = bytes,
            Row::PromptKey(row) => row.outcome = bytes,
            Row::Agent(row) => row.initialize = Some(bytes),
            _ => {}
        }
        self
    }
}
