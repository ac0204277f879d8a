//! Programs that a person has chosen.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use crate::program::shell;

/// The program that shows long output if the user has chosen none.
pub const PAGER: &str = "more";

/// The program that edits a text if the user has chosen none.
pub const EDITOR: &str = "notepad";

/// A command line with a file behind it, as a shell runs it. No name has a quotation mark in it.
pub fn shell_with(line: &str, file: &Path) -> Command {
    shell(&format!("{line} \"{}\"", file.display()))
}

/// Returns whether this file can be run.
pub fn is_program(path: &Path) -> bool {
    let endings = ["exe", "com", "cmd", "bat"];
    let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    endings.iter().any(|one| one.eq_ignore_ascii_case(ending)) && path.is_file()
        || ending.is_empty() && endings.iter().any(|one| path.with_extension(one).is_file())
}

/// The directory of the person, as far as the environment says.
pub fn home() -> Option<String> {
    std::env::var("USERPROFILE").ok()
}
