//! Client extensions beyond the schema, and the agents that get them.

use acpd_core::ids::ClientId;
use acpd_core::profile::{Profile, Sharing};
use acpd_core::{ClientEvent, ClientOrigin, HostEvent, Input};
use serde_json::{Value, json};

use crate::bench::Bench;

const NAMES: [&str; 3] = ["jetbrains.air", "terminal-auth", "auth.gateway"];

fn bench(sharing: Sharing) -> Bench {
    let mut bench = Bench::with(|profile: &mut Profile| {
        profile.client_meta = NAMES.map(str::to_owned).to_vec();
        profile.sharing = sharing;
    });
    bench.by_hand();
    bench
}

fn air() -> Value {
    json!({"_meta":{"jetbrains":{"air":{"v":1},"else":1},"secret":1},"fs":{"readTextFile":true}})
}

fn gateway() -> Value {
    json!({"auth":{"_meta":{"gateway":true}}})
}

/// A client that declares this, on its own, before anything is answered.
fn connect(bench: &mut Bench, client: u64, capabilities: &Value) -> ClientId {
    let client = ClientId(100 + client);
    bench.feed(Input::Client(client, ClientEvent::Opened(ClientOrigin::User)));
    let params = json!({"protocolVersion":1,"clientCapabilities":capabilities});
    bench.ask(client, "init", "initialize", &params);
    client
}

/// A process starts; what it hears of a client.
fn starts(bench: &mut Bench) -> (Value, Value) {
    let asked = bench.process_asks();
    let mut heard = asked["params"]["clientCapabilities"].clone();
    let ours = ["fs", "session", "terminal", "plan", "elicitation", "subagents"];
    for name in ours {
        heard.as_object_mut().expect("an object").remove(name);
    }
    if let Some(auth) = heard.get_mut("auth").and_then(Value::as_object_mut) {
        auth.remove("terminal");
        if auth.is_empty() {
            heard.as_object_mut().expect("an object").remove("auth");
        }
    }
    (asked, heard)
}

/// The answer shows the received extensions.
fn answers(bench: &mut Bench, asked: &Value, heard: &Value) {
    let mut methods = vec![json!({"id":"key","name":"Key"})];
    let mut terminal = json!({"id":"login","name":"Log in","type":"terminal","args":["login"]});
    if heard["_meta"]["terminal-auth"] == true {
        terminal["_meta"] = json!({"terminal-auth":{"command":"gem","args":["login"]}});
    }
    methods.push(terminal);
    if heard["auth"]["_meta"]["gateway"] == true {
        methods.push(json!({"id":"gateway","name":"Gateway","_meta":{"gateway":{"protocol":"x"}}}));
    }
    let can = json!({"loadSession":true,"sessionCapabilities":{"resume":{}}});
    let result = json!({"protocolVersion":1,"agentCapabilities":can,"authMethods":methods,
        "_meta":heard["_meta"]});
    bench.agent_answers(asked, &result);
}

/// A process starts and answers; returns the extensions of a client that it received.
fn start_and_answer(bench: &mut Bench) -> Value {
    let (asked, heard) = starts(bench);
    answers(bench, &asked, &heard);
    heard
}

/// A client with this offer, whose process has answered.
fn started(sharing: Sharing, offer: &Value) -> (Bench, ClientId) {
    let mut bench = bench(sharing);
    let client = connect(&mut bench, 1, offer);
    start_and_answer(&mut bench);
    (bench, client)
}

fn told(bench: &mut Bench, client: ClientId) -> Value {
    bench.answer(client, "init")["result"].clone()
}

fn logins(result: &Value) -> Vec<&str> {
    let methods = result["authMethods"].as_array().expect("a list");
    methods.iter().map(|method| method["id"].as_str().expect("an id")).collect()
}

/// A session of this client, in a process that starts for it; what that heard.
fn own_session(bench: &mut Bench, client: ClientId, id: &str) -> Value {
    bench.ask_session(client, "new");
    let heard = start_and_answer(bench);
    bench.answers("session/new", &json!({"sessionId":id}));
    bench.got(client);
    heard
}

#[test]
fn what_the_profile_lets_through_reaches_the_process_that_the_client_starts() {
    let mut bench = bench(Sharing::Agent);
    let a = connect(&mut bench, 1, &air());
    let (asked, heard) = starts(&mut bench);
    assert_eq!(heard, json!({"_meta":{"jetbrains":{"air":{"v":1}}}}));
    let ours = &asked["params"]["clientCapabilities"];
    assert_eq!(ours["fs"]["readTextFile"], json!(false), "what acpd can do is said as ever");
    answers(&mut bench, &asked, &heard);
    assert_eq!(told(&mut bench, a)["_meta"]["jetbrains"], json!({"air":{"v":1}}));
}

#[test]
fn what_no_name_lets_through_is_dropped() {
    let mut bench = Bench::new();
    bench.by_hand();
    connect(&mut bench, 1, &air());
    assert_eq!(starts(&mut bench).1, json!({}));
}

#[test]
fn of_a_shared_process_the_first_client_wins_until_it_ends() {
    let (mut bench, a) = started(Sharing::Agent, &gateway());
    assert_eq!(logins(&told(&mut bench, a)), ["key", "gateway"]);
    // The other one is told what this process can.
    let b = connect(&mut bench, 2, &air());
    let result = told(&mut bench, b);
    assert_eq!(result["_meta"].get("jetbrains"), None);
    assert_eq!(logins(&result), ["key"], "a way to log in that it has not asked for");
    assert_eq!(bench.spawned.len(), 1);

    bench.agent_dies();
    bench.leave(a);
    let c = connect(&mut bench, 3, &air());
    bench.pass(5_000);
    assert_eq!(start_and_answer(&mut bench)["_meta"]["jetbrains"]["air"], json!({"v":1}));
    assert_eq!(told(&mut bench, c)["_meta"]["jetbrains"], json!({"air":{"v":1}}));
}

#[test]
fn what_is_remembered_is_for_those_who_offer_the_same_or_nothing() {
    let (mut bench, first) = started(Sharing::Agent, &gateway());
    bench.leave(first);
    bench.agent_dies();
    bench.reboot();

    let plain = connect(&mut bench, 2, &json!({}));
    assert_eq!(logins(&told(&mut bench, plain)), ["key"]);
    let same = connect(&mut bench, 3, &gateway());
    assert_eq!(logins(&told(&mut bench, same)), ["key", "gateway"]);
    assert_eq!(bench.spawned.len(), 1, "from memory");
    let other = connect(&mut bench, 4, &air());
    bench.pass(5_000);
    start_and_answer(&mut bench);
    assert_eq!(told(&mut bench, other)["_meta"]["jetbrains"], json!({"air":{"v":1}}));
}

#[test]
fn a_process_of_one_session_hears_of_the_client_that_made_it_each_time_it_starts() {
    let mut bench = bench(Sharing::Session);
    let a = connect(&mut bench, 1, &air());
    let heard = start_and_answer(&mut bench);
    told(&mut bench, a);
    let of_air = json!({"_meta":{"jetbrains":{"air":{"v":1}}}});
    assert_eq!(heard, of_air);
    bench.ask_session(a, "s");
    bench.answers("session/new", &json!({"sessionId":"s"}));
    // The session is restored for the other client, by another daemon.
    bench.reboot();
    for host in std::mem::take(&mut bench.swept) {
        bench.feed(Input::Host(host, HostEvent::Gone));
    }
    let c = connect(&mut bench, 3, &json!({}));
    told(&mut bench, c);
    bench.prompt(c, &json!(1), "s", "go on");
    bench.pass(5_000);
    assert_eq!(starts(&mut bench).1, of_air);
}

#[test]
fn processes_of_one_session_each_hear_of_their_own_clients() {
    let (mut bench, a) = started(Sharing::Session, &air());
    told(&mut bench, a);
    let b = connect(&mut bench, 2, &json!({}));
    told(&mut bench, b);
    assert_eq!(own_session(&mut bench, b, "s"), json!({}));
    // The first process has heard of the other client, whose session takes it.
    bench.ask_session(a, "t");
    assert_eq!(bench.spawned.len(), 2);
    assert_eq!(own_session(&mut bench, a, "u")["_meta"]["jetbrains"]["air"], json!({"v":1}));
}

#[test]
fn a_client_with_another_offer_asks_a_process_of_its_own_where_sessions_have_theirs() {
    let (mut bench, a) = started(Sharing::Session, &gateway());
    told(&mut bench, a);
    let b = connect(&mut bench, 2, &air());
    assert_eq!(bench.spawned.len(), 2);
    start_and_answer(&mut bench);
    assert_eq!(told(&mut bench, b)["_meta"]["jetbrains"], json!({"air":{"v":1}}));
    assert!(!bench.stops.is_empty(), "it has done what it was for");
}

#[test]
fn next_daemon_keeps_the_process_that_makes_a_first_session() {
    let (mut bench, a) = started(Sharing::Session, &air());
    bench.shims = true;
    told(&mut bench, a);
    // The session takes the process that was started for the answer to `initialize`, and another takes its place.
    bench.relay(a, "s", "session/new", &json!({"cwd":"/w","mcpServers":[]}));
    connect(&mut bench, 2, &gateway());
    assert_eq!(bench.spawned.len(), 2);
    start_and_answer(&mut bench);
    bench.reboot();
    let c = bench.plain();
    bench.ask(c, 1, "_acpd/agent/stop", &json!({"agent":"gem"}));
    assert_eq!(bench.stops.len(), 2, "both are known");
}

#[test]
fn a_login_in_a_terminal_is_for_clients_that_can_show_one() {
    let (mut bench, old) = started(Sharing::Agent, &json!({"_meta":{"terminal-auth":true}}));
    assert_eq!(logins(&told(&mut bench, old)), ["key", "login"], "as it said so before the schema");
    let new = connect(&mut bench, 2, &json!({"auth":{"terminal":true}}));
    assert_eq!(logins(&told(&mut bench, new)), ["key", "login"]);
    let none = connect(&mut bench, 3, &json!({}));
    assert_eq!(logins(&told(&mut bench, none)), ["key"]);
}

#[test]
fn people_are_shown_the_logins_that_are_for_everybody() {
    let (mut bench, _) = started(Sharing::Agent, &gateway());
    let methods = bench.show_agent()["auth"]["methods"].clone();
    let ids: Vec<_> = methods.as_array().unwrap().iter().map(|method| &method["id"]).collect();
    assert_eq!(ids, ["key", "login"]);
}

#[test]
fn what_an_agent_only_promises_is_known_whoever_it_hears_of() {
    let (mut bench, _) = started(Sharing::Agent, &gateway());
    let mut row = bench.snapshot.agents["gem"].clone();
    row.resume_lies = true;
    bench.snapshot.agents.insert("gem".to_owned(), row);
    bench.agent_dies();
    bench.reboot();
    connect(&mut bench, 2, &air());
    bench.pass(5_000);
    start_and_answer(&mut bench);
    let row = &bench.snapshot.agents["gem"];
    assert!(row.resume_lies);
    assert_eq!(row.client_meta.as_deref(), Some(r#"{"_meta":{"jetbrains":{"air":{"v":1}}}}"#));
}

#[test]
fn who_offers_something_else_connects_while_the_agent_is_down() {
    let (mut bench, first) = started(Sharing::Agent, &gateway());
    told(&mut bench, first);
    bench.ask(first, 1, "_acpd/agent/stop", &json!({"agent":"gem"}));
    bench.agent_dies();
    let other = connect(&mut bench, 2, &air());
    assert_eq!(logins(&told(&mut bench, other)), ["key"], "what is remembered");

    // The process is to start for the next client, and does not.
    bench.ask(first, 2, "_acpd/agent/restart", &json!({"agent":"gem"}));
    bench.refuse_start();
    bench.agent_dies();
    bench.leave(other);
    let next = connect(&mut bench, 3, &air());
    bench.refuse_start();
    bench.agent_dies();
    assert_eq!(logins(&told(&mut bench, next)), ["key"]);
    // Of another command line nothing is known.
    bench.change(|profile| profile.fingerprint = "other".to_owned());
    bench.reboot();
    let last = connect(&mut bench, 4, &air());
    bench.refuse_start();
    bench.agent_dies();
    let got = bench.got(last);
    assert!(got.iter().any(|line| line["id"] == "init" && line["error"].is_object()), "{got:?}");
}
