use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::time::Instant;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{Shutdown, shutdown};
use rustix::io::{read, retry_on_intr, write};

use super::Interest;

pub trait Source: AsFd {}

impl Source for End {}

/// A non-blocking end of a pipe or connection: its calls return [`io::ErrorKind::WouldBlock`].
#[derive(Debug)]
pub struct End(File);

impl End {
    pub fn new(end: impl Into<OwnedFd>) -> io::Result<End> {
        let end = end.into();
        never_block(&end)?;
        Ok(End(File::from(end)))
    }

    /// Returns an end to read from and an end to write to.
    pub fn halves(connection: impl Into<OwnedFd>) -> io::Result<(End, End)> {
        let write = connection.into();
        Ok((End::new(write.try_clone()?)?, End::new(write)?))
    }

    /// Reads once; 0 at the end.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(retry_on_intr(|| read(&self.0, &mut *buffer))?)
    }

    /// Writes once. After [`io::ErrorKind::WouldBlock`], repeat the call with the same bytes, or
    /// with more behind them: some may be on their way, and count then.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(retry_on_intr(|| write(&self.0, bytes))?)
    }

    pub fn shut_down(&self) {
        let _ = shutdown(self.0.as_raw_fd(), Shutdown::Write);
    }

    /// Waits for this end alone. Returns whether it was ready before the deadline.
    pub fn until(&mut self, interest: Interest, deadline: Instant) -> io::Result<bool> {
        until_ready(self.0.as_fd(), interest, deadline)
    }
}

impl AsFd for End {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A pipe for the output of a child or another thread: the end to wait for, and the end to write
/// to, which may be copied and blocks.
pub fn pipe() -> io::Result<(End, File)> {
    let (ours, theirs) = io::pipe()?;
    Ok((End::new(ours)?, File::from(OwnedFd::from(theirs))))
}

/// Sources to wait for, with names that the caller gives.
#[derive(Debug)]
pub struct Wait<'a, T> {
    fds: Vec<PollFd<'a>>,
    names: Vec<T>,
}

impl<'a, T: Copy + PartialEq> Wait<'a, T> {
    pub fn empty() -> Wait<'a, T> {
        Wait { fds: Vec::new(), names: Vec::new() }
    }

    pub fn add(&mut self, source: &'a mut impl Source, interest: Interest, name: T) {
        let source: &'a _ = source;
        self.fds.push(PollFd::new(source.as_fd(), flags(interest)));
        self.names.push(name);
    }

    /// Waits for an event or the deadline. Returns the ready sources, the last added first;
    /// sometimes none, even before the deadline.
    pub fn until(mut self, deadline: Instant) -> Vec<T> {
        if poll(&mut self.fds, timeout(deadline)).is_err() {
            // Interrupted; the signal has a pipe of its own.
            return Vec::new();
        }
        let is_ready = |fd: &PollFd<'_>| fd.revents().is_some_and(|found| !found.is_empty());
        let found = self.fds.iter().zip(self.names).rev();
        found.filter(|(fd, _)| is_ready(fd)).map(|(_, name)| name).collect()
    }
}

fn flags(interest: Interest) -> PollFlags {
    match interest {
        Interest::Read => PollFlags::POLLIN,
        Interest::Write => PollFlags::POLLOUT,
        Interest::Both => PollFlags::POLLIN | PollFlags::POLLOUT,
    }
}

pub(crate) fn until_ready(
    fd: BorrowedFd<'_>,
    interest: Interest,
    deadline: Instant,
) -> io::Result<bool> {
    loop {
        match poll(&mut [PollFd::new(fd, flags(interest))], timeout(deadline)) {
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
            Ok(0) if Instant::now() >= deadline => return Ok(false),
            Ok(0) => {}
            Ok(_) => return Ok(true),
        }
    }
}

/// Returns the remaining time, rounded up, so that the last wait is not a busy one.
fn timeout(deadline: Instant) -> PollTimeout {
    let left = deadline.saturating_duration_since(Instant::now());
    PollTimeout::try_from(left.as_micros().div_ceil(1000)).unwrap_or(PollTimeout::MAX)
}

/// Makes reads and writes of this descriptor fail instead of block.
pub(crate) fn never_block(fd: impl AsFd) -> io::Result<()> {
    let flags = OFlag::from_bits_retain(fcntl(&fd, FcntlArg::F_GETFL)?);
    fcntl(&fd, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(())
}
