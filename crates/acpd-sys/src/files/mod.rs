//! Files and directories: private ones, bounded reads, replacement, identity.
//!
//! Architecture invariant: a read of a file that the user or another process wrote never waits, and is
//! bounded. A pipe, a device or a huge file instead of a configuration must not stop the reader.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::users::{Openness, UserId};

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

pub use system::*;

#[derive(Debug, Error)]
pub enum DirError {
    #[error("cannot create `{}`", .path.display())]
    Create { path: PathBuf, source: io::Error },
    #[error("cannot open `{}`", .path.display())]
    Open { path: PathBuf, source: io::Error },
    /// Another user may choose where the link leads.
    #[error("`{}` is a symbolic link", .path.display())]
    Symlink { path: PathBuf },
    #[error("`{}` is not a {expected}", .path.display())]
    WrongKind {
        path: PathBuf,
        /// `directory` or `regular file`.
        expected: &'static str,
    },
    #[error("`{}` belongs to user {owner}, not to you", .path.display())]
    ForeignOwner { path: PathBuf, owner: UserId },
    #[error("`{}` is open to other users ({})", .path.display(), system::openness(.mode))]
    OpenToOthers { path: PathBuf, mode: Openness },
    #[error("`{}` is not writable", .path.display())]
    NotWritable { path: PathBuf, source: io::Error },
}

impl DirError {
    /// Returns the fix as a sentence without its period.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            DirError::Create { path, .. } => format!(
                "check that you may write in `{}`, or choose another place with ACPD_RUNTIME_DIR or ACPD_STATE_DIR",
                path.parent().unwrap_or(path).display()
            ),
            DirError::Open { .. } => return None,
            DirError::Symlink { path } | DirError::WrongKind { path, .. } => {
                format!("move it away: run `{}`", system::move_command(path))
            }
            DirError::ForeignOwner { .. } => {
                "choose a directory of your own with ACPD_RUNTIME_DIR or ACPD_STATE_DIR".to_owned()
            }
            DirError::NotWritable { source, .. }
                if source.kind() == io::ErrorKind::ReadOnlyFilesystem =>
            {
                "choose a directory on a writable file system with ACPD_STATE_DIR".to_owned()
            }
            DirError::OpenToOthers { path, .. } | DirError::NotWritable { path, .. } => {
                format!("run `{}`", close_command(path))
            }
        })
    }
}

/// Refuses links, which may lead elsewhere. A junction of Windows is a link.
fn real_dir(path: &Path) -> Result<Metadata, DirError> {
    let found = path.symlink_metadata().map_err(|source| failed(path, source))?;
    if found.is_symlink() {
        return Err(DirError::Symlink { path: path.to_owned() });
    }
    if !found.is_dir() {
        return Err(DirError::WrongKind { path: path.to_owned(), expected: "directory" });
    }
    Ok(found)
}

fn failed(path: &Path, source: io::Error) -> DirError {
    DirError::Open { path: path.to_owned(), source }
}

fn no_regular_file(path: &Path) -> DirError {
    DirError::WrongKind { path: path.to_owned(), expected: "regular file" }
}

#[derive(Debug, Error)]
pub enum ReadError {
    /// A directory, a pipe, a socket or a device.
    #[error("it is not a regular file")]
    NotAFile,
    #[error("it is longer than {limit} bytes")]
    TooLong { limit: u64 },
    #[error("every user may write to it")]
    OpenToAll,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Reads a regular file of at most `limit` bytes. A symbolic link may lead to it.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
    read_all(&open_regular(path)?.ok_or(ReadError::NotAFile)?, limit)
}

/// Reads a file that names programs to run. A file that every user may write to is refused.
pub fn read_trusted(path: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
    let file = open_regular(path)?.ok_or(ReadError::NotAFile)?;
    if system::is_open_to_all(&file)? { Err(ReadError::OpenToAll) } else { read_all(&file, limit) }
}

fn read_all(file: &File, limit: u64) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    // The length that the system reports may change, and is 0 for files of /proc.
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(ReadError::TooLong { limit });
    }
    Ok(bytes)
}

/// Opens the null device for reading and writing.
pub(crate) fn null() -> io::Result<File> {
    File::options().read(true).write(true).open(NULL)
}

pub fn open(path: &Path) -> io::Result<File> {
    open_regular(path)?.ok_or_else(|| io::Error::other(ReadError::NotAFile.to_string()))
}

/// Returns `None` for anything but a regular file.
fn open_regular(path: &Path) -> io::Result<Option<File>> {
    match system::open_to_read(path)? {
        Some(file) => Ok(file.metadata()?.is_file().then_some(file)),
        None => Ok(None),
    }
}

/// Replaces a file with a secret. At any moment the file is whole, on the disk and closed to
/// others. The caller holds a lock against other writers.
pub fn put_secret(path: &Path, secret: &[u8]) -> Result<(), DirError> {
    let new = path.with_added_extension("new");
    // Left by a process that was killed.
    let _ = fs::remove_file(&new);
    let mut file = private_target(&new)?;
    let written = file.set_len(0).and_then(|()| file.write_all(secret));
    let written = written.and_then(|()| file.sync_all());
    drop(file);
    written
        .and_then(|()| put_in_place(&new, path))
        .map_err(|source| DirError::Create { path: path.to_owned(), source })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Device and inode, or the like: unique among all existing files.
    pub id: (u64, u64),
    /// In bytes.
    pub length: u64,
}

/// Version of a file's content, found without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    stamp: Stamp,
    /// Seconds and nanoseconds of the last change of the content, and of the file itself.
    changed: [i64; 4],
}

impl Version {
    /// In milliseconds since 1970.
    pub fn changed_at(&self) -> u64 {
        let [seconds, nanoseconds, ..] = self.changed;
        (seconds * 1000 + nanoseconds / 1_000_000).try_into().unwrap_or(0)
    }
}

/// Follows links. Returns `None` if the file cannot be looked at.
pub fn version(path: &Path) -> Option<Version> {
    system::version(path).ok()
}

/// Does not follow links. Returns `None` if there is no file.
pub fn stamp(path: &Path) -> io::Result<Option<Stamp>> {
    match system::stamp(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

pub fn is_same(one: &File, other: &File) -> io::Result<bool> {
    Ok(stamp_of(one)?.id == stamp_of(other)?.id)
}
