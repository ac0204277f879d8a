//! A configuration that changes under a running daemon: checked, edited, reloaded.

use std::fs;

use acpd_test::harness::{Config, TestEnv, signal, until};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::{direct, echo, hosted};

/// What the daemon is told of the day it runs: another one after each start.
fn boot(env: &TestEnv) -> u64 {
    env.status()["daemon"]["boot"].as_u64().unwrap()
}

/// The configuration of [`hosted`], with another budget and another variable for the agent.
fn change(env: &TestEnv, more: &str) {
    let file = env.path("config").join("config.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{text}\n{more}")).unwrap();
}

#[test]
fn a_reload_takes_what_is_new_in_the_middle_of_a_turn_and_names_who_runs_as_before() {
    let env = hosted([echo()]);
    let turn = env.spawn_acpctl(&["run", "-s", "fix", "say #one [pause here] #two"]);
    env.wait_point("here");
    let (pid, before) = (env.daemon_pid(), boot(&env));
    env.acpctl(&["daemon", "reload"]).success().explains(&["uses the configuration as it is"]);
    assert_eq!(boot(&env), before, "nothing has changed");

    env.configure(
        &Config::new([echo().set("inherit_env", "[\"NEW\"]")])
            .daemon("host", "\"shim\"")
            .daemon("max_clients", "7"),
    );
    let told = env.acpctl(&["daemon", "reload"]).success();
    told.explains(&["uses the configuration as it is now", "acpctl agent restart echo"]);
    assert_eq!(env.daemon_pid(), pid);
    assert!(boot(&env) > before);
    assert_eq!(env.status()["daemon"].get("configChanged"), None);
    env.release("here");
    turn.finish().success();
}

#[test]
fn a_broken_file_keeps_the_old_configuration_and_every_mistake_is_told() {
    let env = hosted([echo()]);
    env.acpctl(&["daemon", "start"]).success();
    let before = boot(&env);
    change(&env, "[daemno]\nx = 1\n[budget]\nper_dya = '3 USD'\n");
    let told = env.acpctl(&["daemon", "reload"]).code(1);
    told.explains(&["keeps the old configuration", "daemno", "per_dya", "acpctl config edit"]);
    assert_eq!(boot(&env), before);
    signal(env.daemon_pid(), Signal::SIGHUP);
    until("the refusal", || env.daemon_log().contains("does not restart").then_some(()));
    assert_eq!(boot(&env), before);

    let checked = env.acpctl(&["config", "check"]).code(1);
    checked.explains(&["has 2 mistakes", "daemno", "per_dya", "did you mean"]);
    let json = env.acpctl(&["config", "check", "--json"]).code(1);
    let report: Value = serde_json::from_str(json.stdout()).unwrap();
    assert_eq!(report["exists"], true);
    assert_eq!(report["mistakes"].as_array().map(Vec::len), Some(2), "{report}");
    assert!(report["mistakes"][0]["line"].is_u64(), "{report}");
}

#[test]
fn sighup_is_a_reload_and_ends_no_turn() {
    let env = hosted([echo()]);
    let turn = env.spawn_acpctl(&["run", "-s", "fix", "say #one [pause here] #two"]);
    env.wait_point("here");
    let (pid, before) = (env.daemon_pid(), boot(&env));
    signal(pid, Signal::SIGHUP);
    until("the next daemon", || {
        // It may be on its way.
        let status = env.acpctl(&["daemon", "status", "--json"]);
        let status: Value = serde_json::from_str(status.stdout()).ok()?;
        (status["boot"].as_u64()? > before).then_some(())
    });
    assert_eq!(env.daemon_pid(), pid);
    env.release("here");
    turn.finish().success();
}

#[test]
fn a_reload_that_would_cut_off_a_turn_is_refused() {
    let env = direct([echo()]);
    let turn = env.spawn_acpctl(&["run", "-s", "fix", "say #one [pause here]"]);
    env.wait_point("here");
    change(&env, "[budget]\nper_day = '3 USD'\n");
    let told = env.acpctl(&["daemon", "reload"]).code(1);
    told.explains(&["would cut off 1 turn", "acpctl wait"]);
    env.release("here");
    turn.finish().success();
}

#[test]
fn the_file_is_shown_found_and_edited_and_checked_then() {
    let env = hosted([echo()]);
    let file = env.path("config").join("config.toml");
    let path = env.acpctl(&["config", "path"]).success();
    assert_eq!(path.stdout().trim_end(), file.display().to_string());
    let shown = env.acpctl(&["config", "show"]).success();
    assert_eq!(shown.stdout(), fs::read_to_string(&file).unwrap());
    env.acpctl(&["daemon", "start"]).success();
    let edit = |more: &str| {
        let from = env.path("more");
        fs::write(&from, more).unwrap();
        let mut command = env.acpctl_command(&["config", "edit"]);
        command.env("EDITOR", format!("sh -c 'cat {} >>\"$1\"' edit", from.display()));
        acpd_test::harness::Running::start(command).finish()
    };
    edit("[budget]\nper_day = '3 USD'\n")
        .success()
        .explains(&["has no mistakes", "acpctl daemon reload"]);
    edit("per_dya = 1\n").code(1).explains(&["1 mistake", "per_dya"]);
    fs::remove_file(&file).unwrap();
    edit("").success().explains(&["everything has its default"]);
    let beside = file.with_file_name("config.schema.json");
    assert!(!file.exists() && !beside.exists(), "nothing was written");
    edit("[budget]\nper_day = '3 USD'\n").success();
    let written = fs::read_to_string(&file).unwrap();
    assert_eq!(written, "#:schema ./config.schema.json\n[budget]\nper_day = '3 USD'\n");
    let schema = env.acpctl(&["config", "schema"]).success();
    assert_eq!(schema.stdout(), fs::read_to_string(&beside).unwrap());
    let schema: Value = serde_json::from_str(schema.stdout()).unwrap();
    assert_eq!(schema, acpd::config::schema());
    fs::remove_file(&file).unwrap();
    env.acpctl(&["config", "show"]).success().explains(&["everything has its default"]);
    env.acpctl(&["config", "check"]).success().explains(&["everything has its default"]);
}
