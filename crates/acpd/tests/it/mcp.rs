//! MCP servers of the configuration: agents get them with their secrets, and nothing else does.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use acpd_test::harness::TestEnv;
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
