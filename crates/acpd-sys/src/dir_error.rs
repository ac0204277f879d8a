//! Why a directory or file is not fit to hold what is private, and what to do about it.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::os::{self, shell_word};
pub use crate::user::Openness;
use crate::user::UserId;

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
        /// The owner.
        owner: UserId,
    },
    /// Other users may enter it.
    #[error("`{}` is open to other users ({})", .path.display(), os::openness(*.mode))]
    OpenToOthers {
        /// The path in question.
        path: PathBuf,
        /// What opens it.
        mode: Openness,
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
