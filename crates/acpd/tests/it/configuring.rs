//! A configuration that changes under a running daemon: checked, edited, reloaded.

use std::fs;

use acpd_test::harness::{Agent, Config, TestEnv, signal, until};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::{echo, home, home_with};

/// Returns the boot number of the daemon: another one after each start.
fn boot(env: &TestEnv) -> u64 {
    env.status()["daemon"]["boot"].as_u64().unwrap()
}

/// The configuration of [`home`], with another budget and another variable for the agent.
fn change(env: &TestEnv, more: &str) {
    let file = env.path("config").join("config.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{text}\n{more}")).unwrap();
}

#[test]
fn a_reload_takes_what_is_new_in_the_middle_of_a_turn_and_names_who_runs_as_before() {
    let env = home([echo()]);
    let turn = env.spawn_acpctl(&["run", "-s", "fix", "say #one [pause here] #two"]);
    env.wait_point("here");
    let (pid, before) = (env.daemon_pid(), boot(&env));
    env.acpctl(&["daemon", "reload"]).success().explains(&["the configuration has not changed"]);
    assert_eq!(boot(&env), before, "nothing has changed");

    env.configure(
        &Config::new([echo().set("inherit_env", "[\"NEW\"]")]).daemon("max_clients", "7"),
    );
    let told = env.acpctl(&["daemon", "reload"]).success();
    told.explains(&["configuration reloaded", "acpctl agent restart echo"]);
    assert_eq!(env.daemon_pid(), pid);
    assert!(boot(&env) > before);
    assert_eq!(env.status()["daemon"].get("configChanged"), None);
    env.release("here");
    turn.finish().success();
}

#[test]
fn an_agent_that_is_taken_out_is_told_with_what_becomes_of_its_sessions() {
    let env = home([echo(), Agent::new("other")]);
    env.acpctl(&["run", "-a", "other", "-s", "fix", "say #one"]).success();
    env.configure(&Config::new([echo()]));
    let ways = ["agent `other` is not configured any more", "`[agents.other]`", "session handoff"];
    let told = env.acpctl(&["daemon", "reload"]).success().explains(&ways);
    told.explains(&["its 1 session can only be read"]);
    for args in [
        &["run", "--resume", "fix", "say #two"][..],
        &["agent", "show", "other"],
        &["agent", "start", "other"],
        &["run", "-a", "other", "say #two"],
    ] {
        env.acpctl(args).code(3).explains(&ways);
    }
    let list = env.acpctl(&["agent", "ls"]).success();
    assert!(list.stdout().contains("not configured any more"), "{list:?}");
    assert!(!list.stdout().contains("by a person"), "{list:?}");
    assert!(env.acpctl(&["session", "log", "fix"]).success().stdout().contains("#one"));
    env.acpctl(&["session", "handoff", "fix", "--to", "echo", "-N", "say #two"]).success();
    // With the old configuration all is as before.
    env.configure(&Config::new([echo(), Agent::new("other")]));
    env.acpctl(&["daemon", "reload"]).success();
    env.acpctl(&["run", "--resume", "fix", "say #two"]).success();
}

#[test]
fn a_broken_file_keeps_the_old_configuration_and_every_mistake_is_told() {
    let env = home([echo()]);
    env.acpctl(&["daemon", "start"]).success();
    let before = boot(&env);
    change(&env, "[daemno]\nx = 1\n[budget]\nper_dya = '3 USD'\n");
    let told = env.acpctl(&["daemon", "reload"]).code(1);
    told.explains(&["keeps the old configuration", "daemno", "per_dya", "acpctl config edit"]);
    assert_eq!(boot(&env), before);
    signal(env.daemon_pid(), Signal::SIGHUP);
    let told = until("the refusal", || {
        let log = env.daemon_log();
        let line = log.lines().find(|line| line.contains("keeps the old configuration"));
        line.map(str::to_owned)
    });
    assert!(told.contains("WARN"), "{told}");
    for word in ["daemno", "per_dya", "config.toml:"] {
        assert!(told.contains(word), "{word}: {told}");
    }
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
fn the_file_is_shown_found_and_edited_and_checked_then() {
    let env = home([echo()]);
    let file = env.path("config").join("config.toml");
    let path = env.acpctl(&["config", "path"]).success();
    assert_eq!(path.stdout().trim_end(), file.display().to_string());
    let shown = env.acpctl(&["config", "show", "--file"]).success();
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
    edit("").success().explains(&["all values are defaults"]);
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
    for show in [&["config", "show"][..], &["config", "show", "--file"]] {
        env.acpctl(show).success().explains(&["all values are defaults"]);
    }
    env.acpctl(&["config", "check"]).success().explains(&["all values are defaults"]);
}

#[test]
fn every_key_is_shown_with_its_value_and_who_says_so() {
    let env = home_with(&Config::new([echo()]).daemon("notify", "false"));
    change(&env, "[[workspace]]\npath = '/'\nmodel = 'large'\n");
    let file = env.path("config").join("config.toml");
    let text = fs::read_to_string(&file).unwrap();
    let line = |key: &str| text.lines().position(|line| line.starts_with(key)).unwrap() + 1;
    let shown = env.acpctl(&["config", "show"]).success();
    for (begin, end) in [
        ("notify = false ", format!(" # config.toml:{}", line("notify"))),
        ("max_clients = 64 ", "  # default".to_owned()),
        ("# agent = \"echo\" ", format!(" # config.toml:{}", line("default_agent"))),
    ] {
        let mut lines = shown.stdout().lines();
        let found = lines.any(|line| line.starts_with(begin) && line.ends_with(&end));
        assert!(found, "{begin} … {end}: {}", shown.stdout());
    }

    // The shown configuration has the same effect as the file.
    let values = |shown: &Value| -> Vec<(Value, Value)> {
        let values = shown["values"].as_array().unwrap().iter();
        values.map(|value| (value["key"].clone(), value["value"].clone())).collect()
    };
    let before = env.json(&["config", "show"]);
    assert_eq!(before["file"], file.display().to_string());
    fs::write(&file, shown.stdout()).unwrap();
    assert_eq!(values(&env.json(&["config", "show"])), values(&before));
    fs::write(&file, &text).unwrap();

    env.acpctl(&["config", "show", "deamon"])
        .code(2)
        .explains(&["deamon", "did you mean `daemon`"]);
    change(&env, "max_clinets = 1\n");
    env.acpctl(&["config", "show"]).code(1).explains(&["1 mistake", "max_clinets"]);
}
