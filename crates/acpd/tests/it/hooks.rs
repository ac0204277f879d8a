//! Commands that the daemon runs when something happens.

use std::fs;
use std::path::Path;

use acpd_test::harness::{Config, Running, TestEnv, until};
use serde_json::{Value, json};

use crate::{echo, home_with};

/// A home with these lines in its `[hooks]`.
fn with_hooks(hooks: impl FnOnce(&TestEnv) -> String) -> TestEnv {
    let env = home_with(&Config::new([echo()]));
    let config = fs::read_to_string(env.path("config").join("config.toml")).unwrap();
    env.write_config(&format!("{config}\n[hooks]\n{}\n", hooks(&env)));
    env
}

/// A key with a line for the shell.
fn hook(name: &str, line: &str) -> String {
    format!("{name} = {}\n", json!(line))
}

/// Returns the lines of a file, once there are `count` of them.
fn lines(path: &Path, count: usize) -> Vec<String> {
    until(&format!("{count} lines in {}", path.display()), || {
        let text = fs::read_to_string(path).ok()?;
        let lines: Vec<_> = text.lines().map(str::to_owned).collect();
        (text.ends_with('\n') && lines.len() >= count).then_some(lines)
    })
}

fn sleepers(env: &TestEnv) -> usize {
    env.tree().iter().filter(|process| process.command == "sleep 1000").count()
}

#[test]
fn a_question_is_told_to_a_command_which_may_answer_it() {
    let acpctl = Path::new(env!("CARGO_BIN_EXE_acpd")).with_file_name("acpctl");
    let env = with_hooks(|env| {
        let told = env.path("told");
        let answer = format!("cat > '{}'; '{}' allow", told.display(), acpctl.display());
        hook("on_permission", &answer)
    });
    let run = env.acpctl(&["run", "-s", "fix", "[ask] say #one"]).success();
    assert!(run.stdout().contains("permission: yes"), "{run:?}");
    let told: Value = serde_json::from_str(&lines(&env.path("told"), 1)[0]).unwrap();
    assert_eq!(told["event"], "permission");
    assert_eq!((&told["agent"], &told["name"]), (&json!("echo"), &json!("fix")));
    assert_eq!(told["question"]["title"], "Write demo.txt");
}

#[test]
fn a_command_runs_where_the_session_works_and_gets_nothing_of_the_daemons() {
    let env = with_hooks(|env| {
        let told = env.path("told");
        let look = "pwd; echo $ACPD_EVENT $ACPD_HOST; echo /proc/self/fd/*";
        hook("on_turn_end", &format!("{{ {look}; }} > '{}'", told.display()))
    });
    let mut daemon = env.command("sh");
    daemon.args(["-c", "exec 9</dev/null; exec \"$ACPD_EXE\" run"]).env("ACPD_HOST", "7-1");
    let daemon = Running::start(daemon);
    until("the daemon's socket", || env.socket().exists().then_some(()));
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    let told = lines(&env.path("told"), 3);
    assert_eq!(told[0], env.work("main").display().to_string());
    assert_eq!(told[1], "turn_end -");
    assert!(!told[2].contains("fd/9"), "{told:?}");
    env.acpctl(&["daemon", "stop"]).success();
    daemon.finish().success();
}

#[test]
fn a_crash_and_the_turn_that_it_ended_are_told() {
    let env = with_hooks(|env| {
        let (crashes, ends) = (env.path("crashes"), env.path("ends"));
        let list = json!(["sh", "-c", format!("{{ cat; pwd; }} >> '{}'", crashes.display())]);
        let line = hook("on_turn_end", &format!("cat >> '{}'", ends.display()));
        format!("on_crash = {list}\n{line}")
    });
    env.acpctl(&["run", "-s", "fix", "[crash]"]).code(6);
    let crash = lines(&env.path("crashes"), 2);
    let told: Value = serde_json::from_str(&crash[0]).unwrap();
    assert_eq!((&told["event"], &told["agent"]), (&json!("crash"), &json!("echo")));
    assert_eq!(told["reason"], "it ended with exit code 3");
    assert_eq!(crash[1], env.path("home").display().to_string(), "it is about no session");
    let end: Value = serde_json::from_str(&lines(&env.path("ends"), 1)[0]).unwrap();
    assert_eq!((&end["turn"], &end["outcome"]["kind"]), (&json!(1), &json!("interrupted")));
}

#[test]
fn what_a_command_leaves_behind_ends_with_it() {
    let env = with_hooks(|env| {
        let begun = env.path("begun");
        hook("on_turn_end", &format!("sleep 1000 & echo > '{}'", begun.display()))
    });
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    lines(&env.path("begun"), 1);
    until("the end of what was left", || (sleepers(&env) == 0).then_some(()));
}

#[test]
fn a_command_that_runs_is_gone_with_the_daemon() {
    let env = with_hooks(|env| {
        let begun = env.path("begun");
        hook("on_turn_end", &format!("sleep 1000 & echo >> '{}'; sleep 1000", begun.display()))
    });
    for (round, end) in ["restart", "stop"].into_iter().enumerate() {
        env.acpctl(&["run", "-s", "fix", "say #one"]).success();
        lines(&env.path("begun"), round + 1);
        env.acpctl(&["daemon", end]).success();
        assert_eq!(sleepers(&env), 0, "{end}");
    }
}

#[test]
fn what_goes_wrong_with_a_command_is_in_the_log_and_stops_nothing() {
    let env = with_hooks(|_| {
        let broken = hook("on_permission", "echo to-the-log; exit 3");
        format!("on_turn_end = [\"no-such-program\", \"x\"]\n{broken}")
    });
    for tag in ["one", "two"] {
        let run = env.spawn_acpctl(&["run", "-s", "fix", &format!("[ask] say #{tag}")]);
        until("a question", || (!env.acpctl(&["allow"]).code_is(3)).then_some(()));
        run.finish().success();
    }
    let failures = || env.daemon_log().matches("a hook ended with exit code 3").count();
    until("the failures", || (failures() == 2).then_some(()));
    // The daemon waits for all hooks when it stops.
    env.acpctl(&["daemon", "stop"]).success();
    let log = env.daemon_log();
    assert_eq!(log.matches("cannot start `no-such-program`").count(), 1, "{log}");
    assert_eq!(log.matches("to-the-log").count(), 2, "{log}");
}
