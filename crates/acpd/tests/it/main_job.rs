//! The main job: a conversation that continues after its agent was killed.

use acpd_test::harness::kill9;

use crate::{echo, home};

#[test]
fn a_killed_agent_costs_half_an_answer_and_nothing_else() {
    let env = home([echo()]);
    let one = env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    assert!(one.stdout().contains("You said: say #one | history=0 tags=one"), "{one:?}");

    let mut two = env.spawn_acpctl(&["run", "-s", "fix", "say #two [chunks 3][pause middle]"]);
    env.wait_point("middle");
    two.wait_stdout("paused at middle");
    let old = env.agent_pid("echo").expect("a running agent");
    kill9(old);
    let two = two.finish().code(6).explains(&["agent `echo`", "was killed (SIGKILL)", "hint:"]);
    assert!(two.stdout().contains("line 3\npaused at middle"), "{two:?}");

    // The text that people saw of the broken answer is kept.
    assert!(env.said("fix").contains("line 1\nline 2\nline 3\npaused at middle"));

    let three = env.acpctl(&["run", "-s", "fix", "say #three"]).success();
    assert!(three.stdout().contains("history=2 tags=one,two,three"), "{three:?}");
    assert_ne!(env.agent_pid("echo"), Some(old));
    assert_eq!(env.session("fix")["restore"], "resumed");
    assert_eq!(env.received("echo", "session/new").len(), 1);
    assert_eq!(env.received("echo", "session/prompt").len(), 3, "no prompt is sent twice");
}

#[test]
fn another_name_is_another_conversation_in_the_same_process() {
    let env = home([echo()]);
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    let pid = env.agent_pid("echo");
    let other = env.acpctl(&["run", "-s", "docs", "say #two"]).success();
    assert!(other.stdout().contains("history=0 tags=two"), "{other:?}");
    let follow_up = env.acpctl(&["run", "-s", "fix", "say #three"]).success();
    assert!(follow_up.stdout().contains("history=1 tags=one,three"), "{follow_up:?}");
    assert_eq!(env.agent_pid("echo"), pid);
    assert_eq!(env.status()["sessions"].as_array().map(Vec::len), Some(2));
}

#[test]
fn the_same_new_name_from_several_terminals_at_once_is_one_conversation() {
    let env = home([echo()]);
    let runs: Vec<_> =
        (0..6).map(|n| env.spawn_acpctl(&["run", "-s", "fix", &format!("say #n{n}")])).collect();
    for run in runs {
        run.finish().success();
    }
    assert_eq!(env.received("echo", "session/new").len(), 1);
    assert_eq!(env.session("fix")["prompts"], 6);
}
