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
fn three_turns(bench: Bench) -> (Bench, [ClientId; 2], Value) {
    let mut bench = bench.with_capabilities(json!({"loadSession":true}));
    let (a, noticed) = (bench.plain(), bench.noticed());
    bench.session(a, "s");
    bench.ask(noticed, 1, "_acpd/session/attach", &json!({"ref":{"session":"s"}}));
    for text in ["one", "two", "three"] {
        turn(&mut bench, a, text);
    }
    bench.restart_agent();
    bench.got(a);
    bench.got(noticed);
    let load = bench.heard_one("session/load");
    (bench, [a, noticed], load)
}

fn turn(bench: &mut Bench, client: ClientId, text: &str) {
    let prompt = bench.start_turn(client, text, "s", text);
    bench.chunk("s", &format!("the answer to {text}"));
    bench.end_turn(&prompt);
}

fn replay(bench: &mut Bench, turns: &[(&str, &str)]) {
    for (user, answer) in turns {
        bench.update("s", "user_message_chunk", user);
        if !answer.is_empty() {
            bench.chunk("s", answer);
        }
    }
}

/// The agent replays these turns, and answers the load.
fn load_with(bench: &mut Bench, load: &Value, turns: &[(&str, &str)]) {
    replay(bench, turns);
    bench.agent_answers(load, &json!({}));
}

#[test]
fn restore_says_what_the_replay_lacks() {
    // The other gaps are in `session/replay.rs`.
    let all = [("one", "1"), ("two", "2"), ("three", "3")];
    let table = [(&all[..], None), (&all[2..], Some("the agent replayed 1 of 3 prompts"))];
    for (turns, reason) in table {
        let (mut bench, [a, noticed], load) = three_turns(Bench::new());
        bench.prompt(a, &json!(4), "s", "and now?");
        load_with(&mut bench, &load, turns);
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
    let (mut bench, [a, _], load) = three_turns(Bench::new());
    load_with(&mut bench, &load, &[("three", "3")]);
    bench.pass(300);
    turn(&mut bench, a, "four");
    for _ in 0..2 {
        bench.pass(20_000);
        let load = bench.restart_hearing("session/load");
        load_with(&mut bench, &load, &[("three", "3"), ("four", "4")]);
        assert_eq!(level(&bench), Some(RestoreLevel::Loaded));
    }
}

#[test]
fn prompts_that_no_agent_keeps_are_not_missing() {
    let (mut bench, a) = Bench::loadable().with_begun();
    turn(&mut bench, a, "one");
    turn(&mut bench, a, "/compact");
    bench.prompt(a, &json!(2), "s", "stop it");
    bench.cancel(a, "s");
    let prompt = bench.heard().swap_remove(0);
    bench.agent_answers(&prompt, &json!({"stopReason":"cancelled"}));
    bench.refuse_prompt(a, 3, "s", "too much", -32603);
    let load = bench.restart_hearing("session/load");
    load_with(&mut bench, &load, &[("one", "1")]);
    assert_eq!(bench.state("s"), "live");
    let told = bench.journal_words().iter().filter(|word| *word == "_acpd/restored").count();
    assert_eq!(told, 1);
    assert_eq!(level(&bench), Some(RestoreLevel::Loaded));
}

#[test]
fn prompt_that_was_cut_off_and_is_not_replayed_is_missing() {
    let (mut bench, a) = Bench::loadable().with_begun();
    turn(&mut bench, a, "one");
    bench.prompt(a, &json!(2), "s", "two");
    bench.heard();
    let load = bench.restart_hearing("session/load");
    load_with(&mut bench, &load, &[("one", "1")]);
    bench.pass(300);
    assert_eq!(level(&bench), Some(RestoreLevel::Partial));
}

#[test]
fn agents_that_replay_nothing_are_not_doubted_if_configured() {
    let (mut bench, _, load) = three_turns(Bench::with(|profile| profile.replays = false));
    bench.agent_answers(&load, &json!({}));
    assert_eq!((bench.state("s"), level(&bench)), ("live".into(), Some(RestoreLevel::Loaded)));
}

#[test]
fn late_replay_of_any_agent_is_waited_for() {
    let (mut bench, [a, _], load) = three_turns(Bench::new());
    bench.prompt(a, &json!(4), "s", "and now?");
    load_with(&mut bench, &load, &[("one", "1")]);
    bench.pass(200);
    replay(&mut bench, &[("two", "2"), ("three", "3")]);
    assert_eq!(bench.heard(), Vec::<Value>::new());
    bench.pass(300);
    bench.heard_one("session/prompt");
    assert_eq!(words(&bench.got(a)), Vec::<String>::new());
}

#[test]
fn late_user_message_without_a_prompt_is_replay() {
    let (mut bench, [a, _], load) = three_turns(Bench::new());
    load_with(&mut bench, &load, &[("one", "1"), ("two", "2"), ("three", "3")]);
    assert_eq!((bench.state("s"), level(&bench)), ("live".into(), Some(RestoreLevel::Loaded)));
    let before = bench.journal_words();
    replay(&mut bench, &[("two", "2"), ("three", "3")]);
    bench.send_update("s", &json!({"sessionUpdate":"tool_call","toolCallId":"c","title":"ls"}));
    assert_eq!(bench.journal_words(), before);
    assert_eq!(words(&bench.got(a)), Vec::<String>::new());
    // From the next prompt on the agent speaks again.
    turn(&mut bench, a, "four");
    bench.update("s", "user_message_chunk", "an agent's own news");
    assert_eq!(bench.journal_words().last().map(String::as_str), Some("user_message_chunk"));
}

#[test]
fn what_an_agent_says_after_a_load_by_itself_is_kept() {
    let (mut bench, [a, _], load) = three_turns(Bench::new());
    load_with(&mut bench, &load, &[("one", "1"), ("two", "2"), ("three", "3")]);
    bench.got(a);
    bench.chunk("s", "the build has ended");
    assert_eq!(words(&bench.got(a)), ["agent_message_chunk"]);
}
