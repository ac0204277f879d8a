//! Backups of the journal, and the way back.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::{echo, home};
use acpd_test::harness::{Agent, TestEnv};

/// Numbers that an agent has counted in a text, one below the other.
fn numbers(text: &str) -> Vec<u64> {
    text.split("n/").skip(1).filter_map(|rest| rest.lines().next()?.parse().ok()).collect()
}

fn log(env: &TestEnv, session: &str) -> String {
    env.acpctl(&["session", "log", session]).success().stdout().to_owned()
}

/// Names of the files in a folder.
fn files(dir: &Path) -> Vec<String> {
    let found = fs::read_dir(dir).unwrap().map(|file| file.unwrap().file_name());
    let mut names: Vec<String> = found.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_backup_under_streams_is_the_same_conversation_elsewhere() {
    const LINES: u64 = 1500;
    let names = ["one", "two"];
    let env = home(names.map(Agent::new));
    env.acpctl(&["run", "-a", "one", "-s", "fix", "say #one"]).success();
    let prompt = format!("[number {LINES} n 1000]");
    let mut runs = names.map(|name| env.spawn_acpctl(&["run", "-a", name, "-s", name, &prompt]));
    for run in &mut runs {
        run.wait_stdout("n/50\n");
    }

    let dir = env.work("backups");
    let file = text(&dir.join("acpd.backup"));
    let report = env.json(&["backup", &file]);
    assert_eq!((&report["file"], &report["sessions"]), (&file.clone().into(), &3.into()));
    let found = fs::metadata(&file).unwrap();
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    assert_eq!(report["bytes"], found.len());
    assert_eq!(files(&dir), ["acpd.backup"], "it is one file");
    // Again, in its own place.
    env.acpctl(&["backup", &file]).success().explains(&["holds 3 sessions"]);

    for run in runs {
        assert_eq!(numbers(run.finish().success().stdout()), (1..=LINES).collect::<Vec<_>>());
    }

    let agents = names.map(|name| env.agent_pid(name));
    let other = home(names.map(Agent::new));
    other.acpctl(&["restore", &file, "--yes"]).success().explains(&["restored 3 sessions"]);
    assert_eq!(log(&other, "fix"), log(&env, "fix"));
    // Leftover processes of an agent end before it starts again.
    other.acpctl(&["run", "-s", "fix", "say #two"]).success();
    assert_eq!(names.map(|name| env.agent_pid(name)), agents, "they belong to the first daemon");
    for name in names {
        let counted = numbers(&other.said(name));
        assert!(counted.len() >= 50, "{name}: {}", counted.len());
        assert_eq!(counted, (1..=counted.len() as u64).collect::<Vec<_>>(), "{name}");
    }
    let hits = other.acpctl(&["session", "search", "say"]).success();
    assert!(hits.stdout().contains("fix"), "the index is made again: {hits:?}");
}

/// A backup is needed most when the journal is lost, and the daemon with it; its shims are there.
#[test]
fn a_backup_is_restored_over_a_journal_with_which_acpd_does_not_start() {
    let env = home([echo()]);
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    let file = text(&env.work("backups").join("acpd.backup"));
    env.acpctl(&["backup", &file]).success();
    let shims = env.shims();
    env.kill_daemon();
    fs::write(env.path("state").join("acpd.db"), "my novel").unwrap();
    // With it, all would be there.
    fs::remove_file(env.path("state").join("acpd.db-wal")).unwrap();
    let told = env.acpctl(&["status"]).code(1);
    told.explains(&["acpd cannot start", "acpd.db", "\n\nhint: put a backup in its place"]);
    let done = env.acpctl(&["restore", &file, "--yes"]).success();
    done.explains(&["restored 1 session", "acpd stopped"]);
    assert!(shims.iter().all(|shim| !acpd_test::harness::exists(shim.pid)));
    let said = env.acpctl(&["run", "-s", "fix", "say #two"]).success();
    assert!(said.stdout().contains("tags=one,two"), "{said:?}");
}

#[cfg(feature = "crash-points")]
#[test]
fn a_copy_that_is_killed_leaves_what_was_there() {
    let env = home([echo()]);
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    let dir = env.work("backups");
    let file = text(&dir.join("acpd.backup"));
    let killed = |args: &[&str], point: &str| {
        let mut command = env.acpctl_command(args);
        let done = command.env("ACPD_CRASH", format!("{point}:1")).output().unwrap();
        assert!(!done.status.success(), "{point}: {done:?}");
    };
    env.acpctl(&["backup", &file]).success();
    let first = fs::read(&file).unwrap();
    env.acpctl(&["run", "-s", "fix", "say #two"]).success();
    for point in ["copying", "copy-checked"] {
        killed(&["backup", &file], point);
        assert_eq!(fs::read(&file).unwrap(), first, "{point}");
    }
    for point in acpd::crash::COPYING {
        killed(&["restore", &file, "--yes"], point);
        let said = log(&env, "fix");
        assert!(said.contains("#one") && said.contains("#two"), "{point}: {said}");
    }
    let (boot, shims) = (env.status()["daemon"]["boot"].as_u64(), env.shims());
    let done = env.acpctl(&["restore", &file, "--yes"]).success();
    done.explains(&["acpd stopped", "restored 1 session", "acpd-before-restore-1.db"]);
    assert!(shims.iter().all(|shim| !acpd_test::harness::exists(shim.pid)));
    assert!(!log(&env, "fix").contains("#two"));
    assert!(env.status()["daemon"]["boot"].as_u64() > boot, "ids go on");
    // The journal that was there is all of it, and can come back.
    let old = text(&env.path("state").join("acpd-before-restore-1.db"));
    env.acpctl(&["restore", &old, "--yes"]).success().explains(&["acpd-before-restore-2.db"]);
    assert!(log(&env, "fix").contains("#two"));
    env.acpctl(&["backup", &file]).success();
    assert_eq!(files(&dir), ["acpd.backup"], "nothing is left of those that were killed");
    let kept = files(&env.path("state"));
    assert_eq!(kept.iter().filter(|name| name.contains("restore")).count(), 2, "{kept:?}");
}
