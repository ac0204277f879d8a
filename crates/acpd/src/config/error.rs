//! Mistakes of a configuration, each with its place in the file and a hint.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::Path;

use acpd_api::{ConfigMistake, Untrusted, nearest};
use acpd_sys::files::ReadError;

/// Maximum number of reported mistakes.
const MOST: usize = 100;

/// The configuration cannot be used. Displays every mistake with its place, and with its hint if
/// there are several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// In the order of the file; never empty.
    mistakes: Vec<ConfigMistake>,
    /// Number of mistakes, reported or not.
    count: usize,
}

impl ConfigError {
    pub fn mistakes(&self) -> &[ConfigMistake] {
        &self.mistakes
    }

    /// Returns the hint if there is only one mistake.
    pub fn hint(&self) -> Option<&str> {
        match &self.mistakes[..] {
            [only] => only.hint.as_ref().map(Untrusted::raw),
            _ => None,
        }
    }

    pub(super) fn unreadable(path: &Path, error: &ReadError) -> Self {
        let hint = match error {
            ReadError::NotAFile => Some("put a file there, or nothing at all"),
            ReadError::OpenToAll => Some("look at what it says, then close it: `chmod o-w FILE`"),
            ReadError::TooLong { .. } => Some("check that it is a configuration of acpd"),
            ReadError::Io(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Some("make the file readable for this user")
            }
            ReadError::Io(_) => None,
        };
        Self::of_file(path, &error.to_string(), hint)
    }

    pub(super) fn not_text(path: &Path) -> Self {
        Self::of_file(path, "it is not UTF-8 text", Some("save the file as UTF-8 text"))
    }

    fn of_file(path: &Path, why: &str, hint: Option<&str>) -> Self {
        let file = tilde(path);
        let message = format!("cannot read the configuration {file}: {why}").into();
        let hint = hint.map(Untrusted::from);
        let (line, column) = (None, None);
        let only = ConfigMistake { message, file: file.into(), line, column, hint };
        Self { mistakes: vec![only], count: 1 }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = &self.mistakes[..] {
            return f.write_str(only.told().raw());
        }
        write!(f, "the configuration has {} mistakes:", self.count)?;
        for mistake in &self.mistakes {
            write!(f, "\n  {}", mistake.told().one_line())?;
            if let Some(hint) = &mistake.hint {
                write!(f, "\n    hint: {}", hint.one_line())?;
            }
        }
        match self.count - self.mistakes.len() {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}

impl std::error::Error for ConfigError {}

/// The text of a file, and its mistakes. All readers share them, so that no mistake hides another.
pub(super) struct SourceText<'a> {
    path: &'a Path,
    pub(super) content: &'a str,
    /// Positions in bytes, messages and hints.
    mistakes: RefCell<Vec<(usize, String, Option<String>)>>,
}

impl<'a> SourceText<'a> {
    pub(super) fn new(path: &'a Path, content: &'a str) -> Self {
        Self { path, content, mistakes: RefCell::default() }
    }

    pub(super) fn mistake(&self, span: &Range<usize>, message: String, hint: Option<String>) {
        self.mistakes.borrow_mut().push((span.start, message, hint));
    }

    pub(super) fn checked<T>(&self, read: T) -> Result<T, ConfigError> {
        let mut mistakes = self.mistakes.take();
        if mistakes.is_empty() {
            return Ok(read);
        }
        mistakes.sort();
        let (count, file) = (mistakes.len(), Untrusted::from(tilde(self.path)));
        let shown = mistakes.into_iter().take(MOST).map(|(start, message, hint)| {
            let (line, column) = position(self.content, start);
            ConfigMistake {
                message: message.into(),
                file: file.clone(),
                line: Some(line),
                column: Some(column),
                hint: hint.map(Untrusted::from),
            }
        });
        Err(ConfigError { mistakes: shown.collect(), count })
    }
}

/// Returns line and column (in characters), counted from 1.
pub(super) fn position(text: &str, byte: usize) -> (u32, u32) {
    let before = &text[..text.floor_char_boundary(byte)];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.matches('\n').count() + 1;
    let column = before[line_start..].chars().count() + 1;
    // Files of more than 4 MiB are refused.
    (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
}

fn tilde(path: &Path) -> String {
    let inside = std::env::home_dir()
        .filter(|home| !home.as_os_str().is_empty())
        .and_then(|home| path.strip_prefix(home).ok());
    match inside {
        Some(rest) => Path::new("~").join(rest).display().to_string(),
        None => path.display().to_string(),
    }
}

pub(super) fn did_you_mean<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    nearest(name, candidates).map(|candidate| format!("did you mean `{candidate}`?"))
}
