//! The pipe between a daemon that starts and the client that has started it: a descriptor that passes through the exec.

use std::fs::File;
use std::io::{self, PipeReader, Read as _, Write};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::Instant;

use nix::poll::PollFlags;
use nix::sys::stat::{SFlag, fstat};
use nix::unistd::{ForkResult, fork};

use crate::child::start_detached;
use crate::inherit::{self, handed, keep_from_next_program};
use crate::wait::until_ready;

#[derive(Debug)]
pub(crate) struct Started {
    pipe: PipeReader,
}

#[derive(Debug)]
pub(crate) struct Teller {
    pipe: File,
}

pub(crate) fn stderr_to(file: &File) -> io::Result<()> {
    Ok(nix::unistd::dup2_stderr(file)?)
}

/// Starts the daemon, whose end of the pipe is named by this variable, and which writes to this file.
pub(crate) fn start(mut command: Command, out: File, variable: &str) -> io::Result<Started> {
    command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
    let (read, write) = io::pipe()?;
    let number = write.as_raw_fd();
    command.current_dir("/").env(variable, number.to_string());
    // SAFETY: between fork and exec only async-signal-safe calls are allowed: `start_detached`
    // is, and so are the calls behind `keep_from_next_program` and `leave`, fork and _exit. The descriptor
    // is open: `write` outlives the spawn.
    unsafe {
        command.pre_exec(move || {
            if let ForkResult::Parent { .. } = fork()? {
                nix::libc::_exit(0);
            }
            start_detached()?;
            keep_from_next_program();
            inherit::leave(BorrowedFd::borrow_raw(number)).map(drop)
        });
    }
    // Our child ends at once; its child is the daemon. A failed exec is told all the same.
    command.spawn()?.wait()?;
    drop(write);
    Ok(Started { pipe: read })
}

impl Started {
    /// Returns `false`: the daemon has a session of its own.
    #[expect(clippy::unused_self, reason = "as on Windows")]
    pub(crate) fn is_bound(&self) -> bool {
        false
    }

    /// Reads once: how many bytes, 0 at the end of the pipe; `None` if the deadline passed.
    pub(crate) fn read_until(
        &mut self,
        end: Instant,
        said: &mut [u8],
    ) -> io::Result<Option<usize>> {
        if !until_ready(self.pipe.as_fd(), PollFlags::POLLIN, end)? {
            return Ok(None);
        }
        self.pipe.read(said).map(Some)
    }
}

impl Teller {
    /// The end that this value of the variable names.
    pub(crate) fn named(value: &str) -> Option<Teller> {
        let number: RawFd = value.parse().ok()?;
        let found = fstat(handed(number).ok()?).ok()?;
        if SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT != SFlag::S_IFIFO {
            return None;
        }
        // Agents do not inherit it: the client would wait for them.
        Some(Teller { pipe: File::from(inherit::take(number).ok()?) })
    }
}

impl Write for Teller {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pipe.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pipe.flush()
    }
}
