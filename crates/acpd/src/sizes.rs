//! Measures journals for the hub on a separate thread, so that no reader and no write waits.

use std::path::PathBuf;

use acpd_core::ids::SessionKey;
use acpd_core::{Input, Look};
use acpd_store::Sizes as Measured;
use tokio::sync::mpsc;

use crate::worker::Worker;

#[derive(Debug)]
pub struct Sizes {
    /// Opened at its first use. Remembers its measurements.
    worker: Worker<Option<Measured>>,
    journal: PathBuf,
    done: mpsc::UnboundedSender<Input>,
}

impl Sizes {
    /// `journal` is an open database.
    pub fn new(journal: PathBuf, done: mpsc::UnboundedSender<Input>) -> std::io::Result<Sizes> {
        Ok(Sizes { worker: Worker::start("sizes", None)?, journal, done })
    }

    /// Never waits.
    pub fn measure(&self, look: Look, sessions: Vec<SessionKey>) {
        let (journal, done) = (self.journal.clone(), self.done.clone());
        self.worker.order(move |known| {
            let open = || Measured::open(&journal).map_err(|error| error.to_string());
            let opened = known.take().map_or_else(open, Ok);
            let sizes = opened.and_then(|mut opened| {
                let sizes = opened.of(sessions).map_err(|error| error.to_string())?;
                *known = Some(opened);
                Ok(sizes)
            });
            if let Err(reason) = &sizes {
                tracing::warn!(reason, "the journal could not be measured");
            }
            done.send(Input::Measured { look, sizes }).ok();
        });
    }
}
