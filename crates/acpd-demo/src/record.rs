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

/// Reads a record. A missing file is an empty record.
pub fn read_record(path: impl AsRef<Path>) -> Vec<RecordLine> {
    record_lines(&std::fs::read(path).unwrap_or_default()).collect()
}

/// The lines of a part of a record, without those that a kill has cut off.
pub fn record_lines(part: &[u8]) -> impl Iterator<Item = RecordLine> {
    part.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Wire;

    #[test]
    fn a_line_that_a_kill_has_cut_off_hides_no_other() {
        let path = std::env::temp_dir().join(format!("acpd-record-{}", std::process::id()));
        std::fs::write(&path, "{\"").expect("a folder for it");
        Wire::new(Box::new(std::io::sink()), Some(&path)).expect("a record").event("start");
        let lines = read_record(&path);
        std::fs::remove_file(&path).expect("no record is left");
        assert_eq!(lines.iter().map(|line| line.line.as_str()).collect::<Vec<_>>(), ["start"]);
    }
}
