use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::script_command;
use crate::process::shell;

pub const PAGER: &str = "more";
pub const EDITOR: &str = "notepad";

/// Files that cmd.exe, PowerShell or the script host run.
const SCRIPTS: [&str; 10] = ["bat", "cmd", "ps1", "vbs", "vbe", "js", "jse", "wsf", "wsh", "msc"];

/// A file name has no quotation mark.
pub fn shell_with(line: &str, file: &Path) -> Command {
    shell(&format!("{line} \"{}\"", file.display()))
}

/// Every process of a login has the environment of the user.
pub fn login_shell() -> Option<PathBuf> {
    None
}

pub fn answer_from_shell(_text: &[u8]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn needs_shell(file: &Path) -> bool {
    let extension = file.extension().and_then(OsStr::to_str);
    extension.is_some_and(|found| SCRIPTS.iter().any(|script| found.eq_ignore_ascii_case(script)))
}

#[expect(clippy::unnecessary_wraps, reason = "as on Unix, where a folder may have none above it")]
pub fn npm_packages_of(bin: &Path) -> Option<PathBuf> {
    Some(bin.join("node_modules"))
}

pub fn npm_cache(home: &Path, variable: impl Fn(&str) -> Option<PathBuf>) -> PathBuf {
    let local = variable("LOCALAPPDATA").unwrap_or_else(|| home.join(r"AppData\Local"));
    local.join("npm-cache")
}

pub fn npm_program_of(bin: &Path, name: impl AsRef<OsStr>, file: &Path) -> Option<PathBuf> {
    let mut script = name.as_ref().to_owned();
    script.push(".cmd");
    let script = bin.join(script);
    let runs = PathBuf::from(script_command(&script)?.args.pop()?);
    (runs.canonicalize().ok()? == file.canonicalize().ok()?).then_some(script)
}

/// Older versions of uv have made the folder elsewhere, and newer ones leave it there.
pub fn uv_tools(home: &Path, variable: impl Fn(&str) -> Option<PathBuf>) -> PathBuf {
    let roaming = variable("APPDATA").unwrap_or_else(|| home.join(r"AppData\Roaming"));
    let older = roaming.join(r"uv\data\tools");
    if older.is_dir() { older } else { roaming.join(r"uv\tools") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::{NeedsShell, without_shell};

    #[test]
    fn a_program_is_started_as_it_is_and_a_script_is_not() {
        let program = PathBuf::from(r"C:\bin\agent.exe");
        assert_eq!(without_shell(program.clone()).map(|found| found.program), Ok(program));
        for script in ["agent.bat", "agent.CMD", "agent.ps1", "agent.js"] {
            assert_eq!(without_shell(script.into()), Err(NeedsShell), "{script}");
        }
    }

    #[test]
    fn tools_of_uv_are_in_the_folder_of_this_or_an_older_uv() {
        let home = tempfile::tempdir().unwrap();
        let roaming = home.path().join("roaming");
        let look = || uv_tools(home.path(), |name| (name == "APPDATA").then(|| roaming.clone()));
        assert_eq!(look(), roaming.join(r"uv\tools"));
        std::fs::create_dir_all(roaming.join(r"uv\data\tools")).unwrap();
        assert_eq!(look(), roaming.join(r"uv\data\tools"));
        assert!(uv_tools(home.path(), |_| None).starts_with(home.path()));
    }
}
