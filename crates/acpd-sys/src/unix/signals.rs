//! Signals as something to poll, for a process of one thread.

use std::io::{self, PipeReader, Read as _};
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd as _};
use std::sync::atomic::{AtomicI32, AtomicU8, Ordering};

use nix::errno::Errno;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use crate::wait::{Source, never_block};

const CHILD: u8 = 1;
const STOP: u8 = 2;

/// Came since the last look.
static SEEN: AtomicU8 = AtomicU8::new(0);
/// Where the handler writes a byte.
static WAKE: AtomicI32 = AtomicI32::new(-1);

/// The read end of a pipe that has something in it when a signal came.
#[derive(Debug)]
pub struct Signals {
    pipe: PipeReader,
}

/// Events since the last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// A child ended (`SIGCHLD`).
    pub child: bool,
    /// A request to end (`SIGTERM`, `SIGHUP`).
    pub stop: bool,
}

/// Catches `SIGCHLD`, `SIGTERM` and `SIGHUP` from now on, and ignores `SIGINT` and `SIGPIPE`.
/// To be called once; the pipe stays open.
pub fn catch() -> io::Result<Signals> {
    let (read, write) = io::pipe()?;
    for fd in [read.as_fd(), write.as_fd()] {
        never_block(fd)?;
    }
    WAKE.store(write.into_raw_fd(), Ordering::Relaxed);
    let set = |signal, handler| {
        let action = SigAction::new(handler, SaFlags::SA_RESTART, SigSet::empty());
        // SAFETY: `note` is async-signal-safe; the other handlers are the system's.
        unsafe { sigaction(signal, &action) }
    };
    for signal in [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGHUP] {
        set(signal, SigHandler::Handler(note))?;
    }
    for signal in [Signal::SIGINT, Signal::SIGPIPE] {
        set(signal, SigHandler::SigIgn)?;
    }
    Ok(Signals { pipe: read })
}

/// The handler: two atomic operations and a write, and the error number as it was.
extern "C" fn note(signal: nix::libc::c_int) {
    let before = Errno::last_raw();
    let seen = if signal == nix::libc::SIGCHLD { CHILD } else { STOP };
    SEEN.fetch_or(seen, Ordering::Relaxed);
    // SAFETY: the buffer is one byte long; the pipe is never closed. A full one wakes as well.
    unsafe { nix::libc::write(WAKE.load(Ordering::Relaxed), b"!".as_ptr().cast(), 1) };
    Errno::set_raw(before);
}

impl Signals {
    /// Reports the end of this child, too: on other systems nothing else does.
    pub fn watch(&mut self, _child: u32) -> io::Result<()> {
        Ok(())
    }

    /// Returns the events since the last call.
    pub fn take(&mut self) -> Seen {
        let mut wakes = [0; 64];
        while matches!(self.pipe.read(&mut wakes), Ok(count) if count > 0) {}
        let seen = SEEN.swap(0, Ordering::Relaxed);
        Seen { child: seen & CHILD != 0, stop: seen & STOP != 0 }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

impl Source for Signals {}
