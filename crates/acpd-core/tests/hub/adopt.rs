//! Sessions that the agent knows and acpd does not.

use acpd_core::ids::ClientId;
use acpd_core::profile::Sharing;
use acpd_core::{ClientEvent, ClientOrigin, HostEvent, Input};
use serde_json::{Value, json};

use crate::bench::{Bench, words};

fn bench(of: fn() -> Bench) -> Bench {
    let mut bench = of();
    let session = json!({"list":{},"resume":{}});
    bench.capabilities = Some(json!({"loadSession":true,"sessionCapabilities":session}));
    bench
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

#[test]
fn a_list_leaves_out_what_is_not_known_and_takes_a_title_from_the_agent() {
    let mut bench = bench(Bench::new);
    let a = bench.plain();
    bench.session(a, "s");
    bench.session(a, "t");
    bench.say(a, &list(json!({"cwd":"/w"})));
    let asked = bench.heard_one("session/list");
    let others = json!([{"sessionId":"s","cwd":"/w","title":"Ours"}, {"sessionId":"x","cwd":"/w"}]);
    bench.agent_answers(&asked, &json!({"sessions":others}));
    let got = bench.got(a);
    let sessions = got[0]["result"]["sessions"].as_array().unwrap();
    let entry = |id| sessions.iter().find(|entry| entry["sessionId"] == id).unwrap();
    assert_eq!(entry("s")["title"], "Ours");
    assert_eq!(entry("t").get("title"), None, "null is too much for some clients");
    assert_eq!(*entry("x"), json!({"sessionId":"x","cwd":"/w","archived":false}));
}

#[test]
fn a_list_has_what_only_the_agent_knows() {
    let mut bench = bench(Bench::new);
    let a = bench.plain();
    bench.session(a, "s");
    bench.say(a, &list(json!({"cwd":"/w"})));
    let asked = bench.heard_one("session/list");
    assert_eq!(asked["params"], json!({"cwd":"/w"}));
    let others = json!([
        {"sessionId":"s","cwd":"/w"},
        {"sessionId":"x","cwd":"/w","title":"X","updatedAt":"2026-01-01T00:00:00Z"},
        {"sessionId":"nowhere"},
    ]);
    bench.agent_answers(&asked, &json!({"sessions":others,"nextCursor":"2"}));
    let got = bench.got(a);
    assert_eq!(ids(&got[0]), ["s", "x"]);
    let mut expected = others[1].clone();
    expected["archived"] = json!(false);
    assert_eq!(got[0]["result"]["sessions"][1], expected);

    let cursor = got[0]["result"]["nextCursor"].clone();
    bench.say(a, &list(json!({"cursor":cursor})));
    let asked = bench.heard_one("session/list");
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
    let mut bench = bench(Bench::new);
    let a = bench.plain();
    bench.session(a, "s");
    bench.say(a, &list(json!({})));
    bench.refuses("session/list", -32603);
    assert_eq!(ids(&bench.got(a)[0]), ["s"]);

    bench.say(a, &list(json!({})));
    let slow = bench.heard_one("session/list");
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
    let mut bench = bench(Bench::new);
    let (a, b) = (bench.plain(), bench.plain());
    bench.say(a, &load("1", "x"));
    let asked = bench.heard_one("session/load");
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

    bench.prompt(a, &json!(3), "x", "go on");
    bench.answers("session/prompt", &json!({"stopReason":"end_turn"}));
    bench.say(a, &load("4", "x"));
    assert_eq!(bench.heard(), Vec::<Value>::new(), "it is acpd's now");
    assert_eq!(bench.journal_words()[..2], history);
}

#[test]
fn a_session_that_was_taken_over_is_never_begun_anew() {
    let mut bench = bench(Bench::new);
    bench.capabilities = Some(json!({"loadSession":true}));
    let a = bench.plain();
    bench.say(a, &load("1", "x"));
    let asked = bench.heard_one("session/load");
    bench.update("x", "user_message_chunk", "hello");
    bench.chunk("x", "hi");
    bench.agent_answers(&asked, &json!({}));
    bench.agent_dies();
    bench.pass(1_000);
    let again = bench.heard_one("session/load");
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
    let mut bench = bench(Bench::new);
    let a = bench.plain();
    bench.say(a, &load("1", "x"));
    let asked = bench.heard_one("session/load");
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
    let got = bench.got(a);
    assert_eq!(got[0]["error"]["data"]["_acpd"]["reason"], "agent_exited");
}

#[test]
fn an_agent_that_cannot_load_is_not_asked_to() {
    let mut bench = Bench::new();
    bench.capabilities = Some(json!({}));
    let a = bench.plain();
    bench.say(a, &load("1", "x"));
    assert_eq!(bench.got(a)[0]["error"]["code"], -32002);
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn a_history_over_the_limit_is_refused_whole() {
    let mut bench = bench(Bench::new);
    let a = bench.plain();
    bench.say(a, &load("1", "x"));
    let asked = bench.heard_one("session/load");
    let piece = "x".repeat(900_000);
    for _ in 0..80 {
        bench.chunk("x", &piece);
    }
    let got = bench.got(a);
    assert_eq!(words(&got), ["error \"1\""]);
    assert!(got[0]["error"]["message"].as_str().is_some_and(|text| text.contains("64 MiB")));
    bench.agent_answers(&asked, &json!({}));
    assert_eq!(bench.got(a), Vec::<Value>::new());
    assert!(bench.journal.values().all(Vec::is_empty));
}

#[test]
fn the_daemon_may_die_while_a_session_is_taken_over() {
    let mut bench = bench(Bench::with_shims);
    let a = bench.plain();
    bench.say(a, &load("1", "x"));
    let asked = bench.heard_one("session/load");
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
    let mut bench = Bench::with(|profile| profile.sharing = Sharing::Session);
    let a = bench.plain();
    bench.session(a, "x");
    let first = bench.host();
    bench.say(a, &json!({"id":1,"method":"session/delete","params":{"sessionId":"x"}}));
    bench.say(a, &load("2", "x"));
    let got = bench.got(a);
    let refused = got.iter().find(|line| line["id"] == "2").expect("an answer");
    assert_eq!(refused["error"]["data"]["_acpd"]["reason"], "session_blocked");

    bench.leader_ends();
    bench.feed(Input::Host(first, HostEvent::Gone));
    bench.heard();
    bench.say(a, &load("3", "x"));
    assert_ne!(bench.host(), first);
    bench.heard_one("session/load");
}

#[test]
fn a_history_that_comes_late_is_not_taken_for_news_afterwards() {
    let mut bench = Bench::with(|profile| profile.late_replay = true);
    bench.capabilities = Some(json!({"loadSession":true}));
    let a = bench.plain();
    bench.say(a, &load("1", "x"));
    let asked = bench.heard_one("session/load");
    bench.update("x", "user_message_chunk", "one");
    bench.agent_answers(&asked, &json!({}));
    bench.update("x", "user_message_chunk", "two");
    let shown = |bench: &Bench| {
        let words = bench.journal_words();
        words.iter().filter(|word| *word == "user_message_chunk").count()
    };
    assert_eq!(shown(&bench), 2);
    bench.agent_dies();
    bench.pass(1_000);
    let again = bench.heard_one("session/load");
    bench.update("x", "user_message_chunk", "one");
    bench.agent_answers(&again, &json!({}));
    bench.update("x", "user_message_chunk", "two");
    bench.pass(10_000);
    assert_eq!(shown(&bench), 2);
}

#[test]
fn who_resumes_a_session_of_the_agent_does_not_cost_the_others_its_history() {
    let mut bench = bench(Bench::new);
    let (a, b) = (bench.plain(), bench.plain());
    let params = json!({"sessionId":"x","cwd":"/w","mcpServers":[]});
    bench.say(a, &json!({"id":"1","method":"session/resume","params":params}));
    let asked = bench.heard_one("session/load");
    bench.update("x", "user_message_chunk", "hello");
    bench.agent_answers(&asked, &json!({}));
    assert_eq!(words(&bench.got(a)), ["result \"1\""]);
    bench.say(b, &load("2", "x"));
    assert_eq!(words(&bench.got(b)), ["user_message_chunk", "result \"2\""]);
}

#[test]
fn a_history_that_cannot_be_had_is_said_to_be_missing() {
    let mut bench = Bench::new();
    bench.capabilities = Some(json!({"sessionCapabilities":{"resume":{}}}));
    let a = bench.plain();
    let params = json!({"sessionId":"x","cwd":"/w","mcpServers":[]});
    bench.say(a, &json!({"id":"1","method":"session/resume","params":params}));
    bench.answers("session/resume", &json!({}));
    assert_eq!(bench.journal_words(), ["_acpd/notice"]);
}

#[test]
fn an_agent_that_does_not_load_is_not_waited_for() {
    let mut bench = bench(Bench::new);
    let a = bench.plain();
    bench.say(a, &load("1", "x"));
    let asked = bench.heard_one("session/load");
    bench.pass(20_000);
    bench.chunk("x", "it goes on");
    bench.pass(20_000);
    assert_eq!(bench.got(a), Vec::<Value>::new());
    bench.pass(20_000);
    let got = bench.got(a);
    assert_eq!(got[0]["error"]["data"]["_acpd"]["reason"], "agent_timeout");
    bench.agent_answers(&asked, &json!({}));
    assert_eq!(bench.got(a), Vec::<Value>::new());

    bench.say(a, &load("2", "x"));
    let asked = bench.heard_one("session/load");
    bench.say(a, &json!({"method":"$/cancel_request","params":{"requestId":"2"}}));
    assert_eq!(bench.got(a)[0]["error"]["code"], -32800);
    bench.agent_answers(&asked, &json!({}));
    assert_eq!(bench.got(a), Vec::<Value>::new(), "answered once");
}

#[test]
fn a_history_takes_no_room_from_sessions_that_are_being_made() {
    let mut bench = bench(Bench::new);
    let (a, b) = (bench.plain(), bench.plain());
    bench.say(a, &load("1", "x"));
    let loading = bench.heard_one("session/load");
    let piece = "x".repeat(900_000);
    for _ in 0..6 {
        bench.chunk("x", &piece);
    }
    let params = json!({"cwd":"/w","mcpServers":[]});
    bench.say(b, &json!({"id":2,"method":"session/new","params":params}));
    let new = bench.heard_one("session/new");
    bench.chunk("s", "early");
    bench.agent_answers(&new, &json!({"sessionId":"s"}));
    assert_eq!(words(&bench.got(b)), ["result 2", "agent_message_chunk"]);
    bench.agent_answers(&loading, &json!({}));
    assert_eq!(bench.got(a).len(), 7);
}

#[test]
fn tool_calls_of_a_history_are_none_of_the_next_turn() {
    let mut bench = bench(Bench::new);
    let a = bench.client(&json!({"notices":true}));
    bench.say(a, &load("1", "x"));
    let asked = bench.heard_one("session/load");
    for n in 0..300 {
        let call = json!({"sessionUpdate":"tool_call","toolCallId":format!("t{n}"),"title":"T"});
        bench.agent(&json!({"method":"session/update","params":{"sessionId":"x","update":call}}));
    }
    bench.agent_answers(&asked, &json!({}));
    bench.prompt(a, &json!(2), "x", "go on");
    let prompt = bench.heard_one("session/prompt");
    let call = json!({"sessionUpdate":"tool_call","toolCallId":"new","title":"T"});
    bench.agent(&json!({"method":"session/update","params":{"sessionId":"x","update":call}}));
    bench.agent_answers(&prompt, &json!({"stopReason":"end_turn"}));
    let got = bench.got(a);
    let ended = got.iter().find(|line| line["method"] == "_acpd/turn_ended").expect("an end");
    assert_eq!(ended["params"]["tools"], 1);
}

#[test]
fn what_is_replayed_for_a_removed_session_is_not_taken_over_with_it() {
    let mut bench = Bench::new();
    let (a, first) = bench.loading("s");
    bench.say(a, &json!({"id":1,"method":"_acpd/session/remove","params":{"session":"s"}}));
    bench.got(a);
    bench.say(a, &load("2", "s"));
    assert_eq!(bench.got(a)[0]["error"]["data"]["_acpd"]["reason"], "session_blocked");
    bench.update("s", "user_message_chunk", "old words");
    bench.agent_answers(&first, &json!({}));
    bench.say(a, &load("3", "s"));
    let second = bench.heard_one("session/load");
    bench.update("s", "user_message_chunk", "old words");
    bench.agent_answers(&second, &json!({}));
    assert_eq!(words(&bench.got(a)), ["user_message_chunk", "result \"3\""]);
}

#[test]
fn a_session_that_old_credentials_cannot_load_wants_no_login() {
    let mut bench = bench(Bench::new);
    let a = bench.plain();
    bench.session(a, "s");
    let host = bench.host();
    bench.feed(Input::Host(host, HostEvent::CredentialsGood { left: 0 }));
    bench.say(a, &load("l", "theirs"));
    bench.refuses("session/load", -32000);
    let got = bench.got(a);
    let answer = got.iter().find(|line| line["id"] == "l").expect("an answer");
    assert_eq!(answer["error"]["data"]["_acpd"]["reason"], "interrupted");
    assert_eq!(bench.stops.len(), 1);
}

#[test]
fn a_client_under_an_agent_gives_a_session_no_servers() {
    for origin in [ClientOrigin::Agent(None), ClientOrigin::User] {
        let mut bench = bench(Bench::new);
        let person = bench.plain();
        bench.session(person, "s");
        let client = ClientId(77);
        bench.feed(Input::Client(client, ClientEvent::Opened(origin)));
        let hello = json!({"protocolVersion":1});
        bench.say(client, &json!({"id":"init","method":"initialize","params":hello}));
        let server = json!({"name":"evil","command":"/evil","args":[],"env":[]});
        let params = json!({"sessionId":"x","cwd":"/w","mcpServers":[server]});
        bench.say(client, &json!({"id":1,"method":"session/load","params":params}));
        let request = bench.heard_one("session/load");
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
