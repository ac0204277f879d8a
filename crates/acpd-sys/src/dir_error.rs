//! Why a directory or file is not fit to hold what is private, and what to do about it.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::os::{self, shell_word};
pub use crate::user::Openness;
use crate::user::UserId;

/// Why a directory or file is not fit to hold what is private.
#[derive(Debug, Error)]
pub enum DirError {
    /// The system could not create it.
    #[error("cannot create `{}`", .path.display())]
    Create {
        /// The path in question.
        path: PathBuf,
        source: io::Error,
    },
    /// Looking at it or opening it failed.
    #[error("cannot open `{}`", .path.display())]
    Open {
        /// The path in question.
        path: PathBuf,
        source: io::Error,
    },
    /// A symbolic link, whose target another user may choose.
    #[error("`{}` is a symbolic link", .path.display())]
    Symlink {
        /// The path in question.
        path: PathBuf,
    },
    /// Another kind of file than expected.
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
        owner: UserId,
    },
    /// Other users may enter it.
    #[error("`{}` is open to other users ({})", .path.display(), os::openness(*.mode))]
    OpenToOthers {
        /// The path in question.
        path: PathBuf,
        mode: Openness,
    },
    /// We may not write in it.
    #[error("`{}` is not writable", .path.display())]
    NotWritable {
        /// The path in question.
        path: PathBuf,
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
                Some(format!("move it away: run `{}`", os::moving_away(&shell_word(path))))
            }
            DirError::ForeignOwner { .. } => Some(
                "choose a directory of your own with ACPD_RUNTIME_DIR or ACPD_STATE_DIR".to_owned(),
            ),
            DirError::OpenToOthers { path, .. } => {
                Some(format!("run `{}`", os::closing(&shell_word(path))))
            }
            DirError::NotWritable { path, source } => {
                Some(if source.kind() == io::ErrorKind::ReadOnlyFilesystem {
                    "choose a directory on a writable file system with ACPD_STATE_DIR".to_owned()
                } else {
                    format!("run `{}`", os::closing(&shell_word(path)))
                })
            }
        }
    }
}

/// Returns the metadata of a directory. Refuses links, which may lead elsewhere, as junctions of Windows do.
pub(crate) fn real_dir(path: &Path) -> Result<Metadata, DirError> {
    let found = path.symlink_metadata().map_err(|source| failed(path, source))?;
    if found.is_symlink() {
        return Err(DirError::Symlink { path: path.to_owned() });
    }
    if !found.is_dir() {
        return Err(DirError::WrongKind { path: path.to_owned(), expected: "directory" });
    }
    Ok(found)
}

pub(crate) fn failed(path: &Path, source: io::Error) -> DirError {
    DirError::Open { path: path.to_owned(), source }
}

pub(crate) fn no_regular_file(path: &Path) -> DirError {
    DirError::WrongKind { path: path.to_owned(), expected: "regular file" }
}
