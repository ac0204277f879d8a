//! Real hosts of `acpctl mcp`: agents that give work to other real agents, and the MCP Inspector.
//!
//! Installs what is missing, and is skipped like the tests of `real_agents.rs`.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use xtask::home::Home;
use xtask::real::{INSPECTOR, ready};
use xtask::{Result, workspace};

#[test]
fn claude_delegates_to_codex() {
    delegates("claude", "mcp__acpd__prompt", "zedcodex").unwrap();
}

#[test]
fn claude_delegates_to_copilot() {
    delegates("claude", "mcp__acpd__prompt", "copilot").unwrap();
}

#[test]
#[ignore = "takes a big download; run it with `cargo test -p xtask --test real_tools -- --ignored`"]
fn opencode_delegates_to_codex() {
    delegates("opencode", "acpd_prompt", "zedcodex").unwrap();
}

#[test]
fn the_mcp_inspector_lists_and_calls_tools() {
    inspected().unwrap();
}

fn inspected() -> Result {
    let Some(scripts) = ready(&[INSPECTOR])? else { return Ok(()) };
    let home = Home::new(&workspace::bin_dir("debug")?)?;
    home.configure("")?;
    fs::write(home.path("work/a.txt"), "a needle\n")?;
    let inspect = |more: &[&str]| -> Result<Value> {
        let mut command = scripts.inspector(&home);
        // It keeps its environment to itself.
        for name in ["RUNTIME", "STATE", "CONFIG"] {
            let name = format!("ACPD_{name}_DIR");
            let set = command.get_envs().find(|(known, _)| *known == name.as_str());
            let value = set.and_then(|(_, value)| value).ok_or("the home sets it")?.to_owned();
            command.arg("-e").arg(format!("{name}={}", value.display()));
        }
        command.arg(home.program("acpctl")).arg("mcp").args(more);
        let output = command.output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&said)
            .map_err(|_| format!("{said}{}", String::from_utf8_lossy(&output.stderr)).into())
    };
    let tools = inspect(&["--method", "tools/list"])?;
    let tools = tools["tools"].as_array().ok_or("no list")?;
    for tool in ["prompt", "read_history", "search", "diagnostics"] {
        assert!(tools.iter().any(|known| known["name"] == tool), "{tool}: {tools:?}");
    }
    let call = |tool: &str, arguments: &[&str]| {
        let mut args = vec!["--method", "tools/call", "--tool-name", tool];
        args.extend(arguments.iter().flat_map(|argument| ["--tool-arg", argument]));
        inspect(&args)
    };
    let found = call("search", &["pattern=needle"])?;
    assert!(found["content"][0]["text"].as_str().is_some_and(|text| text.contains("1: a needle")));
    let done = call("prompt", &["session_name=fix", "prompt=#one", "agent=demo"])?;
    assert_eq!(done["structuredContent"]["status"], "done", "{done}");
    home.stop()
}

/// A real agent gives work to another one, by a tool that it has its own name for, and again after a kill of everything.
fn delegates(host: &'static str, tool: &str, helper: &'static str) -> Result {
    let Some(scripts) = ready(&[host, helper])? else { return Ok(()) };
    let model = scripts.start_model()?;
    let home = Home::new(&workspace::bin_dir("debug")?)?;
    let program = scripts.run_agent().display().to_string();
    let agent = |name: &str| {
        let mut env = scripts.environment(&home, &model);
        env[2].1 = home.path(name).display().to_string();
        let env = env.map(|(key, value)| format!("{key} = {value:?}")).join(", ");
        format!("[agents.{name}]\ncommand = [{program:?}, {name:?}]\nenv = {{ {env} }}\n")
    };
    home.configure(&format!(
        "[daemon]\nhost = \"shim\"\n[mcp.acpd]\nbuiltin = [\"delegate\"]\n{}{}",
        agent(host),
        agent(helper)
    ))?;
    let asks = |word: &str| {
        let arguments =
            format!(r#"{{"session_name":"helper","agent":"{helper}","prompt":"say {word}"}}"#);
        let prompt = format!("[call {tool} {arguments}]");
        home.read(&["run", "-n", "--yes", "-a", host, "-s", "lead", &prompt])
    };
    let first = asks("#one")?;
    let lead = home.read_json(&["session", "show", "lead"])?;
    let helper = home.read_json(&["session", "show", "helper"]);
    let helper = helper.map_err(|error| format!("{error}; {host} said: {first}"))?;
    assert_eq!(helper["parent"]["sessionId"], lead["sessionId"]);
    // The stand-in tells by tags what the agent remembers.
    let said = home.read(&["session", "log", "helper", "--last"])?;
    assert!(said.contains("tags=one"), "{said}");

    // All processes of acpd and of the agents die; the same names go on.
    for process in home.processes() {
        // It may have ended with another one.
        kill(Pid::from_raw(i32::try_from(process.pid)?), Signal::SIGKILL).ok();
    }
    asks("#two")?;
    let said = home.read(&["session", "log", "helper", "--last"])?;
    assert!(said.contains("tags=one,two"), "{said}");
    home.stop()
}
