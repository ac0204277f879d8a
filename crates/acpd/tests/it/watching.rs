//! Views of a person who watches: questions as they come, what turns do, who did what.

use acpd_test::harness::until;
use serde_json::{Value, json};

use crate::{echo, home};

/// The lines of a stream of JSON up to the first that fits.
fn line(out: &str, fits: impl Fn(&Value) -> bool) -> Value {
    let lines = out.lines().filter_map(|line| serde_json::from_str(line).ok());
    lines.into_iter().find(|line| fits(line)).unwrap_or_else(|| panic!("not in {out}"))
}

#[test]
fn who_follows_the_questions_hears_of_each_and_of_who_answered_it_over_a_restart_of_the_daemon() {
    let env = home([echo()]);
    let mut pending = env.spawn_acpctl(&["pending", "--follow", "--json"]);
    let mut ps = env.spawn_acpctl(&["ps", "--watch", "--json"]);
    ps.wait_stdout("\"agents\"");
    let mut run = env.spawn_acpctl(&["run", "-s", "fix", "[ask] say #one"]);
    let out = pending.wait_stdout("\"opened\"");
    let opened = line(&out, |line| line["event"] == "opened");
    assert_eq!(opened["interaction"]["question"]["shown"]["title"], "Write demo.txt");
    let out = ps.wait_stdout("\"waiting\"");
    let asks = line(&out, |line| line["sessions"][0]["doing"]["kind"] == "waiting");
    assert_eq!(asks["sessions"][0]["doing"]["text"], "Write demo.txt");
    assert_eq!(asks["interactions"], json!([opened["interaction"]]));
    // The next daemon has the same question, and tells it once more to who watches all rows.
    env.acpctl(&["daemon", "restart"]).success();
    let id = opened["interaction"]["id"].as_str().unwrap();
    env.acpctl(&["deny", id]).success();
    let out = pending.wait_stdout("\"closed\"");
    let closed = line(&out, |line| line["event"] == "closed");
    assert_eq!((&closed["id"], &closed["answered"]["by"]["name"]), (&json!(id), &json!("acpctl")));
    assert_eq!(closed["answered"]["answer"]["option"]["kind"], "reject_once");
    ps.wait_stdout("\"removed\":{\"interactions\"");
    run.wait_stdout("permission: no");
    assert!(!out.contains(&format!("{id}\"}}\n{{\"event\":\"opened\"")), "told twice: {out}");
    pending.kill();
    ps.kill();
    run.finish().success();
}

#[test]
fn a_turn_that_somebody_else_ends_says_who_and_why() {
    let env = home([echo()]);
    let mut run = env.spawn_acpctl(&["run", "-s", "fix", "[pause one] say #one"]);
    env.wait_point("one");
    let mut attached = env.spawn_acpctl(&["attach", "fix"]);
    attached.wait_stderr("now: ");
    env.acpctl(&["cancel", "fix"]).success();
    run.wait_stderr("cancelled by acpctl");
    attached.wait_stdout("turn ended: cancelled by acpctl");
    attached.kill();
    run.finish().code(130);
    env.release("one");
}

#[test]
fn since_when_an_agent_runs_is_the_same_after_a_restart_of_the_daemon() {
    let env = home([echo()]);
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    let before = env.agent("echo");
    env.acpctl(&["daemon", "restart"]).success();
    let after = until("the agent", || {
        let agent = env.agent("echo");
        (agent["state"] == "ready" && agent.get("reason").is_none()).then_some(agent)
    });
    assert_eq!((&after["pid"], &after["since"]), (&before["pid"], &before["since"]));
}
