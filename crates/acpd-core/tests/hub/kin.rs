//! Sessions that agents begin for sessions of theirs, by the server that acpd lends them.

use acpd_api::McpKind;
use acpd_core::mcp::take_names;
use acpd_core::profile::{McpServer, Profile};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::bench::Bench;

fn lent(profile: &mut Profile) {
    let (name, kind) = ("acpd".to_owned(), McpKind::Stdio);
    profile.mcp = vec![McpServer { name, kind, workspace: None, builtin: true }];
}

fn bench() -> Bench {
    let mut bench = Bench::with(lent);
    bench.capabilities = Some(json!({"loadSession": true, "sessionCapabilities": {"resume": {}}}));
    bench.configure(|config| {
        (config.delegation.max_depth, config.delegation.max_sessions) = (2, 2);
    });
    bench
}

/// Begins a session, for another one if that is said; the number that its tools get.
fn begins(bench: &mut Bench, id: &str, parent: Option<u64>) -> Result<u64, Value> {
    let tool = bench.client(&json!({"tool": parent.is_some()}));
    let meta = json!({"_acpd": {"parent": parent}});
    let params = json!({"cwd": "/w", "mcpServers": [], "_meta": meta, "_acpd": {"number": 1}});
    bench.say(tool, &json!({"id": 1, "method": "session/new", "params": params}));
    let asked = bench.heard();
    let Some(asked) = asked.iter().find(|line| line["method"] == "session/new") else {
        return Err(bench.got(tool)[0]["error"].clone());
    };
    let named = take_names(&Bytes::from(asked.to_string())).expect("it brings a server");
    assert_eq!(named.names, ["acpd"]);
    let told = String::from_utf8(named.line.to_vec()).expect("text");
    assert!(!told.contains("_acpd"), "agents see none of it: {told}");
    bench.agent_answers(asked, &json!({"sessionId": id}));
    Ok(named.session.expect("a number"))
}

fn parent_of(bench: &mut Bench, session: &str) -> Value {
    let client = bench.plain();
    bench.say(client, &json!({"id":1,"method":"_acpd/session/show","params":{"session":session}}));
    bench.got(client)[0]["result"]["parent"].clone()
}

fn reason(error: &Value) -> &str {
    error["data"]["_acpd"]["reason"].as_str().unwrap_or_default()
}

#[test]
fn a_session_knows_who_has_begun_it_and_its_tools_name_it_by_the_same_number_for_good() {
    let mut bench = bench();
    let lead = begins(&mut bench, "lead", None).unwrap();
    let helper = begins(&mut bench, "helper", Some(lead)).unwrap();
    assert_ne!(lead, helper);
    let parent = json!({"agent": crate::bench::AGENT, "sessionId": "lead"});
    assert_eq!(parent_of(&mut bench, "helper"), parent);
    assert_eq!(parent_of(&mut bench, "lead"), Value::Null);
    let client = bench.plain();
    bench.say(
        client,
        &json!({"id":1,"method":"_acpd/session/show","params":{"session":"","number":helper}}),
    );
    assert_eq!(bench.got(client)[0]["result"]["sessionId"], "helper");

    // The next process of the agent gets it again, and the next daemon knows it.
    bench.agent_dies();
    bench.pass(1_000);
    let again = bench.heard();
    let brought: Vec<_> = again.iter().map(|line| &line["_acpd"]).collect();
    for number in [lead, helper] {
        let wanted = json!({"mcp": ["acpd"], "session": number});
        assert!(brought.contains(&&wanted), "{brought:?}");
    }
    bench.reboot();
    assert_eq!(parent_of(&mut bench, "helper"), parent);
}

#[test]
fn how_deep_and_how_many_is_refused_with_the_way_out() {
    let mut bench = bench();
    let lead = begins(&mut bench, "lead", None).unwrap();
    let one = begins(&mut bench, "one", Some(lead)).unwrap();
    let two = begins(&mut bench, "two", Some(one)).unwrap();
    let deep = begins(&mut bench, "three", Some(two)).unwrap_err();
    assert_eq!(reason(&deep), "too_many");
    assert!(deep["message"].as_str().unwrap().contains("it is 2 below"), "{deep}");
    begins(&mut bench, "other", Some(lead)).unwrap();
    let many = begins(&mut bench, "another", Some(lead)).unwrap_err();
    assert_eq!(reason(&many), "too_many");
    assert!(many["message"].as_str().unwrap().contains("has begun 2 others"), "{many}");
    let gone = begins(&mut bench, "orphan", Some(lead + 1_000)).unwrap_err();
    assert_eq!(reason(&gone), "session_not_found");
    let forged = begins(&mut bench, "forged", Some(1)).unwrap_err();
    assert_eq!(reason(&forged), "session_not_found", "a client gives no numbers");
}

#[test]
fn a_session_from_before_the_server_was_lent_gets_a_number_when_it_comes_back() {
    let mut bench = bench();
    bench.change(|profile| profile.mcp.clear());
    let a = bench.plain();
    bench.used_session(a, "s");
    bench.change(lent);
    bench.agent_dies();
    bench.pass(1_000);
    let number = bench.heard_one("session/resume")["_acpd"]["session"].clone();
    assert!(number.is_u64(), "{number}");
    begins(&mut bench, "helper", number.as_u64()).unwrap();
    assert_eq!(parent_of(&mut bench, "helper")["sessionId"], "s");
}

#[test]
fn a_client_that_says_that_it_is_a_tool_is_one() {
    let mut bench = Bench::new();
    let (a, tool) = (bench.plain(), bench.client(&json!({"tool": true})));
    bench.session(a, "s");
    for (method, params) in [
        ("_acpd/interaction/answer", json!({"id":"1-1","answer":{"kind":"allow"}})),
        ("_acpd/session/remove", json!({"session":"s"})),
    ] {
        bench.say(tool, &json!({"id": 1, "method": method, "params": params}));
        assert_eq!(reason(&bench.got(tool)[0]["error"]), "under_agent", "{method}");
    }
}
