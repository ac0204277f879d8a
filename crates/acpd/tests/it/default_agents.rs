//! The agent of clients that name none, where the configuration names none.

use std::fs;

use acpd_test::harness::Screen;

use crate::home;

#[test]
fn person_chooses_once_and_the_configuration_keeps_it() {
    let env = home([]);
    fs::remove_file(env.path("config/config.toml")).unwrap();
    for name in ["claude-agent-acp", "copilot"] {
        env.install(name, &format!("exec '{}' scripted-agent", env.program("acpd").display()));
    }
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
