//! Waits for several sources with a deadline, and non-blocking ends of pipes and connections.

use std::io;
use std::time::Instant;

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

pub use system::*;

/// Event of an [`End`]. The end of the stream and an error count, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    Read,
    Write,
    Both,
}

impl End {
    /// Reads until `is_done` with all that was read, `limit` bytes are there or the other end is
    /// closed; [`io::ErrorKind::TimedOut`] after the deadline.
    pub fn read_until(
        &mut self,
        deadline: Instant,
        limit: usize,
        is_done: impl Fn(&[u8]) -> bool,
    ) -> io::Result<Vec<u8>> {
        let (mut said, mut piece) = (Vec::new(), [0; 4096]);
        while !is_done(&said) && said.len() < limit {
            if !self.until(Interest::Read, deadline)? {
                return Err(io::ErrorKind::TimedOut.into());
            }
            match self.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => said.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(said)
    }
}
