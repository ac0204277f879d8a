use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::{SessionInfo, SessionRef, Untrusted};

/// The queued prompts of a session.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueInfo {
    /// Public id of the session.
    pub session_id: Untrusted,
    /// The next one first.
    pub prompts: Vec<QueuedPrompt>,
}

/// A queued prompt.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct QueuedPrompt {
    /// Place in the queue, counted from 1.
    pub place: u32,
    /// Unique number of the prompt in its session. A move gives new tickets to it and to all that
    /// it passes.
    pub ticket: u64,
    /// Time when it was queued (ms since the epoch).
    pub at: u64,
    /// Content blocks (ACP), unchanged.
    pub prompt: Box<RawValue>,
}

impl QueuedPrompt {
    /// Returns the text of the prompt, and its other blocks.
    pub fn parts(&self) -> (String, Vec<Value>) {
        let blocks: Vec<Value> = serde_json::from_str(self.prompt.get()).unwrap_or_default();
        let (words, others): (Vec<_>, Vec<_>) =
            blocks.into_iter().partition(|block| block["type"] == "text");
        let words: Vec<&str> = words.iter().filter_map(|block| block["text"].as_str()).collect();
        (words.join("\n"), others)
    }
}

/// Parameters for taking back a queued prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueRemoveParams {
    /// The session in question.
    #[serde(rename = "ref")]
    pub session: SessionRef,
    /// Ticket of the prompt.
    pub ticket: u64,
    /// Name of the caller, for other clients: `acpctl queue`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// Parameters for changing a queued prompt.
#[derive(Debug, Serialize, Deserialize)]
pub struct QueueEditParams {
    /// The session in question.
    #[serde(rename = "ref")]
    pub session: SessionRef,
    /// Ticket of the prompt.
    pub ticket: u64,
    /// The new content blocks (ACP).
    pub prompt: Box<RawValue>,
    /// Name of the caller, for other clients: `acpctl queue`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// Parameters for moving a queued prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueMoveParams {
    /// The session in question.
    #[serde(rename = "ref")]
    pub session: SessionRef,
    /// Ticket of the prompt.
    pub ticket: u64,
    /// The new place in the queue.
    pub to: QueueStep,
    /// Name of the caller, for other clients: `acpctl queue`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// Target of a move in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueStep {
    /// To the front of the queue.
    First,
    /// One place forward.
    Up,
    /// One place back.
    Down,
}

/// Effect of a cancel.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelResult {
    /// The session; its turn runs until the agent has ended it.
    pub session: SessionInfo,
    /// A turn was running.
    pub running: bool,
    /// Number of queued prompts that were taken back.
    pub taken_back: u32,
    /// Number of parts of the work in the background that the agent was asked to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<u32>,
    /// These prompts, in the order of the queue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prompts: Vec<QueuedPrompt>,
}

impl CancelResult {
    /// The result for a session in which nothing was cancelled.
    pub fn of(session: SessionInfo) -> Self {
        Self { session, running: false, taken_back: 0, background: None, prompts: Vec::new() }
    }
}
