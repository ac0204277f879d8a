//! What can be wrong with a configuration: what, where in the file, and the way out.

use std::io;
use std::ops::Range;
use std::path::Path;

use acpd_api::nearest;
use acpd_sys::file::ReadError;

/// The configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConfigError {
    message: String,
    hint: Option<String>,
}

impl ConfigError {
    /// The way out, where there is an obvious one.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    pub(super) fn unreadable(path: &Path, error: &ReadError) -> Self {
        let hint = match error {
            ReadError::NotAFile => Some("put a file there, or nothing at all"),
            ReadError::TooLong { .. } => Some("check that it is a configuration of acpd"),
            ReadError::Io(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Some("make the file readable for this user")
            }
            ReadError::Io(_) => None,
        };
        Self {
            message: format!("cannot read the configuration {}: {error}", tilde(path)),
            hint: hint.map(str::to_owned),
        }
    }

    pub(super) fn not_text(path: &Path) -> Self {
        let message =
            format!("cannot read the configuration {}: it is not UTF-8 text", tilde(path));
        Self { message, hint: Some("save the file as UTF-8 text".to_owned()) }
    }
}

/// A text with a name, to turn byte positions into places that a person can find.
#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    pub(super) path: &'a Path,
    pub(super) text: &'a str,
}

impl Text<'_> {
    /// An error at the bytes `span` of the text.
    pub(super) fn error(
        self,
        span: &Range<usize>,
        message: &str,
        hint: Option<String>,
    ) -> ConfigError {
        let (line, column) = position(self.text, span.start);
        let path = tilde(self.path);
        ConfigError { message: format!("{message} ({path}:{line}:{column})"), hint }
    }
}

/// Line and column (in characters) of a byte position, both counted from 1.
fn position(text: &str, byte: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(byte)];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.matches('\n').count() + 1;
    (line, before[line_start..].chars().count() + 1)
}

/// The path as people write it, with `~` for the home directory.
fn tilde(path: &Path) -> String {
    let inside = std::env::home_dir()
        .filter(|home| !home.as_os_str().is_empty())
        .and_then(|home| path.strip_prefix(home).ok());
    match inside {
        Some(rest) => Path::new("~").join(rest).display().to_string(),
        None => path.display().to_string(),
    }
}

/// "did you mean …" for the candidate nearest to `name`.
pub(super) fn did_you_mean<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    nearest(name, candidates).map(|candidate| format!("did you mean `{candidate}`?"))
}

/// There is no agent of that name that could be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct UnknownAgent {
    message: String,
    hint: String,
}

impl UnknownAgent {
    /// The way out: the nearest name, and all the names there are.
    pub fn hint(&self) -> &str {
        &self.hint
    }

    pub(super) fn new(name: &str, known: &[&str]) -> Self {
        let list = format!("known agents: {}", known.join(", "));
        Self {
            message: format!("no agent is called `{name}`"),
            hint: match did_you_mean(name, known.iter().copied()) {
                Some(question) => format!("{question} {list}"),
                None => list,
            },
        }
    }

    pub(super) fn disabled(name: &str) -> Self {
        Self {
            message: format!("agent `{name}` is disabled in the configuration"),
            hint: format!("take `enabled = false` out of `[agents.{name}]` or `[defaults]`"),
        }
    }
}
