//! Measures journals for the hub, away from the relay and from those who read them.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use acpd_core::Input;
use acpd_core::ids::SessionKey;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

/// Measures, and tells when it is done.
#[derive(Debug)]
pub struct Sizes {
    done: mpsc::UnboundedSender<Input>,
    journal: PathBuf,
    /// Opened when it is needed first. It remembers what it has measured.
    known: Arc<Mutex<Option<acpd_store::Sizes>>>,
}

impl Sizes {
    /// Of a journal, a database that is open.
    pub fn new(journal: PathBuf, done: mpsc::UnboundedSender<Input>) -> Sizes {
        Sizes { done, journal, known: Arc::default() }
    }

    /// Measures these sessions. One such question is worked on at a time.
    pub fn measure(&self, question: u64, sessions: Vec<SessionKey>) {
        let (known, journal) = (Arc::clone(&self.known), self.journal.clone());
        let done = self.done.clone();
        spawn_blocking(move || {
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            let opened = match known.take() {
                Some(sizes) => Ok(sizes),
                None => acpd_store::Sizes::open(&journal).map_err(|error| error.to_string()),
            };
            let sizes = opened.and_then(|mut sizes| {
                let measured = sizes.of(sessions).map_err(|error| error.to_string())?;
                *known = Some(sizes);
                Ok(measured)
            });
            if let Err(reason) = &sizes {
                tracing::warn!(reason, "the journal could not be measured");
            }
            // The daemon ends.
            done.send(Input::Measured { question, sizes }).ok();
        });
    }
}
