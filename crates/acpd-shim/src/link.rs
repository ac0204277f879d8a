//! One connection from a daemon. It never blocks.

use std::io;

use acpd_sys::socket::Stream;
use acpd_sys::wait::{End, Interest};

use crate::frame::{Inbox, Stage};

#[derive(Debug)]
pub(crate) struct Link {
    end: End,
    pub(crate) inbox: Inbox,
    /// Frames on their way, and how much of them is gone.
    pub(crate) outbox: Vec<u8>,
    sent: usize,
    /// After the daemon's hello.
    pub(crate) told: Option<Told>,
}

/// News that this daemon has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Told {
    /// The output before this offset.
    pub(crate) output: u64,
    /// The last chunk that is written.
    pub(crate) written: u64,
    pub(crate) stage: Option<Stage>,
}

impl Link {
    pub(crate) fn new(stream: Stream) -> io::Result<Link> {
        let (inbox, outbox) = (Inbox::default(), Vec::new());
        Ok(Link { end: End::new(stream)?, inbox, outbox, sent: 0, told: None })
    }

    /// Returns the end to wait for, and the events of it.
    pub(crate) fn source(&mut self) -> (&mut End, Interest) {
        let interest = if self.is_waiting() { Interest::Both } else { Interest::Read };
        (&mut self.end, interest)
    }

    /// Reads once into the inbox.
    pub(crate) fn read(&mut self, scratch: &mut [u8]) -> io::Result<()> {
        match self.end.read(scratch) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                self.inbox.push(&scratch[..count]);
                Ok(())
            }
            Err(error) => waits(error),
        }
    }

    /// Writes what the daemon takes without waiting.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        while self.is_waiting() {
            match self.end.write(&self.outbox[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => waits(error)?,
            }
        }
        self.outbox.clear();
        self.sent = 0;
        Ok(())
    }

    /// Returns whether the daemon has to read before more can be sent.
    pub(crate) fn is_waiting(&self) -> bool {
        self.sent < self.outbox.len()
    }

    pub(crate) fn give_back(&mut self) {
        self.outbox.shrink_to_fit();
        self.inbox.give_back();
    }
}

/// Returns no error for what only has to be tried again.
fn waits(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(()),
        _ => Err(error),
    }
}
