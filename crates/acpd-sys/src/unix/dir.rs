//! Directories and files that no other user may touch.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::Path;

use nix::libc::{ELOOP, ENXIO, O_NOFOLLOW, O_NONBLOCK};
use nix::unistd::{AccessFlags, access};

use crate::dir_error::{failed, no_regular_file, real_dir};
use crate::process_table::own_uid;

pub use crate::dir_error::{DirError, Openness};

const OTHERS: u32 = 0o077;

/// Makes the directory (mode 0700, and its parents) if it is missing, then checks that it is a
/// real directory, our own, closed to others and writable.
pub fn private_dir(path: &Path) -> Result<(), DirError> {
    // A dangling link is there, too.
    if path.symlink_metadata().is_err() {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(|source| DirError::Create { path: path.to_owned(), source })?;
    }
    check_private_dir(path)?;
    access(path, AccessFlags::W_OK | AccessFlags::X_OK).map_err(|error| {
        let (path, source) = (path.to_owned(), error.into());
        DirError::NotWritable { path, source }
    })
}

/// Brings to the disk what was made, renamed and removed in a directory.
pub fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Checks a directory like [`private_dir`], but does not create it, nor ask whether we may write.
pub(crate) fn check_private_dir(path: &Path) -> Result<(), DirError> {
    let found = real_dir(path)?;
    check_owner(path, &found)?;
    check_closed(path, &found)
}

/// Opens a file for appending and makes it if it is missing (mode 0600; a looser one is
/// tightened). The directory must exist. A symbolic link and a stranger's file are refused.
pub fn private_file(path: &Path) -> Result<File, DirError> {
    // Not blocking: a pipe instead of the file would hold us until a process reads it.
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(O_NOFOLLOW | O_NONBLOCK)
        .open(path)
        .map_err(|source| match source.raw_os_error() {
            Some(ELOOP) => DirError::Symlink { path: path.to_owned() },
            // The system's error for a socket, and for a pipe without a reader.
            Some(ENXIO) => no_regular_file(path),
            _ => failed(path, source),
        })?;
    let found = own_file(path, &file)?;
    if found.mode() & OTHERS != 0 {
        file.set_permissions(Permissions::from_mode(0o600))
            .map_err(|source| failed(path, source))?;
    }
    Ok(file)
}

/// Like [`private_file`], for a file that is cut, locked and filled through a later open.
pub fn private_target(path: &Path) -> Result<File, DirError> {
    private_file(path)
}

/// Opens a file that holds a secret, for reading: our own, and closed to others. A link may lead to
/// it.
pub fn secret_file(path: &Path) -> Result<File, DirError> {
    // Not blocking, as above.
    let file = OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(path);
    let file = file.map_err(|source| failed(path, source))?;
    check_closed(path, &own_file(path, &file)?)?;
    Ok(file)
}

/// Returns the metadata of an open file, which must be a regular one of our own.
fn own_file(path: &Path, file: &File) -> Result<Metadata, DirError> {
    let found = file.metadata().map_err(|source| failed(path, source))?;
    if !found.is_file() {
        return Err(no_regular_file(path));
    }
    check_owner(path, &found)?;
    Ok(found)
}

fn check_owner(path: &Path, found: &Metadata) -> Result<(), DirError> {
    let owner = found.uid();
    if owner == own_uid() {
        return Ok(());
    }
    Err(DirError::ForeignOwner { path: path.to_owned(), owner })
}

fn check_closed(path: &Path, found: &Metadata) -> Result<(), DirError> {
    let mode = found.mode() & 0o7777;
    if mode & OTHERS == 0 {
        return Ok(());
    }
    Err(DirError::OpenToOthers { path: path.to_owned(), mode })
}
