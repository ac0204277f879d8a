//! `acpctl session handoff --summary`: another agent continues with what the old one writes for it.

use acpd_test::harness::{Agent, TestEnv};

use crate::{echo, home};

/// All that the other agent was told with its first prompt.
fn told(env: &TestEnv) -> String {
    let prompts = env.received("other", "session/prompt");
    prompts.last().expect("a prompt")["params"]["prompt"].to_string()
}

#[test]
fn the_old_agent_is_asked_for_a_summary_in_its_session() {
    let env = home([echo(), Agent::new("other")]);
    env.acpctl(&["run", "-s", "fix", "say #one [plan] [tool Edit]"]).success();
    let handed = env
        .acpctl(&["session", "handoff", "fix", "--to", "other", "--summary", "-s", "next", "go on"])
        .success();
    handed.explains(&[
        "asking fix (echo) for a summary",
        "handing over a summary of fix (echo) to other",
    ]);
    let log = env.acpctl(&["session", "log", "fix", "--last"]).success();
    assert!(log.stdout().contains("Another agent, `other`, takes over this work"), "{log:?}");
    let told = told(&env);
    for part in [
        "go on",
        "a summary that `echo` wrote for you",
        "## Summary, by echo\\n\\nYou said: Another agent, `other`, takes over",
        "You said: say #one",
        "## Changed files\\n\\n- `",
        "## Plan\\n",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(env.session("next")["agent"], "other");
}

#[test]
fn where_the_old_agent_cannot_be_asked_its_last_words_are_handed_over() {
    let env = home([echo(), Agent::new("other")]);
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    env.acpctl(&["agent", "stop", "echo"]).success();
    let handed =
        env.acpctl(&["session", "handoff", "fix", "--to", "other", "--summary", "go on"]).success();
    handed.explains(&[
        "echo wrote no summary: ",
        "stopped by a person",
        "handing over the last words of fix, the changed files and the plan to other",
    ]);
    let told = told(&env);
    assert!(told.contains("`echo` could not be asked for a summary"), "{told}");
    assert!(told.contains("You said: say #one") && !told.contains("## Summary"), "{told}");
    assert_eq!(env.session("fix")["prompts"], 1);
}
