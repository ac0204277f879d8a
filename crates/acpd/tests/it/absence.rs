//! No daemon for long, and daemons that are called from odd places.

use std::fs;

use acpd_test::harness::{Agent, TestEnv, until};

use crate::{echo, home};

/// An agent with a tool of its own below it: [`use_tool`] says what that does.
fn handy() -> Agent {
    echo().after_script(
        "(P=$ACPD_TEST_POINTS; R=${P%/points}; export ACPD_RUNTIME_DIR=$R/run
          export ACPD_STATE_DIR=$R/state ACPD_CONFIG_DIR=$R/config PATH=${1%/*}:$PATH
          while [ ! -e $P/tool.sh ]; do sleep 0.02; done
          sh $P/tool.sh >$P/tool.out 2>&1; echo $? >$P/tool.new; mv $P/tool.new $P/tool.code) &",
    )
}

/// Runs a command as a process of the agent; it must succeed.
fn use_tool(env: &TestEnv, command: &str) {
    let file = |name: &str| env.points().join(name);
    fs::write(file("tool.new"), command).expect("the tool");
    fs::rename(file("tool.new"), file("tool.sh")).expect("the tool");
    let code = until("the tool to end", || fs::read_to_string(file("tool.code")).ok());
    let said = fs::read_to_string(file("tool.out")).unwrap_or_default();
    assert_eq!(code.trim(), "0", "{said}");
}

#[test]
fn a_daemon_that_an_agents_tool_has_started_outlives_that_agent() {
    let env = home([handy()]);
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    env.kill_daemon();
    use_tool(&env, "acpctl ps");
    let daemon = env.daemon_pid();
    env.acpctl(&["agent", "stop", "echo"]).success();
    assert_eq!(env.daemon_pid(), daemon);
    assert!(env.tree().is_empty() || env.tree().iter().all(|process| process.pid == daemon));
    env.acpctl(&["agent", "start", "echo"]).success();
    let two = env.acpctl(&["run", "-s", "fix", "say #two"]).success();
    assert!(two.stdout().contains("tags=one,two"), "{two:?}");
}
