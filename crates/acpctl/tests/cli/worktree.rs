//! `acpctl run --worktree` and `acpctl session worktree`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use acpd_api::method;
use serde_json::{Value, json};

use crate::support::{Client, Done, Home, capable, session};

fn path() -> OsString {
    std::env::var_os("PATH").unwrap()
}

fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=n",
            "-c",
            "user.email=n@example.org",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(args)
        .current_dir(dir)
        .env_clear()
        .env("PATH", path())
        .env("HOME", "/nonexistent")
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    assert!(output.status.success(), "git {args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// A home whose work directory is a repository with one commit, and whose git knows who commits.
fn repository() -> (Home, PathBuf) {
    let home = Home::new();
    let work = home.work();
    git(&work, &["init", "--quiet"]);
    git(&work, &["config", "user.name", "n"]);
    git(&work, &["config", "user.email", "n@example.org"]);
    commit(&work, "README", "one\n");
    (home, work)
}

fn commit(dir: &Path, name: &str, text: &str) {
    std::fs::write(dir.join(name), text).unwrap();
    git(dir, &["add", "--all"]);
    git(dir, &["commit", "--quiet", "--message", name]);
}

fn run(home: &Home, args: &[&str]) -> Done {
    home.wait(home.acpctl(args).env("PATH", path()).spawn().unwrap())
}

/// Runs `acpctl` against a daemon that serves one connection; its socket is removed afterwards.
fn against<T: Send + 'static>(
    home: &Home,
    args: &[&str],
    serve: impl FnOnce(Client) -> T + Send + 'static,
) -> (Done, T) {
    let daemon = home.daemon(serve);
    let done = run(home, args);
    std::fs::remove_dir_all(home.path("run")).unwrap();
    (done, daemon.join().unwrap())
}

/// Begins a session in a worktree.
fn begin(home: &Home, args: &[&str]) -> (Done, Value) {
    let is_named = args.iter().any(|arg| arg.contains("fix"));
    against(home, args, move |mut client| {
        if is_named {
            client.lists(&[]);
        }
        client.answer("initialize", capable());
        let new = client.answer("session/new", json!({"sessionId": "s-1"}));
        let prompt = client.expect("session/prompt");
        client.result(&prompt, json!({"stopReason": "end_turn"}));
        client.closed();
        new["params"].clone()
    })
}

/// Runs `session worktree` for a session that works in this directory.
fn show(home: &Home, dir: &Path, turn: &'static str, args: &[&str]) -> Done {
    let dir = dir.to_owned();
    let args = [&["session", "worktree", "fix"], args].concat();
    let serve = move |mut client: Client| {
        let mut there = session("s-1");
        there["cwd"] = json!(dir);
        there["turn"]["state"] = json!(turn);
        client.finds(&there);
        client.closed();
    };
    against(home, &args, serve).0
}

#[test]
fn a_session_begins_in_a_worktree_of_its_own() {
    let (home, work) = repository();
    std::fs::write(work.join("README"), "not committed\n").unwrap();
    let (done, new) = begin(&home, &["run", "--worktree=fix", "go"]);
    let place = work.with_file_name("work.worktrees").join("fix");
    assert_eq!(new["cwd"], json!(place));
    assert_eq!(new["_meta"]["_acpd"]["name"], "fix");
    insta::assert_snapshot!(done.err, @"
    new session fix
    worktree [HOME]/work.worktrees/fix, branch acpd/fix
    uncommitted changes are not in the worktree
    ");
    assert_eq!(done.code, Some(0));
    assert_eq!(git(&place, &["symbolic-ref", "--short", "HEAD"]), "acpd/fix");

    // Without a name, the first number that is free; a directory of the repository stays the same one.
    std::fs::create_dir(work.join("sub")).unwrap();
    commit(&work, "sub/x", "x\n");
    let (_, new) = begin(&home, &["run", "--worktree", "--cwd", "sub", "go"]);
    assert_eq!(new["cwd"], json!(place.with_file_name("1").join("sub")));
    assert_eq!(new["_meta"], Value::Null);
}

#[test]
fn a_session_that_does_not_begin_leaves_no_worktree() {
    let (home, work) = repository();
    let args = ["run", "--worktree", "-s", "fix", "-a", "x", "go"];
    let (done, ()) = against(&home, &args, |mut client| {
        client.lists(&[]);
        client.fail("initialize", "no agent `x`", json!({"reason": "agent_unknown"}));
        client.closed();
    });
    assert_eq!(done.code, Some(3), "{done:?}");
    assert!(!home.path("work.worktrees/fix").exists());
    assert_eq!(git(&work, &["branch", "--list", "acpd/*"]), "");
}

/// Writes an executable script that adds a line to the file `ran` of the home.
fn script(home: &Home, file: &Path, rest: &str) -> String {
    use std::os::unix::fs::PermissionsExt as _;

    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let ran = home.path("ran");
    let text = format!("#!/bin/sh\necho $0 >>'{}'\n{rest}\n", ran.display());
    std::fs::write(file, text).unwrap();
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn a_look_at_worktrees_runs_no_program_of_the_repository() {
    let (home, work) = repository();
    let (begun, _) = begin(&home, &["run", "--worktree=fix", "go"]);
    assert_eq!(begun.code, Some(0), "{begun:?}");
    let place = home.path("work.worktrees/fix");
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
    let shown = show(&home, &place, "idle", &[]);
    assert!(shown.out.contains("not committed: 3 files\n"), "{shown:?}");

    let mut command = home.acpctl(["session", "worktree", "fix"]);
    command.env("PATH", path()).env("GIT_CONFIG_COUNT", "1");
    command.env("GIT_CONFIG_KEY_0", "core.fsmonitor").env("GIT_CONFIG_VALUE_0", &program);
    command.env("GIT_EXTERNAL_DIFF", &program);
    let dir = place.clone();
    let daemon = home.daemon(move |mut client| {
        let mut there = session("s-1");
        there["cwd"] = json!(dir);
        client.finds(&there);
        client.closed();
    });
    let shown = home.wait(command.spawn().unwrap());
    daemon.join().unwrap();
    assert!(shown.out.contains("not committed: 3 files\n"), "{shown:?}");
    let ran = std::fs::read_to_string(home.path("ran")).unwrap_or_default();
    assert_eq!(ran, "");
}

#[test]
fn a_worktree_whose_hook_fails_is_kept_with_a_warning() {
    let (home, work) = repository();
    script(&home, &work.join(".git/hooks/post-checkout"), "echo no husky >&2; exit 1");
    let (done, new) = begin(&home, &["run", "--worktree=fix", "go"]);
    assert_eq!((done.code, &new["_meta"]["_acpd"]["name"]), (Some(0), &json!("fix")), "{done:?}");
    assert!(done.err.contains("a hook failed") && done.err.contains("no husky"), "{done:?}");
    assert_eq!(git(&home.path("work.worktrees/fix"), &["status", "--porcelain"]), "");
}

#[test]
fn a_worktree_that_is_not_complete_is_taken_back() {
    let (home, work) = repository();
    std::fs::write(work.join(".gitattributes"), "README filter=f\n").unwrap();
    git(&work, &["add", "--all"]);
    git(&work, &["commit", "--quiet", "--message", "filter"]);
    git(&work, &["config", "filter.f.smudge", "false"]);
    git(&work, &["config", "filter.f.required", "true"]);
    let args = ["run", "--worktree", "-s", "fix", "go"];
    let (done, ()) = against(&home, &args, Client::closed);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(!home.path("work.worktrees/fix").exists());
    assert_eq!(git(&work, &["branch", "--list", "acpd/*"]), "");
    assert_eq!(git(&work, &["worktree", "list"]).lines().count(), 1);
    let config = std::fs::read_to_string(work.join(".git/config")).unwrap();
    assert!(!config.contains("acpdFrom"), "{config}");
}

#[test]
fn what_stands_in_the_way_of_a_worktree_is_told_with_the_way_out() {
    let (home, work) = repository();
    let fails = |path: &OsString, args: &[&str]| {
        let daemon = home.daemon(Client::closed);
        let done = home.wait(home.acpctl(args).env("PATH", path).spawn().unwrap());
        std::fs::remove_dir_all(home.path("run")).unwrap();
        daemon.join().unwrap();
        (done.err, done.code)
    };
    let is = |text: &str, code: i32| (text.to_owned(), Some(code));
    let args = ["run", "--worktree=fix", "go"];
    let none = "error: cannot run `git`: No such file or directory (os error 2)\n\n\
                hint: install git, or leave out `--worktree`\n";
    assert_eq!(fails(&home.path("empty").into_os_string(), &args), is(none, 1));

    git(&work, &["branch", "acpd/fix"]);
    let branch = "error: the branch `acpd/fix` exists\n\n\
                  hint: choose another name: `--worktree=NAME`; or delete it: git branch -d acpd/fix\n";
    assert_eq!(fails(&path(), &args), is(branch, 2));
    std::fs::create_dir_all(home.path("work.worktrees/fix")).unwrap();
    let (err, code) = fails(&path(), &args);
    assert!(err.starts_with("error: `[HOME]/work.worktrees/fix` exists\n"), "{err}");
    assert_eq!(code, Some(2));
    for name in ["a b", "a/b", "..", ""] {
        let (err, code) = fails(&path(), &["run", &format!("--worktree={name}"), "go"]);
        assert!(err.starts_with(&format!("error: `{name}` cannot name a branch\n")), "{err}");
        assert_eq!(code, Some(2));
    }
    std::fs::remove_dir_all(work.join(".git")).unwrap();
    let outside = "error: `[HOME]/work` is in no git repository\n\n\
                   hint: create one with `git init`, or leave out `--worktree`\n";
    assert_eq!(fails(&path(), &args), is(outside, 2));
    git(&work, &["init", "--quiet"]);
    let empty =
        "error: the repository `[HOME]/work` has no commit yet\n\nhint: commit something first\n";
    assert_eq!(fails(&path(), &args), is(empty, 2));
}

#[test]
fn work_is_shown_merged_back_and_not_lost_by_mistake() {
    let (home, work) = repository();
    let (done, _) = begin(&home, &["run", "--worktree=fix", "go"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let place = home.path("work.worktrees/fix").canonicalize().unwrap();
    commit(&place, "new", "two\n");
    std::fs::write(place.join("more"), "three\n").unwrap();
    let done = show(&home, &place, "idle", &[]);
    insta::assert_snapshot!(done.out, @"
    directory: [HOME]/work.worktrees/fix
    branch: acpd/fix, from main
    not committed: 1 file
    not merged: 1 commit
    ");
    let done = show(&home, &place, "idle", &["--merge"]);
    insta::assert_snapshot!(done.err, @"
    error: the worktree has uncommitted changes: 1 file

    hint: let the agent do it: `acpctl run --resume fix 'commit your work'`
    ");
    std::fs::remove_file(place.join("more")).unwrap();
    let done = show(&home, &place, "idle", &["--remove"]);
    insta::assert_snapshot!(done.err, @"
    error: the worktree has unsaved work: 0 files not committed, 1 commit not merged

    hint: merge it first (`--merge`), or discard it (`--force`)
    ");
    assert_eq!(done.code, Some(2));
    let done = show(&home, &place, "working", &["--merge"]);
    assert!(done.err.starts_with("error: a turn is running in fix\n"), "{}", done.err);
    let done = show(&home, &place, "idle", &["--merge", "--json"]);
    insta::assert_snapshot!(done.out, @r#"
    {
      "path": "[HOME]/work.worktrees/fix",
      "branch": "acpd/fix",
      "from": "main",
      "changed": 0,
      "unmerged": 0
    }
    "#);
    assert_eq!(done.err, "acpd/fix is merged into main\n");
    assert_eq!(std::fs::read_to_string(work.join("new")).unwrap(), "two\n");
    let done = show(&home, &place, "idle", &["--remove"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(!place.exists());
    assert_eq!(git(&work, &["branch", "--list", "acpd/*"]), "");
}

#[test]
fn a_merge_that_fails_leaves_everything_as_it_was_and_force_gives_work_up() {
    let (home, work) = repository();
    let (done, _) = begin(&home, &["run", "--worktree=fix", "go"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let place = home.path("work.worktrees/fix").canonicalize().unwrap();
    commit(&place, "README", "theirs\n");
    commit(&work, "README", "ours\n");
    // A merge of the person's own, without a change so far, is not taken back.
    git(&work, &["branch", "other"]);
    commit(&work, "mine", "x\n");
    git(&work, &["switch", "--quiet", "other"]);
    git(&work, &["commit", "--quiet", "--allow-empty", "--message", "empty"]);
    git(&work, &["switch", "--quiet", "main"]);
    git(&work, &["merge", "--quiet", "--no-commit", "--no-ff", "other"]);
    for text in ["ours\n", "not committed\n"] {
        std::fs::write(work.join("README"), text).unwrap();
        let done = show(&home, &place, "idle", &["--merge"]);
        insta::allow_duplicates! {
            insta::assert_snapshot!(done.err, @"
            error: `[HOME]/work` has changes that are not committed

            hint: commit or stash them, then try again
            ");
        }
        assert!(work.join(".git/MERGE_HEAD").exists());
    }
    git(&work, &["checkout", "--quiet", "README"]);
    git(&work, &["merge", "--abort"]);

    let done = show(&home, &place, "idle", &["--merge", "--remove"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(
        done.err.contains("git merge failed: ") && done.err.contains("CONFLICT"),
        "{}",
        done.err
    );
    let hint = "hint: nothing was merged; merge it yourself in `[HOME]/work`: git merge acpd/fix\n";
    assert!(done.err.ends_with(hint), "{}", done.err);
    assert_eq!(git(&work, &["status", "--porcelain"]), "");
    assert!(place.exists());
    let done = show(&home, &place, "idle", &["--remove", "--force"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(!place.exists());
}

#[test]
fn worktrees_of_sessions_are_listed_and_stay_when_a_script_deletes_the_session() {
    let (home, work) = repository();
    let (done, _) = begin(&home, &["run", "--worktree=fix", "go"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let place = home.path("work.worktrees/fix").canonicalize().unwrap();
    let asked = |args: &[&str], rm: bool| {
        let [mut there, mut elsewhere] = ["s-1", "s-2"].map(session);
        (there["cwd"], elsewhere["cwd"]) = (json!(place), json!(work));
        elsewhere["name"] = json!("other");
        let serve = move |mut client: Client| {
            client.lists(&[&there, &elsewhere]);
            if rm {
                client.answer(method::SESSION_REMOVE, json!({}));
            }
            client.closed();
        };
        against(&home, args, serve).0
    };
    insta::assert_snapshot!(asked(&["session", "worktree"], false).out, @"
    SESSION  BRANCH    NOT COMMITTED  NOT MERGED  DIRECTORY
    fix      acpd/fix  0              0           [HOME]/work.worktrees/fix
    ");
    let listed: Value =
        serde_json::from_str(&asked(&["session", "worktree", "--json"], false).out).unwrap();
    assert_eq!((&listed[0]["name"], listed.as_array().unwrap().len()), (&json!("fix"), 1));
    let done = asked(&["session", "rm", "fix", "--yes"], true);
    let stays = "kept its worktree; to remove it: git worktree remove [HOME]/work.worktrees/fix\n";
    assert!(done.err.ends_with(stays) && place.exists(), "{done:?}");
}
