//! Handles are limited by memory, the system makes dumps, new files have the access list of their
//! directory, and the heap returns memory by itself.
#![expect(clippy::unnecessary_wraps, reason = "as on Unix, where it can fail")]

use std::io;

pub const MORE_FILES: &str = "end programs that you do not need";

pub fn raise_nofile_limit() -> io::Result<()> {
    Ok(())
}

pub fn no_core_dumps() -> io::Result<()> {
    Ok(())
}

pub fn private_files() {}

pub fn found_umask() -> u32 {
    0o077
}

pub fn return_buffers(_at_least: i32) {}

pub fn give_back_unused() {}
