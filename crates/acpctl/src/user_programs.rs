//! The user's editor (`$VISUAL`, `$EDITOR`, `vi`) and pager (`$ACPCTL_PAGER`, `$PAGER`, `less`).

use std::env;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};

use acpd_api::{ExitCode, Untrusted};
use acpd_sys::process;
use acpd_sys::programs;
use acpd_sys::signals::{self, Signal};
use acpd_sys::terminal::Utf8;
use tempfile::{Builder, NamedTempFile};

use crate::error::{CommandError, Result};
use crate::text::text;

/// Default options of `less`: exit if all fits, keep colours and the screen.
const LESS: &str = "FRX";

#[derive(Debug)]
pub(crate) struct Pager {
    child: Child,
    _encoding: Utf8,
}

impl Pager {
    /// Returns the pager and its stdin; none if the user wants no pager or it cannot be started.
    pub(crate) fn start() -> Option<(Pager, ChildStdin)> {
        let line = pager()?;
        let mut command = process::shell(&line);
        command.stdin(Stdio::piped());
        if env::var_os("LESS").is_none() {
            command.env("LESS", LESS);
        }
        let mut child = command.spawn().ok()?;
        let stdin = child.stdin.take()?;
        // Ctrl-C is for the pager. Until it ends, this process must not give the terminal back.
        drop(signals::ignore(&[Signal::Interrupt]));
        Some((Pager { child, _encoding: Utf8::set() }, stdin))
    }

    /// Waits until the user leaves the pager, whose stdin must be closed.
    pub(crate) fn wait(mut self) {
        // The exit status is no error of the output.
        drop(self.child.wait());
    }
}

/// Returns none for an empty command and for `cat`.
pub(crate) fn pager() -> Option<String> {
    let named = ["ACPCTL_PAGER", "PAGER"].into_iter().find_map(|name| env::var(name).ok());
    let line = named.unwrap_or_else(|| programs::PAGER.to_owned());
    (!line.trim().is_empty() && line.trim() != "cat").then_some(line)
}

/// A text from the editor. Dropping this removes its file.
#[derive(Debug)]
pub(crate) struct Edited {
    file: NamedTempFile,
    pub(crate) text: String,
}

impl Edited {
    pub(crate) fn of(text: &str) -> Result<Edited> {
        let mut file = Builder::new().prefix("acpctl-").suffix(".md").tempfile()?;
        file.write_all(text.as_bytes())?;
        edit(file.path())?;
        let text = fs::read_to_string(file.path())?;
        Ok(Edited { file, text })
    }

    /// Keeps the file, because the text was refused.
    pub(crate) fn keep(self) -> io::Result<PathBuf> {
        self.file.keep().map(|(_, path)| path).map_err(|failed| failed.error)
    }
}

pub(crate) fn edit(file: &Path) -> Result {
    let editor = wanted_editor(|name| env::var(name).ok());
    // As in git, the editor may have arguments.
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

fn wanted_editor(variable: impl Fn(&str) -> Option<String>) -> String {
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
            wanted_editor(|name| if name == "VISUAL" { visual } else { editor }.map(str::to_owned))
        };
        assert_eq!(wanted(None, None), programs::EDITOR);
        assert_eq!(wanted(Some(""), Some("ed -s")), "ed -s");
        assert_eq!(wanted(Some("emacs"), Some("ed")), "emacs");
    }
}
