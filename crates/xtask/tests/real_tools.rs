//! Real hosts of `acpctl mcp`: agents that give work to other real agents, and the MCP Inspector.
//!
//! Installs what is missing, and is skipped like the tests of `real_agents.rs`.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use acpd_sys::process::{StopSignal, signal_one};
use serde_json::{Value, json};
use xtask::home::{Home, wait_for};
use xtask::real::ready;
use xtask::{Result, workspace};

#[test]
fn claude_gives_work_to_codex_and_copilot_two_levels_deep() {
    delegates(CLAUDE, CODEX).unwrap();
}

#[test]
fn codex_gives_work_to_claude_and_copilot_two_levels_deep() {
    delegates(CODEX, CLAUDE).unwrap();
}

#[test]
fn opencode_gives_work_to_codex_and_copilot_two_levels_deep() {
    delegates(OPENCODE, CODEX).unwrap();
}

#[test]
fn the_mcp_inspector_lists_and_calls_tools() {
    inspected().unwrap();
}

fn inspected() -> Result {
    let Some(scripts) = ready(&["inspector"])? else { return Ok(()) };
    let home = Home::new(&workspace::bin_dir("debug")?)?;
    home.configure("")?;
    fs::write(home.path("work/a.txt"), "a needle\n")?;
    let inspect = |more: &[&str]| -> Result<Value> {
        let mut command = home.command(&scripts.node());
        let main = "npm-inspector/node_modules/.bin/mcp-inspector";
        command.arg(scripts.store().join(main)).arg("--cli");
        // The inspector keeps its environment to itself.
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

/// Limit that only a failing test reaches.
const PATIENCE: Duration = Duration::from_mins(2);

/// An agent that takes MCP servers from acpd, and what it calls their tool `prompt`.
#[derive(Clone, Copy)]
struct Host {
    agent: &'static str,
    tool: &'static str,
}

const CLAUDE: Host = Host { agent: "claude", tool: "mcp__acpd__prompt" };
const CODEX: Host = Host { agent: "zedcodex", tool: "prompt" };
const OPENCODE: Host = Host { agent: "opencode", tool: "acpd_prompt" };
/// The agent gives no work to others: it takes no stdio servers from a client.
const LEAF: &str = "copilot";

impl Host {
    /// Prompt that makes the stand-in for its model give work to another agent.
    fn asks(self, session: &str, agent: &str, prompt: &str) -> String {
        let arguments = json!({"session_name": session, "agent": agent, "prompt": prompt});
        // A prompt may have such a call in it, and its bracket ends none but its own.
        let arguments = arguments.to_string().replace(']', "\\u005d");
        format!("[call {} {arguments}]", self.tool)
    }
}

/// `lead` gives work to `middle`, which gives some of it to a third agent, and to that third one itself; and again by
/// the same names when everything was killed.
fn delegates(lead: Host, middle: Host) -> Result {
    let Some(scripts) = ready(&[lead.agent, middle.agent, LEAF])? else { return Ok(()) };
    let model = scripts.start_model()?;
    let home = Home::new(&workspace::bin_dir("debug")?)?;
    let agent = |name: &str| {
        let own = [("AGENT_HOME", home.path(name).display().to_string())];
        scripts.profile(&home, &model, name, &scripts.command(name), &own)
    };
    home.configure(&format!(
        "[mcp.acpd]\nbuiltin = [\"delegate\"]\n[policy]\ndefault = \"allow\"\n{}{}{}",
        agent(lead.agent),
        agent(middle.agent),
        agent(LEAF)
    ))?;
    let asks = |word: &str| {
        let deep = middle.asks("third", LEAF, &format!("say {word}"));
        let first = lead.asks("helper", middle.agent, &format!("say {word} {deep}"));
        let second = lead.asks("other", LEAF, &format!("say {word}"));
        run(&home, &["run", "-N", "-a", lead.agent, "-s", "lead", &format!("{first} {second}")])
    };
    // The stand-in tells by tags what each agent remembers.
    let remember = |tags: &str, said: &str| -> Result {
        for name in ["helper", "third", "other"] {
            let last = home.read(&["session", "log", name, "--last"]);
            let last = last.map_err(|error| format!("{error}; {} said: {said}", lead.agent))?;
            assert!(last.contains(&format!("tags={tags}")), "{name}: {last}\n{said}");
        }
        Ok(())
    };
    let said = asks("#one")?;
    remember("one", &said)?;
    for (name, parent) in [("helper", "lead"), ("third", "helper"), ("other", "lead")] {
        let show = |name| home.read_json(&["session", "show", name]);
        assert_eq!(show(name)?["parent"]["sessionId"], show(parent)?["sessionId"], "{name}");
    }
    let tree = home.read(&["ps", "--tree"])?;
    let places = ["lead", "└ third"].map(|words| tree.find(words));
    assert!(places[0].is_some() && places[1] > places[0], "{tree}");

    // All processes of acpd and of the agents die; the same names go on.
    for process in home.processes() {
        // The process may have ended with another one.
        signal_one(process, StopSignal::Kill);
    }
    let said = asks("#two")?;
    remember("one,two", &said)?;
    home.stop()
}

/// Runs `acpctl` to its end; what it printed. What agents ask meanwhile, a person allows: codex asks before each call of a
/// tool, with more answers than a policy takes for a yes or no.
fn run(home: &Home, args: &[&str]) -> Result<String> {
    let mut command = home.acpctl(args);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut asked = Ok(());
    wait_for("the turn to end", PATIENCE, || {
        asked = answer(home);
        asked.is_err() || !matches!(child.try_wait(), Ok(None))
    })
    .inspect_err(|_| drop(child.kill()))?;
    asked?;
    let output = child.wait_with_output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {error}");
    Ok(String::from_utf8(output.stdout)?)
}

fn answer(home: &Home) -> Result {
    let open = home.read_json(&["pending"])?;
    for id in open["interactions"].as_array().into_iter().flatten().map(|one| &one["id"]) {
        let id = id.as_str().ok_or("a question has no id")?;
        let _ = home.acpctl(&["allow", id]).output()?;
    }
    Ok(())
}
