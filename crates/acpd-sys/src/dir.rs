//! Directories and files that nobody else may touch.

use std::fs::File;
use std::path::Path;

use crate::os;

pub use crate::dir_error::DirError;

/// Makes the directory (mode 0700, and its parents) if it is missing, then checks that it is a
/// real directory, our own, closed to others and writable.
pub fn private_dir(path: &Path) -> Result<(), DirError> {
    if !os::exists(path) {
        os::create_private_dir(path)
            .map_err(|source| DirError::Create { path: path.to_owned(), source })?;
    }
    check_private_dir(path)?;
    os::check_writable(path)
        .map_err(|source| DirError::NotWritable { path: path.to_owned(), source })
}

/// The same check without the creation, and without the question whether we may write.
pub(crate) fn check_private_dir(path: &Path) -> Result<(), DirError> {
    os::check_private_dir(path)
}

/// Opens a file for appending and makes it if it is missing (mode 0600; a looser one is
/// tightened). The directory must exist. A symbolic link and a stranger's file are refused.
pub fn private_file(path: &Path) -> Result<File, DirError> {
    os::open_private_file(path)
}

/// Opens a file that holds a secret, for reading: our own, and closed to others. A link may lead to
/// it.
pub fn secret_file(path: &Path) -> Result<File, DirError> {
    os::open_secret_file(path)
}
