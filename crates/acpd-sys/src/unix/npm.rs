//! Where npm puts the programs of packages.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Returns whether only a shell can run this file: the system knows what runs which file.
pub(crate) fn needs_shell(_file: &Path) -> bool {
    false
}

/// Where the packages of the programs in this folder are, if npm has put them there.
pub fn packages_of(bin: &Path) -> Option<PathBuf> {
    Some(bin.parent()?.join("lib/node_modules"))
}

/// The cache of npm, unless it is told another one.
pub fn cache(home: &Path, _variable: impl Fn(&str) -> Option<PathBuf>) -> PathBuf {
    home.join(".npm")
}

/// The program of this name in this folder, if it is this file of a package and no other package's.
pub fn program_of(bin: &Path, name: impl AsRef<OsStr>, file: &Path) -> Option<PathBuf> {
    let program = bin.join(name.as_ref());
    let same = program.canonicalize().ok()? == file.canonicalize().ok()?;
    same.then_some(program)
}
