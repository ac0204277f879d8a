//! A connection with a shim.

use std::io;
use std::time::Duration;

use acpd_core::StopStep;
use acpd_shim::frame::{Hello, Inbox, PIECE, ToDaemon, ToShim, VERSION};
use acpd_shim::shim_dir::Record;
use acpd_sys::runtime::{self, connect_to_shim, peer_of_shim};

use crate::crash;

/// Longest time for a shim to answer a hello.
const ANSWER: Duration = Duration::from_secs(1);

pub(super) enum End {
    Lost(io::Error),
    /// The shim knows that its end is on disk.
    Forgotten,
    /// The daemon ends, and leaves the shim's data to the next one.
    Dismissed,
    Dropped,
}

pub(super) struct Link {
    pub(super) stream: runtime::ShimStream,
    pub(super) inbox: Inbox,
    pub(super) outbox: Vec<u8>,
    pub(super) sent: Sent,
}

#[derive(Default)]
pub(super) struct Sent {
    pub(super) ack: u64,
    pub(super) step: Option<StopStep>,
    pub(super) lease: Option<u64>,
    pub(super) exit: bool,
}

impl Link {
    /// A connection on which only a hello from this offset was sent.
    pub(super) fn over(stream: runtime::ShimStream, from: u64) -> Link {
        let sent = Sent { ack: from, ..Sent::default() };
        Link { stream, inbox: Inbox::default(), outbox: Vec::new(), sent }
    }

    /// Connects and sends a hello: output before `from` is committed.
    pub(super) async fn open(record: &Record, from: u64) -> io::Result<(Link, Hello)> {
        let answer = async {
            let stream = connect_to_shim(&record.socket).await?;
            let peer = peer_of_shim(&stream)?;
            if !peer.is_ours() || peer.pid.is_some_and(|pid| pid != record.shim.pid) {
                return Err(io::Error::other("somebody else listens there"));
            }
            crash::point("before-hello");
            let mut link = Link::over(stream, from);
            ToShim::Hello { version: VERSION, from }.encode(&mut link.outbox);
            loop {
                if link.outbox.is_empty() {
                    link.stream.readable().await?;
                } else {
                    link.stream.writable().await?;
                    link.write()?;
                }
                link.read()?;
                match link.inbox.next_frame().map_err(io::Error::other)? {
                    Some(ToDaemon::Hello(hello)) => return Ok((link, hello)),
                    Some(_) => return Err(io::Error::other("it does not say hello")),
                    None => {}
                }
            }
        };
        let in_time = tokio::time::timeout(ANSWER, answer).await;
        in_time.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    pub(super) fn read(&mut self) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(PIECE);
        match self.stream.try_read_buf(&mut bytes) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {
                self.inbox.push(&bytes);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(super) fn write(&mut self) -> io::Result<()> {
        match self.stream.try_write(&self.outbox) {
            Ok(count) if count == self.outbox.len() => {
                // Frees the buffer of a long line.
                self.outbox = Vec::new();
                Ok(())
            }
            Ok(count) => {
                self.outbox.drain(..count);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }
}
