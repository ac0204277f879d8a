//! Directories and files that no other user may touch: our own, with an access list that names us alone. The
//! system and administrators may be on it: they can do everything anyway.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::fs::OpenOptionsExt as _;
use std::os::windows::io::AsRawHandle as _;
use std::path::Path;

use windows_sys::Win32::Security::Authorization::SE_FILE_OBJECT;
use windows_sys::Win32::Storage::FileSystem::{
    CreateDirectoryW, FILE_APPEND_DATA, FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT,
    FILE_GENERIC_READ, FILE_GENERIC_WRITE, FILE_READ_ATTRIBUTES, FILE_WRITE_ATTRIBUTES,
    READ_CONTROL, SECURITY_IDENTIFICATION, SYNCHRONIZE, WRITE_DAC,
};

use crate::dir_error::{failed, no_regular_file, real_dir};
use crate::handle::check;
use crate::os::{self, Access, PrivateTo, who_may};
use crate::user::{UserId, own_user};

pub use crate::dir_error::{DirError, Openness};

/// Makes the directory (and its parents, all for us alone) if it is missing, then checks that it is a real directory, our
/// own and closed to others.
pub fn private_dir(path: &Path) -> Result<(), DirError> {
    // A dangling link is there, too.
    if path.symlink_metadata().is_err() {
        make(path).map_err(|source| DirError::Create { path: path.to_owned(), source })?;
    }
    check_private_dir(path)
}

fn make(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty())
        && parent.symlink_metadata().is_err()
    {
        make(parent)?;
    }
    let private = PrivateTo::user_and_below()?;
    let text = os::path_of_any_length(path)?;
    // SAFETY: the text ends with a zero, and the attributes live as long as the call.
    match check(unsafe { CreateDirectoryW(text.as_ptr(), &private.attributes()) }) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Nothing to do: what is in a directory is in the file system's own log.
pub fn sync(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Checks a directory like [`private_dir`], but does not create it.
pub(crate) fn check_private_dir(path: &Path) -> Result<(), DirError> {
    real_dir(path)?;
    let mut options = OpenOptions::new();
    let dir = options
        .access_mode(READ_CONTROL | FILE_READ_ATTRIBUTES)
        .custom_flags(FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT)
        .open(path)
        .map_err(|source| failed(path, source))?;
    let access = access(path, &dir)?;
    check_owner(path, access)?;
    check_closed(path, access)
}

/// Opens a file for appending and makes it if it is missing; one that others may use is closed to them. The directory must
/// exist. A symbolic link and a stranger's file are refused.
pub fn private_file(path: &Path) -> Result<File, DirError> {
    open_private(path, FILE_APPEND_DATA | FILE_READ_ATTRIBUTES | FILE_WRITE_ATTRIBUTES)
}

/// Like [`private_file`], for a file that is cut, locked and filled through a later open.
pub fn private_target(path: &Path) -> Result<File, DirError> {
    open_private(path, FILE_GENERIC_READ | FILE_GENERIC_WRITE)
}

fn open_private(path: &Path, rights: u32) -> Result<File, DirError> {
    let mut options = OpenOptions::new();
    let opened = options
        .append(true)
        .create(true)
        .access_mode(rights | READ_CONTROL | WRITE_DAC | SYNCHRONIZE)
        .custom_flags(FILE_FLAG_OPEN_REPARSE_POINT)
        .security_qos_flags(SECURITY_IDENTIFICATION)
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(_) if path.is_dir() => return Err(no_regular_file(path)),
        Err(source) => return Err(failed(path, source)),
    };
    let access = own_file(path, &file)?;
    if access.other.is_some() {
        let closed = PrivateTo::user().and_then(|private| private.apply(&file));
        closed.map_err(|source| failed(path, source))?;
    }
    Ok(file)
}

/// Opens a file that holds a secret, for reading: our own, and closed to others. A link may lead to
/// it.
pub fn secret_file(path: &Path) -> Result<File, DirError> {
    let mut options = OpenOptions::new();
    let file = options.read(true).security_qos_flags(SECURITY_IDENTIFICATION).open(path);
    let file = file.map_err(|source| failed(path, source))?;
    check_closed(path, own_file(path, &file)?)?;
    Ok(file)
}

/// Returns the access to an open file, which must be a regular one of our own.
fn own_file(path: &Path, file: &File) -> Result<Access, DirError> {
    let found = file.metadata().map_err(|source| failed(path, source))?;
    if found.is_symlink() {
        return Err(DirError::Symlink { path: path.to_owned() });
    }
    if !found.is_file() {
        return Err(no_regular_file(path));
    }
    let access = access(path, file)?;
    check_owner(path, access)?;
    Ok(access)
}

fn access(path: &Path, file: &File) -> Result<Access, DirError> {
    who_may(file.as_raw_handle(), SE_FILE_OBJECT).map_err(|source| failed(path, source))
}

/// An administrator's process may make files that belong to all administrators.
fn check_owner(path: &Path, access: Access) -> Result<(), DirError> {
    if [own_user(), UserId::ADMINISTRATORS].contains(&access.owner) {
        return Ok(());
    }
    Err(DirError::ForeignOwner { path: path.to_owned(), owner: access.owner })
}

fn check_closed(path: &Path, access: Access) -> Result<(), DirError> {
    match access.other {
        None => Ok(()),
        Some(mode) => Err(DirError::OpenToOthers { path: path.to_owned(), mode }),
    }
}
