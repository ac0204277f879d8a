//! Why a file of an agent could not be read or written, in words for the agent.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a file could not be read or written.
#[derive(Debug, Error)]
pub enum FsError {
    /// There is no such file; ACP's `-32002`.
    #[error("`{}` does not exist", .path.display())]
    NotFound {
        /// What was asked for.
        path: PathBuf,
    },
    /// It is not, or may not be, in the session's directories.
    #[error("`{}` is refused: {why}; the session's directories are {}", .path.display(), list(.roots))]
    Outside {
        /// What was asked for.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
        roots: Vec<PathBuf>,
    },
    /// Its bytes, or those of the lines asked for, are no text.
    #[error("`{}` is not UTF-8 text", .path.display())]
    NotUtf8 {
        /// What was asked for.
        path: PathBuf,
    },
    /// The answer would be longer than an answer may be.
    #[error("`{}` has {bytes} bytes, and more than {limit} of them were asked for", .path.display())]
    TooBig {
        /// What was asked for.
        path: PathBuf,
        /// Size of the file in bytes.
        bytes: u64,
        /// The most bytes of an answer.
        limit: u64,
    },
    /// The lines asked for are further into the file than is looked.
    #[error("the lines asked for are not in the first {bytes} bytes of `{}`, and no more is looked at", .path.display())]
    TooFar {
        /// What was asked for.
        path: PathBuf,
        /// How much was looked at.
        bytes: u64,
    },
    /// The disk is slow, or what it is asked for is much.
    #[error("reading `{}` takes too long", .path.display())]
    TooSlow {
        /// What was asked for.
        path: PathBuf,
    },
    /// Nobody wants the text any more.
    #[error("reading `{}` was cancelled: the agent was stopped", .path.display())]
    Cancelled {
        /// What was asked for.
        path: PathBuf,
    },
    /// It is a directory, a pipe, a socket or a device.
    #[error("`{}` is not a regular file", .path.display())]
    NotAFile {
        /// What was asked for.
        path: PathBuf,
    },
    #[error("cannot use `{}`: {source}", .path.display())]
    Io {
        /// What was asked for.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl FsError {
    /// What to do about it.
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
    let mut text = String::new();
    for (index, root) in roots.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        // A string takes whatever is written.
        write!(text, "{comma}`{}`", root.display()).ok();
    }
    text
}
