use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::Command;

pub const PAGER: &str = "less";
pub const EDITOR: &str = "vi";

/// Returns a command that runs a line in a shell, with a file as its last argument.
pub fn shell_with(line: &str, file: &Path) -> Command {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(format!("{line} \"$@\"")).arg(line).arg(file);
    command
}

pub fn login_shell() -> Option<PathBuf> {
    std::env::var_os("SHELL").map(PathBuf::from).filter(|shell| shell.is_absolute())
}

/// Writes to stdin: a program in the login shell returns the environment there.
pub fn answer_from_shell(text: &[u8]) -> io::Result<()> {
    File::from(io::stdin().as_fd().try_clone_to_owned()?).write_all(text)
}

pub(super) fn needs_shell(_file: &Path) -> bool {
    false
}

/// Returns the folder of the packages whose programs npm has put into `bin`.
pub fn npm_packages_of(bin: &Path) -> Option<PathBuf> {
    Some(bin.parent()?.join("lib/node_modules"))
}

/// The default cache of npm.
pub fn npm_cache(home: &Path, _variable: impl Fn(&str) -> Option<PathBuf>) -> PathBuf {
    home.join(".npm")
}

/// Returns the program of this name, if it is this file of a package and not another package's.
pub fn npm_program_of(bin: &Path, name: impl AsRef<OsStr>, file: &Path) -> Option<PathBuf> {
    let program = bin.join(name.as_ref());
    let same = program.canonicalize().ok()? == file.canonicalize().ok()?;
    same.then_some(program)
}

/// The default folder of `uv tool install`, with a Python for each tool.
pub fn uv_tools(home: &Path, variable: impl Fn(&str) -> Option<PathBuf>) -> PathBuf {
    let data = variable("XDG_DATA_HOME").unwrap_or_else(|| home.join(".local/share"));
    data.join("uv/tools")
}
