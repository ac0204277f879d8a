//! What acpd does for agents when no editor does it: files of a session, confined to its folders.
//! And what the hub has to know of files and of the journal.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use acp_wire::code;
use acpd_core::ids::{InteractionId, Seq, SessionKey};
use acpd_core::{FileService, Input, ServeError};
use acpd_services::fs::{FsError, Roots, read_text_file, write_text_file};
use acpd_sys::limits;
use bytes::Bytes;
use serde_json::json;
use tokio::sync::{Semaphore, mpsc};

use crate::journal::Journal;

/// Requests that are served at once. The others wait; each blocks a thread.
const AT_ONCE: usize = 8;

/// Serves requests of agents, and tells when one is done.
#[derive(Debug)]
pub struct Services {
    done: mpsc::UnboundedSender<Input>,
    turn: Arc<Semaphore>,
}

impl Services {
    /// The services, which report what they have done. The hub bounds the requests that are open.
    pub fn new(done: mpsc::UnboundedSender<Input>) -> Services {
        Services { done, turn: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Serves one request on a thread of its own.
    pub fn serve(&self, errand: InteractionId, roots: Vec<String>, service: FileService) {
        let (done, turn) = (self.done.clone(), Arc::clone(&self.turn));
        tokio::spawn(async move {
            // It is never closed.
            let _turn = turn.acquire_owned().await;
            let task = tokio::task::spawn_blocking(move || serve(&roots, service));
            let result = task.await.unwrap_or_else(|failed| {
                Err(ServeError { code: code::INTERNAL, message: failed.to_string() })
            });
            // The daemon ends.
            done.send(Input::Served { errand, result }).ok();
        });
    }

    /// Looks for a directory.
    pub fn find_directory(&self, question: u64, cwd: String) {
        let done = self.done.clone();
        tokio::task::spawn_blocking(move || {
            // One that may not be looked at may be there.
            let exists = Path::new(&cwd).metadata().map_or_else(
                |error| !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
                |found| found.is_dir(),
            );
            // The daemon ends.
            done.send(Input::DirectoryFound { question, exists }).ok();
        });
    }

    /// Sums up a session.
    pub fn summarize(&self, journal: Journal, session: SessionKey, upto: Seq) {
        let done = self.done.clone();
        tokio::spawn(async move {
            let text = journal.summary(session, upto).await;
            // The daemon ends.
            done.send(Input::Summary { session, text }).ok();
        });
    }
}

fn serve(roots: &[String], service: FileService) -> Result<Bytes, ServeError> {
    let mut folders = roots.iter().map(PathBuf::from);
    let cwd = folders.next().unwrap_or_default();
    let more: Vec<PathBuf> = folders.collect();
    let served = Roots::open(&cwd, &more, limits::found_umask()).and_then(|roots| match service {
        FileService::ReadTextFile { path, line, limit } => {
            let content = read_text_file(&roots, Path::new(&path), line, limit)?;
            Ok(json!({ "content": content }))
        }
        FileService::WriteTextFile { path, content } => {
            write_text_file(&roots, Path::new(&path), &content)?;
            Ok(json!({}))
        }
    });
    served.map(|result| Bytes::from(result.to_string())).map_err(|error| refusal(&error))
}

fn refusal(error: &FsError) -> ServeError {
    let code = match error {
        FsError::NotFound { .. } => code::NOT_FOUND,
        FsError::Io { .. } => code::INTERNAL,
        _ => code::INVALID_PARAMS,
    };
    let message = match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    };
    ServeError { code, message }
}
