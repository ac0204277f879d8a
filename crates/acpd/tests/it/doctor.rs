//! `acpctl doctor`: what is wrong, and what to do about it.

use std::fs;

use acpd_test::harness::{Agent, Config, TestEnv, until};
use serde_json::Value;

use crate::{echo, home, home_with};

/// The findings of this check.
fn findings(env: &TestEnv, check: &str) -> Vec<Value> {
    let done = env.acpctl(&["doctor", "--json"]);
    let report: Value = serde_json::from_str(done.stdout()).unwrap();
    let all = report["findings"].as_array().unwrap().clone();
    all.into_iter().filter(|found| found["check"] == check).collect()
}

#[test]
fn a_healthy_home_has_no_problem_and_no_daemon_is_started_for_the_look() {
    let env = home([echo()]);
    let seen = env.acpctl(&["doctor"]).success();
    assert!(
        seen.stdout().contains("can start") && seen.stdout().contains("not running"),
        "{seen:?}"
    );
    assert!(!env.socket().exists());
    env.acpctl(&["run", "hello"]).success();
    for check in ["program", "disk", "daemon", "configuration", "agents", "service"] {
        assert_eq!(findings(&env, check)[0]["state"], "ok", "{check}");
    }
}

#[test]
fn a_home_without_a_configuration_is_not_said_to_use_one() {
    let env = home([echo()]);
    fs::remove_file(env.path("config").join("config.toml")).unwrap();
    env.acpctl(&["daemon", "start"]).success();
    let found = findings(&env, "configuration");
    assert_eq!(found[0]["state"], "ok");
    assert!(found[0]["text"].as_str().unwrap().ends_with("all values are defaults"), "{found:?}");
}

#[test]
fn what_ends_no_turn_is_mended_and_the_rest_is_told() {
    let broken = Agent::new("broken").command(&["/nonexistent/agent"]);
    let env = home([echo(), broken.set("restart_budget", "1")]);
    env.acpctl(&["agent", "start", "broken"]).code(1);
    let found = findings(&env, "agents");
    assert_eq!(found[1]["state"], "problem", "{found:?}");
    assert!(found[1]["text"].as_str().unwrap().contains("broken is not running"), "{found:?}");
    assert!(found[1]["fix"].is_string() && found[1].get("harmless").is_none(), "{found:?}");
    env.acpctl(&["doctor"]).code(1).explains(&["1 problem found"]);

    env.configure(&Config::new([echo()]).daemon("max_clients", "7"));
    let found = findings(&env, "configuration");
    assert_eq!((&found[0]["state"], &found[0]["harmless"]), (&"warning".into(), &true.into()));
    let mended = env.acpctl(&["doctor", "--fix"]).success();
    mended.explains(&["running `acpctl daemon reload`"]);
    assert_eq!(findings(&env, "configuration")[0]["state"], "ok");
}

#[test]
fn a_daemon_that_could_not_start_is_a_problem_with_its_reason() {
    let env = home_with(&Config::new([echo()]));
    let journal = env.path("state").join("acpd.db");
    fs::create_dir_all(env.path("state")).unwrap();
    fs::write(&journal, "my novel").unwrap();
    let seen = env.acpctl(&["doctor"]).code(1).explains(&["1 problem found"]);
    let found = findings(&env, "program");
    assert_eq!(found[0]["state"], "problem", "{seen:?}");
    assert!(found[0]["text"].as_str().unwrap().contains("acpd.db"), "{found:?}");
    fs::remove_file(&journal).unwrap();
}

#[test]
fn mistakes_of_the_configuration_are_one_problem_with_a_line_for_each() {
    let env = home_with(&Config::new([echo()]));
    let wrong = "[daemno]\n[retentoin]\n";
    let look = |begins: &str| {
        let seen = env.acpctl(&["doctor"]).code(1).explains(&["1 problem found"]);
        assert!(seen.stdout().contains(&format!("problem  configuration  {begins}\n")), "{seen:?}");
        let of = |key: &str| seen.stdout().lines().filter(|line| line.contains(key)).count();
        assert_eq!((of("unknown key `daemno`"), of("unknown key `retentoin`")), (1, 1), "{seen:?}");
    };
    env.write_config(wrong);
    look("acpd cannot start with it:");
    env.configure(&Config::new([echo()]));
    env.acpctl(&["daemon", "start"]).success();
    env.write_config(wrong);
    look("acpd keeps the old one:");
    env.configure(&Config::new([echo()]));
}

#[test]
fn a_broken_file_is_one_problem_with_its_fix_whether_acpd_runs_or_not() {
    let env = home([echo()]);
    let good = fs::read_to_string(env.path("config").join("config.toml")).unwrap();
    for runs in [false, true] {
        if runs {
            env.acpctl(&["daemon", "start"]).success();
        }
        env.write_config("[daemno]\n");
        env.acpctl(&["doctor"]).code(1).explains(&["1 problem found"]);
        let found = findings(&env, "configuration");
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0]["fix"], "acpctl config edit", "{found:?}");
        assert!(found[0]["text"].as_str().unwrap().contains("unknown key `daemno`"), "{found:?}");
        env.write_config(&good);
    }
}

#[test]
fn agents_of_the_configuration_that_cannot_run_are_told_before_anybody_tries_them() {
    let env = home([
        echo(),
        Agent::new("gone").command(&["no-such-program"]),
        Agent::new("noexec").command(&["/etc/passwd"]),
    ]);
    env.acpctl(&["daemon", "start"]).success();
    let found = findings(&env, "agents");
    assert_eq!(found.len(), 3, "{found:?}");
    for (found, words) in [
        (&found[1], ["gone: cannot find `no-such-program`", "not in the agent's PATH"]),
        (&found[2], ["noexec: cannot ", "/etc/passwd"]),
    ] {
        let text = found["text"].as_str().unwrap();
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
        assert_eq!(found["state"], "problem");
        assert!(found["fix"].as_str().unwrap().contains("acpctl config edit"), "{found}");
    }
    env.acpctl(&["doctor"]).code(1).explains(&["2 problems found"]);

    // The program is there, where only this terminal looks.
    let program = env.work("bin").join("no-such-program");
    std::os::unix::fs::symlink(env.program("acpd-scripted-agent"), &program).unwrap();
    let mut command = env.acpctl_command(&["doctor"]);
    command.env("PATH", format!("{}:/usr/bin:/bin", env.work("bin").display()));
    let seen = acpd_test::harness::Running::start(command).finish().code(1);
    assert!(seen.stdout().contains("this terminal finds `no-such-program`"), "{seen:?}");
}

#[test]
fn the_processes_that_keep_agents_are_told_with_their_version() {
    let env = home([echo()]);
    env.acpctl(&["run", "hello"]).success();
    let found = findings(&env, "shims");
    let said = format!("1 shim of acpd {}", env!("CARGO_PKG_VERSION"));
    assert_eq!((&found[0]["state"], &found[0]["text"]), (&"ok".into(), &said.into()));
    let shims = env.agent("echo")["shims"].clone();
    assert_eq!(shims[0]["pid"], env.shims()[0].pid);
}

#[test]
fn journals_that_a_restore_has_left_are_told_with_what_deletes_them() {
    let env = home([echo()]);
    assert_eq!(findings(&env, "kept aside"), Vec::<Value>::new());
    for name in
        ["acpd-before-restore-1.db", "acpd-before-restore-2.db", "acpd-before-restore-2.db-wal"]
    {
        fs::write(env.path("state").join(name), vec![0; 4096]).unwrap();
    }
    let found = findings(&env, "kept aside");
    assert_eq!((found.len(), &found[0]["state"]), (1, &"warning".into()));
    let text = found[0]["text"].as_str().unwrap();
    assert!(text.contains("2 journals") && text.contains("12"), "{text}");
    let fix = found[0]["fix"].as_str().unwrap();
    let (_, command) = fix.split_once(": ").unwrap();
    assert!(std::process::Command::new("sh").args(["-c", command]).status().unwrap().success());
    assert_eq!(findings(&env, "kept aside"), Vec::<Value>::new());
}

#[test]
fn a_large_journal_is_told_unless_a_limit_keeps_it_smaller() {
    let env = home([echo()]);
    env.acpctl(&["run", "hello"]).success();
    assert_eq!(findings(&env, "journal"), Vec::<Value>::new());
    // A sparse file takes no room on the disk.
    let journal = fs::File::options().write(true).open(env.path("state").join("acpd.db")).unwrap();
    let found = until("it to be told", || {
        // A checkpoint cuts off what is not the database's.
        journal.set_len(3 << 29).unwrap();
        Some(findings(&env, "journal")).filter(|found| !found.is_empty())
    });
    assert_eq!((found.len(), &found[0]["state"]), (1, &"warning".into()), "{found:?}");
    let text = found[0]["text"].as_str().unwrap();
    assert!(text.starts_with("1.5 GB, and no limit"), "{text}");
    assert!(found[0]["fix"].as_str().unwrap().contains("`[retention]`"), "{found:?}");

    env.configure(&Config::new([echo()]).tables("[retention]\nmax_age = \"30d\"\n"));
    env.acpctl(&["daemon", "reload"]).success();
    journal.set_len(3 << 29).unwrap();
    assert_eq!(findings(&env, "journal"), Vec::<Value>::new());
}

#[test]
fn doctor_names_an_ssh_agent_that_is_gone() {
    let env = home([echo()]);
    let gone = env.path("agent.1").display().to_string();
    let mut start = env.acpctl_command(&["daemon", "start"]);
    assert!(start.env("SSH_AUTH_SOCK", &gone).output().unwrap().status.success());
    let told = env.acpctl(&["doctor"]);
    let all = format!("{}{}", told.stdout(), told.stderr());
    assert!(all.contains(&gone) && all.contains("inherit_env"), "{all}");
    let _listens = std::os::unix::net::UnixListener::bind(&gone).unwrap();
    let told = env.acpctl(&["doctor"]);
    assert!(!told.stdout().contains("SSH_AUTH_SOCK"), "{told:?}");
}
