//! `acpctl doctor`: what is wrong, and what to do about it.

use std::fs;

use acpd_test::harness::{Agent, Config, TestEnv};
use serde_json::Value;

use crate::{echo, home};

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
