//! Everything that differs between systems: paths, private directories, files, locks, peer
//! credentials, process identity and process trees, the start of the daemon.
//!
//! Architecture invariant: this is the only crate with `unsafe` and the only one that asks
//! which system it runs on. What a system needs lives in `os/`, one file each with the same
//! functions; the modules here have no such conditions in them.
//!
//! On Windows only paths, directories, files and locks exist so far.

#[cfg(unix)]
pub mod boot;
pub mod dir;
mod dir_error;
pub mod file;
pub mod lock;
pub mod paths;

#[cfg(unix)]
pub mod inherit;
#[cfg(unix)]
pub mod ladder;
#[cfg(unix)]
pub mod limits;
#[cfg(unix)]
pub mod process;
#[cfg(unix)]
mod process_table;
#[cfg(unix)]
pub mod signals;
#[cfg(unix)]
pub mod socket;
#[cfg(unix)]
pub mod startup;
#[cfg(unix)]
pub mod tree;

#[cfg_attr(target_os = "linux", path = "os/linux.rs")]
#[cfg_attr(target_os = "macos", path = "os/macos.rs")]
#[cfg_attr(windows, path = "os/windows.rs")]
mod os;
#[cfg(unix)]
#[path = "os/unix.rs"]
mod unix;
