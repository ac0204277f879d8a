//! Full-text search: a thread owns the index, keeps it up to date, and answers.
//!
//! The thread does one job after the other, so a search finds all turns that ended before it. The
//! daemon works without an index: a failure is logged, and the index is opened again with the next
//! ended turn or the next search.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use acp_wire::{Id, build};
use acpd_api::{Hit, Reason, SearchResult};
use acpd_core::ids::SessionKey;
use acpd_core::{Fault, Search};
use acpd_store::{Index, StoreError};
use bytes::Bytes;

use crate::worker::Worker;

#[derive(Clone)]
pub struct SearchIndex {
    worker: Worker<Keeper>,
    /// Sessions that the next job updates. Many are deleted at once.
    waiting: Arc<Mutex<BTreeSet<SessionKey>>>,
}

impl SearchIndex {
    /// The thread ends with the last handle. `index` is the file of the index for the open database
    /// `journal`.
    pub fn start(journal: PathBuf, index: PathBuf) -> std::io::Result<SearchIndex> {
        let worker = Worker::start("search", Keeper { journal, path: index, index: None })?;
        // A failure is logged, and the next job tries again.
        worker.order(|keeper| drop(keeper.with(|_| Ok(()))));
        Ok(SearchIndex { worker, waiting: Arc::default() })
    }

    /// Updates the index after a turn or a deletion. Never waits.
    pub fn update(&self, session: SessionKey) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.insert(session);
        if waiting.len() > 1 {
            return;
        }
        let all = Arc::clone(&self.waiting);
        self.worker.order(move |keeper| {
            let sessions = std::mem::take(&mut *all.lock().unwrap_or_else(PoisonError::into_inner));
            drop(keeper.with(|index| index.update(sessions)));
        });
    }

    /// Returns the response to `_acpd/session/search`.
    pub async fn find(&self, id: &Id, search: Search) -> Bytes {
        let found = self.worker.ask(move |keeper| keeper.with(|index| find(index, search))).await;
        match found.unwrap_or_else(|| Err("its thread has died".to_owned())) {
            Ok(result) => build::response(id, &result),
            Err(why) => {
                let text = format!("the search index cannot be used: {why}");
                build::error(id, &Fault::new(Reason::StoreFailed, text).object())
            }
        }
    }
}

struct Keeper {
    journal: PathBuf,
    path: PathBuf,
    index: Option<Index>,
}

impl Keeper {
    fn with<T>(
        &mut self,
        work: impl FnOnce(&mut Index) -> Result<T, StoreError>,
    ) -> Result<T, String> {
        let done = self.try_with(work);
        done.inspect_err(|error| tracing::warn!(error, "the search index cannot be used"))
    }

    /// Works with the index, which is opened and brought up to date first if necessary. After a
    /// failure it is opened again for its next use; a damaged index is deleted.
    fn try_with<T>(
        &mut self,
        work: impl FnOnce(&mut Index) -> Result<T, StoreError>,
    ) -> Result<T, String> {
        let (mut index, behind) = match self.index.take() {
            Some(index) => (index, false),
            None => (Index::open(&self.journal, &self.path).map_err(|e| e.to_string())?, true),
        };
        let caught_up = if behind { index.catch_up() } else { Ok(()) };
        match caught_up.and_then(|()| work(&mut index)) {
            Ok(done) => {
                self.index = Some(index);
                Ok(done)
            }
            Err(error) => {
                if matches!(error, StoreError::Damaged(_)) {
                    index.discard().map_err(|error| error.to_string())?;
                }
                Err(error.to_string())
            }
        }
    }
}

fn find(index: &mut Index, search: Search) -> Result<SearchResult, StoreError> {
    let found = index.find(&search.words, search.sessions.keys().copied(), search.limit)?;
    let hits = found.into_iter().filter_map(|found| {
        let session = search.sessions.get(&found.session)?.clone();
        let (seq, at, by, snippet) = (found.seq, found.at.0, found.by, found.snippet);
        Some(Hit { session, seq, at, by, snippet })
    });
    Ok(SearchResult { hits: hits.collect() })
}
