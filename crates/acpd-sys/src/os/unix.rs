//! What Linux and macOS have in common.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use nix::libc;
use nix::unistd::{AccessFlags, access};

use crate::dir_error::DirError;

const OTHERS: u32 = 0o077;

/// The process at the other end of a connection, as the kernel saw it when it connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its effective user id: what access is decided by.
    pub uid: u32,
    /// Its pid, where the system tells. For logs: pids are used again.
    pub pid: Option<u32>,
}

/// The effective user id of this process.
pub fn own_uid() -> u32 {
    nix::unistd::geteuid().as_raw()
}

/// macOS has no state directory of its own kind.
pub(crate) fn state_dir(base: &impl BaseStrategy) -> PathBuf {
    base.state_dir().unwrap_or_else(|| base.data_dir())
}

pub(crate) fn socket_path(runtime: &Path) -> PathBuf {
    runtime.join("acpd.sock")
}

/// Something that takes a descriptor.
pub(crate) fn any_file() -> io::Result<File> {
    File::open("/dev/null")
}

/// Returns whether anything is there, a dangling link included.
pub(crate) fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

pub(crate) fn create_private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

pub(crate) fn check_writable(path: &Path) -> io::Result<()> {
    Ok(access(path, AccessFlags::W_OK | AccessFlags::X_OK)?)
}

pub(crate) fn check_private_dir(path: &Path) -> Result<(), DirError> {
    let path = path.to_owned();
    let found = match path.symlink_metadata() {
        Ok(found) => found,
        Err(source) => return Err(DirError::Open { path, source }),
    };
    if found.is_symlink() {
        return Err(DirError::Symlink { path });
    }
    if !found.is_dir() {
        let expected = "directory";
        return Err(DirError::WrongKind { path, expected });
    }
    if found.uid() != own_uid() {
        let owner = found.uid();
        return Err(DirError::ForeignOwner { path, owner });
    }
    let mode = found.mode() & 0o7777;
    if mode & OTHERS != 0 {
        return Err(DirError::OpenToOthers { path, mode });
    }
    Ok(())
}

fn no_regular_file(path: &Path) -> DirError {
    DirError::WrongKind { path: path.to_owned(), expected: "regular file" }
}

pub(crate) fn open_private_file(path: &Path) -> Result<File, DirError> {
    let failed = |source: io::Error| DirError::Open { path: path.to_owned(), source };
    // Not blocking: a pipe in the file's place would else hold us until somebody reads it.
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)
        .map_err(|source| match source.raw_os_error() {
            Some(libc::ELOOP) => DirError::Symlink { path: path.to_owned() },
            // What the system says of a socket, and of a pipe that nobody reads.
            Some(libc::ENXIO) => no_regular_file(path),
            _ => failed(source),
        })?;
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() {
        return Err(no_regular_file(path));
    }
    if found.uid() != own_uid() {
        return Err(DirError::ForeignOwner { path: path.to_owned(), owner: found.uid() });
    }
    if found.mode() & OTHERS != 0 {
        file.set_permissions(Permissions::from_mode(0o600)).map_err(failed)?;
    }
    Ok(file)
}

/// Opens a regular file for reading, without waiting for the other end of a pipe. `None` if it is
/// something else.
pub(crate) fn open_regular(path: &Path) -> io::Result<Option<File>> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        // What the system says of a socket.
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Ok(None),
        Err(error) => Err(error),
        Ok(file) => Ok(file.metadata()?.is_file().then_some(file)),
    }
}

pub(crate) fn open_lock_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)
}

/// Device and inode.
pub(crate) fn file_id(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

/// Returns whether the open file is the one that `path` names now.
pub(crate) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let open = file.metadata()?;
    match path.symlink_metadata() {
        Ok(named) => Ok(file_id(&open) == file_id(&named)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

pub(crate) fn open_secret_file(path: &Path) -> Result<File, DirError> {
    let failed = |source: io::Error| DirError::Open { path: path.to_owned(), source };
    // Not blocking, as above.
    let file =
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() {
        return Err(no_regular_file(path));
    }
    if found.uid() != own_uid() {
        return Err(DirError::ForeignOwner { path: path.to_owned(), owner: found.uid() });
    }
    let mode = found.mode() & 0o7777;
    if mode & OTHERS != 0 {
        return Err(DirError::OpenToOthers { path: path.to_owned(), mode });
    }
    Ok(file)
}
