use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::Command;

pub const PAGER: &str = "less";
pub const EDITOR: &str = "vi";

/// A command line, which a shell runs, with a file as its last argument.
pub fn shell_with(line: &str, file: &Path) -> Command {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(format!("{line} \"$@\"")).arg(line).arg(file);
    command
}

/// The shell that makes the environment of a terminal.
pub fn login_shell() -> Option<PathBuf> {
    std::env::var_os("SHELL").map(PathBuf::from).filter(|shell| shell.is_absolute())
}

/// Writes to stdin, on which a program in the login shell returns the environment.
pub fn answer_from_shell(text: &[u8]) -> io::Result<()> {
    File::from(io::stdin().as_fd().try_clone_to_owned()?).write_all(text)
}

/// Returns whether only a shell can run this file.
pub(super) fn needs_shell(_file: &Path) -> bool {
    false
}

/// The packages of the programs in this folder, if npm has installed them.
pub fn npm_packages_of(bin: &Path) -> Option<PathBuf> {
    Some(bin.parent()?.join("lib/node_modules"))
}

/// The cache of npm, unless it is configured.
pub fn npm_cache(home: &Path, _variable: impl Fn(&str) -> Option<PathBuf>) -> PathBuf {
    home.join(".npm")
}

/// The program of this name in this folder, if it is this file of a package and no other package's.
pub fn npm_program_of(bin: &Path, name: impl AsRef<OsStr>, file: &Path) -> Option<PathBuf> {
    let program = bin.join(name.as_ref());
    let same = program.canonicalize().ok()? == file.canonicalize().ok()?;
    same.then_some(program)
}

/// The folder of `uv tool install`, unless it is configured. Each tool has a Python of its own.
pub fn uv_tools(home: &Path, variable: impl Fn(&str) -> Option<PathBuf>) -> PathBuf {
    let data = variable("XDG_DATA_HOME").unwrap_or_else(|| home.join(".local/share"));
    data.join("uv/tools")
}

/// The program of this name of a tool.
pub fn uv_program(tool: &Path, name: &str) -> PathBuf {
    tool.join("bin").join(name)
}

/// The folders of the packages of a tool.
pub fn uv_packages(tool: &Path) -> Vec<PathBuf> {
    let libs = fs::read_dir(tool.join("lib")).into_iter().flatten().flatten();
    libs.map(|lib| lib.path().join("site-packages")).collect()
}
