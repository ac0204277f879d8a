//! Messages into a running turn.

use acpd_test::harness::TestEnv;
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
