//! The record: every line that a scripted agent received or sent, for tests.

use std::path::Path;

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    In,
    Out,
    /// No line of the wire: `start`, `eof` or `exit CODE`.
    Event,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordLine {
    /// The writing process; processes may share a record.
    pub pid: u32,
    pub dir: Direction,
    /// Position in the record of this process, from 0.
    pub n: u64,
    /// The line without its line feed; bytes that are not UTF-8 are replaced.
    pub line: String,
}

/// Reads a record. A missing file is an empty record; an unfinished line is left out.
pub fn read_record(path: impl AsRef<Path>) -> Vec<RecordLine> {
    let text = std::fs::read(path).unwrap_or_default();
    text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}
