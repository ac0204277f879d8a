//! Sessions that are made of other ones.

use acpd_core::profile::{Profile, Sharing};
use acpd_core::{ClientEvent, HostEvent, Input};
use serde_json::{Value, json};

use crate::bench::{Bench, words};

fn capable(mut bench: Bench) -> Bench {
    bench.capabilities = Some(json!({
        "loadSession": true,
        "sessionCapabilities": {"fork": {}, "close": {}},
    }));
    bench
}

fn bench() -> Bench {
    capable(Bench::new())
}

fn fork(id: &str, session: &str, more: Value) -> Value {
    let mut params = json!({"sessionId":session,"cwd":"/w","mcpServers":[]});
    for (name, value) in more.as_object().into_iter().flatten() {
        params[name] = value.clone();
    }
    json!({"id":id,"method":"session/fork","params":params})
}

/// Texts that a client gets when it loads a session.
fn loaded(bench: &mut Bench, session: &str) -> (Vec<String>, Vec<String>) {
    let client = bench.client(&json!({"notices":true}));
    let params = json!({"sessionId":session,"cwd":"/w","mcpServers":[]});
    bench.say(client, &json!({"id":"load","method":"session/load","params":params}));
    let got = bench.got(client);
    for line in got.iter().filter(|line| !line["params"]["sessionId"].is_null()) {
        assert_eq!(line["params"]["sessionId"], session, "{line}");
    }
    let texts = got.iter().filter_map(|line| line["params"]["update"]["content"]["text"].as_str());
    let texts = texts.map(str::to_owned).collect();
    bench.feed(Input::Client(client, ClientEvent::Closed));
    (words(&got), texts)
}

/// A session in which something was said, and a client in it.
fn spoken(bench: &mut Bench) -> acpd_core::ids::ClientId {
    let (a, request) = bench.running("s", "first");
    bench.chunk("s", "one");
    bench.agent_answers(&request, &json!({"stopReason":"end_turn"}));
    bench.got(a);
    a
}

#[test]
fn a_fork_is_offered_by_who_has_it() {
    let mut bench = bench();
    let a = bench.connect(&json!({}));
    let offered = &bench.got(a)[0]["result"]["agentCapabilities"]["sessionCapabilities"];
    assert_eq!(offered["fork"], json!({}));

    let mut bench = Bench::new();
    let a = bench.connect(&json!({}));
    let offered = &bench.got(a)[0]["result"]["agentCapabilities"]["sessionCapabilities"];
    assert_eq!(offered.get("fork"), None);
    bench.session(a, "s");
    bench.say(a, &fork("f", "s", json!({})));
    assert_eq!(bench.got(a)[0]["error"]["code"], -32601);

    let own = |profile: &mut Profile| profile.sharing = Sharing::Session;
    let mut bench = capable(Bench::with(own));
    let a = bench.connect(&json!({}));
    let offered = &bench.got(a)[0]["result"]["agentCapabilities"]["sessionCapabilities"];
    assert_eq!(offered.get("fork"), None, "it would be a second session in one process");
    bench.session(a, "s");
    bench.say(a, &fork("f", "s", json!({})));
    let error = bench.got(a).remove(0)["error"].take();
    assert_eq!(error["code"], -32601);
    let hint = error["data"]["_acpd"]["hint"].as_str().expect("a way out");
    assert!(hint.contains("`acpctl run -s NAME PROMPT`") && hint.contains("`sharing = \"agent\"`"));
}

#[test]
fn a_fork_at_a_cursor_is_refused() {
    let mut bench = bench();
    let a = spoken(&mut bench);
    bench.say(a, &fork("f", "s", json!({"cursorId":"c"})));
    let error = bench.got(a).remove(0)["error"].take();
    assert_eq!(error["code"], -32602);
    assert!(error["message"].as_str().is_some_and(|text| text.contains("cursorId")), "{error}");
    bench.say(a, &fork("g", "s", json!({"cursorId":null})));
    bench.heard_one("session/fork");
}

#[test]
fn a_fork_begins_with_the_whole_conversation_and_both_go_on_apart() {
    let mut bench = bench();
    let a = spoken(&mut bench);
    let meta = json!({"k":1,"_acpd":{"name":"other"}});
    bench.say(a, &fork("f", "s", json!({"cwd":"/w/","_meta":meta})));
    let request = bench.heard_one("session/fork");
    let params = json!({"sessionId":"s","cwd":"/w/","mcpServers":[],"_meta":{"k":1}});
    assert_eq!(request["params"], params);
    bench.chunk("t", "early");
    let modes = json!({"currentModeId":"ask","availableModes":[]});
    bench.agent_answers(&request, &json!({"sessionId":"t","modes":modes}));
    let got = bench.got(a);
    assert_eq!(words(&got), ["result \"f\"", "agent_message_chunk"]);
    assert_eq!(got[0]["result"], json!({"sessionId":"t","modes":modes}));

    bench.chunk("t", "more of t");
    bench.chunk("s", "more of s");
    let (_, texts) = loaded(&mut bench, "t");
    assert_eq!(texts, ["first", "one", "early", "more of t"]);
    let (_, texts) = loaded(&mut bench, "s");
    assert_eq!(texts, ["first", "one", "more of s"]);
    bench.say(a, &json!({"id":0,"method":"_acpd/session/show","params":{"session":"other"}}));
    let info = bench.got(a).pop().expect("an answer");
    assert_eq!(
        (&info["result"]["sessionId"], &info["result"]["prompts"]),
        (&json!("t"), &json!(1))
    );
}

#[test]
fn a_fork_of_a_session_that_is_not_held_brings_it_back_first() {
    let mut bench = bench();
    let a = spoken(&mut bench);
    bench.say(a, &json!({"id":"c","method":"session/close","params":{"sessionId":"s"}}));
    bench.got(a);
    bench.heard();
    bench.say(a, &fork("f", "s", json!({})));
    bench.answers("session/load", &json!({}));
    bench.answers("session/fork", &json!({"sessionId":"t"}));
    assert_eq!(words(&bench.got(a)), ["result \"f\""]);
}

#[test]
fn what_a_fork_does_not_say_it_has_from_its_session() {
    let mut bench = bench();
    let a = bench.plain();
    let server = json!([{"name":"mine","command":"mine","args":[],"env":[]}]);
    let params = json!({"cwd":"/w","mcpServers":server,"additionalDirectories":["/x"]});
    bench.say(a, &json!({"id":1,"method":"session/new","params":params}));
    bench.answers("session/new", &json!({"sessionId":"s"}));
    bench.got(a);
    let params = json!({"sessionId":"s","cwd":"/w"});
    bench.say(a, &json!({"id":2,"method":"session/fork","params":params}));
    let request = bench.heard_one("session/fork");
    assert_eq!(request["params"]["mcpServers"], server);
    assert_eq!(request["params"]["additionalDirectories"], json!(["/x"]));
    let params = json!({"sessionId":"s","cwd":"/w","mcpServers":[],"additionalDirectories":[]});
    bench.say(a, &json!({"id":3,"method":"session/fork","params":params}));
    assert_eq!(bench.heard_one("session/fork")["params"], params);
}

#[test]
fn a_fork_in_the_middle_of_a_turn_has_what_was_said_of_it() {
    let mut bench = bench();
    let a = spoken(&mut bench);
    bench.prompt(a, &json!(2), "s", "second");
    let prompt = bench.heard_one("session/prompt");
    let call = json!({"sessionUpdate":"tool_call","toolCallId":"c","title":"x"});
    let params = json!({"sessionId":"s","update":call});
    bench.agent(&json!({"jsonrpc":"2.0","method":"session/update","params":params}));
    bench.say(a, &fork("f", "s", json!({})));
    let request = bench.heard_one("session/fork");
    bench.chunk("s", "later");
    bench.agent_answers(&prompt, &json!({"stopReason":"end_turn"}));
    bench.agent_answers(&request, &json!({"sessionId":"t"}));
    let (words, texts) = loaded(&mut bench, "t");
    assert_eq!(texts, ["first", "one", "second"]);
    let end = ["tool_call", "tool_call_update", "_acpd/turn_ended", "_acpd/notice"];
    assert!(words.windows(4).any(|some| some == end), "{words:?}");
    let (_, texts) = loaded(&mut bench, "s");
    assert_eq!(texts, ["first", "one", "second", "later"]);
}

#[test]
fn subagents_at_work_in_a_session_are_over_in_a_fork_of_it() {
    let mut bench = bench();
    let a = spoken(&mut bench);
    let told = |bench: &mut Bench, on: &str, child: &str, state: &str| {
        let update = json!({"sessionUpdate":"subagent_update","sessionId":child,
            "capabilities":{"cancel":{}},"state":{"state":state}});
        let params = json!({"sessionId":on,"update":update});
        bench.agent(&json!({"jsonrpc":"2.0","method":"session/update","params":params}));
    };
    told(&mut bench, "s", "c", "running");
    told(&mut bench, "c", "g", "idle");
    bench.say(a, &fork("f", "s", json!({})));
    bench.answers("session/fork", &json!({"sessionId":"t"}));
    let key = bench.snapshot.sessions.iter().find(|(_, state)| state.row.public_id == "t");
    let key = *key.expect("it was made").0;
    let over = |row: &acpd_core::record::EventRow| {
        let line: Value = serde_json::from_slice(&row.line).expect("JSON");
        let update = &line["params"]["update"];
        (line["params"]["sessionId"].clone(), update["sessionId"].clone(), update["state"].clone())
    };
    let rows = &bench.journal[&key];
    let ended = rows
        .iter()
        .filter(|row| String::from_utf8_lossy(&row.line).contains(r#""capabilities":null"#));
    let unknown = json!({"state":"unknown"});
    let expected = [(json!("t"), json!("c"), unknown), (json!("c"), json!("g"), Value::Null)];
    assert_eq!(ended.map(over).collect::<Vec<_>>(), expected);
    let children = |id: &str| {
        let state = bench.snapshot.sessions.values().find(|state| state.row.public_id == id);
        state.expect("it is there").row.children.len()
    };
    assert_eq!((children("s"), children("t")), (2, 0));
}

#[test]
fn a_replay_of_a_fork_is_not_taken_for_news() {
    let mut bench = bench();
    let a = spoken(&mut bench);
    bench.say(a, &fork("f", "s", json!({})));
    bench.answers("session/fork", &json!({"sessionId":"t"}));
    bench.agent_dies();
    bench.heard();
    bench.pass(60_000);
    let loads = bench.heard();
    let of_fork = loads.iter().find(|load| load["params"]["sessionId"] == "t").expect("restored");
    assert_eq!(of_fork["method"], "session/load", "never made anew");
    bench.update("t", "user_message_chunk", "first");
    bench.chunk("t", "one");
    bench.agent_answers(of_fork, &json!({}));
    assert_eq!(loaded(&mut bench, "t").1, ["first", "one"]);
}

#[test]
fn a_fork_of_a_session_without_a_word_may_be_made_anew() {
    let mut bench = bench();
    let a = bench.plain();
    bench.session(a, "s");
    bench.say(a, &fork("f", "s", json!({})));
    bench.answers("session/fork", &json!({"sessionId":"t"}));
    bench.agent_dies();
    bench.heard();
    bench.pass(60_000);
    let again: Vec<_> = bench.heard().iter().map(|line| line["method"].clone()).collect();
    assert_eq!(again, ["session/new", "session/new"], "there is nothing to lose in either");
}

#[test]
fn a_fork_that_is_not_answered_leaves_nothing() {
    let mut bench = bench();
    let a = spoken(&mut bench);
    bench.say(a, &fork("f", "s", json!({"_meta":{"_acpd":{"name":"n"}}})));
    bench.refuses("session/fork", -32603);
    assert_eq!(bench.got(a)[0]["error"]["code"], -32603, "the agent's own error");

    bench.say(a, &fork("g", "s", json!({"_meta":{"_acpd":{"name":"n"}}})));
    let request = bench.heard_one("session/fork");
    let cancel = json!({"requestId":"g"});
    bench.say(a, &json!({"method":"$/cancel_request","params":cancel}));
    assert_eq!(bench.heard_one("$/cancel_request")["params"]["requestId"], request["id"]);

    bench.agent_dies();
    let got = bench.got(a);
    let answer = got.iter().find(|line| line["id"] == "g").expect("an answer");
    assert_eq!(answer["error"]["data"]["_acpd"]["reason"], "agent_exited");
    assert_eq!(bench.snapshot.sessions.len(), 1);
    assert!(bench.snapshot.asked.is_empty());
}

#[test]
fn a_fork_that_the_next_daemon_gets_the_answer_to_is_whole() {
    let mut bench = capable(Bench::with_shims());
    let token = json!({"client":{"token":"a-token-of-sixteen"}});
    let a = bench.client(&token);
    bench.session(a, "s");
    bench.prompt(a, &json!(1), "s", "first");
    bench.answers("session/prompt", &json!({"stopReason":"end_turn"}));
    bench.say(a, &fork("f", "s", json!({})));
    let request = bench.heard_one("session/fork");
    bench.reboot();
    bench.agent_answers(&request, &json!({"sessionId":"t"}));
    assert_eq!(loaded(&mut bench, "t").1, ["first"]);
    let row = bench.snapshot.sessions.values().find(|state| state.row.public_id == "t");
    let row = &row.expect("it was made").row;
    assert!(row.heard);
    assert_eq!(row.prompts, 1);
}

#[test]
fn a_fork_outlives_its_session() {
    let mut bench = bench();
    let a = spoken(&mut bench);
    bench.say(a, &fork("f", "s", json!({})));
    let request = bench.heard_one("session/fork");
    bench.say(a, &json!({"id":"d","method":"_acpd/session/remove","params":{"session":"s"}}));
    bench.agent_answers(&request, &json!({"sessionId":"t"}));
    let (words, texts) = loaded(&mut bench, "t");
    assert_eq!(texts, Vec::<String>::new());
    assert!(words.contains(&"_acpd/notice".to_owned()), "it is told: {words:?}");
}

#[test]
fn who_may_not_fork_is_told_why() {
    let mut bench = bench();
    let a = spoken(&mut bench);
    let refused = |bench: &mut Bench, client, line: &Value| {
        bench.say(client, line);
        let got = bench.got(client);
        let answer = got.iter().find(|got| got["id"] == line["id"]).expect("an answer").clone();
        assert!(bench.heard().is_empty());
        answer["error"].clone()
    };
    let unknown = refused(&mut bench, a, &fork("1", "nobody", json!({})));
    assert_eq!(unknown["code"], -32002);
    assert!(unknown["data"]["_acpd"]["hint"].as_str().is_some_and(|h| h.contains("session/load")));
    let params = json!({"cwd":"/w"});
    let nothing = json!({"id":"2","method":"session/fork","params":params});
    assert_eq!(refused(&mut bench, a, &nothing)["code"], -32602);
    assert_eq!(refused(&mut bench, a, &fork("3", "s", json!({"cwd":"w"})))["code"], -32602);

    bench.say(a, &json!({"id":4,"method":"_acpd/session/rename","params":{"ref":{"session":"s"},"name":"n"}}));
    bench.got(a);
    let taken = refused(
        &mut bench,
        a,
        &fork("5", "s", json!({"_meta":{"_acpd":{"name":"n","reuse":true}}})),
    );
    assert_eq!(taken["data"]["_acpd"]["reason"], "name_taken");

    bench.missing.push("/gone".to_owned());
    let gone = refused(&mut bench, a, &fork("6", "s", json!({"cwd":"/gone"})));
    assert_eq!(gone["data"]["_acpd"]["reason"], "cwd_missing");

    let b = bench.plain();
    let attach = json!({"ref":{"session":"s"},"role":"observer"});
    bench.say(b, &json!({"id":0,"method":"_acpd/session/attach","params":attach}));
    assert_eq!(refused(&mut bench, b, &fork("7", "s", json!({})))["code"], -32602);
}

#[test]
fn a_fork_that_is_refused_for_old_credentials_goes_to_the_next_process() {
    let mut bench = bench();
    let a = spoken(&mut bench);
    let host = bench.host();
    bench.feed(Input::Host(host, HostEvent::CredentialsGood { left: 0 }));
    bench.say(a, &fork("f", "s", json!({"_meta":{"_acpd":{"name":"n"}}})));
    let first = bench.heard_one("session/fork");
    bench.agent_refuses(&first, -32000);
    bench.agent_dies();
    let heard = bench.heard();
    let restore = heard.iter().find(|line| line["params"]["sessionId"] == "s").expect("it");
    bench.loads(restore, &json!({}));
    let again = bench.heard_one("session/fork");
    assert_eq!(again["params"], first["params"]);
    bench.agent_answers(&again, &json!({"sessionId":"t"}));
    let got = bench.got(a);
    let answer = got.iter().find(|line| line["id"] == "f").expect("an answer");
    assert_eq!(answer["result"]["sessionId"], "t");
    let of = |session: &acpd_core::record::SessionState| session.row.name.clone();
    assert!(bench.snapshot.sessions.values().any(|session| of(session).as_deref() == Some("n")));
}

#[test]
fn what_an_agent_replays_into_a_fork_is_not_said_twice() {
    for (replay, more) in [
        (vec![("user", "first"), ("agent", "one")], vec![]),
        // Said in another program, after what acpd knows.
        (vec![("user", "first"), ("agent", "one"), ("user", "x"), ("agent", "y")], vec!["x", "y"]),
        // A summary in its place.
        (vec![("user", "so far"), ("agent", "one")], vec![]),
        // No replay.
        (vec![("agent", "early")], vec!["early"]),
    ] {
        let mut bench = bench();
        let a = spoken(&mut bench);
        bench.say(a, &fork("f", "s", json!({})));
        let request = bench.heard_one("session/fork");
        for (who, text) in &replay {
            bench.update("t", &format!("{who}_message_chunk"), text);
        }
        bench.agent_answers(&request, &json!({"sessionId":"t"}));
        bench.agent_dies();
        bench
            .say(a, &json!({"id":5,"method":"session/load","params":{"sessionId":"t","cwd":"/w"}}));
        bench.pass(2_000);
        let loads = bench.heard();
        let load = loads.iter().find(|load| load["params"]["sessionId"] == "t").expect("a load");
        for (who, text) in &replay {
            bench.update("t", &format!("{who}_message_chunk"), text);
        }
        bench.agent_answers(load, &json!({}));
        bench.prompt(a, &json!(2), "t", "second");
        let request = bench.heard_one("session/prompt");
        bench.chunk("t", "two");
        bench.agent_answers(&request, &json!({"stopReason":"end_turn"}));
        let (_, texts) = loaded(&mut bench, "t");
        assert_eq!(texts, [vec!["first", "one"], more, vec!["second", "two"]].concat());
    }
}

#[test]
fn the_replay_of_a_fork_whose_session_is_gone_is_all_there_is() {
    let mut bench = bench();
    let a = spoken(&mut bench);
    bench.say(a, &fork("f", "s", json!({})));
    let request = bench.heard_one("session/fork");
    bench.update("t", "user_message_chunk", "first");
    bench.chunk("t", "one");
    bench.say(a, &json!({"id":0,"method":"_acpd/session/delete","params":{"session":"s"}}));
    bench.agent_answers(&request, &json!({"sessionId":"t"}));
    let (_, texts) = loaded(&mut bench, "t");
    assert_eq!(texts, ["first", "one"]);
}
