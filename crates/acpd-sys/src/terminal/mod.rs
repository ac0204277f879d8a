//! The terminal on stdin and stdout: single keys, full screens, encoding.

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

pub use system::*;
