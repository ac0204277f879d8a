//! A second build of acpd, and turns whose answers must come whole over a change from one to the other.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use xtask::{Result, workspace};

use crate::program::Program;

/// A folder with programs of another version, for a real one: see CONTRIBUTING.md.
pub(crate) const OTHER: &str = "ACPD_OTHER_BUILD";
/// The programs that an upgrade changes.
const PROGRAMS: [&str; 2] = ["acpd", "acpctl"];

/// Programs of one version.
#[derive(Debug, Clone)]
pub(crate) struct Build {
    pub(crate) dir: PathBuf,
    pub(crate) version: String,
}

impl Build {
    fn at(dir: PathBuf) -> Result<Build> {
        let said = workspace::read(Command::new(dir.join("acpd")).arg("--version"))?;
        let version = said.trim().strip_prefix("acpd ").ok_or("it says no version")?.to_owned();
        Ok(Build { dir, version })
    }

    /// The programs that the tests use.
    pub(crate) fn own() -> Result<Build> {
        Build::at(workspace::bin_dir("debug")?)
    }

    /// Those that are given, else copies of the own ones in `dir` that give another version.
    pub(crate) fn other(own: &Build, dir: &Path) -> Result<Build> {
        if let Some(given) = std::env::var_os(OTHER) {
            return Build::at(given.into());
        }
        fs::create_dir_all(dir)?;
        let (major, rest) = own.version.split_once('.').ok_or("this is no version")?;
        let other = format!("{}.{rest}", if major == "0" { "9" } else { "0" });
        for name in PROGRAMS {
            let mut program = fs::read(own.dir.join(name))?;
            replace(&mut program, own.version.as_bytes(), other.as_bytes());
            fs::write(dir.join(name), program)?;
            fs::set_permissions(
                dir.join(name),
                std::os::unix::fs::PermissionsExt::from_mode(0o755),
            )?;
        }
        let built = Build::at(dir.to_owned())?;
        assert_eq!(built.version, other);
        Ok(built)
    }

    /// Puts its programs where those of another one were, whose files are removed.
    pub(crate) fn install(&self, into: &Path) -> Result {
        remove(into)?;
        for name in PROGRAMS {
            fs::copy(self.dir.join(name), into.join(name))?;
        }
        Ok(())
    }
}

/// Removes the programs that are installed there.
pub(crate) fn remove(from: &Path) -> Result {
    fs::create_dir_all(from)?;
    for name in PROGRAMS {
        match fs::remove_file(from.join(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

fn replace(bytes: &mut [u8], old: &[u8], new: &[u8]) {
    let mut at = 0;
    while let Some(found) = bytes[at..].windows(old.len()).position(|window| window == old) {
        at += found;
        bytes[at..at + old.len()].copy_from_slice(new);
        at += old.len();
    }
}

/// `acpctl run` with an answer of a number of lines.
pub(crate) struct Run {
    program: Program,
    lines: usize,
}

impl Run {
    /// `acpctl`: the command to which the arguments are added.
    pub(crate) fn start(
        mut acpctl: Command,
        agent: &str,
        session: &str,
        lines: usize,
    ) -> Result<Run> {
        let prompt = format!("[number {lines} n 20000]");
        acpctl.args(["run", "-a", agent, "-s", session, &prompt]);
        Ok(Run { program: Program::start(&mut acpctl)?, lines })
    }

    pub(crate) fn read_to(&mut self, line: usize) -> Result {
        self.program.read_to(&format!("n/{line}\n"))
    }

    /// The rest must come, each line once and in order.
    pub(crate) fn finish(self) -> Result {
        let run = self.program.finish()?;
        run.answers(&format!("n/{}", self.lines));
        let numbers = run.stdout.lines().filter_map(|line| line.strip_prefix("n/")?.parse().ok());
        assert_eq!(
            numbers.collect::<Vec<usize>>(),
            (1..=self.lines).collect::<Vec<_>>(),
            "{run:?}"
        );
        Ok(())
    }
}
