//! Sessions that go on with a summary, and tasks that an agent is asked to finish.

use acpd_core::profile::{OnInterrupted, OnLost, Reseed};
use serde_json::{Value, json};

use crate::bench::{Bench, methods, words};
use crate::titles::{listed, told};

/// A used session whose agent died and no longer knows it; no prompt has followed.
fn lost(bench: &mut Bench, client: acpd_core::ids::ClientId) {
    bench.capabilities = Some(json!({"loadSession":true}));
    bench.used_session(client, "s");
    bench.agent_dies();
    bench.pass(1_000);
    bench.refuses("session/load", -32002);
}

/// Like [`lost`], up to the answer to `session/new` for the next prompt.
fn reseeded(bench: &mut Bench, client: acpd_core::ids::ClientId) {
    lost(bench, client);
    bench.prompt(client, &json!(2), "s", "and now?");
    bench.refuses("session/load", -32002);
    bench.answers("session/new", &json!({"sessionId":"t"}));
}

#[test]
fn a_lost_session_goes_on_with_a_summary_before_the_next_prompt_and_says_so() {
    let mut bench = Bench::new();
    let (plain, noticed) = (bench.plain(), bench.client(&json!({"notices":true})));
    lost(&mut bench, plain);
    assert_eq!(bench.state("s"), "parked", "it waits for a prompt");
    assert_eq!(bench.heard(), Vec::<Value>::new(), "nothing is made that nobody has asked for");
    let open = json!({"id":1,"method":"_acpd/session/attach","params":{"ref":{"session":"s"}}});
    bench.say(noticed, &open);
    bench.refuses("session/load", -32002);
    bench.got(plain);
    bench.prompt(plain, &json!(2), "s", "and now?");
    bench.refuses("session/load", -32002);
    let new = bench.heard_one("session/new");
    assert_eq!(new["params"]["cwd"], "/w");
    bench.agent_answers(&new, &json!({"sessionId":"t"}));
    let prompt = bench.heard_one("session/prompt");
    assert_eq!(prompt["params"]["sessionId"], "t");
    let blocks = prompt["params"]["prompt"].as_array().expect("blocks");
    assert_eq!(blocks.len(), 2);
    assert!(blocks[0]["text"].as_str().expect("text").contains("it was about a fish"));
    assert_eq!(blocks[1]["text"], "and now?");
    // Clients without notices see a sentence; the others see level and reason.
    let got = bench.got(plain);
    assert_eq!(words(&got), ["agent_message_chunk"]);
    let text = got[0]["params"]["update"]["content"]["text"].as_str().expect("text");
    assert!(text.contains("could not be restored: the agent does not know it"), "{text}");
    let got = bench.got(noticed);
    let told = got.iter().find(|line| line["method"] == "_acpd/restored").expect("told");
    assert_eq!(told["params"]["level"], "reseeded");
    assert!(told["params"]["reason"].as_str().expect("why").contains("does not know it"));
    assert!(!words(&got).contains(&"agent_message_chunk".to_owned()), "{got:?}");
    let told = |line: &&acpd_core::record::EventRow| {
        String::from_utf8_lossy(&line.line).contains("does not know it")
    };
    let rows = bench.journal.values().flatten();
    assert_eq!(rows.filter(told).count(), 1, "it is stored once, as acpd's");
    // The public id stays.
    bench.chunk("t", "go on");
    bench.agent_answers(&prompt, &json!({"stopReason":"end_turn"}));
    let got = bench.got(plain);
    assert_eq!(words(&got), ["agent_message_chunk", "result 2"]);
    assert_eq!(got[0]["params"]["sessionId"], "s");
    // Once is enough.
    bench.prompt(plain, &json!(3), "s", "more");
    let prompt = bench.heard_one("session/prompt");
    assert_eq!(prompt["params"]["prompt"].as_array().map(Vec::len), Some(1));
}

#[test]
fn lost_session_continues_with_a_transcript_if_configured() {
    let mut bench = Bench::with(|profile| profile.reseed = Reseed::Transcript);
    let a = bench.plain();
    lost(&mut bench, a);
    let reason =
        |bench: &Bench| bench.snapshot.sessions.values().next().unwrap().row.reason.clone();
    assert!(reason(&bench).expect("why").ends_with("in a new session, with a transcript"));
    bench.prompt(a, &json!(2), "s", "and now?");
    bench.refuses("session/load", -32002);
    bench.answers("session/new", &json!({"sessionId":"t"}));
    assert_eq!(bench.summarized, [Reseed::Transcript]);
    let prompt = bench.heard_one("session/prompt");
    assert_eq!(prompt["params"]["prompt"].as_array().map(Vec::len), Some(2), "one message");
    let got = bench.got(a);
    let text = got[0]["params"]["update"]["content"]["text"].as_str().expect("text");
    assert!(text.contains("in a new one, with a transcript of the conversation"), "{text}");
}

#[test]
fn acpds_own_words_are_no_title_of_the_agent() {
    let mut bench = Bench::new();
    let a = bench.plain();
    reseeded(&mut bench, a);
    let prompt = bench.heard_one("session/prompt");
    let summary = prompt["params"]["prompt"][0]["text"].as_str().expect("text").to_owned();
    let cut = |at: usize| summary.chars().take(at).collect::<String>();
    let calls = |bench: &mut Bench, title: &str| {
        let update = json!({"sessionUpdate":"session_info_update","title":title});
        let params = json!({"sessionId":"t","update":update});
        bench.agent(&json!({"jsonrpc":"2.0","method":"session/update","params":params}));
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
    let mut bench = Bench::new();
    let a = bench.plain();
    reseeded(&mut bench, a);
    let prompt = bench.heard_one("session/prompt");
    bench.agent_refuses(&prompt, -32000);
    bench.prompt(a, &json!(3), "s", "logged in now");
    let prompt = bench.heard_one("session/prompt");
    let blocks = prompt["params"]["prompt"].as_array().expect("blocks");
    assert_eq!(blocks.len(), 2);
    assert!(blocks[0]["text"].as_str().expect("text").contains("it was about a fish"));
}

#[test]
fn a_summary_that_is_owed_is_given_by_the_next_daemon() {
    let mut bench = Bench::with_shims();
    let modes = json!({"modes":{"currentModeId":"ask","availableModes":[
        {"id":"ask","name":"Ask"},{"id":"code","name":"Code"}]}});
    bench.capabilities = Some(json!({"loadSession":true}));
    let a = bench.plain();
    bench.session_with(a, "s", &modes);
    let set = json!({"sessionId":"s","modeId":"code"});
    bench.say(a, &json!({"id":2,"method":"session/set_mode","params":set}));
    bench.answers("session/set_mode", &json!({}));
    bench.prompt(a, &json!(1), "s", "go");
    let prompt = bench.heard_one("session/prompt");
    bench.agent_answers(&prompt, &json!({"stopReason":"end_turn"}));
    bench.agent_dies();
    bench.prompt(a, &json!(3), "s", "and now?");
    bench.pass(1_000);
    bench.refuses("session/load", -32002);
    let new = bench.heard_one("session/new");
    let mut made = modes;
    made["sessionId"] = "t".into();
    bench.agent_answers(&new, &made);
    let set = bench.heard_one("session/set_mode");
    // The daemon dies before the mode is in force, and does not know how far it had come.
    bench.reboot();
    bench.agent_answers(&set, &json!({}));
    bench.answers("session/new", &json!({"sessionId":"u"}));
    bench.answers("session/set_mode", &json!({}));
    let prompt = bench.heard_one("session/prompt");
    assert_eq!(prompt["params"]["prompt"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_new_session_that_dies_before_its_first_word_gets_the_summary_again() {
    let mut bench = Bench::new();
    let a = bench.plain();
    reseeded(&mut bench, a);
    bench.heard_one("session/prompt");
    bench.agent_dies();
    bench.pass(2_000);
    // The agent may have kept it without a word of what was before: it is not asked for it.
    assert_eq!(bench.heard(), Vec::<Value>::new());
    assert_eq!(bench.state("s"), "parked");
    bench.prompt(a, &json!(3), "s", "once more");
    bench.answers("session/new", &json!({"sessionId":"u"}));
    let prompt = bench.heard_one("session/prompt");
    assert_eq!(prompt["params"]["prompt"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_summary_is_owed_also_where_acpd_has_given_the_agent_no_prompt_yet() {
    let mut bench = Bench::new();
    let modes = |current: &str| {
        json!({"currentModeId":current,"availableModes":[
            {"id":"ask","name":"Ask"},{"id":"code","name":"Code"}]})
    };
    bench.capabilities = Some(json!({"loadSession":true}));
    let a = bench.plain();
    let load = json!({"sessionId":"s","cwd":"/w","mcpServers":[]});
    bench.say(a, &json!({"id":1,"method":"session/load","params":load}));
    let load = bench.heard_one("session/load");
    bench.update("s", "user_message_chunk", "go");
    bench.chunk("s", "gone");
    bench.agent_answers(&load, &json!({"modes":modes("code")}));
    bench.agent_dies();
    bench.prompt(a, &json!(2), "s", "and now?");
    bench.pass(1_000);
    bench.refuses("session/load", -32002);
    let begin_anew = |bench: &mut Bench, id: &str| {
        bench.answers("session/new", &json!({"sessionId":id,"modes":modes("ask")}));
        bench.heard_one("session/set_mode")
    };
    begin_anew(&mut bench, "t");
    // The agent dies before the prompt is on its way.
    bench.agent_dies();
    bench.pass(2_000);
    let set = begin_anew(&mut bench, "u");
    bench.agent_answers(&set, &json!({}));
    let prompt = bench.heard_one("session/prompt");
    assert_eq!(prompt["params"]["prompt"].as_array().map(Vec::len), Some(2));
}

#[test]
fn what_was_lost_for_good_goes_on_once_it_may() {
    let mut bench = Bench::with(|profile| profile.on_lost = OnLost::Stop);
    bench.shims = true;
    let a = bench.plain();
    lost(&mut bench, a);
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
    let mut bench = Bench::new();
    bench.capabilities = Some(json!({}));
    let a = bench.plain();
    bench.used_session(a, "0");
    let modes = json!({"modes":{"currentModeId":"ask","availableModes":[
        {"id":"ask","name":"Ask"},{"id":"code","name":"Code"}]}});
    bench.session_with(a, "1", &modes);
    let set = json!({"sessionId":"1","modeId":"code"});
    bench.say(a, &json!({"id":2,"method":"session/set_mode","params":set}));
    bench.answers("session/set_mode", &json!({}));
    bench.agent_dies();
    bench.pass(1_000);
    // The agent counts from zero again, and what was `1` is `0` now, but for its mode.
    let new = bench.heard_one("session/new");
    let mut made = modes;
    made["sessionId"] = "0".into();
    bench.agent_answers(&new, &made);
    let set = bench.heard_one("session/set_mode");
    bench.prompt(a, &json!(3), "0", "and now?");
    bench.heard_one("session/new");
    bench.agent_answers(&set, &json!({}));
    bench.prompt(a, &json!(4), "1", "go");
    assert_eq!(bench.heard_one("session/prompt")["params"]["sessionId"], "0");
    bench.got(a);
    bench.chunk("0", "here");
    let got = bench.got(a);
    assert_eq!(words(&got), ["agent_message_chunk"]);
    assert_eq!(got[0]["params"]["sessionId"], "1");
}

fn continuing() -> Bench {
    Bench::with(|profile| profile.on_interrupted = OnInterrupted::Continue)
}

/// Plays a crash in a turn, up to the restored session.
fn cut_off(bench: &mut Bench) {
    bench.agent_dies();
    bench.pass(2_000);
    bench.answers("session/resume", &json!({}));
}

#[test]
fn an_agent_that_was_cut_off_is_asked_once_to_go_on() {
    let mut bench = continuing();
    let (a, b) = (bench.plain(), bench.client(&json!({"notices":true})));
    bench.used_session(a, "s");
    bench.say(b, &json!({"id":1,"method":"session/resume","params":{"sessionId":"s","cwd":"/w"}}));
    bench.prompt(a, &json!(2), "s", "go");
    bench.heard_one("session/prompt");
    bench.got(b);
    cut_off(&mut bench);
    let prompt = bench.heard_one("session/prompt");
    assert_eq!(prompt["params"]["prompt"][0]["text"], acpd_core::GO_ON);
    let told = words(&bench.got(b));
    for word in ["_acpd/turn_ended", "_acpd/notice", "_acpd/turn_started"] {
        assert!(told.contains(&word.to_owned()), "{word}: {told:?}");
    }
    assert_eq!(
        bench.got(a).last().expect("shown")["params"]["update"]["content"]["text"],
        acpd_core::GO_ON
    );
    // That it is cut off again is for a person.
    cut_off(&mut bench);
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn nobody_is_asked_to_go_on_with_what_a_person_has_cancelled_or_followed_up() {
    let mut bench = continuing();
    let a = bench.plain();
    bench.used_session(a, "s");
    bench.prompt(a, &json!(2), "s", "go");
    bench.say(a, &json!({"method":"session/cancel","params":{"sessionId":"s"}}));
    bench.heard();
    cut_off(&mut bench);
    assert_eq!(bench.heard(), Vec::<Value>::new(), "it was cancelled");
    bench.prompt(a, &json!(3), "s", "go");
    bench.prompt(a, &json!(4), "s", "another thing");
    bench.heard();
    cut_off(&mut bench);
    let heard = bench.heard();
    assert_eq!(methods(&heard), ["session/prompt"]);
    assert_eq!(heard[0]["params"]["prompt"][0]["text"], "another thing");
}

#[test]
fn without_being_told_so_acpd_asks_nobody_to_go_on() {
    let (mut bench, a) = Bench::used();
    bench.prompt(a, &json!(2), "s", "go");
    bench.heard();
    cut_off(&mut bench);
    assert_eq!(bench.heard(), Vec::<Value>::new());
}
