//! All rows of the daemon (`_acpd/watch`), for as long as the command runs.
//!
//! The connection is made again when it is lost; then all rows come once more. No daemon is started for that:
//! a person who stops the daemon wants it stopped.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use acp_wire::{ErrorObject, Id, Message, Outcome, build, parse};
use acpd_api::{Changed, Empty, Watched, method};
use acpd_client::{Incoming, LinkError, LinkWriter};
use bytes::Bytes;

use crate::door::Door;
use crate::error::{CommandError, Result, gone};
use crate::live::result_of;

/// Lines that wait to be read; beyond that the daemon waits, and then sends the newest rows.
const QUEUE: usize = 16;

/// Changes of the rows.
#[derive(Debug)]
pub(crate) enum News {
    /// All of them, as they are now.
    All(Watched),
    /// Rows that differ from before.
    Changed(Changed),
    /// The daemon is away; when it is back, all rows come again.
    Away,
    /// The daemon is away, because a user has stopped it.
    Stopped,
}

/// The rows, as they change.
#[derive(Debug)]
pub(crate) struct Rows {
    news: Receiver<std::result::Result<Incoming, LinkError>>,
    writer: LinkWriter,
    /// Reported that the daemon is stopped; a stopping daemon may let the link connect once more.
    is_stopped: bool,
}

impl Rows {
    /// Begins to watch a daemon that runs.
    pub(crate) fn watch() -> Result<Rows> {
        let (mut reader, writer) = Door { spawn: false }.lasting_link()?;
        let (sender, news) = mpsc::sync_channel(QUEUE);
        let read = move || {
            loop {
                let incoming = reader.recv();
                let is_last = matches!(incoming, Ok(Incoming::Closed) | Err(_));
                // Fails only after the receiver is gone.
                if sender.send(incoming).is_err() || is_last {
                    return;
                }
            }
        };
        thread::Builder::new().name("reader".to_owned()).spawn(read)?;
        let rows = Rows { news, writer, is_stopped: false };
        rows.ask()?;
        Ok(rows)
    }

    fn ask(&self) -> Result {
        let line = build::request(&Id::from(1), method::WATCH, &Empty {});
        if self.writer.send(line) { Ok(()) } else { Err(gone()) }
    }

    /// Returns the next change, or nothing after this time.
    pub(crate) fn next(&mut self, within: Duration) -> Result<Option<News>> {
        loop {
            let line = match self.news.recv_timeout(within) {
                Ok(Ok(Incoming::Line(line))) => line,
                Ok(Ok(Incoming::Lost)) => return Ok(Some(News::Away)),
                Ok(Ok(Incoming::Stopped)) if self.is_stopped => continue,
                Ok(Ok(Incoming::Stopped)) => {
                    self.is_stopped = true;
                    return Ok(Some(News::Stopped));
                }
                Ok(Ok(Incoming::Back)) => {
                    self.ask()?;
                    continue;
                }
                Ok(Err(error)) => return Err(error.into()),
                Ok(Ok(Incoming::Closed)) | Err(RecvTimeoutError::Disconnected) => {
                    return Err(gone());
                }
                Err(RecvTimeoutError::Timeout) => return Ok(None),
            };
            self.is_stopped = false;
            if let Some(news) = read(&line)? {
                return Ok(Some(news));
            }
        }
    }
}

fn read(line: &Bytes) -> Result<Option<News>> {
    Ok(match parse(line) {
        Ok(Message::Response { outcome: Outcome::Result(result), .. }) => {
            Some(News::All(result_of(method::WATCH, result)?))
        }
        Ok(Message::Response { outcome: Outcome::Error(error), .. }) => {
            return Err(CommandError::rpc(&ErrorObject::from_raw(error)));
        }
        Ok(Message::Notification { method, params: Some(params) }) if method == method::CHANGED => {
            Some(News::Changed(result_of::<Changed>(&method, params)?))
        }
        _ => None,
    })
}
