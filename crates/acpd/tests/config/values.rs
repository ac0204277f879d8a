//! What a configuration comes to, and who says so.

use std::fs;
use std::path::Path;

use acpd::config;
use acpd_api::{ConfigPlace, ConfigValue, ConfigValues};
use serde_json::{Value, json};

const FILE: &str = r#"[daemon]
log_level = "debug"

[defaults]
idle_timeout = "2h"
env = { SHARED = "planted", BOTH = "planted" }
inherit_env = ["SHARED_*"]
stop.eof = "1s"

[agents.copilot]
args = ["--acp", "--api-key", "planted"]
idle_timeout = "3h"
env.BOTH = "planted"
model = "large"

[agents.copilot.credentials]
TOKEN = { command = ["pass", "show", "copilot"], ttl = "1h" }
OTHER = { env = "HERE" }

[agents.mine]
command = ["mine", "https://ada:planted@example.com/"]
inherit_env = ["MINE"]

[mcp.tracker]
url = "https://example.com/mcp"
headers = { Authorization = { env = "TRACKER", prefix = "planted " }, Plain = "planted" }

[[workspace]]
path = "/src"
agent = "mine"
model = "small"

[[workspace]]
path = "/src/api"
agent = "copilot"
mode = "plan"
diagnostics = ["make check"]

[policy]
rules = [{ decision = "allow", kind = "read" }]
"#;

fn values_in(text: &str, dir: &str) -> ConfigValues {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    fs::write(&path, text).unwrap();
    config::values(&path, Path::new(dir), |_| "installed".to_owned()).unwrap()
}

fn find<'v>(values: &'v [ConfigValue], key: &str) -> &'v ConfigValue {
    let found: Vec<_> = values.iter().filter(|value| value.key == *key).collect();
    assert_eq!(found.len(), 1, "{key}");
    found[0]
}

/// The value of a key, and who says so: the lines are those of the file.
fn of(found: &ConfigValues, key: &str) -> (Value, Vec<String>) {
    told(find(&found.values, key))
}

fn told(value: &ConfigValue) -> (Value, Vec<String>) {
    let from = value.from.iter().map(|place| match place {
        ConfigPlace::Default => "default".to_owned(),
        ConfigPlace::Catalogue => "catalogue".to_owned(),
        ConfigPlace::File { line, .. } => {
            FILE.lines().nth(*line as usize - 1).unwrap().split(' ').next().unwrap().to_owned()
        }
    });
    (value.value.clone(), from.collect())
}

fn said(value: Value, from: &[&str]) -> (Value, Vec<String>) {
    (value, from.iter().map(|from| (*from).to_owned()).collect())
}

#[test]
fn the_innermost_place_that_says_something_is_named() {
    let found = values_in(FILE, "/");
    for (key, value, from) in [
        ("daemon.log_level", json!("debug"), "log_level"),
        ("daemon.max_clients", json!(64), "default"),
        ("daemon.line_limit", json!("64MiB"), "default"),
        ("agents.copilot.idle_timeout", json!("3h"), "idle_timeout"),
        ("agents.mine.idle_timeout", json!("2h"), "idle_timeout"),
        ("agents.mine.stop.eof", json!("1s"), "stop.eof"),
        ("agents.mine.stop.term", json!("7s"), "default"),
        ("agents.mine.title", Value::Null, "default"),
        ("agents.gemini.command", json!(["gemini", "--acp"]), "catalogue"),
        ("budget.per_day", Value::Null, "default"),
        ("default_agent", json!("copilot"), "[agents.copilot]"),
        ("policy.default", json!("ask"), "default"),
        ("policy.rules", json!([{"decision": "allow", "kind": "read"}]), "rules"),
        ("workspace.1.mode", json!("plan"), "mode"),
        ("mcp.tracker.url", json!("https://example.com/mcp"), "url"),
    ] {
        assert_eq!(of(&found, key), said(value, &[from]), "{key}");
    }
    let line = |key: &str| find(&found.values, key).from[0].clone();
    let place = |line, table: &str| ConfigPlace::File { line, table: Some(table.into()) };
    assert_eq!(line("daemon.log_level"), place(2, "daemon"));
    assert_eq!(line("agents.mine.idle_timeout"), place(5, "defaults"));
    assert_eq!(line("agents.copilot.idle_timeout"), place(12, "agents.copilot"));
    let agents: Vec<_> = found.agents.iter().map(acpd_api::Untrusted::raw).collect();
    assert_eq!(agents, ["copilot", "mine"]);
}

#[test]
fn all_places_are_named_where_values_add_up() {
    let found = values_in(FILE, "/");
    let (env, from) = of(&found, "agents.copilot.env");
    assert_eq!(env.as_object().unwrap().keys().collect::<Vec<_>>(), ["BOTH", "SHARED"]);
    assert_eq!(from, ["env", "env.BOTH"]);
    let (names, from) = of(&found, "agents.mine.inherit_env");
    assert_eq!((names, from), said(json!(["SHARED_*", "MINE"]), &["inherit_env", "inherit_env"]));
    assert_eq!(of(&found, "agents.copilot.inherit_env").1, ["catalogue", "inherit_env"]);
}

#[test]
fn l9_no_value_that_may_be_a_secret_is_told() {
    let found = values_in(FILE, "/");
    let shown = serde_json::to_string(&found).unwrap();
    assert!(!shown.contains("planted"), "{shown}");
    let hidden = json!({"BOTH": "[hidden]", "SHARED": "[hidden]"});
    assert_eq!(of(&found, "agents.copilot.env").0, hidden);
    let headers = json!({
        "Authorization": {"env": "TRACKER", "prefix": "[hidden]"},
        "Plain": "[hidden]"
    });
    assert_eq!(of(&found, "mcp.tracker.headers").0, headers);
    let credentials = json!({
        "OTHER": {"env": "HERE"},
        "TOKEN": {"command": ["pass", "show", "copilot"], "ttl": "1h"}
    });
    assert_eq!(of(&found, "agents.copilot.credentials").0, credentials);
}

#[test]
fn what_counts_in_a_directory_is_what_the_innermost_workspace_says() {
    let here = |dir: &str| {
        let here = values_in(FILE, dir).here;
        let keys: Vec<_> = here.iter().map(|value| value.key.raw().to_owned()).collect();
        assert_eq!(keys, ["agent", "model", "mode", "diagnostics"]);
        here.iter().map(told).collect::<Vec<_>>()
    };
    let unset = said(Value::Null, &["default"]);
    assert_eq!(
        here("/elsewhere"),
        [
            said(json!("copilot"), &["[agents.copilot]"]),
            said(json!("large"), &["model"]),
            unset.clone(),
            unset.clone()
        ]
    );
    assert_eq!(
        here("/src/web"),
        [said(json!("mine"), &["agent"]), said(json!("small"), &["model"]), unset.clone(), unset]
    );
    // The model of the outer one is for its own agent.
    assert_eq!(
        here("/src/api/x"),
        [
            said(json!("copilot"), &["agent"]),
            said(json!("large"), &["model"]),
            said(json!("plan"), &["mode"]),
            said(json!(["make check"]), &["diagnostics"])
        ]
    );
}
