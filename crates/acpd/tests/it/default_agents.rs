//! The agent of clients that name none, where the configuration names none.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use acpd_test::harness::{Running, Screen, TestEnv};

use crate::home;

/// A home without a configuration, where nothing is installed but what a test installs.
fn unconfigured() -> TestEnv {
    let env = home([]);
    fs::remove_file(env.path("config/config.toml")).unwrap();
    env
}

/// Puts a program that behaves as an agent into the `PATH`.
fn install(env: &TestEnv, name: &str) {
    let path = env.work("bin").join(name);
    let acpd = env.program("acpd");
    fs::write(&path, format!("#!/bin/sh\nexec '{}' scripted-agent\n", acpd.display())).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
}

fn acpctl(env: &TestEnv, args: &[&str]) -> Command {
    let mut command = env.acpctl_command(args);
    command.env("PATH", format!("{}:/usr/bin:/bin", env.work("bin").display()));
    command
}

fn run(env: &TestEnv, args: &[&str]) -> (String, String) {
    let done = Running::start(acpctl(env, args)).finish().success();
    (done.stdout().to_owned(), done.stderr().to_owned())
}

fn status(env: &TestEnv) -> serde_json::Value {
    let (status, _) = run(env, &["status", "--json"]);
    serde_json::from_str::<serde_json::Value>(&status).unwrap()["daemon"].clone()
}

#[test]
fn installed_agents_are_the_default_in_the_order_of_the_catalogue() {
    let env = unconfigured();
    let (said, told) = run(&env, &["run", "say #one"]);
    assert!(said.contains("say #one"), "{said}");
    let script = "`demo` is a built-in script, not a model. Real agents: acpctl agent ls --all\n";
    assert!(told.contains(script), "{told}");
    assert_eq!(status(&env)["defaultAgent"], "demo");

    install(&env, "copilot");
    install(&env, "goose");
    let (_, told) = run(&env, &["run", "say #two"]);
    assert!(
        told.contains("using copilot, the first installed agent; choose another with `-a`"),
        "{told}"
    );
    let daemon = status(&env);
    assert_eq!(
        (&daemon["defaultAgent"], &daemon["defaultIsFound"]),
        (&"copilot".into(), &true.into())
    );

    install(&env, "claude-agent-acp");
    run(&env, &["run", "say #three"]);
    let (sessions, _) = run(&env, &["session", "ls", "--json"]);
    let sessions: serde_json::Value = serde_json::from_str(&sessions).unwrap();
    let agents: Vec<_> =
        sessions["sessions"].as_array().unwrap().iter().map(|s| s["agent"].clone()).collect();
    assert_eq!(agents, ["claude", "copilot", "demo"], "no other one is tried");
    let (shown, _) = run(&env, &["config", "show"]);
    assert!(shown.contains("default_agent = \"claude\""), "{shown}");
}

#[test]
fn person_chooses_once_and_the_configuration_keeps_it() {
    let env = unconfigured();
    install(&env, "claude-agent-acp");
    install(&env, "copilot");
    let mut screen = Screen::start(acpctl(&env, &["run", "-s", "main", "say #one"]), (100, 30));
    let shown = screen.sees("agent? 1-2 > ");
    assert!(shown.contains("  1  claude (Claude Code)\n  2  copilot (GitHub Copilot)"), "{shown}");
    screen.types("7\r");
    screen.sees("type a number from 1 to 2");
    screen.types("2\r");
    screen.sees("make copilot the default in the configuration? y/n > ");
    screen.types("y\r");
    screen.sees("say #one |");
    let config = fs::read_to_string(env.path("config/config.toml")).unwrap();
    assert_eq!(config, "#:schema ./config.schema.json\ndefault_agent = \"copilot\"\n");
    let daemon = status(&env);
    assert_eq!(daemon["defaultAgent"], "copilot");
    assert!(daemon.get("defaultIsFound").is_none() && daemon.get("configChanged").is_none());

    let screen = Screen::start(acpctl(&env, &["run", "-s", "other", "say #two"]), (100, 30));
    let shown = screen.sees("say #two |");
    assert!(!shown.contains("agent?"), "{shown}");
}
