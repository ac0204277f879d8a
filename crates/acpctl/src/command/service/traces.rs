//! acpd's data in a home: directories, additions to units, and completions.
//!
//! Architecture invariant: only acpd's own files are deleted, by name, and the user's additions to
//! acpd's units, which are listed one by one. So a wrong directory in a variable loses nothing
//! else.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use acpd_client::Paths;

use crate::error::{CommandError, Result};
use crate::human;
use crate::service::{base, home, remove_file, remove_folders};
use crate::text::{Text, text};

#[derive(Debug, Default)]
pub(super) struct Traces {
    /// acpd's directories, and acpd's files in them.
    dirs: Vec<(PathBuf, Vec<PathBuf>)>,
    /// Directories next to acpd's units, with the user's files in them.
    additions: Vec<(PathBuf, Vec<PathBuf>)>,
    files: Vec<PathBuf>,
}

impl Traces {
    pub(super) fn find(paths: &Paths) -> Result<Traces> {
        let is_runtime = |name: &str| ["acpd.sock", "acpd.start.lock", "s"].contains(&name);
        // The `demo` agent always uses this directory.
        let demo = base("XDG_STATE_HOME", ".local/state")?.join("acpd");
        let mut dirs = vec![
            own(&paths.state, &is_state)?,
            own(&paths.config, &|name| ["config.toml", "config.schema.json"].contains(&name))?,
            own(&paths.runtime, &is_runtime)?,
        ];
        if demo != paths.state {
            dirs.push(own(&demo, &|name| name == "demo")?);
        }
        dirs.retain(|(dir, _)| dir.is_dir());
        // `systemctl --user edit acpd` creates these.
        let units = base("XDG_CONFIG_HOME", ".config")?.join("systemd/user");
        let is_addition = |name: &str| Path::new(name).extension().is_some_and(|end| end == "conf");
        let mut additions = vec![
            own(&units.join("acpd.service.d"), &is_addition)?,
            own(&units.join("acpd.socket.d"), &is_addition)?,
        ];
        additions.retain(|(dir, _)| dir.is_dir());
        let completions = [
            base("XDG_DATA_HOME", ".local/share")?.join("bash-completion/completions/acpctl"),
            base("XDG_CONFIG_HOME", ".config")?.join("fish/completions/acpctl.fish"),
            base("XDG_DATA_HOME", ".local/share")?.join("zsh/site-functions/_acpctl"),
            home()?.join(".zfunc/_acpctl"),
        ];
        let files = completions.into_iter().filter(|file| file.is_file()).collect();
        Ok(Traces { dirs, additions, files })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.dirs.is_empty() && self.additions.is_empty() && self.files.is_empty()
    }

    pub(super) fn list(&self) -> Text {
        let dir = |(dir, own): &(PathBuf, Vec<PathBuf>)| {
            let size = own.iter().map(|path| size(path)).sum();
            text!("{}  {}\n", dir, human::bytes(size))
        };
        let files = self.additions.iter().flat_map(|(_, own)| own).chain(&self.files);
        self.dirs.iter().map(dir).chain(files.map(|file| text!("{}\n", file))).collect()
    }

    /// Returns the directories with other files.
    pub(super) fn remove(&self) -> Result<Vec<&Path>> {
        let mut kept = Vec::new();
        for (dir, own) in self.dirs.iter().chain(&self.additions) {
            for path in own {
                let failed = |error| CommandError::file("remove", path, &error);
                // A link to a directory is removed as a link.
                if path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
                    fs::remove_dir_all(path).map_err(failed)?;
                } else {
                    remove_file(path)?;
                }
            }
            // A link in place of a configuration directory is removed; its target stays.
            let link = dir.symlink_metadata().is_ok_and(|found| found.is_symlink());
            let removed = if link { fs::remove_file(dir) } else { fs::remove_dir(dir) };
            match removed {
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => kept.push(&**dir),
                Err(error) => return Err(CommandError::file("remove", dir, &error)),
                Ok(()) => {}
            }
        }
        for (dir, _) in &self.additions {
            remove_folders(dir);
        }
        for file in &self.files {
            remove_file(file)?;
        }
        Ok(kept)
    }
}

/// Returns the user's shell files that still run `acpctl completions`.
pub(super) fn mentions() -> Vec<PathBuf> {
    let Ok(home) = home() else { return Vec::new() };
    let files = [
        ".bashrc",
        ".bash_profile",
        ".profile",
        ".zshrc",
        ".config/fish/config.fish",
        ".config/powershell/profile.ps1",
        ".config/powershell/Microsoft.PowerShell_profile.ps1",
    ];
    let mentions = |file: &PathBuf| {
        fs::read_to_string(file).is_ok_and(|text| text.contains("acpctl completions"))
    };
    files.iter().map(|file| home.join(file)).filter(mentions).collect()
}

fn is_state(name: &str) -> bool {
    let is_dir = ["log", "shims", "web", "demo"].contains(&name);
    is_dir || ["acpd.", "search.db", Paths::KEPT_ASIDE].iter().any(|own| name.starts_with(own))
}

/// Returns a directory, and its entries with acpd's names.
fn own(dir: &Path, is_own: &dyn Fn(&str) -> bool) -> Result<(PathBuf, Vec<PathBuf>)> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        // Without a directory, there are no files.
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            return Ok((dir.to_owned(), Vec::new()));
        }
        Err(error) => return Err(CommandError::file("read", dir, &error)),
    };
    let own = entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_own));
    let mut own: Vec<PathBuf> = own.map(|entry| entry.path()).collect();
    own.sort();
    Ok((dir.to_owned(), own))
}

fn size(path: &Path) -> u64 {
    let Ok(found) = path.symlink_metadata() else { return 0 };
    if !found.is_dir() {
        return found.len();
    }
    fs::read_dir(path).into_iter().flatten().flatten().map(|entry| size(&entry.path())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_acpd_makes_is_deleted() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        fs::create_dir_all(state.join("log/agents")).unwrap();
        fs::create_dir_all(state.join("letters")).unwrap();
        let kept = "acpd-before-restore-1.db";
        for name in ["acpd.db", "acpd.db-wal", kept, "search.db", "log/acpd.log", "letters/mum"] {
            fs::write(state.join(name), "x").unwrap();
        }
        let traces = || Traces { dirs: vec![own(&state, &is_state).unwrap()], ..Traces::default() };
        assert_eq!(traces().remove().unwrap(), [&*state]);
        let left: Vec<_> = fs::read_dir(&state).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["letters"]);
        fs::remove_dir_all(state.join("letters")).unwrap();
        assert!(traces().remove().unwrap().is_empty());
        assert!(!state.exists());
    }
}
