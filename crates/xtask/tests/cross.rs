//! The runner of programs for Windows, with a stand-in for Wine.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use xtask::workspace::root;

fn cross(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(root().join("crates/xtask/cross/cross.py"));
    let path = format!("{}:{}", dir.display(), std::env::var("PATH").unwrap());
    command.env("CROSS_DIR", dir).env("PATH", path).env_remove("WINEPREFIX");
    command.args(args).output().unwrap()
}

#[test]
fn programs_run_under_wine_with_the_library_that_it_lacks() {
    let dir = tempfile::tempdir().unwrap();
    let wine = dir.path().join("wine");
    fs::write(&wine, "#!/bin/sh\necho \"$WINEPREFIX\" \"$@\"\n").unwrap();
    fs::set_permissions(&wine, fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(dir.path().join("bin")).unwrap();
    let program = dir.path().join("bin/program.exe");
    let run = ["--run", program.to_str().unwrap(), "a b"];

    let missing = cross(dir.path(), &run);
    assert!(!missing.status.success());
    assert!(String::from_utf8_lossy(&missing.stderr).contains("cross.py --install"), "{missing:?}");

    for (file, text) in [("ready", ""), ("bcryptprimitives.dll", "library")] {
        fs::write(dir.path().join(file), text).unwrap();
    }
    let ran = cross(dir.path(), &run);
    let line = format!("{}/wine {} a b\n", dir.path().display(), program.display());
    assert_eq!(String::from_utf8_lossy(&ran.stdout), line, "{ran:?}");
    let copy = fs::read_to_string(dir.path().join("bin/bcryptprimitives.dll")).unwrap();
    assert_eq!(copy, "library");
}

#[test]
fn the_folder_of_the_compiler_is_the_given_one() {
    let dir = tempfile::tempdir().unwrap();
    let printed = String::from_utf8(cross(dir.path(), &["--dir"]).stdout).unwrap();
    assert_eq!(Path::new(printed.trim()), dir.path());
}
