//! `acpctl metrics`: what is counted, and the format that Prometheus reads.
#![expect(clippy::float_cmp, reason = "counts are whole numbers")]

use std::collections::{BTreeMap, BTreeSet};

use acpd_test::harness::{TestEnv, until};
use serde_json::{Value, json};

use crate::{echo, home};

/// The page of a daemon, read strictly: the value of each sample.
fn samples(env: &TestEnv) -> BTreeMap<String, f64> {
    let page = env.acpctl(&["--no-spawn", "metrics"]).success();
    let mut kinds: BTreeMap<&str, &str> = BTreeMap::new();
    let mut ended = BTreeSet::new();
    let mut family = "";
    let mut samples = BTreeMap::new();
    assert!(page.stdout().ends_with('\n'));
    for line in page.stdout().lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            ended.insert(family);
            family = help.split_once(' ').expect("words of help").0;
            assert!(!ended.contains(family), "{family} comes in one group");
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').expect("a kind");
            assert_eq!(name, family, "its help comes before its kind");
            assert!(["gauge", "counter", "histogram"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
            assert!(kinds.insert(name, kind).is_none(), "{name} has one kind");
        } else {
            let (name, value) = sample(line);
            let bare = name.split('{').next().unwrap();
            let parts = ["_bucket", "_sum", "_count"];
            let is_part = |part: &&str| bare == format!("{family}{part}");
            match kinds[family] {
                "histogram" => assert!(parts.iter().any(is_part), "{line}"),
                _ => assert_eq!(bare, family),
            }
            assert!(samples.insert(name.to_owned(), value).is_none(), "{name} comes once");
        }
    }
    for (name, _) in kinds.iter().filter(|(_, kind)| **kind == "histogram") {
        histogram_is_sound(name, page.stdout(), &samples);
    }
    samples
}

/// Name with labels, and value. Labels are `name="text"`, with `\\`, `\"` and `\n` in it.
fn sample(line: &str) -> (&str, f64) {
    let (name, value) = line.rsplit_once(' ').expect("a value");
    let (bare, labels) = name.split_once('{').unwrap_or((name, "}"));
    let is_name = |name: &str| {
        let mut chars = name.chars();
        chars.next().is_some_and(|c| c.is_ascii_lowercase())
            && chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    assert!(is_name(bare) && bare.starts_with("acpd_"), "{line}");
    if let Some(label) = labels.strip_suffix('}').filter(|label| !label.is_empty()) {
        let (name, text) = label.split_once("=\"").expect("a label");
        assert!(is_name(name), "{line}");
        let text = text.strip_suffix('"').expect("the end of a label");
        let rest = text.replace(r"\\", "").replace("\\\"", "").replace(r"\n", "");
        assert!(!rest.contains(['"', '\\']), "{line}");
    }
    (name, value.parse().expect("a number"))
}

/// Buckets rise in limit and count, and the last of them counts all.
fn histogram_is_sound(name: &str, page: &str, samples: &BTreeMap<String, f64>) {
    let begin = format!("{name}_bucket{{le=\"");
    let buckets: Vec<(f64, f64)> = page
        .lines()
        .filter_map(|line| line.strip_prefix(&begin)?.split_once("\"} "))
        .map(|(le, count)| (le.parse().unwrap(), count.parse().unwrap()))
        .collect();
    let rises = |pair: &[(f64, f64)]| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1;
    assert!(buckets.len() > 5 && buckets.windows(2).all(rises), "{name}: {buckets:?}");
    let last = buckets.last().unwrap();
    assert_eq!(*last, (f64::INFINITY, samples[&format!("{name}_count")]), "{name}");
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
    let counters = first.iter().filter(|(name, _)| {
        ["_total", "_count", "_bucket"]
            .iter()
            .any(|end| name.split('{').next().unwrap().ends_with(end))
    });
    for (name, before) in counters {
        assert!(now[name] >= *before, "{name} went down");
    }

    let told: Value =
        serde_json::from_str(env.acpctl(&["metrics", "--json"]).success().stdout()).unwrap();
    assert_eq!(told["turns"]["ended"]["end_turn"], json!(4));
    assert_eq!(told["version"], env.status()["daemon"]["version"]);
}

#[test]
fn what_was_counted_of_an_agent_stays_when_its_process_slot_goes() {
    let env = home([echo().set("sharing", "\"session\"")]);
    env.acpctl(&["run", "-s", "one", "hello"]).success();
    for restarts in [1.0, 2.0] {
        env.acpctl(&["run", "-s", "one", "[crash]"]).code(6);
        env.acpctl(&["run", "-s", "one", "again"]).success();
        let name = "acpd_agent_restarts_total{agent=\"echo\"}";
        assert_eq!(samples(&env)[name], restarts);
    }
    // The slot of the session goes with it; what was counted stays.
    env.acpctl(&["session", "rm", "--yes", "one"]).success();
    assert_eq!(samples(&env)["acpd_agent_restarts_total{agent=\"echo\"}"], 2.0);
}
