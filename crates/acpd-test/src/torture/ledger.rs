//! The record of an agent: everything that its processes have sent and received.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use acpd_demo::{Direction, RecordLine, record_lines};
use serde_json::Value;

use super::view::numbered;
use crate::home::Result;

#[derive(Debug, Default)]
pub(super) struct Ledger {
    path: PathBuf,
    offset: u64,
    /// Outcome of each prompt, by its tag.
    pub(super) prompts: BTreeMap<String, Received>,
    /// Questions: process, id, number of answers.
    pub(super) questions: BTreeMap<(u32, String), u32>,
    /// Processes of the agent, in the order of their start.
    pub(super) starts: Vec<u32>,
    /// Processes of an earlier run that lived at a start.
    pub(super) beside: Vec<String>,
    /// Open prompts: process and request to tag.
    open: BTreeMap<(u32, String), String>,
}

#[derive(Debug, Default)]
pub(super) struct Received {
    pub(super) by: Vec<u32>,
    /// Chunks that it began to write.
    pub(super) chunks: Vec<String>,
    /// Number of answers.
    pub(super) answers: u32,
}

impl Ledger {
    pub(super) fn new(path: PathBuf) -> Ledger {
        Ledger { path, ..Ledger::default() }
    }

    pub(super) fn refresh(&mut self) -> Result {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        file.seek(SeekFrom::Start(self.offset))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        self.offset += whole as u64;
        record_lines(&bytes[..whole]).for_each(|line| self.take(&line));
        Ok(())
    }

    /// The running process, if it is known.
    pub(super) fn leader(&self) -> Option<u32> {
        self.starts.last().copied()
    }

    fn take(&mut self, RecordLine { pid, dir, line, .. }: &RecordLine) {
        match dir {
            Direction::Event if line == "start" => self.starts.push(*pid),
            Direction::Event if line.starts_with("beside ") => {
                self.beside.push(format!("{line}, when {pid} started"));
            }
            Direction::Event => {}
            Direction::In => self.received(*pid, &parse(line)),
            Direction::Out => self.sent(*pid, &parse(line)),
        }
    }

    fn received(&mut self, pid: u32, message: &Value) {
        let id = message["id"].to_string();
        if message["method"] == "session/prompt" {
            let text = message["params"]["prompt"][0]["text"].as_str().unwrap_or_default();
            let tag = text.split(' ').next().unwrap_or_default();
            self.prompts.entry(tag.to_owned()).or_default().by.push(pid);
            self.open.insert((pid, id), tag.to_owned());
        } else if message.get("method").is_none() {
            *self.questions.entry((pid, id)).or_default() += 1;
        }
    }

    fn sent(&mut self, pid: u32, message: &Value) {
        let id = message["id"].to_string();
        for chunk in numbered(message) {
            let tag = chunk.split('/').next().unwrap_or_default();
            self.prompts.entry(tag.to_owned()).or_default().chunks.push(chunk.to_owned());
        }
        if message["method"] == "session/request_permission" {
            self.questions.entry((pid, id)).or_default();
        } else if message.get("method").is_none()
            && let Some(tag) = self.open.remove(&(pid, id))
        {
            self.prompts.entry(tag).or_default().answers += 1;
        }
    }
}

fn parse(line: &str) -> Value {
    // The agent writes only lines that it could parse or has made itself.
    serde_json::from_str(line).unwrap_or_default()
}
