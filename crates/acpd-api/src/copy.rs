//! Reports about copies of the journal.

use serde::{Deserialize, Serialize};

use crate::Untrusted;

/// A line of what `acpd backup` and `acpd restore` print.
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

/// A copy of the journal: what `acpctl backup --json` and `acpctl restore --json` print.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CopyReport {
    /// The copy: the backup, or the journal that was restored.
    pub file: Untrusted,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// Sessions in it, deleted ones that can be brought back among them.
    pub sessions: u64,
    /// When one of them was used last (ms since the epoch).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated: Option<u64>,
    /// Where the journal is kept that was there before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Untrusted>,
}
