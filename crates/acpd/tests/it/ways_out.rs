//! States that last until a person does something: the command that is told is the one that helps.

use acpd_test::harness::{Agent, TestEnv, kill9, until};

use crate::{echo, home};

/// An agent that answers every `session/load` with an error that acpd does not know.
fn stubborn() -> Agent {
    echo().flags("no-resume no-list load-error=-32603")
}

/// A session `fix` with a prompt in it, whose agent was killed.
fn cut_off(env: &TestEnv) {
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    let old = env.agent_pid("echo").expect("a running agent");
    kill9(old);
    until("the next process", || env.agent_pid("echo").filter(|pid| *pid != old));
}

#[test]
fn a_load_that_fails_for_ever_is_given_up_by_a_person_and_goes_on_with_a_summary() {
    let env = home([stubborn()]);
    cut_off(&env);
    let way_out = ["could not be restored", "load fails on demand", "acpctl session reseed fix"];
    env.acpctl(&["run", "-s", "fix", "say #two"]).code(1).explains(&way_out);
    let shown = env.acpctl(&["session", "show", "fix"]).success();
    assert!(shown.stdout().contains("acpctl session reseed fix"), "{shown:?}");
    let ps = env.acpctl(&["ps"]).success();
    assert!(ps.stdout().contains("acpctl session reseed fix"), "{ps:?}");
    env.acpctl(&["session", "reseed", "fix"])
        .success()
        .explains(&["the next prompt of fix continues", "in a new session"]);
    // Told once, by the next run.
    let run = env.acpctl(&["run", "-s", "fix", "say #three"]).code(7);
    let run = run.explains(&["a person gave it up", "continues with a summary"]);
    assert!(run.stdout().contains("tags=one,one,three"), "the summary reached it: {run:?}");
    env.acpctl(&["run", "-s", "fix", "say #four"]).success();
    let log = env.acpctl(&["session", "log", "fix"]).success();
    assert!(log.stdout().contains("the previous session is given up"), "{log:?}");
    assert_eq!(env.session("fix")["restore"], "reseeded");
}

#[test]
fn an_error_that_means_gone_is_a_way_out_by_itself() {
    let env = home([stubborn().set("gone_errors", "[\"fails on demand\"]")]);
    cut_off(&env);
    let run = env.acpctl(&["run", "-s", "fix", "say #two"]).code(7);
    let run = run.explains(&["load fails on demand", "continues with a summary"]);
    assert!(run.stdout().contains("tags=one,one,two"), "{run:?}");
    env.acpctl(&["run", "-s", "fix", "say #three"]).success();
}

#[test]
fn what_an_agent_still_has_is_given_up_only_by_who_says_so_explicitly() {
    let env = home([echo()]);
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    env.acpctl(&["session", "reseed", "fix"])
        .code(2)
        .explains(&["may still have session `fix`", "acpctl session reseed fix --discard"]);
    let two = env.acpctl(&["run", "-s", "fix", "say #two"]).success();
    assert!(two.stdout().contains("tags=one,two"), "{two:?}");
    env.acpctl(&["session", "reseed", "fix", "--discard"]).success();
    env.acpctl(&["run", "-s", "fix", "say #three"]).code(7);
}

#[test]
fn a_lost_session_is_gone_on_with_by_the_command_that_is_told() {
    let env = home([echo().flags("forget").set("on_lost", "\"stop\"")]);
    cut_off(&env);
    env.acpctl(&["run", "-s", "fix", "say #two"]).code(7).explains(&[
        "is lost",
        "acpctl session reseed fix",
        "acpctl agent restart echo",
    ]);
    env.acpctl(&["session", "reseed", "fix"]).success();
    let run = env.acpctl(&["run", "-s", "fix", "say #three"]).code(7);
    assert!(run.stdout().contains("tags=one,one,three"), "{run:?}");
}
