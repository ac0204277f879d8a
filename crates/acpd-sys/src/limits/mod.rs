//! Resource limits and memory of this process.
//!
//! Limits hold for this process alone: children started with
//! [`detach_child`](crate::process::detach_child) get its original limits and umask, since their
//! files and core dumps are the user's.

use std::fs::File;

use crate::files::NULL;

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

pub use system::*;

/// A reserved descriptor, for the moment when no other is free.
#[derive(Debug)]
pub struct Spare(Option<File>);

impl Default for Spare {
    fn default() -> Spare {
        Spare(File::open(NULL).ok())
    }
}

impl Spare {
    /// Closes the descriptor, so that the next call can open one. Returns whether there was one.
    pub fn release(&mut self) -> bool {
        self.0.take().is_some()
    }

    pub fn refill(&mut self) {
        self.0 = self.0.take().or_else(|| File::open(NULL).ok());
    }
}

/// Size in bytes from which on freed blocks return to the system, in a process that serves.
pub const LARGE_BUFFER: i32 = 1 << 20;
/// The same for a process that is mostly idle.
pub const SMALL_BUFFER: i32 = 32 << 10;
