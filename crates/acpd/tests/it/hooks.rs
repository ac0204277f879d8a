//! Commands that the daemon runs when something happens.

use std::fs;
use std::path::Path;

use acpd_test::harness::{Config, TestEnv, until};
use serde_json::{Value, json};

use crate::{echo, home};

/// A home with these lines in its `[hooks]`.
fn with_hooks(hooks: impl FnOnce(&TestEnv) -> String) -> TestEnv {
    let env = home([]);
    env.configure(&Config::new([echo()]).tables(&format!("[hooks]\n{}", hooks(&env))));
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

#[test]
fn a_question_is_told_to_a_command_which_may_answer_it() {
    let acpctl = Path::new(env!("CARGO_BIN_EXE_acpd")).with_file_name("acpctl");
    let env = with_hooks(|env| {
        let told = env.path("told");
        let look = "{ cat; echo; pwd; echo $ACPD_EVENT $ACPD_HOST; }";
        let answer = format!("{look} > '{}'; '{}' allow", told.display(), acpctl.display());
        hook("on_permission", &answer)
    });
    let run = env.acpctl(&["run", "-s", "fix", "[ask] say #one"]).success();
    assert!(run.stdout().contains("permission: yes"), "{run:?}");
    let lines: Vec<String> =
        lines(&env.path("told"), 3).into_iter().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines[1..], [env.work("main").display().to_string(), "permission -".to_owned()]);
    let told: Value = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!(told["event"], "permission");
    assert_eq!((&told["agent"], &told["name"]), (&json!("echo"), &json!("fix")));
    assert_eq!(told["question"]["title"], "Write demo.txt");
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
