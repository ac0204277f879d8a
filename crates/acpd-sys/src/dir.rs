//! Directories and files that nobody else may touch.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::os;
use crate::paths::shell_word;

/// Why a directory or file is not fit to hold what is private.
#[derive(Debug, Error)]
pub enum DirError {
    /// It could not be made.
    #[error("cannot create `{}`", .path.display())]
    Create {
        /// The path in question.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It could not be looked at or opened.
    #[error("cannot open `{}`", .path.display())]
    Open {
        /// The path in question.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is a symbolic link, so somebody else may choose where it leads.
    #[error("`{}` is a symbolic link", .path.display())]
    Symlink {
        /// The path in question.
        path: PathBuf,
    },
    /// It is something else than expected.
    #[error("`{}` is not a {expected}", .path.display())]
    WrongKind {
        /// The path in question.
        path: PathBuf,
        /// `directory` or `regular file`.
        expected: &'static str,
    },
    /// Another user made it.
    #[error("`{}` belongs to user {owner}, not to you", .path.display())]
    ForeignOwner {
        /// The path in question.
        path: PathBuf,
        /// The owner's user id.
        owner: u32,
    },
    /// Other users may enter it.
    #[error("`{}` is open to other users (mode {mode:04o})", .path.display())]
    OpenToOthers {
        /// The path in question.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// We may not write in it.
    #[error("`{}` is not writable", .path.display())]
    NotWritable {
        /// The path in question.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl DirError {
    /// The exact fix, as a sentence without its period.
    pub fn hint(&self) -> Option<String> {
        match self {
            DirError::Create { path, .. } => {
                let parent = path.parent().unwrap_or(path);
                Some(format!(
                    "check that you may write in `{}`, or choose another place with ACPD_RUNTIME_DIR or ACPD_STATE_DIR",
                    parent.display()
                ))
            }
            DirError::Open { .. } => None,
            DirError::Symlink { path } | DirError::WrongKind { path, .. } => {
                Some(format!("move it away: run `mv {0} {0}.old`", shell_word(path)))
            }
            DirError::ForeignOwner { .. } => Some(
                "choose a directory of your own with ACPD_RUNTIME_DIR or ACPD_STATE_DIR".to_owned(),
            ),
            DirError::OpenToOthers { path, .. } => {
                Some(format!("run `chmod 700 {}`", shell_word(path)))
            }
            DirError::NotWritable { path, source } => {
                Some(if source.kind() == io::ErrorKind::ReadOnlyFilesystem {
                    "choose a directory on a writable file system with ACPD_STATE_DIR".to_owned()
                } else {
                    format!("run `chmod 700 {}`", shell_word(path))
                })
            }
        }
    }
}

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
