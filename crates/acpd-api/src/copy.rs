use serde::{Deserialize, Serialize};

use crate::Untrusted;

/// A line of output of `acpd backup` and `acpd restore`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CopyLine {
    /// Progress of the copy, in pages of the database.
    Progress {
        /// Number of copied pages.
        done: u32,
        /// Number of all pages.
        of: u32,
    },
    /// The last line: the copy is finished.
    Done(CopyReport),
}

/// A copy of the journal, as `acpctl backup --json` and `acpctl restore --json` print it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyReport {
    /// Path of the backup, or of the restored journal.
    pub file: Untrusted,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// Number of sessions, with deleted ones that can still be restored.
    pub sessions: u64,
    /// Last use of any session (ms since the epoch).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated: Option<u64>,
    /// Path of the replaced journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Untrusted>,
}
