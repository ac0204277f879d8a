//! Resource limits of this process.

use std::io;
use std::sync::OnceLock;

use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};

use crate::os;

/// The limits on open files as we found them: children get those, not ours.
static FOUND_NOFILE: OnceLock<(rlim_t, rlim_t)> = OnceLock::new();

/// Raises the soft limit on open files to the hard one. Children started with
/// [`detach_child`](crate::process::detach_child) get the old limit back, since programs that
/// use `select` break with more than 1024.
pub fn raise_nofile_limit() -> io::Result<()> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    FOUND_NOFILE.get_or_init(|| (soft, hard));
    Ok(setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?)
}

/// Forbids core dumps of this process and its children: they would hold transcripts and keys.
pub fn no_core_dumps() -> io::Result<()> {
    Ok(setrlimit(Resource::RLIMIT_CORE, 0, 0)?)
}

/// Gives memory blocks of a megabyte and more back to the system as soon as they are freed. The GNU
/// allocator would keep them after the first one that it saw freed; others do this anyway.
pub fn return_large_buffers() {
    os::return_buffers(1 << 20);
}

/// The same for memory blocks of 32 KiB and more: for a process that is to be small when it is
/// idle, and is idle most of the time.
pub fn return_small_buffers() {
    os::return_buffers(32 << 10);
}

/// Gives back what this process has in memory and does not need while it waits: free memory, and
/// its own program text, which is on disk. What is needed again comes back by itself, within
/// microseconds from the system's cache. For a process that mostly waits.
pub fn give_back_unused() {
    os::give_back_unused();
}

/// Undoes [`raise_nofile_limit`]; safe between fork and exec.
pub fn restore_nofile_limit() -> io::Result<()> {
    match FOUND_NOFILE.get() {
        Some(&(soft, hard)) => Ok(setrlimit(Resource::RLIMIT_NOFILE, soft, hard)?),
        None => Ok(()),
    }
}
