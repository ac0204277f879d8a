//! Everything that differs between systems: paths, private directories, files, locks, peer
//! credentials, process identity and process trees, the start of the daemon.
//!
//! Architecture invariant: this is the only crate with `unsafe` and the only one that asks
//! which system it runs on. What differs between Linux and macOS lives in `os/`, one file each with the
//! same functions; the modules here have no such conditions in them.

pub mod boot;
pub mod desktop;
pub mod dir;
mod dir_error;
pub mod file;
pub mod inherit;
pub mod ladder;
pub mod limits;
pub mod lock;
pub mod paths;
pub mod process;
mod process_table;
pub mod signals;
pub mod socket;
pub mod startup;
pub mod tree;
pub mod wait;

#[cfg_attr(target_os = "linux", path = "os/linux.rs")]
#[cfg_attr(target_os = "macos", path = "os/macos.rs")]
mod os;
