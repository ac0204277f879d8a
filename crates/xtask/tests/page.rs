//! The tests of the page, in JavaScript: what is in `crates/acpd-web/page-tests`.
//!
//! They need node and npm, those in a browser also Chromium. Where something is missing they are skipped with a line
//! that says so; in continuous integration that is a failure.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use xtask::workspace::{self, succeed};
use xtask::{Result, real, vendor};

#[test]
fn the_page_folds_and_shows_what_it_should() {
    node(&[], |command| {
        succeed(command().args(["--test", "unit"]))?;
        succeed(command().arg("types.js"))
    })
    .unwrap();
}

#[test]
fn the_page_in_a_browser() {
    node(&["chromium"], |command| {
        let bins = workspace::bin_dir("debug")?;
        // In one process after the other: they share the machine, and each has a home of its own.
        let mut command = command();
        command.args(["--test", "--test-concurrency=1", "browser"]).env("ACPD_BIN", bins);
        if let Some(chromium) = find("chromium") {
            command.env("ACPD_CHROMIUM", chromium);
        }
        succeed(&mut command)
    })
    .unwrap();
}

#[test]
fn the_libraries_are_those_of_npm() {
    node(&[], |_| {
        let fresh = tempfile::tempdir()?;
        let fresh = fresh.path().join("lib");
        vendor::fetch(&fresh)?;
        let (ours, theirs) = (names(&vendor::folder())?, names(&fresh)?);
        assert_eq!(ours, theirs, "`cargo xtask vendor` makes other files");
        for name in ours {
            let is_same = fs::read(vendor::folder().join(&name))? == fs::read(fresh.join(&name))?;
            assert!(is_same, "`{name}` is not as npm has it: run `cargo xtask vendor`");
        }
        Ok(())
    })
    .unwrap();
}

/// Calls with what makes node commands in the folder of the tests, if all is there that they need.
fn node(also: &[&str], run: impl FnOnce(&dyn Fn() -> Command) -> Result) -> Result {
    let folder = workspace::root().join("crates/acpd-web/page-tests");
    if let Err(missing) = ready(&folder, also) {
        return workspace::skip("tests of the page", missing);
    }
    run(&|| {
        let mut command = Command::new("node");
        command.current_dir(&folder);
        command
    })
}

fn ready(folder: &Path, also: &[&str]) -> Result {
    if env::var_os(real::SKIP).is_some() && !workspace::in_ci() {
        return Err(format!("{} is set", real::SKIP).into());
    }
    for program in ["node", "npm"].iter().chain(also) {
        find(program)
            .ok_or_else(|| format!("{program} is missing, which the page is tested with"))?;
    }
    // One at a time, for all callers.
    let lock = File::create(env::temp_dir().join("acpd-page-tests.lock"))?;
    lock.lock()?;
    let installed = folder.join("node_modules/.package-lock.json");
    let is_new = |path: &Path| fs::metadata(path).and_then(|it| it.modified()).ok();
    if is_new(&installed) < is_new(&folder.join("package-lock.json")) {
        succeed(Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(folder))?;
    }
    Ok(())
}

fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file())
}

/// The names of the files in a folder, sorted.
fn names(folder: &Path) -> Result<Vec<String>> {
    let entries =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into()));
    let mut names = entries.collect::<Result<Vec<String>>>()?;
    names.sort();
    Ok(names)
}
