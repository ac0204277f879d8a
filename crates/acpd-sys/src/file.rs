//! Reading small files that a user or another process may have put there.
//!
//! Architecture invariant: a read of such a file never waits, and is bounded. A pipe, a device or a huge file
//! instead of a configuration must not stop the reader.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use thiserror::Error;

use crate::dir::{DirError, private_target};
use crate::os;

pub use crate::files::{
    HAS_MODES, LONGEST_PATH, NEVER_WAIT, NULL, canonical, is_no_file, mode, private_options,
    read_exact_at, set_mode, too_long, too_many_links, write_all_at,
};
pub use crate::stamp::{Stamp, Version};

/// Why a file was not read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// A directory, a pipe, a socket or a device.
    #[error("it is not a regular file")]
    NotAFile,
    #[error("it is longer than {limit} bytes")]
    TooLong {
        /// The most bytes that are read.
        limit: u64,
    },
    /// Every user of the machine may write to it.
    #[error("every user may write to it")]
    OpenToAll,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The content of a regular file of at most `limit` bytes. A symbolic link may lead to it.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
    read_all(&open_regular(path)?.ok_or(ReadError::NotAFile)?, limit)
}

/// Reads a file that decides what acpd runs; refuses it if every user may write to it.
pub fn read_trusted(path: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
    let file = open_regular(path)?.ok_or(ReadError::NotAFile)?;
    if os::is_open_to_all(&file)? { Err(ReadError::OpenToAll) } else { read_all(&file, limit) }
}

fn read_all(file: &File, limit: u64) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    // The length that the system tells may change, and is 0 for files that it makes up.
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(ReadError::TooLong { limit });
    }
    Ok(bytes)
}

/// Opens a regular file for reading. What else is there, such as a pipe, is an error and is not waited
/// for.
pub fn open(path: &Path) -> io::Result<File> {
    open_regular(path)?.ok_or_else(|| io::Error::other(ReadError::NotAFile.to_string()))
}

/// `None` if something else than a regular file is there.
fn open_regular(path: &Path) -> io::Result<Option<File>> {
    match os::open_to_read(path)? {
        Some(file) => Ok(file.metadata()?.is_file().then_some(file)),
        None => Ok(None),
    }
}

/// Returns whether both are the same file.
pub fn is_same(one: &File, other: &File) -> io::Result<bool> {
    Ok(os::stamp_of(one)?.id == os::stamp_of(other)?.id)
}

/// Gives a file that is whole and on the disk the name of another one, which is removed. After a kill or a
/// loss of power at any moment, one of the two has that name; afterwards it is this one.
pub fn put_in_place(file: &Path, of: &Path) -> io::Result<()> {
    os::put_in_place(file, of)
}

/// Puts a file with a secret into its place: whole and on the disk, closed to others from the first moment.
/// The caller keeps others from doing the same meanwhile.
pub fn put_secret(path: &Path, secret: &[u8]) -> Result<(), DirError> {
    let new = path.with_added_extension("new");
    // An earlier call may have been killed before the rename.
    let _ = fs::remove_file(&new);
    let mut file = private_target(&new)?;
    let written = file.set_len(0).and_then(|()| file.write_all(secret));
    let written = written.and_then(|()| file.sync_all());
    drop(file);
    written
        .and_then(|()| put_in_place(&new, path))
        .map_err(|source| DirError::Create { path: path.to_owned(), source })
}

/// The version of the file that this path leads to; `None` if there is none, or it cannot be looked at.
pub fn version(path: &Path) -> Option<Version> {
    os::version(path).ok()
}

/// Looks at the file at this path, links not followed; `None` if there is none.
pub fn stamp(path: &Path) -> io::Result<Option<Stamp>> {
    match os::stamp(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
