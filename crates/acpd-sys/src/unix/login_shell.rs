//! The user's login shell, and how its environment comes to whoever asks it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// The shell that makes the environment of a terminal, if there is one.
pub fn find() -> Option<PathBuf> {
    std::env::var_os("SHELL").map(PathBuf::from).filter(|shell| shell.is_absolute())
}

/// A name or a value, as bytes that [`OsStr::as_encoded_bytes`](std::ffi::OsStr::as_encoded_bytes) has given.
pub fn text(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

/// Writes to our stdin, which is a pipe.
pub fn answer(text: &[u8]) -> io::Result<()> {
    File::from(io::stdin().as_fd().try_clone_to_owned()?).write_all(text)
}
