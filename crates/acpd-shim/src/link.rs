//! One connection from a daemon. It never blocks.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use crate::frame::{Inbox, Stage};

/// A connection.
#[derive(Debug)]
pub(crate) struct Link {
    stream: UnixStream,
    pub(crate) inbox: Inbox,
    /// Frames on their way, and how much of them is gone.
    pub(crate) outbox: Vec<u8>,
    sent: usize,
    /// After the daemon's hello.
    pub(crate) told: Option<Told>,
}

/// What this daemon has been told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Told {
    /// The output before this offset.
    pub(crate) output: u64,
    /// The last chunk that is written.
    pub(crate) written: u64,
    /// How far the end is.
    pub(crate) stage: Option<Stage>,
}

impl Link {
    pub(crate) fn new(stream: UnixStream) -> io::Result<Link> {
        stream.set_nonblocking(true)?;
        let (inbox, outbox) = (Inbox::default(), Vec::new());
        Ok(Link { stream, inbox, outbox, sent: 0, told: None })
    }

    /// Reads once into the inbox.
    pub(crate) fn read(&mut self, scratch: &mut [u8]) -> io::Result<()> {
        match self.stream.read(scratch) {
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
            match self.stream.write(&self.outbox[self.sent..]) {
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

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// What only means that it has to be tried again is no error.
fn waits(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(()),
        _ => Err(error),
    }
}
