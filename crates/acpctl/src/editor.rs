//! The editor that the person has chosen: `$VISUAL`, else `$EDITOR`, else `vi`.

use std::env;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use acpd_api::{ExitCode, Untrusted};
use acpd_sys::programs;
use tempfile::{Builder, NamedTempFile};

use crate::error::{CommandError, Result};
use crate::text::text;

/// A text that a person has changed. Its file is removed with it.
#[derive(Debug)]
pub(crate) struct Edited {
    file: NamedTempFile,
    /// As it is now.
    pub(crate) text: String,
}

impl Edited {
    /// Lets the person change a text, and waits until they have left the editor.
    ///
    /// # Errors
    /// When the editor cannot be started or fails.
    pub(crate) fn of(text: &str) -> Result<Edited> {
        let mut file = Builder::new().prefix("acpctl-").suffix(".md").tempfile()?;
        file.write_all(text.as_bytes())?;
        edit(file.path())?;
        let text = fs::read_to_string(file.path())?;
        Ok(Edited { file, text })
    }

    /// Keeps the file, for what came of it was refused.
    pub(crate) fn keep(self) -> io::Result<PathBuf> {
        self.file.keep().map(|(_, path)| path).map_err(|failed| failed.error)
    }
}

/// Lets the person change a file, and waits until they have left the editor.
///
/// # Errors
/// When the editor cannot be started or fails.
pub(crate) fn edit(file: &Path) -> Result {
    let editor = wanted(|name| env::var(name).ok());
    // As git does it: the editor may have arguments.
    let mut command = programs::shell_with(&editor, file);
    let failed = |why| {
        let text = text!("the editor `{}` failed: {}", Untrusted::from(&editor), why);
        CommandError::new(ExitCode::Error, text)
            .hint("set `EDITOR` to another editor, such as `nano`")
    };
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(failed(Untrusted::of(status))),
        Err(error) => Err(failed(Untrusted::of(error))),
    }
}

fn wanted(variable: impl Fn(&str) -> Option<String>) -> String {
    let named = ["VISUAL", "EDITOR"].into_iter().filter_map(variable);
    let mut named = named.filter(|line| !line.trim().is_empty());
    named.next().unwrap_or_else(|| programs::EDITOR.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_editor_is_the_one_that_the_person_names() {
        let wanted = |visual: Option<&str>, editor: Option<&str>| {
            wanted(|name| if name == "VISUAL" { visual } else { editor }.map(str::to_owned))
        };
        assert_eq!(wanted(None, None), programs::EDITOR);
        assert_eq!(wanted(Some(""), Some("ed -s")), "ed -s");
        assert_eq!(wanted(Some("emacs"), Some("ed")), "emacs");
    }
}
