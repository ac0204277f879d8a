//! Sessions that go on with a summary, and tasks that an agent is asked to finish.

use acpd_core::ids::ClientId;
use acpd_core::profile::{OnInterrupted, OnLost, Reseed};
use serde_json::{Value, json};

use crate::bench::{Bench, words};
use crate::settings::modes;
use crate::steps::{prompt_text, text};
use crate::titles::{listed, told};

/// A used session whose agent died and no longer knows it; no prompt has followed.
fn lost(mut bench: Bench) -> (Bench, ClientId) {
    let (client, load) = bench.loading("s");
    bench.agent_refuses(&load, -32002);
    (bench, client)
}

/// Like [`lost`], up to the answer to `session/new` for the next prompt.
fn reseeded() -> (Bench, ClientId) {
    let (mut bench, client) = lost(Bench::new());
    bench.prompt(client, &json!(2), "s", "and now?");
    bench.refuses("session/load", -32002);
    bench.answers("session/new", &json!({"sessionId":"t"}));
    (bench, client)
}

#[test]
fn a_lost_session_goes_on_with_a_summary_before_the_next_prompt_and_says_so() {
    let (mut bench, plain) = lost(Bench::new());
    let noticed = bench.noticed();
    assert_eq!(bench.state("s"), "parked", "it waits for a prompt");
    assert_eq!(bench.heard(), Vec::<Value>::new(), "nothing is made that nobody has asked for");
    bench.attach(noticed, "s");
    bench.refuses("session/load", -32002);
    bench.got(plain);
    bench.prompt(plain, &json!(2), "s", "and now?");
    bench.refuses("session/load", -32002);
    let new = bench.heard_one("session/new");
    assert_eq!(new["params"]["cwd"], "/w");
    bench.agent_answers(&new, &json!({"sessionId":"t"}));
    let prompt = bench.expect_summary();
    assert_eq!(prompt["params"]["sessionId"], "t");
    assert_eq!(prompt["params"]["prompt"][1]["text"], "and now?");
    // Clients without notices see a sentence; the others see level and reason.
    let got = bench.expect(plain, ["agent_message_chunk"]);
    assert!(text(&got[0]).contains("could not be restored: the agent does not know it"), "{got:?}");
    let got = bench.got(noticed);
    let told = got.iter().find(|line| line["method"] == "_acpd/restored").expect("told");
    assert_eq!(told["params"]["level"], "reseeded");
    assert!(told["params"]["reason"].as_str().expect("why").contains("does not know it"));
    assert!(!words(&got).contains(&"agent_message_chunk".to_owned()), "{got:?}");
    let lines = bench.journal_lines();
    let told = lines.iter().filter(|line| line.to_string().contains("does not know it"));
    assert_eq!(told.count(), 1, "it is stored once, as acpd's");
    // The public id stays.
    bench.chunk("t", "go on");
    bench.end_turn(&prompt);
    let got = bench.expect(plain, ["agent_message_chunk", "result 2"]);
    assert_eq!(got[0]["params"]["sessionId"], "s");
    // Once is enough.
    let prompt = bench.start_turn(plain, 3, "s", "more");
    assert_eq!(prompt["params"]["prompt"].as_array().map(Vec::len), Some(1));
}

#[test]
fn lost_session_continues_with_a_transcript_if_configured() {
    let (mut bench, a) = lost(Bench::with(|profile| profile.reseed = Reseed::Transcript));
    let reason = bench.snapshot.sessions.values().next().unwrap().row.reason.clone();
    assert!(reason.expect("why").ends_with("in a new session, with a transcript"));
    bench.prompt(a, &json!(2), "s", "and now?");
    bench.refuses("session/load", -32002);
    bench.answers("session/new", &json!({"sessionId":"t"}));
    assert_eq!(bench.summarized, [Reseed::Transcript]);
    let prompt = bench.heard_one("session/prompt");
    assert_eq!(prompt["params"]["prompt"].as_array().map(Vec::len), Some(2), "one message");
    let got = bench.got(a);
    let text = text(&got[0]);
    assert!(text.contains("in a new one, with a transcript of the conversation"), "{text}");
}

#[test]
fn acpds_own_words_are_no_title_of_the_agent() {
    let (mut bench, a) = reseeded();
    let prompt = bench.heard_one("session/prompt");
    let summary = prompt_text(&prompt);
    let cut = |at: usize| summary.chars().take(at).collect::<String>();
    let calls = |bench: &mut Bench, title: &str| {
        bench.send_update("t", &json!({"sessionUpdate":"session_info_update","title":title}));
    };
    let before = listed(&mut bench);
    bench.got(a);
    for title in [cut(60), cut(20) + "…", cut(200), cut(62) + "..."] {
        calls(&mut bench, &title);
        assert_eq!(listed(&mut bench), before, "{title}");
        assert_eq!(told(&bench.got(a)), std::slice::from_ref(&before), "{title}");
    }
    calls(&mut bench, "Fish");
    assert_eq!(listed(&mut bench), "Fish");
    calls(&mut bench, &cut(60));
    assert_eq!(listed(&mut bench), "Fish");
}

#[test]
fn a_summary_before_a_prompt_that_was_refused_goes_with_the_next_one() {
    let (mut bench, a) = reseeded();
    let prompt = bench.heard_one("session/prompt");
    bench.agent_refuses(&prompt, -32000);
    bench.prompt(a, &json!(3), "s", "logged in now");
    bench.expect_summary();
}

#[test]
fn a_summary_that_is_owed_is_given_by_the_next_daemon() {
    let mut bench = Bench::with_shims().only_loading();
    let a = bench.plain();
    bench.session_with(a, "s", &json!({"modes":modes("ask")}));
    bench.set_mode(a, "s", "code");
    bench.run_turn(a, 1, "s", "go");
    bench.prompt_after_crash(a, 3, "s", "and now?");
    bench.refuses("session/load", -32002);
    bench.answers("session/new", &json!({"sessionId":"t","modes":modes("ask")}));
    let set = bench.heard_one("session/set_mode");
    // The daemon dies before the mode is in force, and does not know how far it had come.
    bench.reboot();
    bench.agent_answers(&set, &json!({}));
    bench.answers("session/new", &json!({"sessionId":"u"}));
    bench.answers("session/set_mode", &json!({}));
    bench.expect_summary();
}

#[test]
fn a_new_session_that_dies_before_its_first_word_gets_the_summary_again() {
    let (mut bench, a) = reseeded();
    bench.heard_one("session/prompt");
    bench.restart_agent();
    // The agent may have kept it without a word of what was before: it is not asked for it.
    assert_eq!(bench.heard(), Vec::<Value>::new());
    assert_eq!(bench.state("s"), "parked");
    bench.prompt(a, &json!(3), "s", "once more");
    bench.answers("session/new", &json!({"sessionId":"u"}));
    bench.expect_summary();
}

#[test]
fn a_summary_is_owed_also_where_acpd_has_given_the_agent_no_prompt_yet() {
    let mut bench = Bench::loadable();
    let a = bench.plain();
    bench.ask(a, 1, "session/load", &json!({"sessionId":"s","cwd":"/w","mcpServers":[]}));
    let load = bench.heard_one("session/load");
    bench.update("s", "user_message_chunk", "go");
    bench.chunk("s", "gone");
    bench.agent_answers(&load, &json!({"modes":modes("code")}));
    bench.prompt_after_crash(a, 2, "s", "and now?");
    bench.refuses("session/load", -32002);
    let begin_anew = |bench: &mut Bench, id: &str| {
        bench.answers("session/new", &json!({"sessionId":id,"modes":modes("ask")}));
        bench.heard_one("session/set_mode")
    };
    begin_anew(&mut bench, "t");
    // The agent dies before the prompt is on its way.
    bench.restart_agent();
    let set = begin_anew(&mut bench, "u");
    bench.agent_answers(&set, &json!({}));
    bench.expect_summary();
}

#[test]
fn what_was_lost_for_good_goes_on_once_it_may() {
    let mut bench = Bench::with(|profile| profile.on_lost = OnLost::Stop);
    bench.shims = true;
    let (mut bench, _) = lost(bench);
    assert_eq!(bench.state("s"), "lost");
    bench.change(|profile| profile.on_lost = OnLost::Reseed);
    bench.reboot();
    let a = bench.plain();
    bench.prompt(a, &json!(2), "s", "and now?");
    bench.pass(1_000);
    bench.refuses("session/load", -32002);
    bench.heard_one("session/new");
}

#[test]
fn an_id_of_a_session_that_is_nearly_back_is_not_taken_from_it() {
    let mut bench = Bench::able(&json!({}));
    let a = bench.plain();
    bench.used_session(a, "0");
    bench.session_with(a, "1", &json!({"modes":modes("ask")}));
    bench.set_mode(a, "1", "code");
    bench.restart_agent();
    // The agent counts from zero again, and what was `1` is `0` now, but for its mode.
    bench.answers("session/new", &json!({"sessionId":"0","modes":modes("ask")}));
    let set = bench.heard_one("session/set_mode");
    bench.prompt(a, &json!(3), "0", "and now?");
    bench.heard_one("session/new");
    bench.agent_answers(&set, &json!({}));
    bench.prompt(a, &json!(4), "1", "go");
    assert_eq!(bench.heard_one("session/prompt")["params"]["sessionId"], "0");
    bench.got(a);
    bench.chunk("0", "here");
    assert_eq!(bench.expect(a, ["agent_message_chunk"])[0]["params"]["sessionId"], "1");
}

fn continuing() -> Bench {
    Bench::with(|profile| profile.on_interrupted = OnInterrupted::Continue)
}

/// Plays a crash in a turn, up to the restored session.
fn cut_off(bench: &mut Bench) {
    bench.restart_agent();
    bench.answers("session/resume", &json!({}));
}

#[test]
fn an_agent_that_was_cut_off_is_asked_once_to_go_on() {
    let (mut bench, a) = continuing().with_used();
    let b = bench.noticed();
    bench.ask(b, 1, "session/resume", &json!({"sessionId":"s","cwd":"/w"}));
    bench.start_turn(a, 2, "s", "go");
    bench.got(b);
    cut_off(&mut bench);
    bench.expect_prompt(acpd_core::GO_ON);
    let told = words(&bench.got(b));
    for word in ["_acpd/turn_ended", "_acpd/notice", "_acpd/turn_started"] {
        assert!(told.contains(&word.to_owned()), "{word}: {told:?}");
    }
    assert_eq!(text(bench.got(a).last().expect("shown")), acpd_core::GO_ON);
    // That it is cut off again is for a person.
    cut_off(&mut bench);
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn nobody_is_asked_to_go_on_with_what_a_person_has_cancelled_or_followed_up() {
    let (mut bench, a) = continuing().with_used();
    bench.prompt(a, &json!(2), "s", "go");
    bench.cancel(a, "s");
    bench.heard();
    cut_off(&mut bench);
    assert_eq!(bench.heard(), Vec::<Value>::new(), "it was cancelled");
    bench.prompt(a, &json!(3), "s", "go");
    bench.start_turn(a, 4, "s", "another thing");
    cut_off(&mut bench);
    bench.expect_prompt("another thing");
}
