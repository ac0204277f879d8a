//! One connection from a daemon. It never blocks.

use std::io;

use acpd_sys::socket::Stream;
use acpd_sys::wait::{End, Interest};

use crate::frame::{Inbox, Stage};

#[derive(Debug)]
pub(crate) struct Link {
    end: End,
    pub(crate) inbox: Inbox,
    /// Frames to send, of which `sent` bytes are sent.
    pub(crate) outbox: Vec<u8>,
    sent: usize,
    /// `None` before the daemon's hello.
    pub(crate) announced: Option<AnnouncedState>,
}

/// Facts that this daemon was sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnnouncedState {
    pub(crate) output: u64,
    pub(crate) written: u64,
    pub(crate) stage: Option<Stage>,
}

impl Link {
    pub(crate) fn new(stream: Stream) -> io::Result<Link> {
        let (inbox, outbox) = (Inbox::default(), Vec::new());
        Ok(Link { end: End::new(stream)?, inbox, outbox, sent: 0, announced: None })
    }

    pub(crate) fn source(&mut self) -> (&mut End, Interest) {
        let interest = if self.is_waiting() { Interest::Both } else { Interest::Read };
        (&mut self.end, interest)
    }

    /// Reads once into the inbox. The end of the stream is an error.
    pub(crate) fn read(&mut self, scratch: &mut [u8]) -> io::Result<()> {
        match self.end.read(scratch) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                self.inbox.push(&scratch[..count]);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        while self.is_waiting() {
            match self.end.write(&self.outbox[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        self.outbox.clear();
        self.sent = 0;
        Ok(())
    }

    /// Returns whether bytes wait until the daemon reads.
    pub(crate) fn is_waiting(&self) -> bool {
        self.sent < self.outbox.len()
    }

    pub(crate) fn give_back(&mut self) {
        self.outbox.shrink_to_fit();
        self.inbox.give_back();
    }
}
