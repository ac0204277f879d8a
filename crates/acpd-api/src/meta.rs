//! Members `_acpd` inside `_meta`.

use serde::{Deserialize, Serialize};

use crate::{ClientToken, Shown};

/// `_meta._acpd` of a client's `initialize`: its wishes beyond plain ACP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClientMeta {
    /// The agent profile of this connection; absent: that of the workspace with `cwd`, else the
    /// configured default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Working directory of the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Send `_acpd/…` notices.
    pub notices: bool,
    /// Put `_meta._acpd` with the sequence number into each `session/update`.
    pub seq: bool,
    /// Send lines of version 2 of the protocol as agents have sent them, with the member `version` in
    /// their `_meta._acpd`, also to a client of version 1.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub originals: bool,
    /// Longest line in bytes that the client can take; longer ones become a `_acpd/skipped` notice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_line: Option<u64>,
    /// Token of a client that resumes after a lost connection. Its lines have sequence numbers even
    /// without `seq`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientToken>,
    /// Role of such a client in the sessions that it resumes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Place of the client's user, for other clients: `pts/3`, `phone`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Marks a tool of an agent: it has the rights of a client under an agent, wherever its process
    /// runs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tool: bool,
}

/// `_meta._acpd` of a client's `session/new`; `name` and `labels` also of its `session/fork`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NewSessionMeta {
    /// Handle for people, unique per agent and workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// If the name is taken, answer with that session (as `session/resume` would) instead of an
    /// error.
    pub reuse: bool,
    /// The session whose agent creates this one, by acpd's number for a tool of that session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<u64>,
    /// Labels of the new session, as in `_acpd/session/label`. Absent: none, or those of the session
    /// that is forked. A session that `reuse` continues keeps its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<String>>,
}

/// `_meta._acpd` of a client's `session/prompt`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PromptMeta {
    /// `allow` or `reject`: the answer to every permission question of this turn that is a plain
    /// yes or no and that no rule of the configuration refuses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<String>,
    /// Ticket of a withdrawn prompt that this one replaces in the queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_place_of: Option<u64>,
    /// 1 to 255 characters: a prompt with the same key in the same session is the same prompt. It
    /// waits for the first one's turn, or gets its outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// Title of the session until it has another one, for prompts that wrap the user's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// `_meta._acpd` of a `session/request_permission`, for clients that asked for notices.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionMeta {
    /// Id of the question, as in `_acpd/interaction/list` and `_acpd/answered`.
    #[serde(default)]
    pub id: String,
    /// The call in question: the answer is about this.
    pub shown: Shown,
    /// Number of changes of the call while the question was open.
    #[serde(default)]
    pub changed: u32,
}

/// `_meta._acpd` of a `session/update`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UpdateMeta {
    /// Position in the session's journal, from 1, without gaps in the journal itself; only on
    /// request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The message went into a running turn.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub steered: bool,
    /// Version of the protocol of a line that is not of the client's version; only on request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
}

/// Rights of an attached client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Prompts, answers questions, changes modes.
    #[default]
    Controller,
    /// Reads without questions and requests.
    Observer,
}
