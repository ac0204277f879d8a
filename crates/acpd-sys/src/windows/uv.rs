//! Where `uv tool install` puts tools, each with a Python of its own.

use std::path::{Path, PathBuf};

/// The folder of all tools, unless uv is told another one. Older versions have made it elsewhere, and newer ones leave it
/// there.
pub fn tools(home: &Path, variable: impl Fn(&str) -> Option<PathBuf>) -> PathBuf {
    let roaming = variable("APPDATA").unwrap_or_else(|| home.join(r"AppData\Roaming"));
    let older = roaming.join(r"uv\data\tools");
    if older.is_dir() { older } else { roaming.join(r"uv\tools") }
}

/// The program of this name of a tool.
pub fn program(tool: &Path, name: &str) -> PathBuf {
    tool.join("Scripts").join(format!("{name}.exe"))
}

/// The folders of the packages of a tool.
pub fn packages(tool: &Path) -> Vec<PathBuf> {
    vec![tool.join(r"Lib\site-packages")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_in_roaming_data_where_this_or_an_older_uv_has_put_them() {
        let home = tempfile::tempdir().unwrap();
        let roaming = home.path().join("roaming");
        let look = || tools(home.path(), |name| (name == "APPDATA").then(|| roaming.clone()));
        assert_eq!(look(), roaming.join(r"uv\tools"));
        std::fs::create_dir_all(roaming.join(r"uv\data\tools")).unwrap();
        assert_eq!(look(), roaming.join(r"uv\data\tools"));
        assert!(tools(home.path(), |_| None).starts_with(home.path()));
        assert!(program(&look(), "agent").ends_with(r"Scripts\agent.exe"));
    }
}
