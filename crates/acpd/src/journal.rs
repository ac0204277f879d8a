//! Reads of the journal: a thread owns the store's reader, and answers in complete lines.
//!
//! Architecture invariant: a read transaction ends before its lines go to a socket, so a slow
//! client never keeps the write-ahead log from being emptied.
//!
//! Another thread measures journals for the hub, so that no reader and no write waits.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use acp_wire::{Id, StateKey, build};
use acpd_api::{LogResult, Reason, UsageParams, UsageReport};
use acpd_core::ids::{Seq, SessionKey};
use acpd_core::profile::Reseed;
use acpd_core::record::EventKind;
use acpd_core::{Fault, Input, LogPage, Look, Read, ReadStyle, SessionValues, ValuesForm};
use acpd_store::{Reader, Sizes as Measured, StoreError};
use bytes::Bytes;
use tokio::sync::mpsc;

use crate::summary::summarize;
use crate::worker::Worker;

/// Bytes of lines per piece of the journal.
const PIECE: usize = 1 << 20;
/// Bytes of lines per answer to `_acpd/session/log`.
const LOG_BYTES: usize = 4 << 20;
/// Pauses before a failed read is repeated.
const AGAIN: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(200)];

/// Lines, and the position of the last one.
type Piece = (Vec<Bytes>, Seq);

#[derive(Clone)]
pub struct Journal(Worker<Reader>);

impl Journal {
    /// The thread ends with the last handle.
    pub fn start(reader: Reader) -> std::io::Result<Journal> {
        Worker::start("journal", reader).map(Journal)
    }

    /// Returns lines for a client; `None` if they cannot be read.
    pub async fn piece(&self, read: Read) -> Option<Piece> {
        self.0.ask(move |reader| piece(reader, &read)).await.flatten()
    }

    /// Returns the response to `_acpd/session/log`.
    pub async fn log(&self, page: LogPage) -> Bytes {
        self.answer(page.id.clone(), |reader| log(reader, page)).await
    }

    /// Returns the response to `_acpd/usage`.
    pub async fn usage(&self, id: Id, asked: UsageParams) -> Bytes {
        let of = id.clone();
        self.answer(id, move |reader| {
            Ok(build::response(&of, &UsageReport { totals: reader.usage(asked)? }))
        })
        .await
    }

    /// Returns `None` if an update cannot be read. An answer is an error then.
    pub async fn values(&self, values: SessionValues) -> Option<Bytes> {
        let id = match &values.form {
            ValuesForm::Answer { id, .. } => Some(id.clone()),
            ValuesForm::Update { .. } => None,
        };
        let read = move |reader: &mut Reader| session_values(reader, &values);
        match id {
            Some(id) => Some(self.answer(id, read).await),
            None => self.0.ask(read).await?.ok(),
        }
    }

    async fn answer(
        &self,
        id: Id,
        read: impl FnOnce(&mut Reader) -> Result<Bytes, StoreError> + Send + 'static,
    ) -> Bytes {
        let why = match self.0.ask(read).await {
            Some(Ok(response)) => return response,
            Some(Err(error)) => error.to_string(),
            None => "its reader has died".to_owned(),
        };
        let text = format!("the journal could not be read: {why}");
        build::error(&id, &Fault::new(Reason::StoreFailed, text).object())
    }

    /// Returns a summary or a transcript of a session up to a position; empty if it cannot be read.
    pub async fn summary(&self, session: SessionKey, upto: Seq, what: Reseed) -> String {
        let text = self.0.ask(move |reader| {
            let text = summarize(reader, session, upto, what);
            text.inspect_err(|error| tracing::error!(%error, "the journal could not be summed up"))
        });
        text.await.and_then(Result::ok).unwrap_or_default()
    }
}

/// Reads a piece. A failed read is repeated a few times, then logged.
fn piece(reader: &mut Reader, read: &Read) -> Option<Piece> {
    let mut waits = AGAIN.iter();
    loop {
        match (read_piece(reader, read), waits.next()) {
            (Ok(piece), _) => return Some(piece),
            (Err(_), Some(wait)) => thread::sleep(*wait),
            (Err(error), None) => {
                tracing::error!(%error, "the journal could not be read");
                return None;
            }
        }
    }
}

fn read_piece(reader: &mut Reader, read: &Read) -> Result<Piece, StoreError> {
    let (session, after, upto) = (read.session, read.after, read.upto);
    let mut rows = match read.style {
        ReadStyle::Resume => reader.events(session, after, upto, PIECE)?,
        ReadStyle::History => reader.replay(session, after, upto, PIECE)?,
        ReadStyle::Commands => {
            let mut states = reader.states(session, upto)?;
            states.retain(|row| row.kind == EventKind::State(StateKey::Commands));
            states
        }
    };
    let size: usize = rows.iter().map(|row| row.line.len()).sum();
    let last = rows.last().map_or(upto, |row| row.seq);
    let done = size < PIECE || last == upto;
    if done && read.style == ReadStyle::History {
        rows.extend(reader.states(session, upto)?);
    }
    Ok((read.show(rows), if done { upto } else { last }))
}

fn log(reader: &mut Reader, page: LogPage) -> Result<Bytes, StoreError> {
    let rows = reader.events(page.session, page.after, page.upto, LOG_BYTES)?;
    let rows: Vec<_> = rows.into_iter().take(page.limit as usize).collect();
    let next = rows.last().map(|row| row.seq).filter(|seq| *seq < page.upto);
    let entries = page.entries(rows);
    let result = LogResult { session_id: page.session_id.into(), entries, next };
    Ok(build::response(&page.id, &result))
}

fn session_values(reader: &mut Reader, asked: &SessionValues) -> Result<Bytes, StoreError> {
    Ok(asked.line(&reader.values(asked.session)?))
}

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
