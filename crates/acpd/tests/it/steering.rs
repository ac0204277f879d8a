//! Messages into a running turn.

use acpd_test::harness::{TestEnv, signal, until};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::{echo, home};

/// Steered messages of a journal.
fn steered(env: &TestEnv, session: &str) -> Vec<Value> {
    let lines = env.journal(session).into_iter().map(|(_, line)| line["params"].clone());
    let steered = lines.filter(|params| params["_meta"]["_acpd"]["steered"] == true);
    steered.map(|params| params["update"]["content"]["text"].clone()).collect()
}

#[test]
fn what_is_said_into_a_turn_reaches_the_agent_and_everybody_who_is_there() {
    let env = home([echo()]);
    let mut run = env.spawn_acpctl(&["run", "-s", "fix", "#one [pause middle]"]);
    run.wait_stdout("paused at middle");
    let mut watcher = env.client("echo");
    watcher.attach("fix", None);
    let told = env.acpctl(&["run", "--steer", "fix", "take", "#two"]).success();
    assert_eq!((told.stdout(), told.stderr()), ("", "fix continues with your message\n"));
    run.wait_stdout("heard: take #two");
    watcher.hear("take #two");
    env.acpctl(&["run", "-s", "fix", "--steer", "and #three"]).success();
    run.wait_stdout("heard: and #three");
    env.release("middle");
    let run = run.finish().success();
    assert!(run.stdout().contains("history=0 tags=one,two,three"), "{run:?}");
    assert!(run.stderr().contains("> take #two\n"), "who runs the turn sees it: {run:?}");
    assert_eq!(steered(&env, "fix"), ["take #two", "and #three"]);
    let shown = env.session("fix");
    assert_eq!((&shown["prompts"], &shown["turn"]["state"]), (&json!(1), &json!("idle")));
    let log = env.acpctl(&["session", "log", "fix"]).success();
    assert!(log.stdout().contains("\n> take #two\n"), "{log:?}");
    let found = env.acpctl(&["session", "search", "take"]).success();
    assert!(found.stdout().contains("fix"), "{found:?}");
}

#[test]
fn without_a_turn_or_an_agent_that_listens_the_way_out_is_named() {
    let env = home([echo(), acpd_test::harness::Agent::new("deaf").flags("no-steering")]);
    env.acpctl(&["run", "-s", "fix", "#one"]).success();
    let idle = env.acpctl(&["run", "--steer", "fix", "more"]).code(1);
    assert_eq!(
        idle.stderr(),
        "error: no turn is running in session `fix`\n\nhint: send it as a prompt: `acpctl run -s fix …`\n"
    );
    assert!(env.received("echo", "_session/steering").is_empty(), "and the agent was not asked");
    env.acpctl(&["run", "--steer", "nobody", "more"]).code(3);

    let mut run = env.spawn_acpctl(&["run", "-a", "deaf", "-s", "dig", "#one [pause middle]"]);
    run.wait_stdout("paused at middle");
    let deaf = env.acpctl(&["run", "--steer", "dig", "more"]).code(1);
    deaf.explains(&[
        "agent `deaf` takes no message into a running turn",
        "acpctl run -s dig",
        "acpctl cancel dig",
    ]);
    env.release("middle");
    run.finish().success();
}

#[test]
fn a_message_arrives_once_though_the_daemon_dies_on_the_way() {
    let env = home([echo()]);
    let mut run = env.spawn_acpctl(&["run", "-s", "fix", "#one [pause middle]"]);
    run.wait_stdout("paused at middle");
    let agent = env.agent_pid("echo").expect("an agent");
    // The agent cannot answer before the daemon is gone.
    signal(agent, Signal::SIGSTOP);
    let steer = env.spawn_acpctl(&["run", "--steer", "fix", "take #two"]);
    until("the message to be on its way", || (env.session("fix")["clients"] == 2).then_some(()));
    env.kill_daemon();
    env.acpctl(&["daemon", "start"]).success();
    signal(agent, Signal::SIGCONT);
    let told = steer.finish().success();
    assert!(told.stderr().ends_with("fix continues with your message\n"), "{told:?}");
    run.wait_stdout("heard: take #two");
    env.release("middle");
    let run = run.finish().success();
    assert!(run.stdout().contains("history=0 tags=one,two"), "{run:?}");
    assert_eq!(env.received("echo", "_session/steering").len(), 1);
    assert_eq!(steered(&env, "fix"), ["take #two"]);
}
