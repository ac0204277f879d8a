//! Waits for several things at once, with a deadline; and ends of pipes and connections that never block.

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

pub use system::{Bell, End, Rope, Source, Wait, output_pipe};
#[cfg(windows)]
pub(crate) use system::{OverlappedCall, is_end};
#[cfg(unix)]
pub(crate) use system::{never_block, until_ready};

/// What an [`End`] is waited for: an end of the stream or an error counts, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Bytes to read.
    Read,
    /// Room to write.
    Write,
    Both,
}
