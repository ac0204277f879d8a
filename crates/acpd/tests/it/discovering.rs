//! `acpctl agent discover`: what is installed, what it can do, and nothing of it left behind.

use std::path::Path;

use acpd::config;
use acpd_test::harness::{Running, TestEnv, until};
use serde_json::json;

use crate::{echo, home};

/// A home with these programs, and what `acpctl agent discover` does in it.
fn discover(env: &TestEnv, programs: &[(&str, &str)]) -> Running {
    for (name, script) in programs {
        env.install(name, script);
    }
    env.spawn_acpctl(&["agent", "discover"])
}

/// Answers `initialize`, has a child in a session of its own, and does not end with its input.
fn lively() -> String {
    let result = json!({
        "protocolVersion": 1,
        "agentInfo": {"name": "Copilot", "version": "1.0\n2"},
        "agentCapabilities": {"loadSession": true, "sessionCapabilities": {"list": {}}},
        "authMethods": [{"id": "login", "name": "Log in"}],
    });
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": result});
    format!("setsid sleep 1000 & read line; echo hello; printf '%s\\n' '{answer}'; exec sleep 1000")
}

#[test]
fn installed_agents_are_asked_and_a_configuration_is_suggested() {
    let env = home([echo()]);
    let lively = lively();
    let programs = [("copilot", lively.as_str()), ("opencode", "sleep 1000 & exit 3")];
    let done = discover(&env, &programs).finish().success();
    assert!(done.stderr().contains("asking opencode"), "{done:?}");
    assert!(done.stderr().contains("it ended before it answered"), "{done:?}");
    let text = done.stdout();
    let suggested = config::parse(Path::new("config.toml"), text).unwrap();
    assert_eq!(suggested.default_agent, "copilot");
    let profile = suggested.agent("copilot").unwrap();
    let program = env.path("bin").join("copilot").to_str().unwrap().to_owned();
    assert_eq!(profile.command, [program, "--acp".to_owned()]);
    for line in ["# Copilot 1.0 2; load, list", "# ways to log in: Log in"] {
        assert!(text.lines().any(|is| is == line), "{line:?} in {text}");
    }
    assert!(!text.contains("opencode"), "{text}");
    assert!(env.tree().is_empty(), "{:?}", env.tree());
}

#[test]
fn an_interrupted_search_leaves_no_agent_behind() {
    let env = home([echo()]);
    let silent = "trap '' TERM; sleep 1000 & wait; exec sleep 1000";
    let mut search = discover(&env, &[("copilot", silent)]);
    search.wait_stderr("asking copilot");
    until("the agent to run", || (env.tree().len() > 1).then_some(()));
    search.interrupt();
    search.finish().code(1);
    assert!(env.tree().is_empty(), "{:?}", env.tree());
}
