//! Sessions that agents begin for sessions of theirs, by the server that acpd lends them.

use acpd_api::McpKind;
use acpd_core::ids::{ClientId, HostId};
use acpd_core::mcp::take_names;
use acpd_core::profile::{McpServer, Profile};
use acpd_core::{ClientEvent, ClientOrigin, Input};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::questions::{options, pending, run};

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
    let client = bench.client(&json!({"tool": parent.is_some()}));
    begins_by(bench, client, id, parent)
}

fn begins_by(
    bench: &mut Bench,
    tool: ClientId,
    id: &str,
    parent: Option<u64>,
) -> Result<u64, Value> {
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

/// A session `helper` that one called `lead` has begun, and in which a prompt of a tool of that runs: the tool, and both
/// numbers.
fn works(bench: &mut Bench) -> (ClientId, u64, u64) {
    let lead = begins(bench, "lead", None).unwrap();
    let tool = bench.client(&json!({"tool": true}));
    let helper = begins_by(bench, tool, "helper", Some(lead)).unwrap();
    bench.prompt(tool, &json!(9), "helper", "go");
    bench.heard_one("session/prompt");
    (tool, lead, helper)
}

/// The agent asks for a call in a session; the id of the question.
fn asks_in(bench: &mut Bench, session: &str, call: &Value) -> Value {
    let params = json!({"sessionId": session, "toolCall": call, "options": options()});
    bench.agent(&json!({"id": 7, "method": "session/request_permission", "params": params}));
    pending(bench).last().expect("a question")["id"].clone()
}

/// A tool answers a question as the one of the session with this number.
fn answers(
    bench: &mut Bench,
    tool: ClientId,
    id: &Value,
    parent: Option<u64>,
    answer: &Value,
) -> Value {
    let params = json!({"id": id, "answer": answer, "parent": parent, "by": {"name": "ada"}});
    bench.say(tool, &json!({"id": 5, "method": "_acpd/interaction/answer", "params": params}));
    let got = bench.got(tool);
    got.into_iter().find(|line| line["id"] == 5).expect("an answer")
}

#[test]
fn m1_an_agent_answers_for_once_in_its_own_turn_of_a_session_that_it_began_where_that_is_configured()
 {
    let allow = json!({"kind": "allow"});
    let mut bench = bench();
    let (tool, lead, _) = works(&mut bench);
    let id = asks_in(&mut bench, "helper", &run("ls"));
    let refused = answers(&mut bench, tool, &id, Some(lead), &allow);
    assert_eq!(reason(&refused["error"]), "under_agent", "nobody has configured that");

    bench = self::bench();
    bench.configure(|config| config.delegation.answer = true);
    let (tool, lead, helper) = works(&mut bench);
    let id = asks_in(&mut bench, "helper", &run("ls"));
    let other = bench.client(&json!({"tool": true}));
    for (client, parent, answer) in [
        (other, Some(lead), &allow),
        (tool, None, &allow),
        (tool, Some(helper), &allow),
        (tool, Some(lead + 1_000), &allow),
        (tool, Some(lead), &json!({"kind": "allow", "always": true})),
        (tool, Some(lead), &json!({"kind": "deny", "always": true})),
        (tool, Some(lead), &json!({"kind": "allow", "option": "y"})),
        (tool, Some(lead), &json!({"kind": "option", "option": "y"})),
    ] {
        let refused = answers(&mut bench, client, &id, parent, answer);
        assert_eq!(reason(&refused["error"]), "under_agent", "{parent:?} {answer}");
    }
    assert_eq!(bench.heard(), Vec::<Value>::new());
    let watcher = bench.client(&json!({"notices": true}));
    let params = json!({"ref": {"session": "helper"}, "role": "observer"});
    bench.say(watcher, &json!({"id": 1, "method": "_acpd/session/attach", "params": params}));
    let answered = answers(&mut bench, tool, &id, Some(lead), &allow);
    assert_eq!(answered["result"], json!({}));
    let heard = bench.heard();
    assert_eq!(
        (&heard[0]["id"], &heard[0]["result"]["outcome"]["optionId"]),
        (&json!(7), &json!("y"))
    );
    assert!(bench.snapshot.remembered.is_empty());
    let told = bench.got(watcher);
    let told = told.iter().find(|line| line["method"] == "_acpd/answered").expect("it is told");
    let by = &told["params"]["by"];
    assert_eq!(by["title"], format!("agent `{}` of session `lead`", crate::bench::AGENT));
    assert_eq!(by["name"], crate::bench::AGENT, "what the tool says of itself does not count");

    // People decide about calls that are not understood.
    let unclear = json!({"toolCallId": "u", "title": "ls", "kind": "execute",
        "rawInput": {"command": "ls", "and": {"then": "more"}}});
    let id = asks_in(&mut bench, "helper", &unclear);
    let refused = answers(&mut bench, tool, &id, Some(lead), &allow);
    assert_eq!(reason(&refused["error"]), "under_agent");
    let denied = answers(&mut bench, tool, &id, Some(lead), &json!({"kind": "deny"}));
    assert_eq!(denied["result"], json!({}));
    assert_eq!(bench.heard()[0]["result"]["outcome"]["optionId"], "n");
}

#[test]
fn tool_acts_only_for_sessions_of_its_agent() {
    let mut bench = bench();
    bench.configure(|config| config.delegation.answer = true);
    let lead = begins(&mut bench, "lead", None).unwrap();
    let own = bench.host();
    for (host, is_its_own) in [(Some(HostId(own.0 + 1)), false), (None, false), (Some(own), true)] {
        let tool = bench.client(&json!({"tool": true}));
        bench.feed(Input::Client(tool, ClientEvent::Opened(ClientOrigin::Agent(host))));
        bench.say(tool, &json!({"id":0,"method":"initialize","params":{"protocolVersion":1}}));
        bench.got(tool);
        let begun = begins_by(&mut bench, tool, "helper", Some(lead));
        let Err(error) = begun else {
            assert!(is_its_own, "{host:?}");
            bench.prompt(tool, &json!(2), "helper", "go");
            bench.heard();
            let id = asks_in(&mut bench, "helper", &run("ls"));
            // Now the tool is seen below another agent.
            bench.feed(Input::Client(tool, ClientEvent::Opened(ClientOrigin::Agent(None))));
            let allow = json!({"kind": "allow"});
            let refused = answers(&mut bench, tool, &id, Some(lead), &allow);
            assert_eq!(reason(&refused["error"]), "under_agent");
            continue;
        };
        assert_eq!((reason(&error), is_its_own), ("under_agent", false), "{host:?}");
    }
}

#[test]
fn m1_what_is_asked_in_a_turn_of_a_person_or_in_its_own_session_an_agent_does_not_answer() {
    let allow = json!({"kind": "allow"});
    let mut bench = bench();
    bench.configure(|config| config.delegation.answer = true);
    let lead = begins(&mut bench, "lead", None).unwrap();
    let tool = bench.client(&json!({"tool": true}));
    begins_by(&mut bench, tool, "helper", Some(lead)).unwrap();
    let person = bench.plain();
    for session in ["helper", "lead"] {
        let params = json!({"sessionId": session, "cwd": "/w"});
        bench.say(person, &json!({"id": session, "method": "session/resume", "params": params}));
        bench.prompt(person, &json!(session), session, "go");
        bench.heard_one("session/prompt");
        let id = asks_in(&mut bench, session, &run("ls"));
        let refused = answers(&mut bench, tool, &id, Some(lead), &allow);
        assert_eq!(reason(&refused["error"]), "under_agent", "{session}");
    }
}
