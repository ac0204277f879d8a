//! `acpctl metrics`: what is counted, and the format that Prometheus reads.
#![expect(clippy::float_cmp, reason = "counts are whole numbers")]

use std::collections::BTreeMap;

use acpd_test::harness::{TestEnv, until};
use serde_json::json;

use crate::{echo, home};

/// The page of a daemon: the value of each sample.
fn samples(env: &TestEnv) -> BTreeMap<String, f64> {
    let page = env.acpctl(&["--no-spawn", "metrics"]).success();
    let lines = page.stdout().lines().filter(|line| !line.starts_with('#'));
    let samples = lines.map(|line| {
        let (name, value) = line.rsplit_once(' ').expect("a value");
        (name.to_owned(), value.parse().expect("a number"))
    });
    samples.collect()
}

#[test]
fn what_happens_is_counted_and_printed_as_prometheus_reads_it() {
    let env = home([echo()]);
    let unknown = env.acpctl(&["--no-spawn", "metrics"]).code(3);
    unknown.explains(&["acpd is not running"]);
    env.acpctl(&["daemon", "start"]).success();
    let first = samples(&env);
    let is_zero = |name: &str| assert_eq!(first[name], 0.0, "{name}");
    is_zero("acpd_turns_ended_total{outcome=\"end_turn\"}");
    is_zero("acpd_turn_duration_seconds_count");
    is_zero("acpd_agents{state=\"ready\"}");

    env.acpctl(&["run", "-s", "fix", "hello"]).success();
    env.acpctl(&["run", "-s", "fix", "--yes", "[ask]"]).success();
    // A person answers.
    let asks = env.spawn_acpctl(&["run", "-s", "fix", "[ask]"]);
    until("a question", || (env.session("fix")["turn"]["state"] == "needs_action").then_some(()));
    let now = samples(&env);
    assert_eq!((now["acpd_questions_open"], now["acpd_turns_running"]), (1.0, 1.0));
    // One waits behind it.
    env.acpctl(&["run", "-s", "fix", "--detach", "later"]).success();
    assert_eq!(samples(&env)["acpd_prompts_queued"], 1.0);
    env.acpctl(&["allow", "fix"]).success();
    asks.finish().code(0);
    env.acpctl(&["wait", "fix"]).success();
    // The agent dies in a turn, and is restarted.
    env.acpctl(&["run", "-s", "fix", "[crash]"]).code(6);
    env.wait_agent("echo", "ready");
    until("its session", || (env.session("fix")["state"] == "live").then_some(()));

    let now = samples(&env);
    assert_eq!(now["acpd_turns_ended_total{outcome=\"end_turn\"}"], 4.0);
    assert_eq!(now["acpd_turns_ended_total{outcome=\"interrupted\"}"], 1.0);
    assert_eq!(now["acpd_turn_duration_seconds_count"], 5.0);
    let spoken = now["acpd_turn_first_update_seconds_count"];
    assert!((4.0..=5.0).contains(&spoken), "{spoken}");
    assert_eq!(now["acpd_permission_wait_seconds_count"], 1.0, "of people");
    assert_eq!(now["acpd_agent_start_seconds_count"], 2.0);
    assert_eq!(now["acpd_agent_restarts_total{agent=\"echo\"}"], 1.0);
    assert_eq!(now["acpd_agent_up{agent=\"echo\"}"], 1.0);
    assert_eq!(now["acpd_agents{state=\"ready\"}"], 1.0);
    assert_eq!(now["acpd_sessions{state=\"live\"}"], 1.0);
    assert_eq!(now["acpd_journal_events"], env.session("fix")["seq"].as_f64().unwrap());
    for some in ["acpd_journal_bytes", "acpd_commit_seconds_count", "acpd_uptime_seconds"] {
        assert!(now[some] > 0.0, "{some}");
    }
    let told = env.json(&["metrics"]);
    assert_eq!(told["turns"]["ended"]["end_turn"], json!(4));
    assert_eq!(told["version"], env.status()["daemon"]["version"]);
}
