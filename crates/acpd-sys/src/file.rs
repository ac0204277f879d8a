//! Reading small files that a person or another process may have put there.
//!
//! Architecture invariant: a read of such a file never waits, and is bounded. A pipe, a device or a huge
//! file in the place of a configuration must not stop whoever reads it.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use nix::libc::{ENXIO, O_NOCTTY, O_NONBLOCK};
use thiserror::Error;

/// Why a file was not read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// It is a directory, a pipe, a socket or a device.
    #[error("it is not a regular file")]
    NotAFile,
    /// It is longer than such a file may be.
    #[error("it is longer than {limit} bytes")]
    TooLong {
        /// The most bytes that are read.
        limit: u64,
    },
    /// The system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The content of a regular file of at most `limit` bytes. A symbolic link may lead to it.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
    let file = open_regular(path)?.ok_or(ReadError::NotAFile)?;
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
    // Not blocking: the other end of a pipe may never be opened.
    match OpenOptions::new().read(true).custom_flags(O_NONBLOCK | O_NOCTTY).open(path) {
        // What the system says of a socket.
        Err(error) if error.raw_os_error() == Some(ENXIO) => Ok(None),
        Err(error) => Err(error),
        Ok(file) => Ok(file.metadata()?.is_file().then_some(file)),
    }
}

/// Which file is at a path, and how long it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Device and inode: they tell it from every other file that there is at this moment.
    pub id: (u64, u64),
    /// In bytes.
    pub length: u64,
}

impl From<&Metadata> for Stamp {
    fn from(found: &Metadata) -> Stamp {
        Stamp { id: (found.dev(), found.ino()), length: found.len() }
    }
}

/// Which content a path leads to, as far as that can be seen without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    stamp: Stamp,
    /// Seconds and nanoseconds of the last change of the content, and of the file itself.
    changed: [i64; 4],
}

impl Version {
    /// When the content was changed (ms since the epoch).
    pub fn changed_at(&self) -> u64 {
        let [seconds, nanoseconds, ..] = self.changed;
        (seconds * 1000 + nanoseconds / 1_000_000).try_into().unwrap_or(0)
    }
}

/// The version of the file that this path leads to; `None` if there is none, or nobody may look.
pub fn version(path: &Path) -> Option<Version> {
    let found = path.metadata().ok()?;
    let changed = [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()];
    Some(Version { stamp: Stamp::from(&found), changed })
}

/// Looks at the file at this path, links not followed; `None` if there is none.
pub fn stamp(path: &Path) -> io::Result<Option<Stamp>> {
    match path.symlink_metadata() {
        Ok(found) => Ok(Some(Stamp::from(&found))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
