//! Waiting for several things at once, with a deadline; and ends of pipes and connections that never wait by themselves.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{Shutdown, shutdown};

/// The event to wait for at an [`End`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// That there is something to read, or will never be.
    Read,
    /// That there is room to write, or will never be.
    Write,
    Both,
}

/// Something that a [`Wait`] can wait for.
pub trait Source: AsFd {}

impl Source for End {}
impl Source for Bell {}

/// An end of a pipe or a connection. It never waits: who would have to gets [`io::ErrorKind::WouldBlock`].
#[derive(Debug)]
pub struct End(File);

impl End {
    /// Our end of a child's pipe or of a socket.
    pub fn new(end: impl Into<OwnedFd>) -> io::Result<End> {
        let end = end.into();
        never_block(&end)?;
        Ok(End(File::from(end)))
    }

    /// Both directions of a connection, one to read from and one to write to.
    pub fn halves(connection: impl Into<OwnedFd>) -> io::Result<(End, End)> {
        let write = connection.into();
        Ok((End::new(write.try_clone()?)?, End::new(write)?))
    }

    /// Reads once; nothing is the end.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }

    /// Writes once. Who gets [`io::ErrorKind::WouldBlock`] comes again with the same bytes, or with these and more behind
    /// them: some of them may be on their way, and count then.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    /// Tells the other end of a connection that nothing more is written. The other half goes on.
    pub fn shut_down(&self) {
        // One that is gone needs not be told.
        let _ = shutdown(self.0.as_raw_fd(), Shutdown::Write);
    }

    /// Waits for this end alone. Returns whether it was ready before the deadline.
    pub fn until(&mut self, interest: Interest, deadline: Instant) -> io::Result<bool> {
        until_ready(self.0.as_fd(), flags(interest), deadline)
    }
}

impl AsFd for End {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A pipe for what a child writes: our end of it, and its own, which may be copied.
pub fn output_pipe() -> io::Result<(End, PipeWriter)> {
    let (ours, theirs) = io::pipe()?;
    Ok((End::new(ours)?, theirs))
}

/// Wakes a [`Wait`] when another thread rings it.
#[derive(Debug)]
pub struct Bell(PipeReader);

/// The remote end that rings a [`Bell`].
#[derive(Debug, Clone)]
pub struct Rope(Arc<PipeWriter>);

impl Bell {
    pub fn new() -> io::Result<(Bell, Rope)> {
        let (bell, rope) = io::pipe()?;
        never_block(&bell)?;
        never_block(&rope)?;
        Ok((Bell(bell), Rope(Arc::new(rope))))
    }

    /// Lets it be silent, until it is rung again.
    pub fn silence(&mut self) {
        while matches!(self.0.read(&mut [0; 64]), Ok(count) if count > 0) {}
    }
}

impl Rope {
    /// Rings. A bell that rings already goes on.
    pub fn pull(&self) {
        // A full pipe wakes as well, and without its bell it wakes no thread.
        let _ = (&*self.0).write(b"!");
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A set of sources to wait for, each with its owner's name for it.
#[derive(Debug)]
pub struct Wait<'a, T> {
    fds: Vec<PollFd<'a>>,
    what: Vec<T>,
}

impl<'a, T: Copy + PartialEq> Wait<'a, T> {
    /// Makes a wait for up to `count` sources.
    pub fn for_up_to(count: usize) -> Wait<'a, T> {
        Wait { fds: Vec::with_capacity(count), what: Vec::with_capacity(count) }
    }

    pub fn add(&mut self, source: &'a mut impl Source, interest: Interest, what: T) {
        let source: &'a _ = source;
        self.fds.push(PollFd::new(source.as_fd(), flags(interest)));
        self.what.push(what);
    }

    /// Waits until something is ready or the deadline is there: what is ready, the last added first. It may be nothing also
    /// before the deadline.
    pub fn until(mut self, deadline: Instant) -> Vec<T> {
        if poll(&mut self.fds, timeout(deadline)).is_err() {
            // Interrupted; the signal's own pipe tells of it.
            return Vec::new();
        }
        let is_ready = |fd: &PollFd<'_>| fd.revents().is_some_and(|found| !found.is_empty());
        let found = self.fds.iter().zip(self.what).rev();
        found.filter(|(fd, _)| is_ready(fd)).map(|(_, what)| what).collect()
    }
}

fn flags(interest: Interest) -> PollFlags {
    match interest {
        Interest::Read => PollFlags::POLLIN,
        Interest::Write => PollFlags::POLLOUT,
        Interest::Both => PollFlags::POLLIN | PollFlags::POLLOUT,
    }
}

/// Waits until a descriptor is ready. Returns whether it was before the deadline.
pub(crate) fn until_ready(
    fd: BorrowedFd<'_>,
    what: PollFlags,
    deadline: Instant,
) -> io::Result<bool> {
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
fn timeout(deadline: Instant) -> PollTimeout {
    let left = deadline.saturating_duration_since(Instant::now());
    PollTimeout::try_from(left.as_micros().div_ceil(1000)).unwrap_or(PollTimeout::MAX)
}

/// Makes reads and writes of this descriptor fail where they would have to wait.
pub(crate) fn never_block(fd: impl AsFd) -> io::Result<()> {
    let flags = OFlag::from_bits_retain(fcntl(&fd, FcntlArg::F_GETFL)?);
    fcntl(&fd, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(())
}
