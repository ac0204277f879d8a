//! The machine and its desktop. A desktop's own commands show notifications and prevent sleep, so that the
//! daemon, which mostly runs without one, needs no library for it.

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

pub use system::{AWAKE, OPENER, free_space, host_name, notification, since_boot, system};
