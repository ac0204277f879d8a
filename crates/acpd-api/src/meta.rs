//! Members `_acpd` inside `_meta`.

use serde::{Deserialize, Serialize};

use crate::{ClientToken, Shown};

/// `_meta`, and of it what is acpd's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct Meta<T> {
    /// The member `_acpd`.
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
    /// Send `_acpd/…` notices.
    pub notices: bool,
    /// Put `_meta._acpd` with the sequence number into each `session/update`.
    pub seq: bool,
    /// Longest line in bytes that the client can take; longer ones become a `_acpd/skipped` notice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_line: Option<u64>,
    /// Names a client that wants to come back after a lost connection. Its lines carry sequence
    /// numbers whatever `seq` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientToken>,
    /// The role of such a client in the sessions that it resumes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Where its person is, in words, for others who are told what that person did: `pts/3`, `phone`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// It is a tool of an agent, wherever its process runs: no person is there, and what holds for clients
    /// that run under an agent holds for it.
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
    /// The ticket of a prompt that was taken back and that this one is in the place of: if it has to wait, it
    /// waits before all that came to the queue after that one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_place_of: Option<u64>,
    /// 1 to 255 characters: a prompt that is sent again under the same key in the same session is the same
    /// prompt. It waits for the turn of the first one, or gets its outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The session's title until it has another, in place of the beginning of the prompt: for a prompt that
    /// wraps what its sender said. An agent's title that repeats the beginning of such a prompt is none.
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
    /// How often the agent changed the call while a person was asked. Each time it was asked anew.
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

/// What an attached client may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Prompts, answers permissions, changes modes.
    #[default]
    Controller,
    /// Watches only.
    Observer,
}
