//! Unused sessions: the clients that see them, and their deletion.

use acpd_core::ids::ClientId;
use serde_json::{Value, json};

use crate::bench::{Bench, methods};

const HOUR: u64 = 3_600_000;

/// The ids that an editor is shown.
fn listed(bench: &mut Bench, client: ClientId) -> Vec<String> {
    ids(bench, client, "session/list")
}

/// The ids that acpd's own list has.
fn known(bench: &mut Bench, client: ClientId) -> Vec<String> {
    ids(bench, client, "_acpd/session/list")
}

fn ids(bench: &mut Bench, client: ClientId, list: &str) -> Vec<String> {
    bench.say(client, &json!({"id":"list","method":list}));
    let sessions = bench.got(client)[0]["result"]["sessions"].take();
    let id = |entry: &Value| entry["sessionId"].as_str().expect("an id").to_owned();
    sessions.as_array().expect("a list").iter().map(id).collect()
}

fn leave(bench: &mut Bench, client: ClientId, session: &str) {
    bench.ask(client, "gone", "_acpd/session/detach", &json!({"session":session}));
    bench.got(client);
}

fn open(bench: &mut Bench, client: ClientId, session: &str) {
    let params = json!({"sessionId":session,"cwd":"/w","mcpServers":[]});
    bench.ask(client, "open", "session/load", &params);
    assert!(bench.got(client).iter().any(|line| line["result"].is_object()));
}

#[test]
fn an_unused_session_is_listed_to_who_made_it_and_while_somebody_has_it_open() {
    let (mut bench, maker) = Bench::begun();
    let other = bench.plain();
    assert_eq!(listed(&mut bench, other), ["s"], "it is open");
    leave(&mut bench, maker, "s");
    assert_eq!(listed(&mut bench, maker), ["s"]);
    assert_eq!(listed(&mut bench, other), Vec::<String>::new());
    assert_eq!(known(&mut bench, other), ["s"], "it is there");
    open(&mut bench, other, "s");
    assert_eq!(listed(&mut bench, other), ["s"]);
    leave(&mut bench, other, "s");
    assert_eq!(listed(&mut bench, other), Vec::<String>::new());
    bench.leave(maker);
    open(&mut bench, other, "s");
    bench.prompt(other, &json!(1), "s", "go");
    leave(&mut bench, other, "s");
    assert_eq!(listed(&mut bench, other), ["s"], "it has a prompt");
}

#[test]
fn a_session_with_a_name_or_a_label_is_listed_and_kept_though_nobody_used_it() {
    for (method, member, value) in [
        ("_acpd/session/rename", "name", json!("later")),
        ("_acpd/session/label", "add", json!(["a"])),
    ] {
        let (mut bench, maker) = Bench::begun();
        let other = bench.plain();
        bench.ask(maker, 1, method, &json!({"ref":{"session":"s"},member:value}));
        bench.leave(maker);
        assert_eq!(listed(&mut bench, other), ["s"]);
        bench.pass(100 * HOUR);
        assert_eq!(listed(&mut bench, other), ["s"]);
    }
}

#[test]
fn what_nobody_used_is_deleted_after_a_day() {
    let mut bench = Bench::new();
    let maker = bench.plain();
    bench.used_session(maker, "used");
    bench.session(maker, "s");
    bench.leave(maker);
    let other = bench.plain();
    bench.pass(23 * HOUR);
    assert_eq!(known(&mut bench, other), ["used", "s"]);
    bench.pass(HOUR);
    assert_eq!(known(&mut bench, other), ["used"]);
    assert_eq!(bench.snapshot.sessions.len(), 1);
    bench.pass(100 * HOUR);
    assert_eq!(known(&mut bench, other), ["used"]);
}

#[test]
fn what_is_open_is_deleted_when_it_is_left_and_not_before() {
    let (mut bench, maker) = Bench::begun();
    bench.pass(50 * HOUR);
    assert_eq!(known(&mut bench, maker), ["s"]);
    leave(&mut bench, maker, "s");
    bench.pass(HOUR);
    assert_eq!(known(&mut bench, maker), Vec::<String>::new());
}

#[test]
fn the_next_daemon_deletes_them_and_clients_that_come_back_are_waited_for() {
    let (mut bench, _) = Bench::begun();
    bench.now += 30 * HOUR;
    bench.reboot();
    bench.end_process();
    let other = bench.plain();
    bench.pass(5 * 60_000);
    assert_eq!(known(&mut bench, other), ["s"]);
    bench.pass(HOUR);
    assert_eq!(known(&mut bench, other), Vec::<String>::new());
}

#[test]
fn what_is_open_in_a_client_that_is_away_is_kept_until_it_is_not_waited_for_any_more() {
    for restarts in [false, true] {
        let (mut bench, maker) = Bench::with_shims().with_token();
        bench.pass(30 * HOUR);
        if restarts {
            bench.reboot();
        } else {
            bench.leave(maker);
        }
        bench.pass(HOUR - 1);
        let other = bench.plain();
        assert_eq!(known(&mut bench, other), ["s"]);
        bench.pass(HOUR);
        assert_eq!(known(&mut bench, other), Vec::<String>::new());
    }
}

#[test]
fn the_agent_keeps_its_copy_of_what_nobody_used() {
    let can = json!({"resume":{},"delete":{},"close":{}});
    let mut bench = Bench::able(&json!({"loadSession":true,"sessionCapabilities":can}));
    let maker = bench.begin("s");
    let other = bench.plain();
    bench.used_session(other, "t");
    bench.leave(maker);
    bench.pass(25 * HOUR);
    assert_eq!(known(&mut bench, other), ["t"]);
    assert_eq!(methods(&bench.heard()), ["session/close"]);
}

#[test]
fn they_go_while_new_ones_come_every_few_minutes() {
    let mut bench = Bench::new();
    let maker = bench.plain();
    for n in 0..30 * 60 / 9 {
        let id = format!("s{n}");
        bench.session(maker, &id);
        leave(&mut bench, maker, &id);
        bench.pass(9 * 60_000);
    }
    let kept = known(&mut bench, maker);
    let a_day = 24 * 60 / 9;
    assert!(kept.len() <= a_day + 2, "{} are kept", kept.len());
}

#[test]
fn conversation_that_is_not_kept_goes_when_nobody_has_it_open() {
    let mut bench = Bench::with(|profile| profile.persist_history = false);
    let maker = bench.plain();
    for id in ["closed", "left", "one", "two"] {
        bench.used_session(maker, id);
    }
    let other = bench.plain();
    bench.ask(maker, "c", "session/close", &json!({"sessionId":"closed"}));
    assert!(bench.got(maker).iter().any(|line| line["result"].is_object()), "it is closed");
    assert_eq!(known(&mut bench, other), ["left", "one", "two"]);
    assert_eq!(bench.snapshot.sessions.len(), 3, "nothing of it is set aside");

    leave(&mut bench, maker, "left");
    bench.pass(HOUR);
    assert_eq!(known(&mut bench, other).len(), 3, "its agent has it");
    bench.change(|profile| profile.restart.on_failure = false);
    bench.agent_dies();
    bench.pass(HOUR / 2);
    assert_eq!(known(&mut bench, other), ["one", "two"], "somebody has them open");
    bench.ask(other, "s", "_acpd/session/archive", &json!({"session":"one"}));
    assert!(bench.got(other)[0]["error"].is_object());
    bench.leave(maker);
    bench.pass(HOUR);
    assert_eq!(known(&mut bench, other), Vec::<String>::new());
    assert!(bench.snapshot.sessions.is_empty());
}
