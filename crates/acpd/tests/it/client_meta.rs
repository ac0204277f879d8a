//! Metadata that editors declare beyond the schema.

use acpd_test::harness::{Agent, Client, TestEnv};
use serde_json::{Value, json};

use crate::{echo, home};

fn air() -> Value {
    json!({"_meta": {"jetbrains": {"air": {"v": 1}}, "secret": true}})
}

/// An agent that hears of one extension.
fn hears() -> Agent {
    echo().set("client_meta", "[\"jetbrains.air\", \"auth.gateway\"]")
}

fn editor(env: &TestEnv, capabilities: Value) -> Client {
    let mut editor = env.connect();
    let meta = json!({"_acpd": {"agent": "echo"}});
    let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities, "_meta": meta});
    editor.ok("initialize", params);
    editor
}

/// Metadata of clients that the processes of the agent got, in their order.
fn heard(env: &TestEnv) -> Vec<Value> {
    let asked = env.received("echo", "initialize").into_iter();
    asked.map(|asked| asked["params"]["clientCapabilities"]["_meta"].clone()).collect()
}

#[test]
fn one_process_for_all_hears_the_first_editor() {
    let env = home([hears()]);
    let mut first = editor(&env, air());
    editor(&env, json!({"auth": {"_meta": {"gateway": true}}}));
    first.new_session(&env.work("main"), None);
    assert_eq!(heard(&env), [json!({"jetbrains": {"air": {"v": 1}}})]);
}

#[test]
fn each_process_of_a_session_hears_the_editor_that_made_it() {
    let env = home([hears().set("sharing", "\"session\"")]);
    let mut first = editor(&env, air());
    let session = first.new_session(&env.work("main"), Some("fix"));
    first.say(&session, "say #one").unwrap();
    let before = heard(&env).len();
    let mut other = editor(&env, json!({}));
    other.new_session(&env.work("main"), None);
    assert_eq!(heard(&env)[before..], [json!(null)]);
    // The session is restored for another client, by another daemon.
    env.acpctl(&["daemon", "stop"]).success();
    let before = heard(&env).len();
    let two = env.acpctl(&["run", "-s", "fix", "say #two"]).success();
    assert!(two.stdout().contains("tags=one,two"), "{two:?}");
    assert_eq!(heard(&env)[before..], [json!({"jetbrains": {"air": {"v": 1}}})]);
}

#[test]
fn an_agent_hears_nothing_that_is_not_named() {
    let env = home([echo()]);
    editor(&env, air()).new_session(&env.work("main"), None);
    assert_eq!(heard(&env), [json!(null)]);
}
