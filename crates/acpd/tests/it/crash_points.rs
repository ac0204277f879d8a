//! The daemon dies at every named point, the first or a later time, and nothing is lost or doubled.

use acpd::crash::POINTS;
use acpd_test::harness::{Output, TestEnv, kill9, until};

use crate::{echo, home};

/// The agent counts to this number in each turn.
const NUMBERS: u64 = 100;

/// A day in the life of a daemon that dies at some moment of it.
fn a_day(point: &str, count: u32) {
    let what = format!("{point}:{count}");
    let env = home([echo()]);
    // The daemon inherits the variable, and the next daemon does not.
    let mut start = env.acpctl_command(&["daemon", "start"]);
    start.env("ACPD_CRASH", &what);
    // The points on the way to being ready fail the start.
    drop(start.output().unwrap());
    say(&env, &what, "one", 1);
    say(&env, &what, "two", 2);
    // An agent that was found again has points of its own.
    if matches!(point, "before-hello" | "after-hello" | "recovered") {
        let mut again = env.acpctl_command(&["daemon", "start"]);
        kill9(env.daemon_pid());
        drop(again.env("ACPD_CRASH", &what).output().unwrap());
        say(&env, &what, "again", 3);
    }
    let _ = env.acpctl(&["agent", "stop", "echo"]);
    // The daemon may die of it, before or after it is known that the agent is wanted.
    if !env.acpctl(&["agent", "start", "echo"]).code_is(0) {
        env.acpctl(&["agent", "start", "echo"]).success();
    }
    say(&env, &what, "three", 4);
    let restart = env.spawn_acpctl(&["daemon", "restart"]);
    let four = count_up(&env, "four");
    // It ends the connection over which the journal is read.
    let _ = restart.finish();
    check(&env, &what, "four", 5, &four);
}

fn say(env: &TestEnv, what: &str, tag: &str, most: usize) {
    check(env, what, tag, most, &count_up(env, tag));
}

fn count_up(env: &TestEnv, tag: &str) -> Output {
    env.acpctl(&["run", "-s", "fix", &format!("say #{tag} [number {NUMBERS} {tag} 50]")])
}

/// The agent has counted to the end, or the turn is known to be broken. `most` prompts have been sent by then.
fn check(env: &TestEnv, what: &str, tag: &str, most: usize, out: &Output) {
    assert!(out.code_is(0) || out.code_is(6), "{what}, {tag}: {out:?}");
    let said = if out.code_is(0) { env.said("fix") } else { String::new() };
    for text in [out.stdout(), &said] {
        let heard = numbers(text, tag);
        let counted: Vec<u64> = (1..=heard.len() as u64).collect();
        assert_eq!(heard, counted, "{what}, {tag}: {out:?}");
        assert!(!out.code_is(0) || heard.len() as u64 == NUMBERS, "{what}, {tag}: {out:?}");
    }
    let prompts = env.received("echo", "session/prompt").len();
    assert!(prompts <= most, "{what}, {tag}: {prompts} prompts");
}

/// How far the agent counted, as it is told in a text.
fn numbers(text: &str, tag: &str) -> Vec<u64> {
    let name = format!("{tag}/");
    let rests = text.split(&name).skip(1);
    rests.filter_map(|rest| rest.lines().next()?.parse().ok()).collect()
}

#[test]
fn a_daemon_that_dies_at_any_point_loses_and_doubles_nothing() {
    for point in POINTS {
        for count in [1, 3] {
            a_day(point, count);
        }
    }
}

#[test]
fn a_daemon_that_dies_while_it_stops_leaves_no_agent() {
    let mut died = 0;
    for count in 1..=8 {
        let point = format!("after-commit:{count}");
        let env = home([echo()]);
        env.acpctl(&["daemon", "start"]).success();
        env.acpctl(&["agent", "start", "echo"]).success();
        env.kill_daemon();
        // The agent is there already, so that hardly anything but the stop comes by the points.
        let mut again = env.acpctl_command(&["daemon", "start"]);
        again.env("ACPD_CRASH", &point).output().unwrap();
        env.acpctl(&["daemon", "stop"]).success();
        until(&format!("no host to be left, {point}"), || env.shims().is_empty().then_some(()));
        died += usize::from(env.daemon_log().matches("acpd is ready").count() > 2);
    }
    assert!(died > 0, "no daemon died while it stopped");
}
