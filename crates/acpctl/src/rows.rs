//! All rows of the daemon (`_acpd/watch`), while the command runs.
//!
//! A lost connection is restored, and then all rows arrive again. This starts no daemon: a user who
//! stops the daemon wants it stopped.

use std::time::Duration;

use acp_wire::{Message, parse};
use acpd_api::{Changed, Empty, Watched, method};
use acpd_client::{Connection, LinkEvent, read_answer, read_result};
use bytes::Bytes;

use crate::door::Door;
use crate::error::Result;

#[derive(Debug)]
pub(crate) enum RowEvent {
    All(Watched),
    Changed(Changed),
    /// The daemon is away; later, all rows arrive again.
    Away,
    /// A user stopped the daemon.
    Stopped,
}

#[derive(Debug)]
pub(crate) struct RowWatch {
    connection: Connection,
    /// Already reported; a stopping daemon may accept one more connection.
    is_stopped: bool,
}

impl RowWatch {
    pub(crate) fn begin() -> Result<RowWatch> {
        let connection = Door { spawn: false }.connect_lasting()?;
        let rows = RowWatch { connection, is_stopped: false };
        rows.ask()?;
        Ok(rows)
    }

    fn ask(&self) -> Result {
        self.connection.writer.request(method::WATCH, &Empty {})?;
        Ok(())
    }

    pub(crate) fn next(&mut self, within: Duration) -> Result<Option<RowEvent>> {
        loop {
            let line = match self.connection.reader.recv_within(within)? {
                Some(LinkEvent::Line(line)) => line,
                Some(LinkEvent::Reconnecting) => return Ok(Some(RowEvent::Away)),
                Some(LinkEvent::Stopped) if self.is_stopped => continue,
                Some(LinkEvent::Stopped) => {
                    self.is_stopped = true;
                    return Ok(Some(RowEvent::Stopped));
                }
                Some(LinkEvent::Resumed) => {
                    self.ask()?;
                    continue;
                }
                Some(LinkEvent::Silent(_)) => continue,
                None => return Ok(None),
            };
            self.is_stopped = false;
            if let Some(event) = read(&line)? {
                return Ok(Some(event));
            }
        }
    }
}

fn read(line: &Bytes) -> Result<Option<RowEvent>> {
    Ok(match parse(line) {
        Ok(Message::Response { outcome, .. }) => {
            Some(RowEvent::All(read_answer(method::WATCH, outcome)?))
        }
        Ok(Message::Notification { method, params: Some(params) }) if method == method::CHANGED => {
            Some(RowEvent::Changed(read_result(&method, params)?))
        }
        _ => None,
    })
}
