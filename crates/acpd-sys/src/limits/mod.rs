//! Resource limits and memory of this process.
//!
//! Limits hold for this process alone: children started with [`detach_child`](crate::process::detach_child)
//! get the limits and the umask that it found, since their files and core dumps are the user's.

use std::fs::File;

use crate::files::NULL;

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

#[cfg(unix)]
pub(crate) use system::restore;
pub use system::{
    MORE_FILES, found_umask, give_back_unused, no_core_dumps, private_files, raise_nofile_limit,
    return_buffers,
};

/// A descriptor kept for the moment in which no other is left.
#[derive(Debug)]
pub struct Spare(Option<File>);

impl Default for Spare {
    fn default() -> Spare {
        Spare::new()
    }
}

impl Spare {
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

/// Memory blocks of this many bytes and more are returned to the system by a process that serves.
pub const LARGE_BUFFER: i32 = 1 << 20;
/// The same for a process that is idle most of the time.
pub const SMALL_BUFFER: i32 = 32 << 10;
