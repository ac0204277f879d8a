//! Gaps in a session's replay, and their notices.

use acpd_api::RestoreLevel;
use acpd_core::ids::ClientId;
use serde_json::{Value, json};

use crate::bench::{Bench, words};

/// Level of the last restore of the only session.
fn level(bench: &Bench) -> Option<RestoreLevel> {
    bench.snapshot.sessions.values().next().expect("one").row.restore
}

/// A session with three answered prompts, whose agent has died: two clients, and the load.
fn three_turns(bench: &mut Bench) -> ([ClientId; 2], Value) {
    bench.capabilities = Some(json!({"loadSession":true}));
    let (a, noticed) = (bench.plain(), bench.client(&json!({"notices":true})));
    bench.session(a, "s");
    let open = json!({"id":1,"method":"_acpd/session/attach","params":{"ref":{"session":"s"}}});
    bench.say(noticed, &open);
    for text in ["one", "two", "three"] {
        turn(bench, a, text);
    }
    bench.agent_dies();
    bench.pass(1_000);
    bench.got(a);
    bench.got(noticed);
    ([a, noticed], bench.heard_one("session/load"))
}

fn turn(bench: &mut Bench, client: ClientId, text: &str) {
    bench.prompt(client, &json!(text), "s", text);
    let prompt = bench.heard_one("session/prompt");
    bench.chunk("s", &format!("the answer to {text}"));
    bench.agent_answers(&prompt, &json!({"stopReason":"end_turn"}));
}

fn replay(bench: &mut Bench, turns: &[(&str, &str)]) {
    for (user, answer) in turns {
        bench.update("s", "user_message_chunk", user);
        if !answer.is_empty() {
            bench.chunk("s", answer);
        }
    }
}

/// A prompt and its answer.
type Turn = (&'static str, &'static str);

#[test]
fn restore_says_what_the_replay_lacks() {
    let all = [("one", "1"), ("two", "2"), ("three", "3")];
    let table: [(&[Turn], Option<&str>); 6] = [
        (&all, None),
        (&[], Some("the agent replayed nothing of it")),
        (&all[..2], Some("the agent did not replay the last prompt")),
        (&all[2..], Some("the agent replayed 1 of 3 prompts")),
        (&[("something", "else")], Some("the agent did not replay the last prompt")),
        (
            &[("one", ""), ("two", ""), ("three", "")],
            Some("the agent replayed none of its answers"),
        ),
    ];
    for (turns, reason) in table {
        let mut bench = Bench::new();
        let ([a, noticed], load) = three_turns(&mut bench);
        bench.prompt(a, &json!(4), "s", "and now?");
        replay(&mut bench, turns);
        bench.agent_answers(&load, &json!({}));
        bench.pass(300);
        bench.heard_one("session/prompt");
        let got = bench.got(noticed);
        let words = words(&got);
        let at = |what: &str| words.iter().position(|word| word == what).expect("told");
        assert!(at("_acpd/restored") < at("_acpd/turn_started"), "{words:?}");
        let told = &got[at("_acpd/restored")]["params"];
        let level = if reason.is_some() { "partial" } else { "loaded" };
        assert_eq!((told["level"].as_str(), told["reason"].as_str()), (Some(level), reason));
        let got = bench.got(a);
        let said = got.iter().filter(|line| line["method"] == "session/update").count();
        assert_eq!(said, usize::from(reason.is_some()), "{got:?}");
        if let Some(reason) = reason {
            let text = got[0]["params"]["update"]["content"]["text"].as_str().expect("text");
            assert!(text.starts_with("[acpd]") && text.contains(reason), "{text}");
        }
    }
}

#[test]
fn restore_says_once_what_is_missing() {
    let mut bench = Bench::new();
    let ([a, _], load) = three_turns(&mut bench);
    replay(&mut bench, &[("three", "3")]);
    bench.agent_answers(&load, &json!({}));
    bench.pass(300);
    turn(&mut bench, a, "four");
    for _ in 0..2 {
        bench.pass(20_000);
        bench.agent_dies();
        bench.pass(1_000);
        let load = bench.heard_one("session/load");
        replay(&mut bench, &[("three", "3"), ("four", "4")]);
        bench.agent_answers(&load, &json!({}));
        assert_eq!(level(&bench), Some(RestoreLevel::Loaded));
    }
}

#[test]
fn prompts_that_no_agent_keeps_are_not_missing() {
    let mut bench = Bench::new();
    bench.capabilities = Some(json!({"loadSession":true}));
    let a = bench.plain();
    bench.session(a, "s");
    turn(&mut bench, a, "one");
    turn(&mut bench, a, "/compact");
    bench.prompt(a, &json!(2), "s", "stop it");
    bench.say(a, &json!({"method":"session/cancel","params":{"sessionId":"s"}}));
    let prompt = bench.heard().swap_remove(0);
    bench.agent_answers(&prompt, &json!({"stopReason":"cancelled"}));
    bench.prompt(a, &json!(3), "s", "too much");
    bench.refuses("session/prompt", -32603);
    bench.agent_dies();
    bench.pass(1_000);
    let load = bench.heard_one("session/load");
    replay(&mut bench, &[("one", "1")]);
    bench.agent_answers(&load, &json!({}));
    assert_eq!(bench.state("s"), "live");
    let told = bench.journal_words().iter().filter(|word| *word == "_acpd/restored").count();
    assert_eq!(told, 1);
    assert_eq!(level(&bench), Some(RestoreLevel::Loaded));
}

#[test]
fn prompt_that_was_cut_off_and_is_not_replayed_is_missing() {
    let mut bench = Bench::new();
    bench.capabilities = Some(json!({"loadSession":true}));
    let a = bench.plain();
    bench.session(a, "s");
    turn(&mut bench, a, "one");
    bench.prompt(a, &json!(2), "s", "two");
    bench.heard();
    bench.agent_dies();
    bench.pass(1_000);
    let load = bench.heard_one("session/load");
    replay(&mut bench, &[("one", "1")]);
    bench.agent_answers(&load, &json!({}));
    bench.pass(300);
    assert_eq!(level(&bench), Some(RestoreLevel::Partial));
}

#[test]
fn agents_that_replay_nothing_are_not_doubted_if_configured() {
    let mut bench = Bench::with(|profile| profile.replays = false);
    let (_, load) = three_turns(&mut bench);
    bench.agent_answers(&load, &json!({}));
    assert_eq!(bench.state("s"), "live");
    assert_eq!(level(&bench), Some(RestoreLevel::Loaded));
}

#[test]
fn late_replay_of_any_agent_is_waited_for() {
    let mut bench = Bench::new();
    let ([a, _], load) = three_turns(&mut bench);
    bench.prompt(a, &json!(4), "s", "and now?");
    replay(&mut bench, &[("one", "1")]);
    bench.agent_answers(&load, &json!({}));
    bench.pass(200);
    replay(&mut bench, &[("two", "2"), ("three", "3")]);
    assert_eq!(bench.heard(), Vec::<Value>::new());
    bench.pass(300);
    bench.heard_one("session/prompt");
    assert_eq!(words(&bench.got(a)), Vec::<String>::new());
}

#[test]
fn late_user_message_without_a_prompt_is_replay() {
    let mut bench = Bench::new();
    let ([a, _], load) = three_turns(&mut bench);
    replay(&mut bench, &[("one", "1"), ("two", "2"), ("three", "3")]);
    bench.agent_answers(&load, &json!({}));
    assert_eq!((bench.state("s"), level(&bench)), ("live".into(), Some(RestoreLevel::Loaded)));
    let before = bench.journal_words();
    replay(&mut bench, &[("two", "2"), ("three", "3")]);
    let call = json!({"sessionUpdate":"tool_call","toolCallId":"c","title":"ls"});
    bench.agent(&json!({"method":"session/update","params":{"sessionId":"s","update":call}}));
    assert_eq!(bench.journal_words(), before);
    assert_eq!(words(&bench.got(a)), Vec::<String>::new());
    // From the next prompt on the agent speaks again.
    turn(&mut bench, a, "four");
    bench.update("s", "user_message_chunk", "an agent's own news");
    assert_eq!(bench.journal_words().last().map(String::as_str), Some("user_message_chunk"));
}

#[test]
fn what_an_agent_says_after_a_load_by_itself_is_kept() {
    let mut bench = Bench::new();
    let ([a, _], load) = three_turns(&mut bench);
    replay(&mut bench, &[("one", "1"), ("two", "2"), ("three", "3")]);
    bench.agent_answers(&load, &json!({}));
    bench.got(a);
    bench.chunk("s", "the build has ended");
    assert_eq!(words(&bench.got(a)), ["agent_message_chunk"]);
}
