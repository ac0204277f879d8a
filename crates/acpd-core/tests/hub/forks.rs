//! Sessions that are made of other ones.

use acpd_core::HostEvent;
use acpd_core::ids::{ClientId, SessionKey};
use acpd_core::profile::{Profile, Sharing};
use acpd_core::record::SessionRow;
use serde_json::{Value, json};

use crate::bench::{Bench, words};
use crate::steps::{hint, reason};

fn capable(bench: Bench) -> Bench {
    bench.with_session_capabilities(json!({"fork":{},"close":{}}))
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
    let client = bench.noticed();
    bench.ask_load(client, session, &json!([]));
    let got = bench.got(client);
    for line in got.iter().filter(|line| !line["params"]["sessionId"].is_null()) {
        assert_eq!(line["params"]["sessionId"], session, "{line}");
    }
    let texts = got.iter().filter_map(|line| line["params"]["update"]["content"]["text"].as_str());
    let texts = texts.map(str::to_owned).collect();
    bench.leave(client);
    (words(&got), texts)
}

/// A session in which something was said, and a client in it.
fn spoken() -> (Bench, ClientId) {
    let (mut bench, a, request) = bench().in_turn("first");
    bench.chunk("s", "one");
    bench.end_turn(&request);
    bench.got(a);
    (bench, a)
}

/// A fork of `s`, as the agent is asked for it.
fn forking(bench: &mut Bench, client: ClientId, id: &str, more: Value) -> Value {
    bench.say(client, &fork(id, "s", more));
    bench.heard_one("session/fork")
}

/// A fork `t` of `s`, made by the agent.
fn make_fork(bench: &mut Bench, client: ClientId) {
    let request = forking(bench, client, "f", json!({}));
    bench.agent_answers(&request, &json!({"sessionId":"t"}));
}

/// The row of the fork `t`.
fn fork_row(bench: &Bench) -> (SessionKey, &SessionRow) {
    let mut sessions = bench.snapshot.sessions.iter();
    let (key, state) = sessions.find(|(_, state)| state.row.public_id == "t").expect("it was made");
    (*key, &state.row)
}

#[test]
fn a_fork_is_offered_by_who_has_it() {
    let offered = |bench: &mut Bench| {
        let a = bench.connect(&json!({}));
        let can = &bench.got(a)[0]["result"]["agentCapabilities"]["sessionCapabilities"];
        (a, can.get("fork").cloned())
    };
    assert_eq!(offered(&mut bench()).1, Some(json!({})));

    let mut bench = Bench::new();
    let (a, fork_offered) = offered(&mut bench);
    assert_eq!(fork_offered, None);
    bench.session(a, "s");
    bench.say(a, &fork("f", "s", json!({})));
    assert_eq!(bench.got(a)[0]["error"]["code"], -32601);

    let own = |profile: &mut Profile| profile.sharing = Sharing::Session;
    let mut bench = capable(Bench::with(own));
    let (a, fork_offered) = offered(&mut bench);
    assert_eq!(fork_offered, None, "it would be a second session in one process");
    bench.session(a, "s");
    bench.say(a, &fork("f", "s", json!({})));
    let refused = bench.got(a).remove(0);
    assert_eq!(refused["error"]["code"], -32601);
    let hint = hint(&refused);
    assert!(hint.contains("`acpctl run -s NAME PROMPT`") && hint.contains("`sharing = \"agent\"`"));
}

#[test]
fn a_fork_at_a_cursor_is_refused() {
    let (mut bench, a) = spoken();
    bench.say(a, &fork("f", "s", json!({"cursorId":"c"})));
    let error = bench.got(a).remove(0)["error"].take();
    assert_eq!(error["code"], -32602);
    assert!(error["message"].as_str().is_some_and(|text| text.contains("cursorId")), "{error}");
    forking(&mut bench, a, "g", json!({"cursorId":null}));
}

#[test]
fn a_fork_begins_with_the_whole_conversation_and_both_go_on_apart() {
    let (mut bench, a) = spoken();
    let request =
        forking(&mut bench, a, "f", json!({"cwd":"/w/","_meta":{"k":1,"_acpd":{"name":"other"}}}));
    let params = json!({"sessionId":"s","cwd":"/w/","mcpServers":[],"_meta":{"k":1}});
    assert_eq!(request["params"], params);
    bench.chunk("t", "early");
    let modes = json!({"currentModeId":"ask","availableModes":[]});
    bench.agent_answers(&request, &json!({"sessionId":"t","modes":modes}));
    let got = bench.expect(a, ["result \"f\"", "agent_message_chunk"]);
    assert_eq!(got[0]["result"], json!({"sessionId":"t","modes":modes}));

    bench.chunk("t", "more of t");
    bench.chunk("s", "more of s");
    assert_eq!(loaded(&mut bench, "t").1, ["first", "one", "earlymore of t"]);
    assert_eq!(loaded(&mut bench, "s").1, ["first", "one", "more of s"]);
    bench.ask(a, 0, "_acpd/session/show", &json!({"session":"other"}));
    let info = bench.got(a).pop().expect("an answer");
    assert_eq!(
        (&info["result"]["sessionId"], &info["result"]["prompts"]),
        (&json!("t"), &json!(1))
    );
}

#[test]
fn a_fork_of_a_session_that_is_not_held_brings_it_back_first() {
    let (mut bench, a) = spoken();
    bench.ask(a, "c", "session/close", &json!({"sessionId":"s"}));
    bench.got(a);
    bench.heard();
    bench.say(a, &fork("f", "s", json!({})));
    bench.answers("session/load", &json!({}));
    bench.answers("session/fork", &json!({"sessionId":"t"}));
    assert_eq!(words(&bench.got(a)), ["result \"f\""]);
}

#[test]
fn what_a_fork_does_not_say_it_has_from_its_session() {
    let (mut bench, a) = bench().with_client();
    let server = json!([{"name":"mine","command":"mine","args":[],"env":[]}]);
    let params = json!({"cwd":"/w","mcpServers":server,"additionalDirectories":["/x"]});
    bench.session_of(a, "s", &params);
    let request = bench.relay(a, 2, "session/fork", &json!({"sessionId":"s","cwd":"/w"}));
    assert_eq!(request["params"]["mcpServers"], server);
    assert_eq!(request["params"]["additionalDirectories"], json!(["/x"]));
    let params = json!({"sessionId":"s","cwd":"/w","mcpServers":[],"additionalDirectories":[]});
    bench.ask(a, 3, "session/fork", &params);
    assert_eq!(bench.heard_one("session/fork")["params"], params);
}

#[test]
fn a_fork_in_the_middle_of_a_turn_has_what_was_said_of_it() {
    let (mut bench, a) = spoken();
    let prompt = bench.start_turn(a, 2, "s", "second");
    bench.send_update("s", &json!({"sessionUpdate":"tool_call","toolCallId":"c","title":"x"}));
    let request = forking(&mut bench, a, "f", json!({}));
    bench.chunk("s", "later");
    bench.end_turn(&prompt);
    bench.agent_answers(&request, &json!({"sessionId":"t"}));
    let (words, texts) = loaded(&mut bench, "t");
    assert_eq!(texts, ["first", "one", "second"]);
    let end = ["tool_call", "_acpd/turn_ended", "_acpd/notice"];
    assert!(words.windows(3).any(|some| some == end), "{words:?}");
    assert_eq!(loaded(&mut bench, "s").1, ["first", "one", "second", "later"]);
}

#[test]
fn subagents_at_work_in_a_session_are_over_in_a_fork_of_it() {
    let (mut bench, a) = spoken();
    let told = |bench: &mut Bench, on: &str, child: &str, state: &str| {
        let update = json!({"sessionUpdate":"subagent_update","sessionId":child,
            "capabilities":{"cancel":{}},"state":{"state":state}});
        bench.send_update(on, &update);
    };
    told(&mut bench, "s", "c", "running");
    told(&mut bench, "c", "g", "idle");
    make_fork(&mut bench, a);
    let over = |row: &acpd_core::record::EventRow| {
        let line: Value = serde_json::from_slice(&row.line).expect("JSON");
        let update = &line["params"]["update"];
        (line["params"]["sessionId"].clone(), update["sessionId"].clone(), update["state"].clone())
    };
    let rows = &bench.journal[&fork_row(&bench).0];
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
    let (mut bench, a) = spoken();
    make_fork(&mut bench, a);
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
    let (mut bench, a) = bench().with_begun();
    make_fork(&mut bench, a);
    bench.agent_dies();
    bench.heard();
    bench.pass(60_000);
    let again: Vec<_> = bench.heard().iter().map(|line| line["method"].clone()).collect();
    assert_eq!(again, ["session/new", "session/new"], "there is nothing to lose in either");
}

#[test]
fn a_fork_that_is_not_answered_leaves_nothing() {
    let (mut bench, a) = spoken();
    bench.say(a, &fork("f", "s", json!({"_meta":{"_acpd":{"name":"n"}}})));
    bench.refuses("session/fork", -32603);
    assert_eq!(bench.got(a)[0]["error"]["code"], -32603, "the agent's own error");

    let request = forking(&mut bench, a, "g", json!({"_meta":{"_acpd":{"name":"n"}}}));
    bench.cancel_request(a, "g");
    assert_eq!(bench.heard_one("$/cancel_request")["params"]["requestId"], request["id"]);

    bench.agent_dies();
    assert_eq!(reason(&bench.answer(a, "g")), "agent_exited");
    assert_eq!(bench.snapshot.sessions.len(), 1);
    assert!(bench.snapshot.asked.is_empty());
}

#[test]
fn a_fork_that_the_next_daemon_gets_the_answer_to_is_whole() {
    let mut bench = capable(Bench::with_shims());
    let a = bench.client(&json!({"client":{"token":"a-token-of-sixteen"}}));
    bench.session(a, "s");
    bench.run_turn(a, 1, "s", "first");
    let request = forking(&mut bench, a, "f", json!({}));
    bench.reboot();
    bench.agent_answers(&request, &json!({"sessionId":"t"}));
    assert_eq!(loaded(&mut bench, "t").1, ["first"]);
    let (_, row) = fork_row(&bench);
    assert_eq!((row.heard, row.prompts), (true, 1));
}

#[test]
fn a_fork_outlives_its_session() {
    let (mut bench, a) = spoken();
    let request = forking(&mut bench, a, "f", json!({}));
    bench.ask(a, "d", "_acpd/session/remove", &json!({"session":"s"}));
    bench.agent_answers(&request, &json!({"sessionId":"t"}));
    let (words, texts) = loaded(&mut bench, "t");
    assert_eq!(texts, Vec::<String>::new());
    assert!(words.contains(&"_acpd/notice".to_owned()), "it is told: {words:?}");
}

#[test]
fn who_may_not_fork_is_told_why() {
    let (mut bench, a) = spoken();
    let refused = |bench: &mut Bench, client, line: &Value| {
        bench.say(client, line);
        let answer = bench.answer(client, &line["id"]);
        assert!(bench.heard().is_empty());
        answer
    };
    let unknown = refused(&mut bench, a, &fork("1", "nobody", json!({})));
    assert_eq!(unknown["error"]["code"], -32002);
    assert!(hint(&unknown).contains("session/load"));
    let nothing = json!({"id":"2","method":"session/fork","params":{"cwd":"/w"}});
    assert_eq!(refused(&mut bench, a, &nothing)["error"]["code"], -32602);
    let relative = fork("3", "s", json!({"cwd":"w"}));
    assert_eq!(refused(&mut bench, a, &relative)["error"]["code"], -32602);

    bench.ask(a, 4, "_acpd/session/rename", &json!({"ref":{"session":"s"},"name":"n"}));
    bench.got(a);
    let named = json!({"_meta":{"_acpd":{"name":"n","reuse":true}}});
    assert_eq!(reason(&refused(&mut bench, a, &fork("5", "s", named))), "name_taken");

    bench.missing.push("/gone".to_owned());
    let gone = refused(&mut bench, a, &fork("6", "s", json!({"cwd":"/gone"})));
    assert_eq!(reason(&gone), "cwd_missing");

    let b = bench.plain();
    bench.observe(b, "s");
    assert_eq!(refused(&mut bench, b, &fork("7", "s", json!({})))["error"]["code"], -32602);
}

#[test]
fn a_fork_that_is_refused_for_old_credentials_goes_to_the_next_process() {
    let (mut bench, a) = spoken();
    bench.feed_process(HostEvent::CredentialsGood { left: 0 });
    let meta = json!({"_meta":{"_acpd":{"name":"n","labels":["l"]}}});
    let first = forking(&mut bench, a, "f", meta);
    bench.agent_refuses(&first, -32000);
    bench.agent_dies();
    let heard = bench.heard();
    let restore = heard.iter().find(|line| line["params"]["sessionId"] == "s").expect("it");
    bench.loads(restore, &json!({}));
    let again = bench.heard_one("session/fork");
    assert_eq!(again["params"], first["params"]);
    bench.agent_answers(&again, &json!({"sessionId":"t"}));
    assert_eq!(bench.answer(a, "f")["result"]["sessionId"], "t");
    let row = fork_row(&bench).1;
    assert_eq!((row.name.as_deref(), &row.labels), (Some("n"), &["l".to_owned()].into()));
}

#[test]
fn fork_keeps_labels_unless_it_is_given_others() {
    for (more, kept) in [
        (json!({}), vec!["a", "b"]),
        (json!({"_meta":{"_acpd":{"labels":["c"]}}}), vec!["c"]),
        (json!({"_meta":{"_acpd":{"labels":[]}}}), vec![]),
    ] {
        let (mut bench, a) = spoken();
        let params = json!({"ref":{"session":"s"},"add":["b","a"]});
        bench.ask(a, "l", "_acpd/session/label", &params);
        let request = forking(&mut bench, a, "f", more);
        bench.agent_answers(&request, &json!({"sessionId":"t"}));
        assert_eq!(Vec::from_iter(&fork_row(&bench).1.labels), kept);
    }
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
        let replays = |bench: &mut Bench| {
            for (who, text) in &replay {
                bench.update("t", &format!("{who}_message_chunk"), text);
            }
        };
        let (mut bench, a) = spoken();
        let request = forking(&mut bench, a, "f", json!({}));
        replays(&mut bench);
        bench.agent_answers(&request, &json!({"sessionId":"t"}));
        bench.agent_dies();
        bench.ask(a, 5, "session/load", &json!({"sessionId":"t","cwd":"/w"}));
        bench.pass(2_000);
        let loads = bench.heard();
        let load = loads.iter().find(|load| load["params"]["sessionId"] == "t").expect("a load");
        replays(&mut bench);
        bench.agent_answers(load, &json!({}));
        let request = bench.start_turn(a, 2, "t", "second");
        bench.chunk("t", "two");
        bench.end_turn(&request);
        let expected = [vec!["first", "one"], more, vec!["second", "two"]].concat();
        assert_eq!(loaded(&mut bench, "t").1, expected);
    }
}

#[test]
fn the_replay_of_a_fork_whose_session_is_gone_is_all_there_is() {
    let (mut bench, a) = spoken();
    let request = forking(&mut bench, a, "f", json!({}));
    bench.update("t", "user_message_chunk", "first");
    bench.chunk("t", "one");
    bench.ask(a, 0, "_acpd/session/delete", &json!({"session":"s"}));
    bench.agent_answers(&request, &json!({"sessionId":"t"}));
    assert_eq!(loaded(&mut bench, "t").1, ["first", "one"]);
}
