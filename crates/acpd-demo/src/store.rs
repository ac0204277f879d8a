//! Sessions on disk: one file of JSON lines each, written as real agents do. The user's message is
//! stored before the turn runs, the answer only after it, so a killed turn leaves a question
//! without an answer.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::settings::Settings;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Entry {
    Session { cwd: String },
    Settings { settings: Settings },
    User { prompt: Vec<Value> },
    Agent { text: String },
}

impl Entry {
    /// The blocks of a message, and the kind of their chunks.
    pub(crate) fn content(self) -> (&'static str, Vec<Value>) {
        match self {
            Entry::User { prompt } => ("user_message_chunk", prompt),
            Entry::Agent { text } => {
                ("agent_message_chunk", vec![json!({"type": "text", "text": text})])
            }
            Entry::Session { .. } | Entry::Settings { .. } => ("", Vec::new()),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Stored {
    pub(crate) cwd: String,
    pub(crate) settings: Settings,
    /// Only [`Entry::User`] and [`Entry::Agent`].
    pub(crate) messages: Vec<Entry>,
}

impl Stored {
    fn of(entries: impl IntoIterator<Item = Entry>) -> Stored {
        let mut stored = Stored::default();
        for entry in entries {
            match entry {
                Entry::Session { cwd } => stored.cwd = cwd,
                Entry::Settings { settings } => stored.settings = settings,
                message => stored.messages.push(message),
            }
        }
        stored
    }

    pub(crate) fn prompts(&self) -> Vec<String> {
        let prompt = |entry: &Entry| match entry {
            Entry::User { prompt } => Some(prompt_text(prompt)),
            _ => None,
        };
        self.messages.iter().filter_map(prompt).collect()
    }
}

pub(crate) fn prompt_text(prompt: &[Value]) -> String {
    let texts: Vec<&str> = prompt.iter().filter_map(|block| block["text"].as_str()).collect();
    texts.join("\n")
}

pub(crate) struct Store {
    root: PathBuf,
}

impl Store {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    pub(crate) fn forget(&self) {
        let _ = fs::remove_dir_all(self.root.join("sessions"));
    }

    /// Replaces the file of an older session with the same id.
    pub(crate) fn create(&self, id: &str, cwd: &str, settings: &Settings) -> io::Result<()> {
        let path = self.session_file(id).ok_or(io::ErrorKind::InvalidInput)?;
        fs::create_dir_all(self.root.join("sessions"))?;
        let mut file = File::create(path)?;
        write_entry(&mut file, &Entry::Session { cwd: cwd.to_owned() })?;
        write_entry(&mut file, &Entry::Settings { settings: settings.clone() })
    }

    /// Copies a session's file for a fork, and returns its content.
    pub(crate) fn copy(&self, from: &str, id: &str, cwd: &str) -> io::Result<Stored> {
        let mut stored = self.read(from).ok_or(io::ErrorKind::NotFound)?;
        cwd.clone_into(&mut stored.cwd);
        self.create(id, cwd, &stored.settings)?;
        stored.messages.iter().try_for_each(|entry| self.append(id, entry))?;
        Ok(stored)
    }

    /// Adds to an existing file: a deleted session stays deleted.
    pub(crate) fn append(&self, id: &str, entry: &Entry) -> io::Result<()> {
        let path = self.session_file(id).ok_or(io::ErrorKind::InvalidInput)?;
        write_entry(&mut OpenOptions::new().append(true).open(path)?, entry)
    }

    pub(crate) fn read(&self, id: &str) -> Option<Stored> {
        Some(Stored::of(entries(File::open(self.session_file(id)?).ok()?)))
    }

    /// Reads a session up to its first prompt, so that the time of a list does not grow with
    /// conversations.
    fn read_head(&self, id: &str) -> Option<Stored> {
        let mut head = Vec::new();
        for entry in entries(File::open(self.session_file(id)?).ok()?) {
            let is_prompt = matches!(entry, Entry::User { .. });
            head.push(entry);
            if is_prompt {
                break;
            }
        }
        Some(Stored::of(head))
    }

    pub(crate) fn delete(&self, id: &str) {
        if let Some(path) = self.session_file(id) {
            let _ = fs::remove_file(path);
        }
    }

    /// All sessions up to their first prompts, sorted by id.
    pub(crate) fn list(&self) -> Vec<(String, Stored)> {
        let mut sessions: Vec<(String, Stored)> = fs::read_dir(self.root.join("sessions"))
            .into_iter()
            .flatten()
            .filter_map(|entry| {
                let id = entry.ok()?.path().file_stem()?.to_str()?.to_owned();
                self.read_head(&id).map(|stored| (id, stored))
            })
            .collect();
        sessions.sort_by(|a, b| a.0.cmp(&b.0));
        sessions
    }

    pub(crate) fn has(&self, marker: &str) -> bool {
        self.root.join(marker).exists()
    }

    pub(crate) fn mark(&self, marker: &str) -> io::Result<()> {
        fs::create_dir_all(&self.root)?;
        fs::write(self.root.join(marker), "")
    }

    pub(crate) fn unmark(&self, marker: &str) -> io::Result<()> {
        match fs::remove_file(self.root.join(marker)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Returns the trimmed content of a file; empty if it does not exist.
    pub(crate) fn text(&self, name: &str) -> String {
        let text = fs::read_to_string(self.root.join(name)).unwrap_or_default();
        text.trim().to_owned()
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The file of a session; `None` for an id that is no plain file name.
    fn session_file(&self, id: &str) -> Option<PathBuf> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let valid = !id.is_empty() && id.chars().all(plain);
        valid.then(|| self.root.join("sessions").join(format!("{id}.jsonl")))
    }
}

/// The lines of a session's file. A killed process may leave the last one cut off.
fn entries(file: File) -> impl Iterator<Item = Entry> {
    let lines = BufReader::new(file).split(b'\n').map_while(Result::ok);
    lines.filter_map(|line| serde_json::from_slice(&line).ok())
}

fn write_entry(file: &mut File, entry: &Entry) -> io::Result<()> {
    let mut line = serde_json::to_vec(entry)?;
    line.push(b'\n');
    file.write_all(&line)
}
