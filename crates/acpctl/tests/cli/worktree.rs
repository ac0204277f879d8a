//! `acpctl session worktree` in a repository that would run programs.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::support::{Home, session};

fn path() -> OsString {
    std::env::var_os("PATH").unwrap()
}

fn git(dir: &Path, args: &[&str]) {
    let who = ["-c", "user.name=n", "-c", "user.email=n@example.org"];
    let mut git = Command::new("git");
    git.args(who).args(args).current_dir(dir).env_clear().env("PATH", path());
    let done = git.env("HOME", "/nonexistent").output().unwrap();
    assert!(done.status.success(), "git {args:?}: {done:?}");
}

/// A home whose work directory is a repository, and a worktree of it as acpctl makes one.
fn worktree() -> (Home, PathBuf) {
    let home = Home::new();
    let (work, place) = (home.work(), home.path("work.worktrees/fix"));
    git(&work, &["init", "--quiet"]);
    std::fs::write(work.join("README"), "one\n").unwrap();
    git(&work, &["add", "--all"]);
    git(&work, &["commit", "--quiet", "--message", "one"]);
    git(&work, &["worktree", "add", "--quiet", "-b", "acpd/fix", place.to_str().unwrap()]);
    (home, place)
}

/// Writes an executable script that adds a line to the file `ran` of the home.
fn script(home: &Home, file: &Path, rest: &str) -> String {
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let ran = home.path("ran");
    let text = format!("#!/bin/sh\necho $0 >>'{}'\n{rest}\n", ran.display());
    std::fs::write(file, text).unwrap();
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn a_look_at_worktrees_runs_no_program_of_the_repository() {
    let (home, place) = worktree();
    let work = home.work();
    let program = script(&home, &home.path("program"), "cat");
    for name in ["post-checkout", "post-index-change", "fsmonitor-watchman"] {
        script(&home, &work.join(".git/hooks").join(name), "exit 1");
    }
    for key in
        ["core.fsmonitor", "core.pager", "diff.external", "filter.a.b.clean", "diff.d.textconv"]
    {
        git(&work, &["config", key, &program]);
    }
    git(&work, &["config", "filter.p.process", &program]);
    git(&work, &["config", "filter.p.required", "true"]);
    std::fs::write(place.join(".gitattributes"), "README filter=a.b diff=d\n*.p filter=p\n")
        .unwrap();
    std::fs::write(place.join("README"), "two\n").unwrap();
    std::fs::write(place.join("x.p"), "new\n").unwrap();
    let of_git = [
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
        ("GIT_CONFIG_VALUE_0", program.as_str()),
        ("GIT_EXTERNAL_DIFF", program.as_str()),
    ];
    for variables in [&[][..], &of_git] {
        let mut there = session("s-1");
        there["cwd"] = json!(place);
        let daemon = home.daemon(move |mut client| {
            client.finds(&there);
            client.closed();
        });
        let mut command = home.acpctl(["session", "worktree", "fix"]);
        command.env("PATH", path()).envs(variables.iter().copied());
        let shown = home.wait(command.spawn().unwrap());
        std::fs::remove_dir_all(home.path("run")).unwrap();
        daemon.join().unwrap();
        assert!(shown.out.contains("not committed: 3 files\n"), "{shown:?}");
    }
    assert!(!home.path("ran").exists(), "{:?}", std::fs::read_to_string(home.path("ran")));
}
