//! Members `_acpd` inside `_meta`.

use serde::{Deserialize, Serialize};

use crate::{ClientToken, Shown};

/// `_meta`, and of it what is acpd's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct Meta<T> {
    /// acpd's member of `_meta`.
    #[serde(rename = "_acpd", default)]
    pub own: T,
}

/// `_meta._acpd` of a client's `initialize`: what it wants beyond plain ACP. Absent = plain ACP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClientMeta {
    /// The agent profile this connection is bound to; when absent, that of the workspace with `cwd`, else the
    /// configured default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The directory that the client works in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Ask for `_acpd/…` notices.
    pub notices: bool,
    /// Put `_meta._acpd` with the sequence number into each `session/update`.
    pub seq: bool,
    /// Longest line in bytes that the client can take; longer ones become a `_acpd/skipped` notice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_line: Option<u64>,
    /// Token of a client that wants to resume after a lost connection. Its lines have sequence
    /// numbers even without `seq`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientToken>,
    /// The role of such a client in the sessions that it resumes.
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

/// `_meta._acpd` of a client's `session/new`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NewSessionMeta {
    /// Handle for people, unique per agent and workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// When the name is taken, answer with that session (as `session/resume` would) instead of an
    /// error.
    pub reuse: bool,
    /// The session whose agent wants it, by the number that acpd gave to a tool of that session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<u64>,
}

/// `_meta._acpd` of a client's `session/prompt`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PromptMeta {
    /// `allow` or `reject`: the answer to every permission question of this turn that a rule of the
    /// configuration does not refuse and that is a plain yes or no.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<String>,
    /// Ticket of a prompt that was taken back and that this one replaces: it is queued before all
    /// later ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_place_of: Option<u64>,
    /// 1 to 255 characters: a prompt that is sent again under the same key in the same session is the same
    /// prompt. It waits for the turn of the first one, or gets its outcome.
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
    /// The call that the question is about: what is decided is this.
    pub shown: Shown,
    /// Number of changes of the call while the question was open.
    #[serde(default)]
    pub changed: u32,
}

/// `_meta._acpd` of a `session/update`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UpdateMeta {
    /// Position in the session's journal, from 1, without gaps in the journal itself; for clients that
    /// asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The message went into a turn that was running, and began none.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub steered: bool,
}

/// Rights of an attached client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Prompts, answers permissions, changes modes.
    #[default]
    Controller,
    /// Watches without questions and requests.
    Observer,
}
