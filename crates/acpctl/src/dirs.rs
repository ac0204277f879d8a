use std::env;
use std::path::{Path, PathBuf};

use acpd_api::ExitCode;

use crate::error::{CommandError, Result};
use crate::text::text;
use crate::ui::Ui;

pub(crate) fn current_dir() -> Result<PathBuf> {
    env::current_dir().map_err(|error| {
        CommandError::new(ExitCode::NotFound, text!("cannot find the current directory: {}", error))
            .hint("go to a directory that exists, or name one with `--cwd`")
    })
}

/// Returns an absolute path without symbolic links, as agents and session names need it.
pub(crate) fn directory(path: &Path) -> Result<PathBuf> {
    let full =
        dunce::canonicalize(path).map_err(|error| CommandError::file("enter", path, &error))?;
    if full.is_dir() {
        Ok(full)
    } else {
        Err(CommandError::usage(text!("`{}` is not a directory", path)))
    }
}

impl Ui {
    /// Returns where a directory is on the machine of this command, which may have other ones.
    pub(crate) fn place_of(&self, dir: &Path) -> Result<String> {
        let Some(machine) = &self.machine else { return utf8(&directory(dir)?) };
        let full = dunce::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
        utf8(&machine.place_of(&full))
    }
}

pub(crate) fn utf8(path: &Path) -> Result<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        CommandError::usage(text!("`{}` is not valid UTF-8", path))
            .hint("agents need paths that JSON can hold; rename it")
    })
}
