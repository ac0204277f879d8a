//! How agents end: politely, and with everything that they started.

use acpd_test::harness::{exists, kill9, until};

use crate::{echo, home, stubborn};

/// The process ids that the agent told of with `[child]` and `[child-setsid]`.
fn children(said: &str) -> Vec<u32> {
    let pids = said.lines().filter_map(|line| line.strip_prefix("child ")?.parse().ok());
    pids.collect()
}

// peers 3
#[test]
fn the_exit_of_an_agent_is_seen_while_a_child_holds_its_stdout() {
    let env = home([echo()]);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("fix"));
    let turn = client.prompt(&session, "say #one [child] [child-setsid] [pause held]");
    client.hear("paused at held");
    let children = children(&client.said(&session));
    assert!(children.len() == 2 && children.iter().all(|pid| exists(*pid)), "{children:?}");
    kill9(env.agent_pid("echo").expect("a running agent"));
    client.answer(turn).expect_err("the turn was cut off");

    let two = client.say(&session, "say #two");
    assert_eq!(two.expect("an answer")["stopReason"], "end_turn");
    assert!(client.said(&session).contains("tags=one,two"));
    assert!(!children.iter().any(|pid| exists(*pid)), "the old tree is gone first");
}

// peers 3
#[test]
fn a_leader_that_exits_by_itself_leaves_nothing_behind() {
    let env = home([echo()]);
    env.acpctl(&["run", "-s", "fix", "[child] [child-setsid] [crash]"])
        .code(6)
        .explains(&["exit code 3"]);
    let children = children(&env.said("fix"));
    assert_eq!(children.len(), 2);
    until("the children to be gone", || (!children.iter().any(|p| exists(*p))).then_some(()));
}

// peers 4
#[test]
fn an_agent_that_saves_at_the_end_of_its_stdin_has_saved() {
    let env = home([echo().flags("save-on-eof")]);
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    env.acpctl(&["agent", "stop", "echo"]).success();
    assert!(env.agent_state("echo").join("saved-on-eof").exists());
    let last = env.record("echo").pop().expect("a record");
    assert_eq!(last.line, "exit 0");
}

// peers 15
#[test]
fn an_agent_that_ignores_everything_does_not_wedge_its_session() {
    let env = home([stubborn()]);
    let mut run = env.spawn_acpctl(&["run", "-s", "fix", "#one [child] [hang]"]);
    run.wait_stdout("child");
    run.interrupt();
    run.finish().code(130);
    let next = env.acpctl(&["run", "-s", "fix", "say #two"]).success();
    assert!(next.stdout().contains("tags=one,two"), "{next:?}");
}

#[cfg(feature = "crash-points")]
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
