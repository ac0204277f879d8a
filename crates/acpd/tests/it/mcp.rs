//! MCP servers of the configuration: agents get them with their secrets, and nothing else does.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use acpd_test::harness::{TestEnv, kill9, signal, until};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::echo;

const SECRET: &str = "s3cret-of-the-file";
const OTHER: &str = "s3cret-of-the-environment";

/// A home whose agents get three servers, one of which needs HTTP.
fn home() -> TestEnv {
    let env = crate::home([echo()]);
    let token = env.path("token");
    fs::write(&token, format!("{SECRET}\n")).unwrap();
    fs::set_permissions(&token, Permissions::from_mode(0o600)).unwrap();
    let file = env.path("config").join("config.toml");
    let text = fs::read_to_string(&file).unwrap();
    let servers = format!(
        "
[mcp.files]
command = \"files\"
env = {{ TOKEN = {{ file = '{}' }} }}

[mcp.variable]
command = \"variable\"
env = {{ TOKEN = {{ env = 'SOME_TOKEN' }} }}

[mcp.web]
url = \"https://example.com/mcp\"
headers = {{ Authorization = {{ env = 'SOME_TOKEN', prefix = 'Bearer ' }} }}
",
        token.display()
    );
    env.write_config(&format!("{text}{servers}"));
    env
}

fn start(env: &TestEnv) {
    let mut start = env.acpctl_command(&["daemon", "start"]);
    assert!(start.env("SOME_TOKEN", OTHER).output().unwrap().status.success());
}

/// Kills the agent and waits until its successor is up.
fn kill_agent(env: &TestEnv) {
    let old = env.agent_pid("echo").unwrap();
    kill9(old);
    until("the next agent to be ready", || {
        let agent = env.agent("echo");
        (agent["state"] == "ready" && agent["pid"] != old).then_some(())
    });
}

/// `mcpServers` of the requests of this method that the agent got.
fn servers(env: &TestEnv, method: &str) -> Vec<Value> {
    let received = env.received("echo", method);
    received.iter().map(|request| request["params"]["mcpServers"].clone()).collect()
}

fn stdio(name: &str, token: &str) -> Value {
    let env = json!([{"name": "TOKEN", "value": token}]);
    json!({"name": name, "command": name, "args": [], "env": env})
}

/// The files below a directory that hold this text.
fn holders(dir: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            found.extend(holders(&path, text));
        } else if fs::read(&path).is_ok_and(|bytes| contains(&bytes, text.as_bytes())) {
            found.push(path.display().to_string());
        }
    }
    found
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}

fn assert_no_secret_in_state(env: &TestEnv) {
    let state = env.path("state");
    assert!(!holders(&state, "acpd").is_empty(), "the search finds something");
    for secret in [SECRET, OTHER, "s3cret"] {
        assert_eq!(holders(&state, secret), Vec::<String>::new(), "{secret}");
    }
}

/// Returns the session's notices about servers that were left out.
fn told(env: &TestEnv, session: &str) -> Vec<String> {
    let journal = env.journal(session);
    let notices = journal.iter().filter(|(_, line)| line["method"] == "_acpd/notice");
    notices.map(|(_, line)| line["params"]["text"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn agents_get_the_servers_at_first_and_after_a_crash() {
    let env = home();
    start(&env);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("fix"));
    let expected = json!([stdio("files", SECRET), stdio("variable", OTHER)]);
    assert_eq!(servers(&env, "session/new"), std::slice::from_ref(&expected));
    assert_no_secret_in_state(&env);
    client.say(&session, "say #one").unwrap();
    kill_agent(&env);
    client.say(&session, "say #two").unwrap();
    assert_eq!(servers(&env, "session/resume"), [expected]);
    let left_out = "the MCP server `web` of the configuration was left out: agent `echo` does not \
                    take servers of type `http`";
    assert_eq!(told(&env, "fix"), [left_out]);
    let card = env.acpctl(&["agent", "show", "echo"]).success();
    for line in
        ["mcp       files (stdio)\n", "mcp       web (http): left out, agent `echo` does not"]
    {
        assert!(card.stdout().contains(line), "{card:?}");
    }
    assert_no_secret_in_state(&env);
}

#[test]
fn a_secret_that_is_gone_leaves_its_server_out_and_is_told() {
    let env = home();
    // Without the variable.
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("fix"));
    assert_eq!(servers(&env, "session/new"), [json!([stdio("files", SECRET)])]);
    let missing = "the MCP server `variable` of the configuration was left out: the variable \
                   `SOME_TOKEN` is not set in the daemon's environment";
    assert!(told(&env, "fix").iter().any(|text| text == missing), "{:?}", told(&env, "fix"));
    assert!(env.daemon_log().contains("SOME_TOKEN"), "{}", env.daemon_log());
    client.say(&session, "say #one").unwrap();
    fs::set_permissions(env.path("token"), Permissions::from_mode(0o644)).unwrap();
    kill_agent(&env);
    client.say(&session, "say #two").unwrap();
    assert_eq!(servers(&env, "session/resume"), [json!([])]);
    let told = told(&env, "fix");
    assert!(
        told.iter().any(|text| text.contains("is open to other users (mode 0644)")),
        "{told:?}"
    );
    assert_no_secret_in_state(&env);
}

#[test]
fn a_line_that_waits_while_the_daemon_is_killed_brings_its_servers_once() {
    let env = home();
    start(&env);
    let mut client = env.client("echo");
    let shim = env.shims()[0].pid;
    signal(shim, Signal::SIGSTOP);
    client.request("session/new", json!({"cwd": env.work("main"), "mcpServers": []}));
    until("the line to be on disk with the names of its servers", || {
        (!holders(&env.path("state"), "{\"mcp\":[\"files\"").is_empty()).then_some(())
    });
    env.kill_daemon();
    signal(shim, Signal::SIGCONT);
    start(&env);
    env.client("echo").new_session(&env.work("main"), Some("fix"));
    let expected = json!([stdio("files", SECRET), stdio("variable", OTHER)]);
    assert_eq!(servers(&env, "session/new"), [expected.clone(), expected]);
    assert_no_secret_in_state(&env);
}

#[cfg(feature = "crash-points")]
#[test]
fn a_daemon_that_dies_around_a_line_loses_no_server_of_it() {
    for count in 1..=8 {
        for point in ["after-commit", "host-write"] {
            let env = home();
            let what = format!("{point}:{count}");
            let mut start = env.acpctl_command(&["daemon", "start"]);
            start.env("SOME_TOKEN", OTHER).env("ACPD_CRASH", &what);
            // The daemon may die on its way to being ready.
            drop(start.output().unwrap());
            let mut run = env.acpctl_command(&["run", "-s", "fix", "say #one"]);
            drop(run.env("SOME_TOKEN", OTHER).output().unwrap());
            let expected = json!([stdio("files", SECRET), stdio("variable", OTHER)]);
            let new = servers(&env, "session/new");
            let all = [new, servers(&env, "session/resume")].concat();
            assert!(!all.is_empty(), "{what}");
            assert!(all.iter().all(|servers| *servers == expected), "{what}: {all:?}");
            assert_no_secret_in_state(&env);
        }
    }
}
