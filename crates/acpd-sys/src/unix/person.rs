//! Programs that a person has chosen.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

/// The program that shows long output if the user has chosen none.
pub const PAGER: &str = "less";

/// The program that edits a text if the user has chosen none.
pub const EDITOR: &str = "vi";

/// A command line with a file behind it, as a shell runs it.
pub fn shell_with(line: &str, file: &Path) -> Command {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(format!("{line} \"$@\"")).arg(line).arg(file);
    command
}

/// Returns whether this file can be run.
pub fn is_program(path: &Path) -> bool {
    let found = path.metadata().ok();
    found.is_some_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// The directory of the person, as far as the environment says.
pub fn home() -> Option<String> {
    std::env::var("HOME").ok()
}
