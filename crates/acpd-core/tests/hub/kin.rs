//! Sessions that agents begin for sessions of theirs, by the server that acpd lends them.

use acpd_api::McpKind;
use acpd_core::ids::{ClientId, HostId};
use acpd_core::mcp::take_names;
use acpd_core::profile::{McpServer, Profile};
use acpd_core::{ClientEvent, ClientOrigin, Input};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::bench::{AGENT, Bench};
use crate::questions::{options, pending, run};
use crate::steps::reason;

fn lent(profile: &mut Profile) {
    let (name, kind) = ("acpd".to_owned(), McpKind::Stdio);
    profile.mcp = vec![McpServer { name, kind, workspace: None, builtin: true }];
}

fn bench() -> Bench {
    let mut bench = Bench::with(lent);
    bench.configure(|config| {
        (config.delegation.max_depth, config.delegation.max_sessions) = (2, 2);
    });
    bench
}

/// A bench with a session `lead`, whose agent may answer questions where that is configured.
fn led(may_answer: bool) -> (Bench, u64) {
    let mut bench = bench();
    bench.configure(|config| config.delegation.answer = may_answer);
    let lead = begins(&mut bench, "lead", None).unwrap();
    (bench, lead)
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
    bench.ask(tool, 1, "session/new", &params);
    let asked = bench.heard();
    let Some(asked) = asked.iter().find(|line| line["method"] == "session/new") else {
        return Err(bench.got(tool)[0].clone());
    };
    let named = take_names(&Bytes::from(asked.to_string())).expect("it brings a server");
    assert_eq!(named.names, ["acpd"]);
    let told = String::from_utf8(named.line.to_vec()).expect("text");
    assert!(!told.contains("_acpd"), "agents see none of it: {told}");
    bench.agent_answers(asked, &json!({"sessionId": id}));
    Ok(named.session.expect("a number"))
}

fn parent_of(bench: &mut Bench, session: &str) -> Value {
    bench.show(session)["parent"].clone()
}

#[test]
fn a_session_knows_who_has_begun_it_and_its_tools_name_it_by_the_same_number_for_good() {
    let (mut bench, lead) = led(false);
    let helper = begins(&mut bench, "helper", Some(lead)).unwrap();
    assert_ne!(lead, helper);
    let parent = json!({"agent": AGENT, "sessionId": "lead"});
    assert_eq!(parent_of(&mut bench, "helper"), parent);
    assert_eq!(parent_of(&mut bench, "lead"), Value::Null);
    let shown = bench.command("_acpd/session/show", &json!({"session":"","number":helper}));
    assert_eq!(shown["result"]["sessionId"], "helper");

    // The next process of the agent gets it again, and the next daemon knows it.
    bench.restart_agent();
    let again = bench.heard();
    let brought: Vec<_> = again.iter().map(|line| &line["_acpd"]).collect();
    for number in [lead, helper] {
        assert!(brought.contains(&&json!({"mcp": ["acpd"], "session": number})), "{brought:?}");
    }
    bench.reboot();
    assert_eq!(parent_of(&mut bench, "helper"), parent);
}

#[test]
fn how_deep_and_how_many_is_refused_with_the_way_out() {
    let (mut bench, lead) = led(false);
    let one = begins(&mut bench, "one", Some(lead)).unwrap();
    let two = begins(&mut bench, "two", Some(one)).unwrap();
    let deep = begins(&mut bench, "three", Some(two)).unwrap_err();
    assert_eq!(reason(&deep), "too_many");
    assert!(deep["error"]["message"].as_str().unwrap().contains("it is 2 below"), "{deep}");
    begins(&mut bench, "other", Some(lead)).unwrap();
    let many = begins(&mut bench, "another", Some(lead)).unwrap_err();
    assert_eq!(reason(&many), "too_many");
    assert!(many["error"]["message"].as_str().unwrap().contains("has begun 2 others"), "{many}");
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
    bench.restart_agent();
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
        ("_acpd/session/reseed", json!({"ref":{"session":"s"}})),
    ] {
        assert_eq!(reason(&bench.call(tool, method, &params)), "under_agent", "{method}");
    }
}

/// A session `helper` that one called `lead` has begun, and in which a prompt of a tool of that runs: the tool, and both
/// numbers.
fn works(may_answer: bool) -> (Bench, ClientId, u64, u64) {
    let (mut bench, lead) = led(may_answer);
    let tool = bench.client(&json!({"tool": true}));
    let helper = begins_by(&mut bench, tool, "helper", Some(lead)).unwrap();
    bench.start_turn(tool, 9, "helper", "go");
    (bench, tool, lead, helper)
}

/// The agent asks for a call in a session; the id of the question.
fn asks_in(bench: &mut Bench, session: &str, call: &Value) -> Value {
    let params = json!({"sessionId": session, "toolCall": call, "options": options()});
    bench.agent_asks(7, "session/request_permission", &params);
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
    bench.ask(tool, 5, "_acpd/interaction/answer", &params);
    bench.answer(tool, 5)
}

#[test]
fn m1_an_agent_answers_for_once_in_its_own_turn_of_a_session_that_it_began_where_that_is_configured()
 {
    let allow = json!({"kind": "allow"});
    let (mut bench, tool, lead, _) = works(false);
    let id = asks_in(&mut bench, "helper", &run("ls"));
    let refused = answers(&mut bench, tool, &id, Some(lead), &allow);
    assert_eq!(reason(&refused), "under_agent", "nobody has configured that");

    let (mut bench, tool, lead, helper) = works(true);
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
        assert_eq!(reason(&refused), "under_agent", "{parent:?} {answer}");
    }
    assert_eq!(bench.heard(), Vec::<Value>::new());
    let watcher = bench.noticed();
    bench.observe(watcher, "helper");
    assert_eq!(answers(&mut bench, tool, &id, Some(lead), &allow)["result"], json!({}));
    let heard = bench.heard();
    let chosen = &heard[0]["result"]["outcome"]["optionId"];
    assert_eq!((&heard[0]["id"], chosen), (&json!(7), &json!("y")));
    assert!(bench.snapshot.remembered.is_empty());
    let by = &bench.find(watcher, "_acpd/answered")["params"]["by"];
    assert_eq!(by["title"], format!("agent `{AGENT}` of session `lead`"));
    assert_eq!(by["name"], AGENT, "what the tool says of itself does not count");

    // People decide about calls that are not understood.
    let unclear = json!({"toolCallId": "u", "title": "ls", "kind": "execute",
        "rawInput": {"command": "ls", "and": {"then": "more"}}});
    let id = asks_in(&mut bench, "helper", &unclear);
    assert_eq!(reason(&answers(&mut bench, tool, &id, Some(lead), &allow)), "under_agent");
    let denied = answers(&mut bench, tool, &id, Some(lead), &json!({"kind": "deny"}));
    assert_eq!(denied["result"], json!({}));
    assert_eq!(bench.heard()[0]["result"]["outcome"]["optionId"], "n");
}

#[test]
fn tool_acts_only_for_sessions_of_its_agent() {
    let (mut bench, lead) = led(true);
    let own = bench.host();
    for (host, is_its_own) in [(Some(HostId(own.0 + 1)), false), (None, false), (Some(own), true)] {
        let tool = bench.client(&json!({"tool": true}));
        bench.feed(Input::Client(tool, ClientEvent::Opened(ClientOrigin::Agent(host))));
        bench.ask(tool, 0, "initialize", &json!({"protocolVersion":1}));
        bench.got(tool);
        let begun = begins_by(&mut bench, tool, "helper", Some(lead));
        let Err(error) = begun else {
            assert!(is_its_own, "{host:?}");
            bench.prompt(tool, &json!(2), "helper", "go");
            bench.heard();
            let id = asks_in(&mut bench, "helper", &run("ls"));
            // Now the tool is seen below another agent.
            bench.feed(Input::Client(tool, ClientEvent::Opened(ClientOrigin::Agent(None))));
            let refused = answers(&mut bench, tool, &id, Some(lead), &json!({"kind": "allow"}));
            assert_eq!(reason(&refused), "under_agent");
            continue;
        };
        assert_eq!((reason(&error), is_its_own), ("under_agent", false), "{host:?}");
    }
}

#[test]
fn m1_what_is_asked_in_a_turn_of_a_person_or_in_its_own_session_an_agent_does_not_answer() {
    let allow = json!({"kind": "allow"});
    let (mut bench, lead) = led(true);
    let tool = bench.client(&json!({"tool": true}));
    begins_by(&mut bench, tool, "helper", Some(lead)).unwrap();
    let person = bench.plain();
    for session in ["helper", "lead"] {
        bench.join(person, session);
        bench.start_turn(person, session, session, "go");
        let id = asks_in(&mut bench, session, &run("ls"));
        let refused = answers(&mut bench, tool, &id, Some(lead), &allow);
        assert_eq!(reason(&refused), "under_agent", "{session}");
    }
}
