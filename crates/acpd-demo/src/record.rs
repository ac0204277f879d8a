//! The record: every line that a scripted agent received or sent, for tests.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

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

/// Appends to a record. Each line is one write before the agent acts on it, so that it is there
/// even if the process dies.
pub(crate) struct Recorder(Mutex<(File, u64)>);

impl Recorder {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let path = path.to_string_lossy().replace("%p", &std::process::id().to_string());
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self(Mutex::new((file, 0))))
    }

    pub(crate) fn note(&self, dir: Direction, line: &[u8]) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, n) = &mut *inner;
        let entry = RecordLine {
            pid: std::process::id(),
            dir,
            n: *n,
            line: String::from_utf8_lossy(line).into_owned(),
        };
        if let Ok(mut bytes) = serde_json::to_vec(&entry) {
            bytes.push(b'\n');
            // A full disk must not change what the agent does.
            let _ = file.write_all(&bytes);
        }
        *n += 1;
    }
}
