//! Where `uv tool install` puts tools, each with a Python of its own.

use std::fs;
use std::path::{Path, PathBuf};

/// The folder of all tools, unless uv is told another one.
pub fn tools(home: &Path, variable: impl Fn(&str) -> Option<PathBuf>) -> PathBuf {
    let data = variable("XDG_DATA_HOME").unwrap_or_else(|| home.join(".local/share"));
    data.join("uv/tools")
}

/// The program of this name of a tool.
pub fn program(tool: &Path, name: &str) -> PathBuf {
    tool.join("bin").join(name)
}

/// The folders of the packages of a tool.
pub fn packages(tool: &Path) -> Vec<PathBuf> {
    let libs = fs::read_dir(tool.join("lib")).into_iter().flatten().flatten();
    libs.map(|lib| lib.path().join("site-packages")).collect()
}
