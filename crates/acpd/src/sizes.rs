//! Measures journals for the hub, away from the relay and from those who read them.

use std::path::{Path, PathBuf};

use acpd_core::Input;
use acpd_core::ids::SessionKey;
use acpd_store::Sizes as Measured;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

/// Handle of the task that measures, one question after the other, and tells when it is done. It ends with the handle.
#[derive(Debug)]
pub struct Sizes {
    questions: mpsc::UnboundedSender<(u64, Vec<SessionKey>)>,
}

impl Sizes {
    /// Of a journal, a database that is open.
    pub fn new(journal: PathBuf, done: mpsc::UnboundedSender<Input>) -> Sizes {
        let (questions, queue) = mpsc::unbounded_channel();
        tokio::spawn(serve(journal, queue, done));
        Sizes { questions }
    }

    /// Measures these sessions. Never waits.
    pub fn measure(&self, question: u64, sessions: Vec<SessionKey>) {
        // The daemon ends.
        self.questions.send((question, sessions)).ok();
    }
}

async fn serve(
    journal: PathBuf,
    mut queue: mpsc::UnboundedReceiver<(u64, Vec<SessionKey>)>,
    done: mpsc::UnboundedSender<Input>,
) {
    // Opened when it is needed first. It remembers what it has measured.
    let mut known = None;
    while let Some((question, sessions)) = queue.recv().await {
        let journal = journal.clone();
        let work = spawn_blocking(move || {
            let mut sizes = open(known, &journal)?;
            let measured = sizes.of(sessions).map_err(|error| error.to_string())?;
            Ok((sizes, measured))
        });
        let measured: Result<_, String> = work.await.unwrap_or_else(|died| Err(died.to_string()));
        let (opened, sizes) = match measured {
            Ok((opened, sizes)) => (Some(opened), Ok(sizes)),
            Err(reason) => (None, Err(reason)),
        };
        known = opened;
        if let Err(reason) = &sizes {
            tracing::warn!(reason, "the journal could not be measured");
        }
        // The daemon ends.
        done.send(Input::Measured { question, sizes }).ok();
    }
}

fn open(known: Option<Measured>, journal: &Path) -> Result<Measured, String> {
    known.map_or_else(|| Measured::open(journal).map_err(|error| error.to_string()), Ok)
}
