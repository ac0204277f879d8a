//! Why a directory or file is not fit to hold what is private, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

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

/// A path as a person would type it in a shell.
pub(crate) fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+:@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_quote_paths_that_a_shell_would_split() {
        assert_eq!(shell_word(Path::new("/run/user/1/acpd")), "/run/user/1/acpd");
        assert_eq!(shell_word(Path::new("/a b/it's")), r"'/a b/it'\''s'");
    }
}
