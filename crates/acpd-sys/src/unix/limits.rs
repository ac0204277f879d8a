//! Resource limits of this process, and what its children get of them.
//!
//! What is set here is for this process alone: children started with
//! [`detach_child`](crate::process::detach_child) get what we found, since their files and their core
//! dumps are the user's affair.

use std::fs::File;
use std::io;
use std::sync::OnceLock;

use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};
use nix::sys::stat::{Mode, umask};

use crate::files::NULL;
use crate::os;

static FOUND_NOFILE: OnceLock<(rlim_t, rlim_t)> = OnceLock::new();
static FOUND_CORE: OnceLock<(rlim_t, rlim_t)> = OnceLock::new();
static FOUND_UMASK: OnceLock<Mode> = OnceLock::new();

/// Raises the soft limit on open files to the hard one. Not for children: programs that use
/// `select` break with more than 1024.
pub fn raise_nofile_limit() -> io::Result<()> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    FOUND_NOFILE.get_or_init(|| (soft, hard));
    Ok(setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?)
}

/// A descriptor that is kept for the moment in which no other is left.
#[derive(Debug)]
pub struct Spare(Option<File>);

impl Default for Spare {
    fn default() -> Spare {
        Spare::new()
    }
}

impl Spare {
    /// Takes one, if there is one.
    pub fn new() -> Spare {
        Spare(File::open(NULL).ok())
    }

    /// Closes it, so that the next call that needs a descriptor gets one. Returns whether there was one.
    pub fn release(&mut self) -> bool {
        self.0.take().is_some()
    }

    /// Takes one again, if there is one.
    pub fn refill(&mut self) {
        self.0 = self.0.take().or_else(|| File::open(NULL).ok());
    }
}

/// Forbids core dumps of this process: they would hold transcripts and keys.
pub fn no_core_dumps() -> io::Result<()> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_CORE)?;
    FOUND_CORE.get_or_init(|| (soft, hard));
    // A child cannot raise a hard limit that we have lowered, so it stays.
    Ok(setrlimit(Resource::RLIMIT_CORE, 0, hard)?)
}

/// Closes what this process makes from here on to other users.
pub fn private_files() {
    let found = umask(Mode::from_bits_truncate(0o077));
    FOUND_UMASK.get_or_init(|| found);
}

/// The umask of the user who started this process: the access to new files before [`private_files`].
#[allow(clippy::useless_conversion, reason = "modes have 16 bits on macOS")]
pub fn found_umask() -> u32 {
    u32::from(FOUND_UMASK.get().copied().unwrap_or(Mode::from_bits_truncate(0o077)).bits())
}

/// Gives memory blocks of a megabyte and more back to the system as soon as they are freed. The GNU
/// allocator would keep them after the first one that it saw freed; others do this anyway. Threads
/// that start after this share one heap.
pub fn return_large_buffers() {
    os::return_buffers(1 << 20);
}

/// Like [`return_large_buffers`], for blocks of 32 KiB and more: for a process that must be small when
/// it is idle, and is idle most of the time.
pub fn return_small_buffers() {
    os::return_buffers(32 << 10);
}

/// Gives back what this process has in memory and does not need while it waits: free memory, and
/// its own program text, which is on disk. What is needed again comes back by itself, within
/// microseconds from the system's cache. For a process that mostly waits.
pub fn give_back_unused() {
    os::give_back_unused();
}

/// Gives a child the limits and the umask that this process has found. Safe between fork and exec.
pub fn restore() -> io::Result<()> {
    if let Some(&found) = FOUND_UMASK.get() {
        umask(found);
    }
    for (resource, found) in
        [(Resource::RLIMIT_NOFILE, &FOUND_NOFILE), (Resource::RLIMIT_CORE, &FOUND_CORE)]
    {
        if let Some(&(soft, hard)) = found.get() {
            setrlimit(resource, soft, hard)?;
        }
    }
    Ok(())
}
