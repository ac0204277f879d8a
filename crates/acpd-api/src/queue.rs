//! Prompts that wait for the running turn of a session.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::{SessionInfo, SessionRef, Untrusted};

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
    /// Its place among those that wait, counted from 1: the number by which people know it.
    pub place: u32,
    /// What it is known by to programs: no other prompt of the session ever has it. It gets another one when it is
    /// moved, or another is moved past it.
    pub ticket: u64,
    /// Since when it waits (ms since the epoch).
    pub at: u64,
    /// What is said: a list of content blocks (ACP), as it was sent.
    pub prompt: Box<RawValue>,
}

impl QueuedPrompt {
    /// Its words, and the blocks that are no words.
    pub fn parts(&self) -> (String, Vec<Value>) {
        let blocks: Vec<Value> = serde_json::from_str(self.prompt.get()).unwrap_or_default();
        let (words, others): (Vec<_>, Vec<_>) =
            blocks.into_iter().partition(|block| block["type"] == "text");
        let words: Vec<&str> = words.iter().filter_map(|block| block["text"].as_str()).collect();
        (words.join("\n"), others)
    }
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

/// Parameters of `_acpd/session/queue/move`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueMoveParams {
    /// Which session.
    #[serde(rename = "ref")]
    pub session: SessionRef,
    /// Which prompt.
    pub ticket: u64,
    /// Where to.
    pub to: QueueStep,
    /// Who moves it, for the others: `acpctl queue`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// Where a prompt that waits is moved to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueStep {
    /// Before all others.
    First,
    /// Before the one in front of it.
    Up,
    /// Behind the one that follows it.
    Down,
}

/// Result of `_acpd/session/cancel`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelResult {
    /// The session; its turn runs until the agent has ended it.
    pub session: SessionInfo,
    /// Whether a turn was running.
    pub running: bool,
    /// How many prompts that waited were taken back.
    pub taken_back: u32,
    /// Those prompts, the first to be sent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prompts: Vec<QueuedPrompt>,
}
