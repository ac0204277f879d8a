//! Special features of real agents' sessions: a message to a running turn, and MCP servers of a
//! single session.
//!
//! Installs what is missing, and is skipped like the tests of `real_agents.rs`.

mod program;

use std::fs;
use std::time::Duration;

use acpd_test::peer::Peer;
use program::Program;
use serde_json::{Value, json};
use xtask::home::{Home, kill_tree, wait_for};
use xtask::real::{Scripts, home_with, ready};
use xtask::{Result, workspace};

/// How long acpd may take to notice that an agent has ended.
const NOTICE: Duration = Duration::from_secs(30);

#[test]
fn claude_hears_what_is_said_into_its_turn_and_remembers_it() {
    steered("claude").unwrap();
}

#[test]
#[ignore = "takes a big download; run it with `cargo test -p xtask --test real_sessions -- --ignored`"]
fn opencode_gives_the_mcp_servers_of_a_session_to_others_of_its_process_only() {
    let Some(scripts) = ready(&["opencode"]).unwrap() else { return };
    // Why the catalogue gives each session of it a process.
    let both = tools(&scripts, "sharing = \"agent\"").unwrap();
    assert_eq!(both, [["look_alpha", "look_beta"], ["look_alpha", "look_beta"]]);
    let own = tools(&scripts, "").unwrap();
    assert_eq!(own, [["look_alpha"], ["look_beta"]]);
}

fn steered(agent: &str) -> Result {
    let Some((home, _model)) = home_with(agent)? else { return Ok(()) };
    home.read(&["run", "-a", agent, "-s", "work", "say #one"])?;

    let mut idle = home.acpctl(&["run", "--steer", "work", "say #never"]);
    let idle = Program::start(&mut idle)?.finish()?.stderr;
    assert!(idle.starts_with("error: no turn is running in session `work`\n"), "{idle}");

    let mut run = Program::start(&mut home.acpctl(&["run", "-s", "work", "say #two [slow 30]"]))?;
    run.read_to("tick 5/30")?;
    home.read(&["run", "--steer", "work", "and #three"])?;
    let run = run.finish()?;
    run.is(0, &["> and #three\n"]);
    run.answers("tags=one,two,three");
    // The message is restored with the conversation, and is in the journal once.
    let old = home.agent(agent)?;
    kill_tree(old);
    // A prompt that comes before acpd has noticed is a turn that is cut off.
    let is_noticed = || !home.agent(agent).is_ok_and(|now| now == old);
    wait_for("the end of the agent in acpd's eyes", NOTICE, is_noticed)?;
    let said = home.read(&["run", "-s", "work", "say #four"])?;
    assert!(said.contains("tags=one,two,three,four"), "{said}");
    let log = home.read(&["session", "log", "work"])?;
    assert_eq!(log.matches("> and #three").count(), 1, "{log}");
    assert!(!log.contains("#never"), "{log}");
    assert_eq!(home.read_json(&["session", "show", "work"])?["prompts"], 3);
    home.stop()
}

/// An MCP server with one tool, named by its argument.
const SERVER: &str = r#"
import json, sys
name = sys.argv[1]
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, answer = message["method"], {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        answer["result"] = {"protocolVersion": version, "capabilities": {"tools": {}},
                            "serverInfo": {"name": name, "version": "1"}}
    elif method == "tools/list":
        tool = {"name": "look_" + name, "description": "x", "inputSchema": {"type": "object"}}
        answer["result"] = {"tools": [tool]}
    else:
        answer["error"] = {"code": -32601, "message": "no"}
    print(json.dumps(answer), flush=True)
"#;

/// Two sessions of one directory, each with an MCP server of its own: the tools of these that the model
/// is offered in each.
fn tools(scripts: &Scripts, more: &str) -> Result<Vec<Vec<String>>> {
    let model = scripts.start_model()?;
    let home = Home::new(&workspace::bin_dir("debug")?)?;
    scripts.configure(&home, "opencode", &model, more)?;
    let server = home.path("server.py");
    fs::write(&server, SERVER)?;
    let mut editor = Peer::start(home.acpctl(&["acp", "opencode"]))?;
    editor.initialize(&json!({}))?;
    let mut sessions = Vec::new();
    for name in ["alpha", "beta"] {
        let args = json!([server, name]);
        let servers = json!([{"name": name, "command": "python3", "args": args, "env": []}]);
        let params = json!({"cwd": home.path("work"), "mcpServers": servers});
        sessions.push(editor.call("session/new", &params)?["sessionId"].clone());
    }
    let mut offered = Vec::new();
    for session in sessions {
        let before = model.asked()?.len();
        let prompt = json!([{"type": "text", "text": "say #one"}]);
        editor.call("session/prompt", &json!({"sessionId": session, "prompt": prompt}))?;
        let asked = model.asked()?;
        let tools = asked.get(before).ok_or("the model was not asked")?["tools"].as_array();
        let names = tools.into_iter().flatten().filter_map(Value::as_str);
        let mut looks: Vec<String> =
            names.filter_map(|name| Some(name[name.find("look_")?..].to_owned())).collect();
        looks.sort();
        offered.push(looks);
    }
    drop(editor);
    home.stop()?;
    Ok(offered)
}
