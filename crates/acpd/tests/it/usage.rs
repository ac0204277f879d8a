//! Tokens and cost, as agents tell them.

use acpd_test::harness::kill9;
use serde_json::{Value, json};

use crate::{echo, home};

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn cost_is_told_with_its_turn_and_added_up_once_over_a_crash_and_a_deletion() {
    let env = home([echo()]);
    let usd = |amount: f64| json!({"amount": amount, "currency": "USD"});
    env.acpctl(&["run", "-s", "fix", "one [cost 0.25]"]).success();
    env.acpctl(&["run", "-s", "fix", "two [cost 0.5]"]).success();
    let session = env.session("fix");
    assert_eq!(session["usage"]["cost"], usd(0.75));
    assert_eq!(session["usage"]["size"], 200_000);
    let card = env.acpctl(&["session", "show", "fix"]).success();
    assert!(card.stdout().contains("of 200k tokens in the context, 0.75 USD"), "{card:?}");

    // The next process counts from 0 again, and has nothing to tell of the first turns.
    kill9(env.agent_pid("echo").expect("a running agent"));
    env.acpctl(&["run", "-s", "fix", "three [cost 0.125]"]).success();
    env.acpctl(&["run", "-s", "other", "four"]).success();
    let export = env.acpctl(&["session", "export", "fix", "--format", "json"]).success();
    let items = json_of(export.stdout());
    let ended = items.as_array().unwrap().iter().filter(|item| item["type"] == "turn_ended");
    let told: Vec<&Value> = ended.map(|item| &item["usage"]["cost"]).collect();
    assert_eq!(told, [&usd(0.25), &usd(0.5), &usd(0.125)]);

    env.acpctl(&["session", "rm", "--yes", "fix"]).success();
    let report = env.acpctl(&["usage", "--since", "1h", "--json"]).success();
    let total = json_of(report.stdout())["totals"][0].clone();
    assert_eq!((&total["turns"], &total["untold"]), (&json!(4), &json!(1)));
    assert_eq!(total["costs"], json!([usd(0.875)]));
    let table = env.acpctl(&["usage", "--by", "session"]).success();
    let rows: Vec<&str> = table.stdout().lines().collect();
    assert!(rows[1].contains("0.88 USD") || rows[2].contains("0.88 USD"), "{table:?}");
    assert!(rows.iter().any(|row| row.starts_with("other") && row.ends_with('-')), "{table:?}");
    table.explains(&["1 of 4 turns"]);
    env.acpctl(&["usage", "--since", "2099-01-01"]).success().explains(&["no turn has ended"]);
}
