//! Windows: what is there so far. Directories below the user's profile are private by the
//! access list that they inherit, so there is nothing to check or to set on them.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;

use crate::dir_error::DirError;

/// The longest name of a pipe.
pub(crate) const SOCKET_PATH_LIMIT: usize = 256;

pub(crate) fn state_dir(base: &impl BaseStrategy) -> PathBuf {
    // The local profile: a database must not roam.
    base.cache_dir()
}

pub(crate) fn fallback_runtime_dir() -> PathBuf {
    env::temp_dir().join("acpd")
}

/// Pipes live in one flat name space: the directory's path, made flat, is the name.
pub(crate) fn socket_path(runtime: &Path) -> PathBuf {
    let flat = |c: char| if c.is_alphanumeric() { c } else { '-' };
    let name: String = runtime.display().to_string().chars().map(flat).collect();
    PathBuf::from(format!(r"\\.\pipe\acpd-{name}"))
}

pub(crate) fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

pub(crate) fn create_private_dir(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

pub(crate) fn check_writable(path: &Path) -> io::Result<()> {
    if path.metadata()?.permissions().readonly() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(())
}

pub(crate) fn check_private_dir(path: &Path) -> Result<(), DirError> {
    let path = path.to_owned();
    match path.symlink_metadata() {
        Err(source) => Err(DirError::Open { path, source }),
        Ok(found) if found.is_symlink() => Err(DirError::Symlink { path }),
        Ok(found) if !found.is_dir() => Err(DirError::WrongKind { path, expected: "directory" }),
        Ok(_) => Ok(()),
    }
}

pub(crate) fn open_private_file(path: &Path) -> Result<File, DirError> {
    let open = OpenOptions::new().append(true).create(true).open(path);
    open.map_err(|source| DirError::Open { path: path.to_owned(), source })
}

pub(crate) fn open_secret_file(path: &Path) -> Result<File, DirError> {
    File::open(path).map_err(|source| DirError::Open { path: path.to_owned(), source })
}

pub(crate) fn open_regular(path: &Path) -> io::Result<Option<File>> {
    let file = File::open(path)?;
    Ok(file.metadata()?.is_file().then_some(file))
}

pub(crate) fn open_lock_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

/// An open file stays what it is here.
pub(crate) fn file_id(_found: &fs::Metadata) -> (u64, u64) {
    (0, 0)
}

/// An open file cannot be removed from under us here.
#[expect(clippy::unnecessary_wraps, reason = "as on Unix, where it can fail")]
pub(crate) fn is_at(_file: &File, _path: &Path) -> io::Result<bool> {
    Ok(true)
}
