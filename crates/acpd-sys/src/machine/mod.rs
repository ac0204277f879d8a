//! The machine and its desktop. Notifications and staying awake use commands of the desktop, so
//! that the daemon, which mostly runs without one, needs no library for them.

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

pub use system::*;
