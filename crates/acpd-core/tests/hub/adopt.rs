//! Sessions that the agent knows and acpd does not.

use acpd_core::ids::ClientId;
use acpd_core::profile::Sharing;
use acpd_core::{ClientEvent, ClientOrigin, HostEvent, Input};
use serde_json::{Value, json};

use crate::bench::{Bench, words};
use crate::steps::reason;

fn bench(of: fn() -> Bench) -> Bench {
    of().with_session_capabilities(json!({"list":{},"resume":{}}))
}

fn ids(answer: &Value) -> Vec<&str> {
    let sessions = answer["result"]["sessions"].as_array().expect("a list");
    sessions.iter().map(|session| session["sessionId"].as_str().expect("an id")).collect()
}

fn list(params: Value) -> Value {
    json!({"id":"list","method":"session/list","params":params})
}

fn load(id: &str, session: &str) -> Value {
    let params = json!({"sessionId":session,"cwd":"/w","mcpServers":[],"_meta":{"k":1,"_acpd":{}}});
    json!({"id":id,"method":"session/load","params":params})
}

/// Requests a load that reaches the agent, and returns it as the agent got it.
fn relay_load(bench: &mut Bench, client: ClientId, id: &str, session: &str) -> Value {
    bench.say(client, &load(id, session));
    bench.heard_one("session/load")
}

/// A client that loads the session `x`, with the request as the agent got it.
fn loading(of: fn() -> Bench) -> (Bench, ClientId, Value) {
    let (mut bench, client) = bench(of).with_client();
    let asked = relay_load(&mut bench, client, "1", "x");
    (bench, client, asked)
}

/// Requests a list, and returns the request that reaches the agent.
fn relay_list(bench: &mut Bench, client: ClientId, params: Value) -> Value {
    bench.say(client, &list(params));
    bench.heard_one("session/list")
}

#[test]
fn a_list_has_what_only_the_agent_knows_and_leaves_out_what_nobody_knows() {
    let (mut bench, a) = bench(Bench::new).with_begun();
    bench.session(a, "t");
    let asked = relay_list(&mut bench, a, json!({"cwd":"/w"}));
    assert_eq!(asked["params"], json!({"cwd":"/w"}));
    let others = json!([
        {"sessionId":"x","cwd":"/w","title":"X","updatedAt":"2026-01-01T00:00:00Z"},
        {"sessionId":"z","cwd":"/w"},
        {"sessionId":"s","cwd":"/w","title":"Ours"},
        {"sessionId":"nowhere"},
    ]);
    bench.agent_answers(&asked, &json!({"sessions":others,"nextCursor":"2"}));
    let got = bench.got(a);
    let sessions = got[0]["result"]["sessions"].as_array().unwrap();
    let entry = |id: &str| sessions.iter().find(|entry| entry["sessionId"] == id).unwrap();
    assert_eq!(sessions.len(), 4);
    assert_eq!(entry("s")["title"], "Ours", "the agent has given it one");
    assert_eq!(entry("t").get("title"), None, "null is too much for some clients");
    for other in &others.as_array().unwrap()[..2] {
        let mut expected = other.clone();
        expected["archived"] = json!(false);
        assert_eq!(*entry(other["sessionId"].as_str().unwrap()), expected);
    }

    let cursor = got[0]["result"]["nextCursor"].clone();
    let asked = relay_list(&mut bench, a, json!({"cursor":cursor}));
    assert_eq!(asked["params"], json!({"cursor":"2"}));
    bench.agent_answers(&asked, &json!({"sessions":[{"sessionId":"y","cwd":"/v"}]}));
    let got = bench.got(a);
    assert_eq!(ids(&got[0]), ["y"], "acpd's own were on the first page");
    assert_eq!(got[0]["result"].get("nextCursor"), None);

    bench.say(a, &list(json!({"cursor":"mine"})));
    assert_eq!(bench.got(a)[0]["error"]["code"], -32602);
}

#[test]
fn a_list_does_not_depend_on_the_agent() {
    let (mut bench, a) = bench(Bench::new).with_begun();
    bench.say(a, &list(json!({})));
    bench.refuses("session/list", -32603);
    assert_eq!(ids(&bench.got(a)[0]), ["s"]);

    let slow = relay_list(&mut bench, a, json!({}));
    assert_eq!(bench.got(a), Vec::<Value>::new());
    bench.pass(3_000);
    assert_eq!(ids(&bench.got(a)[0]), ["s"]);
    bench.agent_answers(&slow, &json!({"sessions":[{"sessionId":"x","cwd":"/w"}]}));
    assert_eq!(bench.got(a), Vec::<Value>::new(), "answered once");

    bench.say(a, &list(json!({})));
    bench.agent_dies();
    assert_eq!(ids(&bench.got(a)[0]), ["s"]);
    bench.heard();
    bench.say(a, &list(json!({})));
    assert_eq!(ids(&bench.got(a)[0]), ["s"]);
    assert_eq!(bench.heard(), Vec::<Value>::new(), "nothing is started for a list");
}

#[test]
fn a_session_of_the_agent_is_taken_over_with_its_history() {
    let (mut bench, a, b) = bench(Bench::new).with_two_clients();
    let asked = relay_load(&mut bench, a, "1", "x");
    let params = json!({"sessionId":"x","cwd":"/w","mcpServers":[],"_meta":{"k":1}});
    assert_eq!(asked["params"], params);
    bench.update("x", "user_message_chunk", "hello");
    bench.say(b, &load("2", "x"));
    assert_eq!(bench.heard(), Vec::<Value>::new(), "the agent is asked once");
    bench.chunk("x", "hi");
    assert_eq!(bench.got(a), Vec::<Value>::new());
    let modes = json!({"currentModeId":"m","availableModes":[{"id":"m","name":"M"}]});
    bench.agent_answers(&asked, &json!({"modes":modes}));
    let history = ["user_message_chunk", "agent_message_chunk"];
    let got = bench.got(a);
    assert_eq!(words(&got), [&history[..], &["result \"1\""]].concat());
    assert_eq!(got[2]["result"]["modes"], modes);
    assert_eq!(words(&bench.got(b)), [&history[..], &["result \"2\""]].concat());

    bench.run_turn(a, 3, "x", "go on");
    bench.say(a, &load("4", "x"));
    assert_eq!(bench.heard(), Vec::<Value>::new(), "it is acpd's now");
    assert_eq!(bench.journal_words()[..2], history);
}

#[test]
fn a_session_that_was_taken_over_is_never_begun_anew() {
    let (mut bench, a) = Bench::loadable().with_client();
    let asked = relay_load(&mut bench, a, "1", "x");
    bench.update("x", "user_message_chunk", "hello");
    bench.chunk("x", "hi");
    bench.agent_answers(&asked, &json!({}));
    let again = bench.restart_hearing("session/load");
    for (kind, text) in [
        ("user_message_chunk", "hello"),
        ("agent_message_chunk", "hi"),
        ("user_message_chunk", "elsewhere"),
        ("agent_message_chunk", "news"),
    ] {
        bench.update("x", kind, text);
    }
    bench.agent_answers(&again, &json!({}));
    let shown = bench.journal_words();
    let chunks: Vec<_> = shown.iter().filter(|word| word.ends_with("_chunk")).collect();
    assert_eq!(chunks.len(), 4, "each line of the replay once: {shown:?}");
}

#[test]
fn what_the_agent_does_not_have_is_not_there() {
    let (mut bench, a, asked) = loading(Bench::new);
    bench.update("x", "user_message_chunk", "hello");
    bench.agent_refuses(&asked, -32002);
    assert_eq!(bench.got(a)[0]["error"]["code"], -32002);
    bench.say(a, &list(json!({})));
    bench.answers("session/list", &json!({"sessions":[]}));
    assert_eq!(ids(&bench.got(a)[0]), Vec::<&str>::new());

    bench.prompt(a, &json!(2), "x", "hello");
    assert_eq!(bench.got(a)[0]["error"]["code"], -32002);
    bench.say(a, &load("3", "x"));
    bench.heard();
    bench.agent_dies();
    assert_eq!(reason(&bench.got(a)[0]), "agent_exited");
}

#[test]
fn an_agent_that_cannot_load_is_not_asked_to() {
    let (mut bench, a) = Bench::able(&json!({})).with_client();
    bench.say(a, &load("1", "x"));
    assert_eq!(bench.got(a)[0]["error"]["code"], -32002);
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn a_history_over_the_limit_is_refused_whole() {
    let (mut bench, a, asked) = loading(Bench::new);
    let piece = "x".repeat(900_000);
    for _ in 0..80 {
        bench.chunk("x", &piece);
    }
    let got = bench.expect(a, ["error \"1\""]);
    assert!(got[0]["error"]["message"].as_str().is_some_and(|text| text.contains("64 MiB")));
    bench.agent_answers(&asked, &json!({}));
    assert_eq!(bench.got(a), Vec::<Value>::new());
    assert!(bench.journal.values().all(Vec::is_empty));
}

#[test]
fn the_daemon_may_die_while_a_session_is_taken_over() {
    let (mut bench, _, asked) = loading(Bench::with_shims);
    bench.update("x", "user_message_chunk", "hello");
    bench.reboot();
    bench.adopt();
    let a = bench.plain();
    bench.say(a, &load("1", "x"));
    bench.chunk("x", "hi");
    bench.agent_answers(&asked, &json!({}));
    assert_eq!(bench.heard(), Vec::<Value>::new(), "the agent is not asked again");
    let history = ["user_message_chunk", "agent_message_chunk", "result \"1\""];
    assert_eq!(words(&bench.got(a)), history);
}

#[test]
fn a_session_is_not_taken_over_while_a_process_that_held_it_is_ending() {
    let (mut bench, a) = Bench::with(|profile| profile.sharing = Sharing::Session).with_client();
    bench.session(a, "x");
    let first = bench.host();
    bench.ask(a, 1, "session/delete", &json!({"sessionId":"x"}));
    bench.say(a, &load("2", "x"));
    assert_eq!(reason(&bench.answer(a, "2")), "session_blocked");

    bench.leader_ends();
    bench.feed(Input::Host(first, HostEvent::Gone));
    bench.heard();
    bench.say(a, &load("3", "x"));
    assert_ne!(bench.host(), first);
    bench.heard_one("session/load");
}

#[test]
fn a_history_that_comes_late_is_not_taken_for_news_afterwards() {
    let late = Bench::with(|profile| profile.late_replay = true);
    let (mut bench, a) = late.with_capabilities(json!({"loadSession":true})).with_client();
    let asked = relay_load(&mut bench, a, "1", "x");
    let replay = |bench: &mut Bench, load: &Value| {
        bench.update("x", "user_message_chunk", "one");
        bench.agent_answers(load, &json!({}));
        bench.update("x", "user_message_chunk", "two");
    };
    replay(&mut bench, &asked);
    let shown = |bench: &Bench| {
        let words = bench.journal_words();
        words.iter().filter(|word| *word == "user_message_chunk").count()
    };
    assert_eq!(shown(&bench), 2);
    let again = bench.restart_hearing("session/load");
    replay(&mut bench, &again);
    bench.pass(10_000);
    assert_eq!(shown(&bench), 2);
}

#[test]
fn who_resumes_a_session_of_the_agent_does_not_cost_the_others_its_history() {
    let (mut bench, a, b) = bench(Bench::new).with_two_clients();
    bench.ask(a, "1", "session/resume", &json!({"sessionId":"x","cwd":"/w","mcpServers":[]}));
    let asked = bench.heard_one("session/load");
    bench.update("x", "user_message_chunk", "hello");
    bench.agent_answers(&asked, &json!({}));
    assert_eq!(words(&bench.got(a)), ["result \"1\""]);
    bench.say(b, &load("2", "x"));
    assert_eq!(words(&bench.got(b)), ["user_message_chunk", "result \"2\""]);
}

#[test]
fn a_history_that_cannot_be_had_is_said_to_be_missing() {
    let (mut bench, a) = Bench::able(&json!({"sessionCapabilities":{"resume":{}}})).with_client();
    bench.ask(a, "1", "session/resume", &json!({"sessionId":"x","cwd":"/w","mcpServers":[]}));
    bench.answers("session/resume", &json!({}));
    assert_eq!(bench.journal_words(), ["_acpd/notice"]);
}

#[test]
fn an_agent_that_does_not_load_is_not_waited_for() {
    let (mut bench, a, asked) = loading(Bench::new);
    bench.pass(20_000);
    bench.chunk("x", "it goes on");
    bench.pass(20_000);
    assert_eq!(bench.got(a), Vec::<Value>::new());
    bench.pass(20_000);
    assert_eq!(reason(&bench.got(a)[0]), "agent_timeout");
    bench.agent_answers(&asked, &json!({}));
    assert_eq!(bench.got(a), Vec::<Value>::new());

    let asked = relay_load(&mut bench, a, "2", "x");
    bench.cancel_request(a, "2");
    assert_eq!(bench.got(a)[0]["error"]["code"], -32800);
    bench.agent_answers(&asked, &json!({}));
    assert_eq!(bench.got(a), Vec::<Value>::new(), "answered once");
}

#[test]
fn a_history_takes_no_room_from_sessions_that_are_being_made() {
    let (mut bench, a, b) = bench(Bench::new).with_two_clients();
    let loading = relay_load(&mut bench, a, "1", "x");
    let piece = "x".repeat(900_000);
    for _ in 0..6 {
        bench.chunk("x", &piece);
    }
    let new = bench.relay(b, 2, "session/new", &json!({"cwd":"/w","mcpServers":[]}));
    bench.chunk("s", "early");
    bench.agent_answers(&new, &json!({"sessionId":"s"}));
    assert_eq!(words(&bench.got(b)), ["result 2", "agent_message_chunk"]);
    bench.agent_answers(&loading, &json!({}));
    assert_eq!(bench.got(a).len(), 7);
}

#[test]
fn tool_calls_of_a_history_are_none_of_the_next_turn() {
    let (mut bench, a) = bench(Bench::new).with_client_of(&json!({"notices":true}));
    let asked = relay_load(&mut bench, a, "1", "x");
    for n in 0..300 {
        let call = json!({"sessionUpdate":"tool_call","toolCallId":format!("t{n}"),"title":"T"});
        bench.send_update("x", &call);
    }
    bench.agent_answers(&asked, &json!({}));
    let prompt = bench.start_turn(a, 2, "x", "go on");
    bench.send_update("x", &json!({"sessionUpdate":"tool_call","toolCallId":"new","title":"T"}));
    bench.end_turn(&prompt);
    assert_eq!(bench.find(a, "_acpd/turn_ended")["params"]["tools"], 1);
}

#[test]
fn what_is_replayed_for_a_removed_session_is_not_taken_over_with_it() {
    let (mut bench, a, first) = Bench::new().with_loading("s");
    bench.ask(a, 1, "_acpd/session/remove", &json!({"session":"s"}));
    bench.got(a);
    bench.say(a, &load("2", "s"));
    assert_eq!(reason(&bench.got(a)[0]), "session_blocked");
    bench.update("s", "user_message_chunk", "old words");
    bench.agent_answers(&first, &json!({}));
    let second = relay_load(&mut bench, a, "3", "s");
    bench.update("s", "user_message_chunk", "old words");
    bench.agent_answers(&second, &json!({}));
    assert_eq!(words(&bench.got(a)), ["user_message_chunk", "result \"3\""]);
}

#[test]
fn a_client_under_an_agent_gives_a_session_no_servers() {
    for origin in [ClientOrigin::Agent(None), ClientOrigin::User] {
        let (mut bench, person) = bench(Bench::new).with_begun();
        let client = ClientId(77);
        bench.feed(Input::Client(client, ClientEvent::Opened(origin)));
        bench.ask(client, "init", "initialize", &json!({"protocolVersion":1}));
        let server = json!({"name":"evil","command":"/evil","args":[],"env":[]});
        let params = json!({"sessionId":"x","cwd":"/w","mcpServers":[server]});
        let request = bench.relay(client, 1, "session/load", &params);
        let expected = if origin == ClientOrigin::User { json!([server]) } else { json!([]) };
        assert_eq!(request["params"]["mcpServers"], expected);
        bench.agent_answers(&request, &json!({}));
        // Nor when it comes back.
        bench.agent_dies();
        bench.prompt(person, &json!(2), "x", "go");
        bench.pass(5_000);
        let heard = bench.heard();
        let again = heard.iter().find(|line| line["params"]["sessionId"] == "x");
        assert_eq!(again.expect("restored")["params"]["mcpServers"], expected);
    }
}

#[test]
fn the_rest_of_a_deleted_session_is_not_in_one_that_gets_its_id() {
    let mut bench = Bench::new();
    let (a, prompt) = bench.running("s", "go");
    bench.ask(a, 8, "session/delete", &json!({"sessionId":"s"}));
    bench.got(a);
    bench.heard();
    bench.ask(a, 9, "session/new", &json!({"cwd":"/w","mcpServers":[]}));
    let new = bench.heard_one("session/new");
    bench.chunk("s", "late");
    bench.agent_answers(&prompt, &json!({"stopReason":"cancelled"}));
    bench.chunk("s", "early");
    bench.agent_answers(&new, &json!({"sessionId":"s"}));
    let told = bench.got(a);
    let texts = told.iter().filter_map(|line| line["params"]["update"]["content"]["text"].as_str());
    assert_eq!(texts.collect::<Vec<_>>(), ["early"]);
}
