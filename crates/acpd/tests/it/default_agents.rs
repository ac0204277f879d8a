//! The agent of clients that name none, where the configuration names none.

use acpd_test::harness::{Screen, TestEnv};
use std::fs;

use crate::home;

/// A home without a configuration, where nothing is installed but what a test installs.
fn unconfigured() -> TestEnv {
    let env = home([]);
    fs::remove_file(env.path("config/config.toml")).unwrap();
    env
}

/// Puts a program that behaves as an agent into the `PATH`.
fn install(env: &TestEnv, name: &str) {
    env.install(name, &format!("exec '{}' scripted-agent", env.program("acpd").display()));
}

#[test]
fn installed_agents_are_the_default_in_the_order_of_the_catalogue() {
    let env = unconfigured();
    let said = env.acpctl(&["run", "say #one"]).success();
    assert!(said.stdout().contains("say #one"), "{said:?}");
    let script = "`demo` is a built-in script, not a model. Real agents: acpctl agent ls --all\n";
    said.explains(&[script]);
    assert_eq!(env.status()["daemon"]["defaultAgent"], "demo");
    install(&env, "copilot");
    install(&env, "goose");
    let first = "using copilot, the first installed agent; choose another with `-a`";
    env.acpctl(&["run", "say #two"]).success().explains(&[first]);
    let daemon = &env.status()["daemon"];
    assert_eq!(
        (&daemon["defaultAgent"], &daemon["defaultIsFound"]),
        (&"copilot".into(), &true.into())
    );

    install(&env, "claude-agent-acp");
    env.acpctl(&["run", "say #three"]).success();
    let sessions = env.json(&["session", "ls"]);
    let agents: Vec<_> =
        sessions["sessions"].as_array().unwrap().iter().map(|s| s["agent"].clone()).collect();
    assert_eq!(agents, ["claude", "copilot", "demo"], "no other one is tried");
    let shown = env.acpctl(&["config", "show"]).success();
    assert!(shown.stdout().contains("default_agent = \"claude\""), "{shown:?}");
}

#[test]
fn person_chooses_once_and_the_configuration_keeps_it() {
    let env = unconfigured();
    install(&env, "claude-agent-acp");
    install(&env, "copilot");
    let mut screen =
        Screen::start(env.acpctl_command(&["run", "-s", "main", "say #one"]), (100, 30));
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
    let daemon = &env.status()["daemon"];
    assert_eq!(daemon["defaultAgent"], "copilot");
    assert!(daemon.get("defaultIsFound").is_none() && daemon.get("configChanged").is_none());

    let screen = Screen::start(env.acpctl_command(&["run", "-s", "other", "say #two"]), (100, 30));
    let shown = screen.sees("say #two |");
    assert!(!shown.contains("agent?"), "{shown}");
}
