//! Waits for several sources with a deadline, and non-blocking ends of pipes and connections.

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

#[cfg(all(unix, feature = "daemon"))]
pub(crate) use system::never_block;
#[cfg(unix)]
pub(crate) use system::until_ready;
pub use system::{End, Source, Wait, pipe};
#[cfg(windows)]
pub(crate) use system::{OverlappedCall, is_end};

/// Event of an [`End`]. The end of the stream and an error count, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    Read,
    Write,
    Both,
}
