//! Completion in a shell, against a real daemon.

use std::time::{Duration, Instant};

use acpd_test::harness::{Agent, Running, TestEnv};
use nix::sys::signal::Signal;

use crate::{echo, home};

/// Returns the completions that a shell gets for the last of these words.
fn offered(env: &TestEnv, words: &[&str]) -> Vec<String> {
    let mut command = env.acpctl_command(&["--", "acpctl"]);
    command.args(words).env("ACPCTL_COMPLETE", "fish");
    let done = Running::start(command).finish().success();
    assert_eq!(done.stderr(), "", "{words:?}");
    let value = |line: &str| line.split('\t').next().unwrap_or_default().to_owned();
    done.stdout().lines().map(value).filter(|value| !value.starts_with("--")).collect()
}

#[test]
fn a_shell_offers_the_sessions_agents_questions_and_settings_that_there_are() {
    let env = home([echo(), Agent::new("other")]);
    env.acpctl(&["run", "-s", "fix-login", "hello"]).success();
    env.acpctl(&["run", "-s", "fix-logout", "hello"]).success();
    assert_eq!(offered(&env, &["attach", "fix"]), ["fix-logout", "fix-login"]);
    assert_eq!(offered(&env, &["session", "rm", "fix-logo"]), ["fix-logout"]);
    assert_eq!(offered(&env, &["run", "--session", "fix-logo"]), ["fix-logout"]);
    assert_eq!(offered(&env, &["run", "--agent", "oth"]), ["other"]);
    assert_eq!(offered(&env, &["agent", "show", "oth"]), ["other"]);
    assert_eq!(offered(&env, &["trace", "fix-logo"]), ["fix-logout"]);
    assert_eq!(offered(&env, &["trace", "--agent", "oth"]), ["other"]);
    // A name of several words would be several words.
    let spaced = env.json(&["run", "-s", "fix it all", "hello"]);
    let id = spaced["sessionId"].as_str().unwrap().to_owned();
    assert!(offered(&env, &["attach", ""]).contains(&id), "{id}");
    let modes = offered(&env, &["session", "mode", "fix-login", ""]);
    assert!(modes.contains(&"code".to_owned()), "{modes:?}");
    let options = offered(&env, &["session", "set", "fix-login", ""]);
    assert!(options.contains(&"model".to_owned()), "{options:?}");
    let values = offered(&env, &["session", "set", "fix-login", "model", ""]);
    assert!(!values.is_empty());
    assert_eq!(offered(&env, &["run", "--model", ""]), values);
    env.acpctl(&["run", "-d", "-s", "ask", "[ask]"]).success();
    let question = env.wait_questions()[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(offered(&env, &["allow", ""]), std::slice::from_ref(&question));
    assert!(!offered(&env, &["allow", &question, "--option", ""]).is_empty());
    env.acpctl(&["deny", &question]).success();
}

#[test]
fn completion_is_quick_and_silent_without_a_daemon_and_with_one_that_is_stopped() {
    let env = home([echo()]);
    assert_eq!(offered(&env, &["attach", ""]), [""; 0]);
    assert_eq!(offered(&env, &["daemon", "log-level", "de"]), ["debug"]);
    assert!(!env.socket().exists(), "it starts no daemon");
    env.acpctl(&["run", "-s", "fix", "hello"]).success();
    let daemon = env.daemon_pid();
    acpd_test::harness::signal(daemon, Signal::SIGSTOP);
    let start = Instant::now();
    assert_eq!(offered(&env, &["attach", ""]), [""; 0]);
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    acpd_test::harness::signal(daemon, Signal::SIGCONT);
    assert_eq!(offered(&env, &["attach", "f"]), ["fix"]);
}
