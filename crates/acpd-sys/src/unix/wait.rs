//! Waiting for a descriptor with a deadline, and never waiting for one.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, poll};

pub use nix::poll::{PollFlags, PollTimeout};

/// Waits until a descriptor is ready. Returns whether it was before the deadline.
pub fn until_ready(fd: BorrowedFd<'_>, what: PollFlags, deadline: Instant) -> io::Result<bool> {
    loop {
        match poll(&mut [PollFd::new(fd, what)], timeout(deadline)) {
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
            Ok(0) if Instant::now() >= deadline => return Ok(false),
            Ok(0) => {}
            Ok(_) => return Ok(true),
        }
    }
}

/// The time that is left for `poll`, rounded up, so that the last wait is not a busy one.
pub fn timeout(deadline: Instant) -> PollTimeout {
    let left = deadline.saturating_duration_since(Instant::now());
    PollTimeout::try_from(left.as_micros().div_ceil(1000)).unwrap_or(PollTimeout::MAX)
}

/// Makes reads and writes of this descriptor fail where they would have to wait.
pub fn never_block(fd: impl AsFd) -> io::Result<()> {
    let flags = OFlag::from_bits_retain(fcntl(&fd, FcntlArg::F_GETFL)?);
    fcntl(&fd, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(())
}
