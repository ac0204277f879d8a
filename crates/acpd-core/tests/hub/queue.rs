//! Prompts that wait, shown, changed, moved and taken back by others.

use acpd_core::ids::ClientId;
use acpd_core::{Input, LeftProcess};
use serde_json::{Value, json};

use crate::bench::{AGENT, Bench, words};
use crate::questions::{asks, pending, run};
use crate::steps::{prompt_text, reason};

/// A session whose turn runs, and in which two prompts wait.
fn waiting() -> (Bench, ClientId, Value) {
    let (mut bench, a, running) = Bench::with_shims().in_turn("one");
    bench.prompt(a, &json!(2), "s", "two");
    bench.prompt(a, &json!(3), "s", "three");
    bench.got(a);
    (bench, a, running)
}

fn ask(bench: &mut Bench, method: &str, params: &Value) -> Value {
    bench.command(&format!("_acpd/session/queue{method}"), params)
}

fn texts(answer: &Value) -> Vec<Value> {
    let prompts = answer["result"]["prompts"].as_array().expect("a queue");
    prompts.iter().map(|prompt| prompt["prompt"][0]["text"].clone()).collect()
}

/// Texts of the prompts that wait in the session.
fn waits(bench: &mut Bench) -> Vec<Value> {
    texts(&ask(bench, "", &json!({"session":"s"})))
}

/// Ticket of the prompt that waits at this place.
fn ticket(bench: &mut Bench, place: usize) -> Value {
    ask(bench, "", &json!({"session":"s"}))["result"]["prompts"][place]["ticket"].take()
}

/// How many prompts are ahead of one that waits, as clients are told.
fn ahead(lines: &[Value]) -> Vec<u64> {
    lines.iter().filter_map(|line| line["params"]["ahead"].as_u64()).collect()
}

#[test]
fn a_prompt_that_is_taken_back_is_told_to_its_sender_with_who_did_it() {
    let (mut bench, a, running) = waiting();
    assert_eq!(waits(&mut bench), ["two", "three"]);
    let ticket = ticket(&mut bench, 0);
    let params = json!({"ref":{"session":"s"},"ticket":ticket,"by":"ada"});
    assert_eq!(texts(&ask(&mut bench, "/remove", &params)), ["three"]);
    let refused = bench.answer(a, 2);
    assert_eq!(refused["error"]["code"], -32800);
    assert!(refused["error"]["message"].to_string().contains("taken back by ada"), "{refused}");
    assert!(bench.journal_words().contains(&"_acpd/notice".to_owned()));
    assert_eq!(reason(&ask(&mut bench, "/remove", &params)), "invalid");
    bench.reboot();
    bench.end_turn(&running);
    bench.expect_prompt("three");
}

#[test]
fn a_prompt_that_is_changed_is_sent_as_it_is_then_also_by_the_next_daemon() {
    let (mut bench, a, running) = waiting();
    let ticket = ticket(&mut bench, 0);
    for odd in [json!([]), json!("x"), json!([1]), json!({"type":"text"})] {
        let params = json!({"ref":{"session":"s"},"ticket":ticket,"prompt":odd});
        assert_eq!(reason(&ask(&mut bench, "/edit", &params)), "invalid");
    }
    let big = json!([{"type":"text","text":"x".repeat(20 << 20)}]);
    let params = json!({"ref":{"session":"s"},"ticket":ticket,"prompt":big});
    assert_eq!(reason(&ask(&mut bench, "/edit", &params)), "too_many", "no more than a prompt may");
    let prompt = json!([{"type":"text","text":"other"}]);
    let params = json!({"ref":{"session":"s"},"ticket":ticket,"prompt":prompt});
    assert_eq!(texts(&ask(&mut bench, "/edit", &params)), ["other", "three"]);
    bench.reboot();
    assert_eq!(waits(&mut bench), ["other", "three"]);
    bench.end_turn(&running);
    bench.expect_prompt("other");
    assert!(!words(&bench.got(a)).contains(&"error 2".to_owned()));
}

#[test]
fn yes_ends_when_another_client_edits_the_prompt() {
    for (by_sender, is_rebooted) in [(true, false), (false, false), (false, true)] {
        let (mut bench, _, running) = Bench::with_shims().in_turn("one");
        let a = bench.noticed();
        let prompt = |text: &str| json!([{"type":"text","text":text}]);
        bench.prompt_with(a, 2, "two", &json!({"permissions":"allow"}));
        let ticket = ticket(&mut bench, 0);
        let mut params = json!({"ref":{"session":"s"},"ticket":ticket,"prompt":prompt("other"),
            "_meta":{"_acpd":{"answers":false}}});
        if !by_sender {
            let refused = ask(&mut bench, "/edit", &params);
            assert_eq!(reason(&refused), "out_of_scope", "{refused}");
        }
        params["_meta"].take();
        let editor = if by_sender { a } else { bench.plain() };
        bench.ask(editor, 3, "_acpd/session/queue/edit", &params);
        let told = notices(&bench);
        let ends = told.iter().any(|text| text.starts_with("`--yes` no longer holds"));
        assert_eq!(ends, !by_sender, "{told:?}");
        if is_rebooted {
            bench.reboot();
        }
        bench.end_turn(&running);
        assert_eq!(bench.heard_one("session/prompt")["params"]["prompt"], prompt("other"));
        asks(&mut bench, 7, &run("make"));
        assert_eq!(pending(&mut bench).len(), usize::from(!by_sender), "{by_sender}");
        assert_eq!(bench.heard().is_empty(), !by_sender);
    }
}

#[test]
fn a_prompt_that_is_moved_has_its_turn_then_also_with_the_next_daemon() {
    let (mut bench, a) = Bench::with_shims().with_noticed();
    let running = bench.start_turn(a, 1, "s", "one");
    for (id, text) in [(2, "two"), (3, "three"), (4, "four")] {
        bench.prompt(a, &json!(id), "s", text);
    }
    bench.got(a);
    let move_to = |bench: &mut Bench, text: &str, to: &str| {
        let place = waits(bench).iter().position(|waits| waits == text).expect("it waits");
        let ticket = ticket(bench, place);
        let params = json!({"ref":{"session":"s"},"ticket":ticket,"to":to,"by":"ada"});
        (texts(&ask(bench, "/move", &params)), params)
    };
    let (order, moved) = move_to(&mut bench, "four", "up");
    assert_eq!(order, ["two", "four", "three"]);
    let told = bench.got(a);
    assert_eq!(ahead(&told), [2, 3], "the two that have changed places: {told:?}");
    let notice = "a prompt that waits was moved by ada: four";
    assert!(told.iter().any(|line| line["params"]["text"] == notice), "{told:?}");
    // The ticket is gone, so no other prompt is moved by mistake.
    assert_eq!(reason(&ask(&mut bench, "/move", &moved)), "invalid");
    assert_eq!(move_to(&mut bench, "two", "up").0, ["two", "four", "three"]);
    assert_eq!(words(&bench.got(a)), ["_acpd/session_state"], "nothing has changed");
    assert_eq!(move_to(&mut bench, "two", "down").0, ["four", "two", "three"]);
    assert_eq!(move_to(&mut bench, "three", "down").0, ["four", "two", "three"]);
    assert_eq!(move_to(&mut bench, "three", "first").0, ["three", "four", "two"]);
    bench.reboot();
    assert_eq!(waits(&mut bench), ["three", "four", "two"]);
    bench.end_turn(&running);
    bench.expect_prompt("three");
}

#[test]
fn a_prompt_that_was_taken_back_and_changed_keeps_its_place() {
    let (mut bench, a) = Bench::with_shims().with_noticed();
    let running = bench.start_turn(a, 1, "s", "one");
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
    let in_place = json!({"inPlaceOf":ticket});
    bench.prompt_with(a, 5, "deux", &in_place);
    let told = ahead(&bench.got(a));
    assert_eq!(told, [2, 3, 1], "the others wait for one more, it for the running one");
    let shown = ask(&mut bench, "", &json!({"session":"s"}));
    assert_eq!(texts(&shown), ["deux", "three", "four"]);
    assert_eq!(places(&shown), [1, 2, 3]);
    bench.reboot();
    assert_eq!(waits(&mut bench), ["deux", "three", "four"]);
    bench.end_turn(&running);
    let sent = bench.expect_prompt("deux");
    assert_eq!(sent["params"]["_meta"]["_acpd"], Value::Null, "the agent hears nothing of that");
    // Those that it was behind have had their turns: it is the next.
    let a = bench.client(&json!({"notices":true,"seq":true}));
    bench.ask(a, 1, "session/load", &json!({"sessionId":"s","cwd":"/w","mcpServers":[]}));
    bench.prompt_with(a, 6, "encore", &in_place);
    assert_eq!(waits(&mut bench), ["encore", "three", "four"]);
}

#[test]
fn what_a_cancel_takes_back_is_in_its_answer_and_stays_in_the_journal() {
    let (mut bench, a) = Bench::with_shims().with_noticed();
    for (id, text) in [(1, "one"), (2, "two"), (3, "three")] {
        bench.prompt(a, &json!(id), "s", text);
    }
    bench.got(a);
    let answer = bench.command("_acpd/session/cancel", &json!({"session":"s"}));
    assert_eq!(texts(&answer), ["two", "three"]);
    assert_eq!(answer["result"]["takenBack"], 2);
    let told = bench.got(a);
    for end in [": two", ": three"] {
        let is_told = |text: &str| text.contains("was taken back by ") && text.ends_with(end);
        let mut notices = told.iter().filter_map(|line| line["params"]["text"].as_str());
        assert!(notices.any(is_told), "{told:?}");
    }
}

/// Returns the notices of the journal.
fn notices(bench: &Bench) -> Vec<String> {
    let lines = bench.journal_lines().into_iter();
    lines.filter_map(|line| Some(line["params"]["text"].as_str()?.to_owned())).collect()
}

/// A prompt whose sender has gone waits behind a running turn.
fn left_behind() -> (Bench, Value) {
    let (mut bench, _, running) = Bench::with_shims().in_turn("one");
    let b = bench.plain();
    bench.prompt(b, &json!(2), "s", "do not forget me");
    bench.leave(b);
    (bench, running)
}

/// Notice of the journal about that prompt.
fn lost(bench: &Bench) -> String {
    let mut notices = notices(bench).into_iter();
    notices.find(|text| text.contains("do not forget me")).expect("a notice")
}

#[test]
fn a_prompt_that_nobody_waits_for_is_in_the_journal_when_its_agent_is_stopped() {
    let (mut bench, _) = left_behind();
    let c = bench.plain();
    bench.ask(c, 1, "_acpd/agent/stop", &json!({"agent":AGENT}));
    bench.agent_dies();
    let lost = lost(&bench);
    assert!(lost.contains("was not sent") && lost.contains("stopped by a person"), "{lost}");
    assert_eq!(waits(&mut bench), Vec::<Value>::new());
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
    bench.end_process();
    assert_eq!(prompt_text(&bench.bring_back("session/resume")), "do not forget me");
}

#[test]
fn a_prompt_that_nobody_waits_for_goes_with_its_session_also_when_the_daemon_ends() {
    let (mut bench, _) = left_behind();
    bench.feed(Input::Stop);
    assert_eq!(bench.snapshot.turns.len(), 2);
    bench.command("_acpd/session/remove", &json!({"session":"s"}));
    assert!(bench.snapshot.turns.is_empty());
}

#[test]
fn a_prompt_that_nobody_waits_for_is_in_the_journal_when_its_directory_is_gone() {
    let (mut bench, _) = left_behind();
    bench.missing.push("/w".to_owned());
    bench.restart_agent();
    let lost = lost(&bench);
    assert!(lost.contains("the directory `/w` does not exist"), "{lost}");
}

#[test]
fn a_prompt_that_nobody_waits_for_waits_for_the_login() {
    let (mut bench, _) = left_behind();
    bench.restart_agent();
    bench.refuses("session/resume", -32000);
    assert_eq!(bench.state("s"), "blocked");
    assert_eq!(waits(&mut bench), ["do not forget me"]);
    let c = bench.plain();
    bench.log_in(c);
    assert_eq!(prompt_text(&bench.bring_back("session/resume")), "do not forget me");
}

#[test]
fn what_becomes_of_a_prompt_without_words_is_told_all_the_same() {
    let (mut bench, a, _) = waiting();
    let image = json!([{"type":"image","mimeType":"image/png","data":"AAAA"}]);
    bench.ask(a, 4, "session/prompt", &json!({"sessionId":"s","prompt":image}));
    bench.cancel(a, "s");
    let told = notices(&bench);
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[1].ends_with(": three") && told[2].ends_with(" by another client"), "{told:?}");
}
