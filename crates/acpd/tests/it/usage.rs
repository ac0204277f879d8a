//! Tokens and cost, as agents tell them.

use std::path::Path;

use acpd_test::harness::{Config, Screen, kill9, until};
use serde_json::{Value, json};

use crate::{echo, home, home_with};

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
    env.acpctl(&["usage", "--since", "2099-01-01"]).success().explains(&["no turn ended"]);
}

#[test]
fn a_budget_that_is_used_up_asks_before_the_next_prompt_and_is_allowed_or_refused_from_a_terminal()
{
    let budget = "[budget]\nper_day = \"0.5 USD\"\nwhen_over = \"ask\"";
    let env = home_with(&Config::new([echo()]).tables(budget));
    let first = env.acpctl(&["run", "-s", "fix", "one [cost 0.75]"]).success();
    first.explains(&["the budget is used up: 0.75 of 0.50 USD were spent today"]);
    let ps = env.acpctl(&["ps"]).success();
    assert!(ps.stdout().contains("budget: 0.75 of 0.50 USD spent today"), "{ps:?}");

    let refused = env.spawn_acpctl(&["run", "-s", "fix", "two"]);
    until("a question", || {
        let open = env.acpctl(&["pending"]).success();
        open.stdout().contains("Start another turn?").then_some(())
    });
    env.acpctl(&["deny", "fix"]).success();
    refused.finish().code(5).explains(&["the budget is used up", "per_day"]);

    let allowed = env.spawn_acpctl(&["run", "-s", "fix", "three"]);
    until("the next question", || {
        (env.session("fix")["turn"]["state"] == "needs_action").then_some(())
    });
    env.acpctl(&["allow", "fix"]).success();
    assert!(allowed.finish().success().stdout().contains("You said: three"));
}

#[test]
fn a_session_begins_with_the_model_and_the_mode_of_its_workspace() {
    let env = home_with(&Config::new([echo()]));
    let dir = env.work("api");
    let workspace = format!(
        "[[workspace]]\npath = {}\nagent = \"other\"\nmodel = \"huge\"\nmode = \"code\"",
        json!(dir.display().to_string())
    );
    env.configure(
        &Config::new([echo(), acpd_test::harness::Agent::new("other")]).tables(&workspace),
    );
    let dir = dir.display().to_string();
    let run = env.acpctl(&["run", "-s", "fix", "--cwd", &dir, "hello"]).success();
    run.explains(&["the agent does not offer the model `huge`"]);
    let session = env.session("fix");
    assert_eq!(session["agent"], "other");
    let mode = env.acpctl(&["session", "mode", "fix", "--json"]).success();
    assert_eq!(json_of(mode.stdout())["currentModeId"], "code");

    // An editor that is started there and names no agent; and the full screen.
    let (bridge, mut editor) = env.bridge_in("api", &[]);
    editor.ok("initialize", json!({"protocolVersion": 1}));
    let session = editor.new_session(Path::new(&dir), None);
    assert_eq!(env.session(&session)["agent"], "other");
    let mode = env.acpctl(&["session", "mode", &session, "--json"]).success();
    assert_eq!(json_of(mode.stdout())["currentModeId"], "code");
    drop(editor);
    let _ = bridge.finish().success();
    let mut command = env.acpctl_command(&["chat", "--new"]);
    command.current_dir(&dir);
    let mut chat = Screen::start(command, (100, 30));
    chat.sees("other · ");
    chat.sees("mode: code");
    chat.types("\u{4}");
    assert!(chat.ends().success());
}
