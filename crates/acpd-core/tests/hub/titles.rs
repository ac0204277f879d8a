//! Titles of sessions: the agent's and those of people.

use acp_wire::StateKey;
use acpd_core::ids::ClientId;
use acpd_core::record::EventKind;
use serde_json::{Value, json};

use crate::bench::Bench;

fn set(bench: &mut Bench, client: ClientId, title: &Value) -> Value {
    bench.ask(client, "set", "session/set_title", &json!({"sessionId":"s","title":title}));
    bench.answer(client, "set")
}

/// A person's command; the session as they are told it.
fn own(bench: &mut Bench, title: &Value) -> Value {
    let params = json!({"ref":{"session":"s"},"title":title});
    bench.command("_acpd/session/title", &params)["result"].take()
}

/// Title by the agent.
fn call(bench: &mut Bench, title: &str) {
    let info =
        json!({"sessionUpdate":"session_info_update","title":title,"updatedAt":"2026-01-01"});
    bench.send_update("s", &info);
}

/// The titles that a client was told.
pub(crate) fn told(lines: &[Value]) -> Vec<Value> {
    let updates = lines.iter().map(|line| &line["params"]["update"]);
    let infos = updates.filter(|update| update["sessionUpdate"] == "session_info_update");
    infos.map(|info| info["title"].clone()).collect()
}

pub(crate) fn listed(bench: &mut Bench) -> Value {
    bench.command("session/list", &json!({}))["result"]["sessions"][0]["title"].take()
}

#[test]
fn a_title_of_a_person_is_told_to_all_and_wakes_nobody() {
    let (mut bench, a) = Bench::used();
    let b = bench.joined("s");
    bench.ask(a, 2, "_acpd/session/close", &json!({"session":"s"}));
    assert_eq!(bench.state("s"), "closed");
    bench.got(b);
    bench.heard();
    let spawned = bench.spawned.len();
    let answer = set(&mut bench, a, &json!("  Fix\n the\tparser "));
    assert_eq!(answer["result"], json!({"title":"Fix the parser"}), "as it is kept");
    set(&mut bench, a, &json!("Fix the parser"));
    assert_eq!(told(&bench.got(b)), ["Fix the parser"], "it changes only when it is another");
    assert_eq!(listed(&mut bench), "Fix the parser");
    bench.pass(60_000);
    assert_eq!(bench.state("s"), "closed");
    assert_eq!(bench.spawned.len(), spawned);
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn a_title_of_a_person_stays_until_a_person_takes_it_away() {
    let (mut bench, a) = Bench::begun();
    call(&mut bench, "parser stuff");
    assert_eq!(told(&bench.got(a)), ["parser stuff"]);
    set(&mut bench, a, &json!("Mine"));
    call(&mut bench, "more parser stuff");
    let got = bench.got(a);
    assert_eq!(told(&got), ["Mine"]);
    assert_eq!(got[0]["params"]["update"]["updatedAt"], "2026-01-01", "the rest is the agent's");
    bench.reboot();
    assert_eq!(listed(&mut bench), "Mine");
    let c = bench.joined("s");
    assert_eq!(own(&mut bench, &json!(null))["title"], "more parser stuff");
    assert_eq!(told(&bench.got(c)), ["more parser stuff"]);
    assert_eq!(own(&mut bench, &json!("Other"))["title"], "Other");
}

#[test]
fn without_a_title_of_the_agent_there_is_none_when_that_of_a_person_is_gone() {
    let (mut bench, a) = Bench::begun();
    own(&mut bench, &json!("Mine"));
    assert_eq!(own(&mut bench, &json!(null)).get("title"), None);
    assert_eq!(told(&bench.got(a)), [json!("Mine"), json!(null)]);
}

#[test]
fn a_title_that_is_none_is_refused() {
    let (mut bench, a) = Bench::begun();
    for title in [json!(" \n "), json!(""), json!(null), json!(7)] {
        assert_eq!(set(&mut bench, a, &title)["error"]["code"], -32602, "{title}");
    }
    let long = set(&mut bench, a, &json!("é".repeat(500)))["result"]["title"].clone();
    assert_eq!(long.as_str().unwrap().chars().count(), 200);
}

#[test]
fn an_agent_that_takes_titles_is_told_while_it_has_the_session() {
    let session = json!({"resume":{},"title":{}});
    let (mut bench, a) = Bench::able(&json!({"sessionCapabilities":session})).with_used();
    set(&mut bench, a, &json!("Mine"));
    let asked = bench.heard_one("session/set_title");
    assert_eq!(asked["params"], json!({"sessionId":"s","title":"Mine"}));
    // The answer is not needed.
    bench.agent_refuses(&asked, -32603);
    assert_eq!(bench.got(a), Vec::<Value>::new());
    assert_eq!(listed(&mut bench), "Mine");

    own(&mut bench, &json!(null));
    assert_eq!(bench.heard(), Vec::<Value>::new(), "there is no word for that");
    bench.agent_dies();
    set(&mut bench, a, &json!("Later"));
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn a_name_is_no_title() {
    let (mut bench, a) = Bench::begun();
    set(&mut bench, a, &json!("Fix the parser"));
    let shown = own(&mut bench, &json!("Fix the parser"));
    assert_eq!((shown.get("name"), &shown["title"]), (None, &json!("Fix the parser")));
    bench.ask(a, 1, "_acpd/session/rename", &json!({"ref":{"session":"s"},"name":"fix"}));
    let shown = bench.got(a)[0]["result"].clone();
    assert_eq!((&shown["name"], &shown["title"]), (&json!("fix"), &json!("Fix the parser")));
    assert_eq!(bench.got(a), Vec::<Value>::new());
}

#[test]
fn an_agent_that_says_nothing_to_a_title_is_idle_all_the_same() {
    let mut bench = Bench::with(|profile| profile.idle_timeout = 60_000);
    bench.capabilities = Some(json!({"sessionCapabilities":{"resume":{},"title":{}}}));
    let (mut bench, a) = bench.with_used();
    set(&mut bench, a, &json!("Mine"));
    bench.heard_one("session/set_title");
    assert_eq!(bench.snapshot.asked.len(), 1);
    bench.leave(a);
    bench.pass(60_000);
    assert!(!bench.stops.is_empty(), "nothing uses it");
    bench.agent_dies();
    assert!(bench.snapshot.asked.is_empty());
}

#[test]
fn a_title_of_a_person_that_the_agent_repeats_is_not_its_own() {
    let (mut bench, a) = Bench::begun();
    call(&mut bench, "parser stuff");
    set(&mut bench, a, &json!("Mine"));
    call(&mut bench, "Mine");
    assert_eq!(told(&bench.got(a)).last(), Some(&json!("Mine")));
    assert_eq!(own(&mut bench, &json!(null))["title"], "parser stuff");
}

#[test]
fn until_the_agent_gives_a_title_the_first_prompt_is_one() {
    let (mut bench, a, running) = Bench::with_shims().in_turn("Why does\n  login fail?");
    assert_eq!(listed(&mut bench), "Why does login fail?");
    bench.end_turn(&running);
    bench.prompt(a, &json!(2), "s", "and now?");
    assert_eq!(listed(&mut bench), "Why does login fail?");
    call(&mut bench, "Login");
    assert_eq!(listed(&mut bench), "Login");
}

/// Sends a first prompt with this title in its own metadata.
fn titled(bench: &mut Bench, text: &str, title: &Value) -> ClientId {
    let a = bench.begin("s");
    bench.prompt_with(a, 1, text, &json!({"title":title}));
    a
}

#[test]
fn prompt_that_wraps_its_words_has_a_title_of_its_own() {
    let mut bench = Bench::new();
    let a = titled(&mut bench, "Take over: read\n\nThis conversation …", &json!("Fix the\nparser"));
    assert_eq!(listed(&mut bench), "Fix the parser");
    bench.got(a);
    for title in ["Take over: read", "Take over:…", "Take over: read This conversation … and more"]
    {
        call(&mut bench, title);
        assert_eq!(listed(&mut bench), "Fix the parser", "{title}");
        assert_eq!(told(&bench.got(a)), ["Fix the parser"], "{title}");
    }
    call(&mut bench, "Parser");
    assert_eq!(listed(&mut bench), "Parser");
    // Without readable words it is the beginning of the prompt.
    for title in [json!(" "), json!(null)] {
        let mut bench = Bench::new();
        titled(&mut bench, "fix it", &title);
        assert_eq!(listed(&mut bench), "fix it");
    }
}

#[test]
fn wrapping_of_clients_is_no_title() {
    let text = "<previous_user_message>\nold\n</previous_user_message>\nWhy does login fail?";
    let (mut bench, ..) = Bench::new().in_turn(text);
    assert_eq!(listed(&mut bench), "Why does login fail?");
    call(&mut bench, "<previous_user_message> old </previous…");
    assert_eq!(listed(&mut bench), "Why does login fail?");
}

/// Facts of the session: what the client was told last, and what a newcomer is told.
fn facts(bench: &mut Bench, client: ClientId, patch: &Value) -> (Value, Value) {
    let mut update = patch.clone();
    update["sessionUpdate"] = json!("session_info_update");
    bench.send_update("s", &update);
    let told = bench.got(client).pop().expect("the update")["params"]["update"].take();
    (told, kept(bench))
}

/// Facts of the only session that a newcomer is told.
fn kept(bench: &Bench) -> Value {
    let mut rows = bench.journal.values().flatten();
    let last = rows.rfind(|row| row.kind == EventKind::State(StateKey::Info));
    let mut line: Value = serde_json::from_slice(&last.expect("stored").line).expect("JSON");
    line["params"]["update"].take()
}

#[test]
fn facts_of_a_session_are_patched() {
    let (mut bench, a) = Bench::begun();
    let info = |more: Value| {
        let mut info = json!({"sessionUpdate":"session_info_update","title":"Fix","updatedAt":"x"});
        info.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        info
    };
    facts(&mut bench, a, &json!({"title":"Fix","updatedAt":"x"}));
    let (told, stored) = facts(&mut bench, a, &json!({"_meta":{"codex":{"a":1}}}));
    assert_eq!((&told, &stored), (&stored, &info(json!({"_meta":{"codex":{"a":1}}}))));
    let (_, stored) =
        facts(&mut bench, a, &json!({"_meta":{"codex":{"b":2},"n":null}, "more":[1]}));
    let meta = json!({"codex":{"b":2},"n":null});
    assert_eq!(stored, info(json!({"_meta":meta,"more":[1]})));
    // The next daemon knows them as well.
    bench.reboot();
    let c = bench.joined("s");
    bench.pass(1_000);
    set(&mut bench, c, &json!("Mine"));
    assert_eq!(kept(&bench), info(json!({"title":"Mine","_meta":meta,"more":[1]})));
}

#[test]
fn fact_that_is_taken_away_is_not_kept() {
    for (name, other) in [("updatedAt", "title"), ("title", "updatedAt")] {
        let (mut bench, a) = Bench::begun();
        facts(&mut bench, a, &json!({name:"x","more":1}));
        let (told, _) = facts(&mut bench, a, &json!({name:null}));
        assert_eq!(told, json!({"sessionUpdate":"session_info_update",name:null,"more":1}));
        let (told, _) = facts(&mut bench, a, &json!({other:"y"}));
        assert_eq!(told, json!({"sessionUpdate":"session_info_update",other:"y","more":1}));
    }
    let (mut bench, a) = Bench::begun();
    facts(&mut bench, a, &json!({"big":"x".repeat(20_000)}));
    let (told, _) = facts(&mut bench, a, &json!({"title":"Fix"}));
    assert_eq!(told.get("big"), None, "what is too big is not kept");
}
