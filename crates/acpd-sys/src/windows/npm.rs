//! Where npm puts the programs of packages: as scripts, beside the folder of packages.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::npm_shim::behind;

/// Files that cmd.exe, PowerShell or the script host run.
const SCRIPTS: [&str; 10] = ["bat", "cmd", "ps1", "vbs", "vbe", "js", "jse", "wsf", "wsh", "msc"];

/// Returns whether only a shell can run this file.
pub(crate) fn needs_shell(file: &Path) -> bool {
    let extension = file.extension().and_then(OsStr::to_str);
    extension.is_some_and(|found| SCRIPTS.iter().any(|script| found.eq_ignore_ascii_case(script)))
}

/// Where the packages of the programs in this folder are, if npm has put them there.
#[expect(clippy::unnecessary_wraps, reason = "as on Unix, where a folder may have none above it")]
pub fn packages_of(bin: &Path) -> Option<PathBuf> {
    Some(bin.join("node_modules"))
}

/// The cache of npm, unless it is told another one.
pub fn cache(home: &Path, variable: impl Fn(&str) -> Option<PathBuf>) -> PathBuf {
    let local = variable("LOCALAPPDATA").unwrap_or_else(|| home.join(r"AppData\Local"));
    local.join("npm-cache")
}

/// The program of this name in this folder, if it is this file of a package and no other package's.
pub fn program_of(bin: &Path, name: impl AsRef<OsStr>, file: &Path) -> Option<PathBuf> {
    let mut script = name.as_ref().to_owned();
    script.push(".cmd");
    let script = bin.join(script);
    let runs = PathBuf::from(behind(&script)?.args.pop()?);
    (runs.canonicalize().ok()? == file.canonicalize().ok()?).then_some(script)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::npm_shim::{NeedsShell, without_shell};

    #[test]
    fn a_program_is_started_as_it_is_and_a_script_is_not() {
        let program = PathBuf::from(r"C:\bin\agent.exe");
        assert_eq!(without_shell(program.clone()).map(|found| found.program), Ok(program));
        for script in ["agent.bat", "agent.CMD", "agent.ps1", "agent.js"] {
            assert_eq!(without_shell(script.into()), Err(NeedsShell), "{script}");
        }
    }
}
