//! Errors of file requests, in words for the agent.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

#[derive(Debug, Error)]
pub enum FsError {
    /// ACP's error -32002.
    #[error("`{}` does not exist", .path.display())]
    NotFound { path: PathBuf },
    #[error("`{}` is refused: {why}; the session's directories are {}", .path.display(), list(.roots))]
    Outside { path: PathBuf, why: &'static str, roots: Vec<PathBuf> },
    #[error("`{}` is not UTF-8 text", .path.display())]
    NotUtf8 { path: PathBuf },
    #[error("`{}` has {bytes} bytes, and more than {limit} of them were asked for", .path.display())]
    TooBig { path: PathBuf, bytes: u64, limit: u64 },
    #[error("the lines asked for are not in the first {bytes} bytes of `{}`, and no more is looked at", .path.display())]
    TooFar { path: PathBuf, bytes: u64 },
    #[error("reading `{}` takes too long", .path.display())]
    TooSlow { path: PathBuf },
    #[error("reading `{}` was cancelled: the agent was stopped", .path.display())]
    Cancelled { path: PathBuf },
    /// The path is a directory, a pipe, a socket or a device.
    #[error("`{}` is not a regular file", .path.display())]
    NotAFile { path: PathBuf },
    #[error("cannot use `{}`: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl FsError {
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            FsError::Outside { .. } => Some(
                "use an absolute path in one of these directories, or add the directory to the session",
            ),
            FsError::TooBig { .. } => Some("ask for a part of it with `line` and `limit`"),
            FsError::NotUtf8 { .. } => Some("read it with a tool that knows its format"),
            FsError::TooFar { .. } | FsError::TooSlow { .. } => {
                Some("read that part with a tool, like `tail` or `sed`")
            }
            FsError::NotFound { .. }
            | FsError::Cancelled { .. }
            | FsError::NotAFile { .. }
            | FsError::Io { .. } => None,
        }
    }

    pub(super) fn of(path: &Path, source: io::Error) -> FsError {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound => FsError::NotFound { path },
            io::ErrorKind::IsADirectory => FsError::NotAFile { path },
            _ => FsError::Io { path, source },
        }
    }
}

fn list(roots: &[PathBuf]) -> String {
    let quoted: Vec<String> = roots.iter().map(|root| format!("`{}`", root.display())).collect();
    quoted.join(", ")
}
