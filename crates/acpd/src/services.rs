//! Serves a session's files, confined to its folders, when no editor does. Also looks up
//! directories and summaries for the hub.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use acp_wire::{ErrorObject, code};
use acpd_core::ids::{HostId, InteractionId, Seq, SessionKey};
use acpd_core::profile::Reseed;
use acpd_core::{FileService, Input};
use acpd_services::fs::{Effort, FsError, Lines, Roots, read_text_file, write_text_file};
use acpd_sys::limits;
use bytes::Bytes;
use serde_json::json;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::spawn_blocking;

use crate::journal::Journal;

/// Requests of one agent that are served at once; each blocks a thread.
const AT_ONCE: usize = 4;
/// Longest wait of an agent for a request that is being served: a disk that does not answer keeps
/// the thread.
const LONGEST: Duration = Duration::from_secs(10);

/// Serves requests of agents, and reports the results.
///
/// Architecture invariant: no agent's requests wait for those of another.
#[derive(Debug)]
pub struct Services {
    done: mpsc::UnboundedSender<Input>,
    pools: BTreeMap<HostId, Pool>,
}

#[derive(Debug)]
struct Pool {
    /// Closed when no further request is to be served.
    places: Arc<Semaphore>,
    /// Set when the results are no longer needed.
    cancelled: Arc<AtomicBool>,
}

impl Default for Pool {
    fn default() -> Pool {
        Pool { places: Arc::new(Semaphore::new(AT_ONCE)), cancelled: Arc::default() }
    }
}

impl Services {
    /// Results go to `done`. The hub bounds the open requests.
    pub fn new(done: mpsc::UnboundedSender<Input>) -> Services {
        Services { done, pools: BTreeMap::new() }
    }

    pub fn serve(
        &mut self,
        host: HostId,
        request: InteractionId,
        roots: Vec<String>,
        service: FileService,
    ) {
        let pool = self.pools.entry(host).or_default();
        let (places, cancelled) = (Arc::clone(&pool.places), Arc::clone(&pool.cancelled));
        let served = async move {
            let stopped = |_| internal("the agent was stopped");
            let place = places.acquire_owned().await.map_err(stopped)?;
            let work = spawn_blocking(move || {
                let _place = place;
                serve(&roots, service, cancelled)
            });
            let seconds = LONGEST.as_secs();
            let late = |_| internal(format!("the file system has not answered in {seconds} s"));
            let done = tokio::time::timeout(LONGEST, work).await.map_err(late)?;
            done.map_err(internal)?
        };
        let done = self.done.clone();
        tokio::spawn(async move {
            done.send(Input::Served { request, result: served.await }).ok();
        });
    }

    /// Stops serving a process that is stopped or gone: waiting requests are not served, and reads
    /// end.
    pub fn cancel(&mut self, host: HostId) {
        if let Some(pool) = self.pools.remove(&host) {
            pool.places.close();
            pool.cancelled.store(true, Ordering::Relaxed);
        }
    }

    pub fn find_directory(&self, question: u64, cwd: String) {
        let done = self.done.clone();
        spawn_blocking(move || {
            // A directory that may not be looked at may exist.
            let exists = Path::new(&cwd).metadata().map_or_else(
                |error| !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
                |found| found.is_dir(),
            );
            done.send(Input::DirectoryFound { question, exists }).ok();
        });
    }

    pub fn summarize(&self, journal: Journal, session: SessionKey, upto: Seq, what: Reseed) {
        let done = self.done.clone();
        tokio::spawn(async move {
            let text = journal.summary(session, upto, what).await;
            done.send(Input::Summary { session, text }).ok();
        });
    }
}

fn internal(why: impl ToString) -> ErrorObject {
    ErrorObject::new(code::INTERNAL, why.to_string())
}

fn serve(
    roots: &[String],
    service: FileService,
    cancelled: Arc<AtomicBool>,
) -> Result<Bytes, ErrorObject> {
    let mut folders = roots.iter().map(PathBuf::from);
    let cwd = folders.next().unwrap_or_default();
    let more: Vec<PathBuf> = folders.collect();
    let served = Roots::open(&cwd, &more, limits::found_umask()).and_then(|roots| match service {
        FileService::ReadTextFile { path, line, limit } => {
            let lines = Lines { first: line, limit };
            let content = read_text_file(&roots, Path::new(&path), lines, Effort::most(cancelled))?;
            Ok(json!({ "content": content }))
        }
        FileService::WriteTextFile { path, content } => {
            write_text_file(&roots, Path::new(&path), &content)?;
            Ok(json!({}))
        }
    });
    served.map(|result| Bytes::from(result.to_string())).map_err(|error| refusal(&error))
}

fn refusal(error: &FsError) -> ErrorObject {
    let code = match error {
        FsError::NotFound { .. } => code::NOT_FOUND,
        FsError::Io { .. } | FsError::TooSlow { .. } | FsError::Cancelled { .. } => code::INTERNAL,
        _ => code::INVALID_PARAMS,
    };
    let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
    ErrorObject::new(code, format!("{error}{hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path) -> FileService {
        FileService::WriteTextFile { path: path.display().to_string(), content: String::new() }
    }

    #[tokio::test]
    async fn m4_who_waits_for_a_place_waits_for_its_own_process_and_is_not_begun_after_its_stop() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().canonicalize().expect("its path").join("file");
        let roots = vec![path.parent().expect("a folder").display().to_string()];
        let (done, mut served) = mpsc::unbounded_channel();
        let mut services = Services::new(done);
        let (busy, other) = (HostId(1), HostId(2));
        let pool = services.pools.entry(busy).or_default();
        let all = Arc::clone(&pool.places).acquire_many_owned(AT_ONCE as u32).await;
        let _all = all.expect("it is open");

        services.serve(busy, InteractionId(1), roots.clone(), write(&path));
        services.serve(
            other,
            InteractionId(2),
            roots,
            FileService::ReadTextFile { path: path.display().to_string(), line: None, limit: None },
        );
        let Some(Input::Served { request, result }) = served.recv().await else { unreachable!() };
        assert_eq!((request, result.map_err(|e| e.code)), (InteractionId(2), Err(code::NOT_FOUND)));

        services.cancel(busy);
        let Some(Input::Served { request, result }) = served.recv().await else { unreachable!() };
        assert_eq!(request, InteractionId(1));
        assert!(result.is_err_and(|error| error.message.contains("stopped")));
        assert!(!path.exists());
    }
}
