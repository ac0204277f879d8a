//! There is no login shell: what the user has set is in the environment of every process of the login.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// The shell that makes the environment of a terminal: none.
pub fn find() -> Option<PathBuf> {
    None
}

/// A name or a value, as bytes.
pub fn text(bytes: &[u8]) -> OsString {
    String::from_utf8_lossy(bytes).into_owned().into()
}

/// Nobody asks.
pub fn answer(_text: &[u8]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
