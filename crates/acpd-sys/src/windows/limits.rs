//! Resource limits of this process. Windows has none of those that others have: handles are limited by memory, dumps are
//! the system's affair, new files have the access list of their directory, and the heap gives back by itself.

use std::io;

#[expect(clippy::unnecessary_wraps, reason = "as on Unix, where it can fail")]
pub fn raise_nofile_limit() -> io::Result<()> {
    Ok(())
}

/// Kept for the moment in which no other is left, which does not come here.
#[derive(Debug, Default)]
pub struct Spare(());

impl Spare {
    pub fn new() -> Spare {
        Spare(())
    }

    /// Returns whether there was one: there is always another.
    pub fn release(&mut self) -> bool {
        true
    }

    pub fn refill(&mut self) {}
}

#[expect(clippy::unnecessary_wraps, reason = "as on Unix, where it can fail")]
pub fn no_core_dumps() -> io::Result<()> {
    Ok(())
}

/// Nothing to do: what is made in a private directory is as private.
pub fn private_files() {}

/// Returns a fixed umask: there are no such bits here.
pub fn found_umask() -> u32 {
    0o077
}

pub fn return_large_buffers() {}

pub fn return_small_buffers() {}

/// The system takes it when it needs it.
pub fn give_back_unused() {}
