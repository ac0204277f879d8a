//! Sockets of the daemon and of shims: Unix sockets, or named pipes on Windows. Both ends know each
//! other's user.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

pub use system::*;

#[derive(Debug, Error)]
pub enum StaleError {
    #[error("somebody listens on `{}`", .path.display())]
    InUse { path: PathBuf },
    #[error("`{}` is not a socket", .path.display())]
    NotASocket { path: PathBuf },
    #[error("cannot clear the old socket `{}`", .path.display())]
    Io { path: PathBuf, source: io::Error },
}
