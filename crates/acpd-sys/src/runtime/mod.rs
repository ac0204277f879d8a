//! Sockets and pipes on the tokio runtime; all functions need the runtime.

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

pub use system::*;
