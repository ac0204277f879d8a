//! Prompts that wait, shown, changed, moved and taken back by others.

use acpd_core::ids::ClientId;
use acpd_core::{ClientEvent, HostEvent, Input, LeftProcess};
use serde_json::{Value, json};

use crate::bench::{AGENT, Bench, words};
use crate::questions::{asks, pending, run};

/// A session whose turn runs, and in which two prompts wait.
fn waiting() -> (Bench, ClientId, Value) {
    let mut bench = Bench::with_shims();
    let (a, running) = bench.running("s", "one");
    bench.prompt(a, &json!(2), "s", "two");
    bench.prompt(a, &json!(3), "s", "three");
    bench.got(a);
    (bench, a, running)
}

fn ask(bench: &mut Bench, method: &str, params: &Value) -> Value {
    let b = bench.plain();
    bench.say(b, &json!({"id":1,"method":format!("_acpd/session/queue{method}"),"params":params}));
    bench.got(b).pop().expect("an answer")
}

fn texts(answer: &Value) -> Vec<Value> {
    let prompts = answer["result"]["prompts"].as_array().expect("a queue");
    prompts.iter().map(|prompt| prompt["prompt"][0]["text"].clone()).collect()
}

#[test]
fn a_prompt_that_is_taken_back_is_told_to_its_sender_with_who_did_it() {
    let (mut bench, a, running) = waiting();
    let shown = ask(&mut bench, "", &json!({"session":"s"}));
    assert_eq!(texts(&shown), ["two", "three"]);
    let ticket = &shown["result"]["prompts"][0]["ticket"];
    let params = json!({"ref":{"session":"s"},"ticket":ticket,"by":"ada"});
    assert_eq!(texts(&ask(&mut bench, "/remove", &params)), ["three"]);
    let told = bench.got(a);
    let refused = told.iter().find(|line| line["id"] == 2).expect("an answer");
    assert_eq!(refused["error"]["code"], -32800);
    assert!(
        refused["error"]["message"].as_str().unwrap().contains("taken back by ada"),
        "{refused}"
    );
    assert!(bench.journal_words().contains(&"_acpd/notice".to_owned()));
    assert_eq!(ask(&mut bench, "/remove", &params)["error"]["data"]["_acpd"]["reason"], "invalid");
    bench.reboot();
    bench.agent_answers(&running, &json!({"stopReason":"end_turn"}));
    assert_eq!(bench.heard_one("session/prompt")["params"]["prompt"][0]["text"], "three");
}

#[test]
fn a_prompt_that_is_changed_is_sent_as_it_is_then_also_by_the_next_daemon() {
    let (mut bench, a, running) = waiting();
    let shown = ask(&mut bench, "", &json!({"session":"s"}));
    let ticket = &shown["result"]["prompts"][0]["ticket"];
    for odd in [json!([]), json!("x"), json!([1]), json!({"type":"text"})] {
        let params = json!({"ref":{"session":"s"},"ticket":ticket,"prompt":odd});
        assert_eq!(
            ask(&mut bench, "/edit", &params)["error"]["data"]["_acpd"]["reason"],
            "invalid"
        );
    }
    let big = json!([{"type":"text","text":"x".repeat(20 << 20)}]);
    let params = json!({"ref":{"session":"s"},"ticket":ticket,"prompt":big});
    let refused = ask(&mut bench, "/edit", &params);
    assert_eq!(
        refused["error"]["data"]["_acpd"]["reason"], "too_many",
        "no more than a prompt may"
    );
    let prompt = json!([{"type":"text","text":"other"}]);
    let params = json!({"ref":{"session":"s"},"ticket":ticket,"prompt":prompt});
    assert_eq!(texts(&ask(&mut bench, "/edit", &params)), ["other", "three"]);
    bench.reboot();
    assert_eq!(texts(&ask(&mut bench, "", &json!({"session":"s"}))), ["other", "three"]);
    bench.agent_answers(&running, &json!({"stopReason":"end_turn"}));
    assert_eq!(bench.heard_one("session/prompt")["params"]["prompt"][0]["text"], "other");
    assert!(!words(&bench.got(a)).contains(&"error 2".to_owned()));
}

#[test]
fn yes_ends_when_another_client_edits_the_prompt() {
    for (by_sender, is_rebooted) in [(true, false), (false, false), (false, true)] {
        let mut bench = Bench::with_shims();
        let (_, running) = bench.running("s", "one");
        let a = bench.client(&json!({"notices":true}));
        let prompt = |text: &str| json!([{"type":"text","text":text}]);
        let meta = json!({"_acpd":{"permissions":"allow"}});
        let params = json!({"sessionId":"s","prompt":prompt("two"),"_meta":meta});
        bench.say(a, &json!({"id":2,"method":"session/prompt","params":params}));
        let shown = ask(&mut bench, "", &json!({"session":"s"}));
        let ticket = &shown["result"]["prompts"][0]["ticket"];
        let mut params = json!({"ref":{"session":"s"},"ticket":ticket,"prompt":prompt("other"),
            "_meta":{"_acpd":{"answers":false}}});
        if !by_sender {
            let refused = ask(&mut bench, "/edit", &params);
            assert_eq!(refused["error"]["data"]["_acpd"]["reason"], "out_of_scope", "{refused}");
        }
        params["_meta"].take();
        let editor = if by_sender { a } else { bench.plain() };
        let method = "_acpd/session/queue/edit";
        bench.say(editor, &json!({"id":3,"method":method,"params":params}));
        let told = notices(&bench);
        let ends = told.iter().any(|text| text.starts_with("`--yes` no longer holds"));
        assert_eq!(ends, !by_sender, "{told:?}");
        if is_rebooted {
            bench.reboot();
        }
        bench.agent_answers(&running, &json!({"stopReason":"end_turn"}));
        let asked = bench.heard_one("session/prompt");
        assert_eq!(asked["params"]["prompt"], prompt("other"));
        asks(&mut bench, 7, &run("make"));
        assert_eq!(pending(&mut bench).len(), usize::from(!by_sender), "{by_sender}");
        assert_eq!(bench.heard().is_empty(), !by_sender);
    }
}

#[test]
fn a_prompt_that_is_moved_has_its_turn_then_also_with_the_next_daemon() {
    let mut bench = Bench::with_shims();
    let a = bench.client(&json!({"notices":true}));
    bench.session(a, "s");
    bench.prompt(a, &json!(1), "s", "one");
    let running = bench.heard_one("session/prompt");
    for (id, text) in [(2, "two"), (3, "three"), (4, "four")] {
        bench.prompt(a, &json!(id), "s", text);
    }
    bench.got(a);
    let move_to = |bench: &mut Bench, text: &str, to: &str| {
        let shown = ask(bench, "", &json!({"session":"s"}));
        let place = texts(&shown).iter().position(|waits| waits == text).expect("it waits");
        let ticket = &shown["result"]["prompts"][place]["ticket"];
        let params = json!({"ref":{"session":"s"},"ticket":ticket,"to":to,"by":"ada"});
        (texts(&ask(bench, "/move", &params)), params)
    };
    let (order, moved) = move_to(&mut bench, "four", "up");
    assert_eq!(order, ["two", "four", "three"]);
    let told: Vec<Value> = bench.got(a).into_iter().map(|line| line["params"].clone()).collect();
    let ahead: Vec<u64> = told.iter().filter_map(|params| params["ahead"].as_u64()).collect();
    assert_eq!(ahead, [2, 3], "the two that have changed places: {told:?}");
    assert!(
        told.iter().any(|params| params["text"] == "a prompt that waits was moved by ada: four")
    );
    // The ticket is gone, so no other prompt is moved by mistake.
    assert_eq!(ask(&mut bench, "/move", &moved)["error"]["data"]["_acpd"]["reason"], "invalid");
    assert_eq!(move_to(&mut bench, "two", "up").0, ["two", "four", "three"]);
    assert_eq!(words(&bench.got(a)), ["_acpd/session_state"], "nothing has changed");
    assert_eq!(move_to(&mut bench, "two", "down").0, ["four", "two", "three"]);
    assert_eq!(move_to(&mut bench, "three", "down").0, ["four", "two", "three"]);
    assert_eq!(move_to(&mut bench, "three", "first").0, ["three", "four", "two"]);
    bench.reboot();
    assert_eq!(texts(&ask(&mut bench, "", &json!({"session":"s"}))), ["three", "four", "two"]);
    bench.agent_answers(&running, &json!({"stopReason":"end_turn"}));
    assert_eq!(bench.heard_one("session/prompt")["params"]["prompt"][0]["text"], "three");
}

#[test]
fn a_prompt_that_was_taken_back_and_changed_keeps_its_place() {
    let mut bench = Bench::with_shims();
    let a = bench.client(&json!({"notices":true}));
    bench.session(a, "s");
    bench.prompt(a, &json!(1), "s", "one");
    let running = bench.heard_one("session/prompt");
    bench.prompt(a, &json!(2), "s", "two");
    bench.prompt(a, &json!(3), "s", "three");
    let shown = ask(&mut bench, "", &json!({"session":"s"}));
    let places = |answer: &Value| -> Vec<Value> {
        let prompts = answer["result"]["prompts"].as_array().expect("a queue");
        prompts.iter().map(|prompt| prompt["place"].clone()).collect()
    };
    assert_eq!(places(&shown), [1, 2]);
    let ticket = shown["result"]["prompts"][0]["ticket"].clone();
    ask(&mut bench, "/remove", &json!({"ref":{"session":"s"},"ticket":ticket}));
    bench.prompt(a, &json!(4), "s", "four");
    bench.got(a);
    let again = |text: &str, id: u64| {
        json!({"id":id,"method":"session/prompt","params":{"sessionId":"s",
            "prompt":[{"type":"text","text":text}],"_meta":{"_acpd":{"inPlaceOf":ticket}}}})
    };
    bench.say(a, &again("deux", 5));
    let ahead: Vec<Value> =
        bench.got(a).iter().map(|line| line["params"]["ahead"].clone()).collect();
    let ahead: Vec<u64> = ahead.iter().filter_map(Value::as_u64).collect();
    assert_eq!(ahead, [2, 3, 1], "the others wait for one more, it for the running one");
    let shown = ask(&mut bench, "", &json!({"session":"s"}));
    assert_eq!(texts(&shown), ["deux", "three", "four"]);
    assert_eq!(places(&shown), [1, 2, 3]);
    bench.reboot();
    assert_eq!(texts(&ask(&mut bench, "", &json!({"session":"s"}))), ["deux", "three", "four"]);
    bench.agent_answers(&running, &json!({"stopReason":"end_turn"}));
    let sent = bench.heard_one("session/prompt");
    assert_eq!(sent["params"]["prompt"][0]["text"], "deux");
    assert_eq!(sent["params"]["_meta"]["_acpd"], Value::Null, "the agent hears nothing of that");
    // Those that it was behind have had their turns: it is the next.
    let a = bench.client(&json!({"notices":true,"seq":true}));
    bench.say(a, &json!({"id":1,"method":"session/load","params":{"sessionId":"s","cwd":"/w","mcpServers":[]}}));
    bench.say(a, &again("encore", 6));
    let shown = ask(&mut bench, "", &json!({"session":"s"}));
    assert_eq!(texts(&shown), ["encore", "three", "four"]);
}

#[test]
fn what_a_cancel_takes_back_is_in_its_answer_and_stays_in_the_journal() {
    let mut bench = Bench::with_shims();
    let a = bench.client(&json!({"notices":true}));
    bench.session(a, "s");
    for (id, text) in [(1, "one"), (2, "two"), (3, "three")] {
        bench.prompt(a, &json!(id), "s", text);
    }
    bench.got(a);
    let answer = {
        let b = bench.plain();
        let params = json!({"session":"s"});
        bench.say(b, &json!({"id":1,"method":"_acpd/session/cancel","params":params}));
        bench.got(b).pop().expect("an answer")
    };
    assert_eq!(texts(&answer), ["two", "three"]);
    assert_eq!(answer["result"]["takenBack"], 2);
    let told = bench.got(a);
    let notices: Vec<&str> =
        told.iter().filter_map(|line| line["params"]["text"].as_str()).collect();
    for said in ["two", "three"] {
        let end = format!(": {said}");
        let is_told =
            |notice: &&str| notice.contains("was taken back by ") && notice.ends_with(&end);
        assert!(notices.iter().any(is_told), "{notices:?}");
    }
}

/// Returns the notices of the journal.
fn notices(bench: &Bench) -> Vec<String> {
    let rows = bench.journal.values().flatten();
    let lines = rows.map(|row| serde_json::from_slice::<Value>(&row.line).expect("JSON"));
    lines.filter_map(|line| Some(line["params"]["text"].as_str()?.to_owned())).collect()
}

/// A prompt whose sender has gone waits behind a running turn.
fn left_behind() -> (Bench, Value) {
    let mut bench = Bench::with_shims();
    let (_, running) = bench.running("s", "one");
    let b = bench.plain();
    bench.prompt(b, &json!(2), "s", "do not forget me");
    bench.feed(Input::Client(b, ClientEvent::Closed));
    (bench, running)
}

#[test]
fn a_prompt_that_nobody_waits_for_is_in_the_journal_when_its_agent_is_stopped() {
    let (mut bench, _) = left_behind();
    let c = bench.plain();
    bench.say(c, &json!({"id":1,"method":"_acpd/agent/stop","params":{"agent":AGENT}}));
    bench.agent_dies();
    let said = notices(&bench);
    let lost = said.iter().find(|text| text.contains("do not forget me")).expect("a notice");
    assert!(lost.contains("was not sent") && lost.contains("stopped by a person"), "{lost}");
    assert_eq!(texts(&ask(&mut bench, "", &json!({"session":"s"}))), Vec::<Value>::new());
}

#[test]
fn a_prompt_that_nobody_waits_for_is_left_to_the_next_daemon() {
    let (mut bench, _) = left_behind();
    bench.feed(Input::Stop);
    bench.agent_dies();
    bench.heard();
    bench.reboot();
    bench.answers("session/resume", &json!({}));
    let prompt = bench.heard_one("session/prompt");
    assert_eq!(prompt["params"]["prompt"][0]["text"], "do not forget me");
}

#[test]
fn a_prompt_that_nobody_waits_for_is_left_to_the_next_daemon_also_by_one_that_ends_without_what_does_not_end()
 {
    let (mut bench, _) = left_behind();
    bench.survivors = Some(vec![LeftProcess { pid: 4711, name: "cat".to_owned() }]);
    bench.leader_ends();
    bench.feed(Input::Stop);
    bench.pass(10_000);
    assert!(bench.exited);
    assert!(!notices(&bench).iter().any(|text| text.contains("was not sent")));
    bench.heard();
    bench.reboot();
    let host = bench.host();
    bench.feed(Input::Host(host, HostEvent::Gone));
    bench.answers("session/resume", &json!({}));
    let prompt = bench.heard_one("session/prompt");
    assert_eq!(prompt["params"]["prompt"][0]["text"], "do not forget me");
}

#[test]
fn a_prompt_that_nobody_waits_for_goes_with_its_session_also_when_the_daemon_ends() {
    let (mut bench, _) = left_behind();
    bench.feed(Input::Stop);
    assert_eq!(bench.snapshot.turns.len(), 2);
    let c = bench.plain();
    bench.say(c, &json!({"id":1,"method":"_acpd/session/remove","params":{"session":"s"}}));
    assert!(bench.snapshot.turns.is_empty());
}

#[test]
fn a_prompt_that_nobody_waits_for_is_in_the_journal_when_its_directory_is_gone() {
    let (mut bench, _) = left_behind();
    bench.missing.push("/w".to_owned());
    bench.agent_dies();
    bench.pass(1_000);
    let said = notices(&bench);
    let lost = said.iter().find(|text| text.contains("do not forget me")).expect("a notice");
    assert!(lost.contains("the directory `/w` does not exist"), "{lost}");
}

#[test]
fn a_prompt_that_nobody_waits_for_waits_for_the_login() {
    let (mut bench, _) = left_behind();
    bench.agent_dies();
    bench.pass(1_000);
    bench.refuses("session/resume", -32000);
    assert_eq!(bench.state("s"), "blocked");
    assert_eq!(texts(&ask(&mut bench, "", &json!({"session":"s"}))), ["do not forget me"]);
    let c = bench.plain();
    bench.say(c, &json!({"id":1,"method":"authenticate","params":{"methodId":"m"}}));
    bench.answers("authenticate", &json!({}));
    bench.answers("session/resume", &json!({}));
    let prompt = bench.heard_one("session/prompt");
    assert_eq!(prompt["params"]["prompt"][0]["text"], "do not forget me");
}

#[test]
fn what_becomes_of_a_prompt_without_words_is_told_all_the_same() {
    let (mut bench, a, _) = waiting();
    let image = json!([{"type":"image","mimeType":"image/png","data":"AAAA"}]);
    let prompt = json!({"sessionId":"s","prompt":image});
    bench.say(a, &json!({"id":4,"method":"session/prompt","params":prompt}));
    bench.say(a, &json!({"method":"session/cancel","params":{"sessionId":"s"}}));
    let told = notices(&bench);
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[1].ends_with(": three") && told[2].ends_with(" by another client"), "{told:?}");
}
