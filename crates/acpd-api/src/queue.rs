//! Prompts that wait for the running turn of a session.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{SessionRef, Untrusted};

/// The prompts that wait in a session.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueInfo {
    /// Session.
    pub session_id: Untrusted,
    /// The next one first.
    pub prompts: Vec<QueuedPrompt>,
}

/// A prompt that waits.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueuedPrompt {
    /// Its number, which no other prompt of the session ever has.
    pub ticket: u64,
    /// Since when it waits (ms since the epoch).
    pub at: u64,
    /// What is said: a list of content blocks (ACP), as it was sent.
    pub prompt: Box<RawValue>,
}

/// Parameters of `_acpd/session/queue/remove`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueRemoveParams {
    /// Which session.
    #[serde(rename = "ref")]
    pub session: SessionRef,
    /// Which prompt.
    pub ticket: u64,
    /// Who takes it back, for the others: `acpctl queue`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// Parameters of `_acpd/session/queue/edit`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueEditParams {
    /// Which session.
    #[serde(rename = "ref")]
    pub session: SessionRef,
    /// Which prompt.
    pub ticket: u64,
    /// What it says from now on: a list of content blocks (ACP).
    pub prompt: Box<RawValue>,
    /// Who changes it, for the others: `acpctl queue`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}
