//! Sessions that the configured limits delete, and sessions that they never delete.

use acpd_core::ids::ClientId;
use acpd_core::profile::{Limits, Workspace};
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::steps::{hint, reason};
use crate::survival::token;

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// A bench with these limits, and a number of sessions without clients: `s1` was used first.
fn kept(limits: Limits, sessions: usize) -> Bench {
    let mut bench = Bench::with_shims();
    bench.configure(|config| {
        config.keep_deleted = DAY;
        config.retention = limits;
    });
    for n in 1..=sessions {
        let client = used(&mut bench, &format!("s{n}"));
        bench.leave(client);
    }
    bench
}

/// A session with a turn, open in a client.
fn used(bench: &mut Bench, session: &str) -> ClientId {
    let client = bench.plain();
    bench.used_session(client, session);
    bench.now += 1000;
    client
}

fn age(max_age: u64) -> Limits {
    Limits { max_age: Some(max_age), ..Limits::default() }
}

fn count(max_sessions: u32) -> Limits {
    Limits { max_sessions: Some(max_sessions), ..Limits::default() }
}

fn gc(bench: &mut Bench, params: &Value) -> Value {
    bench.command("_acpd/gc", params)["result"].take()
}

/// Those that a list has, in their order by name.
fn listed(bench: &mut Bench) -> Vec<String> {
    let list = bench.command("_acpd/session/list", &json!({"archived":"include"}));
    ids(&list["result"])
}

fn ids(result: &Value) -> Vec<String> {
    let sessions = result["sessions"].as_array().expect("a list").iter();
    let mut ids: Vec<String> =
        sessions.map(|one| one["sessionId"].as_str().expect("an id").to_owned()).collect();
    ids.sort();
    ids
}

#[test]
fn without_a_limit_nothing_goes_and_a_person_hears_how_to_set_one() {
    let mut bench = kept(Limits::default(), 1);
    let refused = bench.command("_acpd/gc", &json!({}));
    assert_eq!(reason(&refused), "invalid");
    assert!(hint(&refused).contains("[retention]"), "{refused}");
    bench.pass(2 * DAY);
    assert_eq!(listed(&mut bench), ["s1"]);
}

#[test]
fn a_look_changes_nothing_and_what_was_shown_is_deleted_as_by_a_person() {
    let mut bench = kept(count(1), 3);
    let shown = gc(&mut bench, &json!({"dryRun":true}));
    assert_eq!((ids(&shown), &shown["left"]), (vec!["s1".to_owned(), "s2".to_owned()], &json!(0)));
    let first = &shown["sessions"][0];
    assert_eq!((&first["sessionId"], &first["limit"]), (&json!("s1"), &json!("max_sessions")));
    let bytes = first["bytes"].as_u64().unwrap() + shown["sessions"][1]["bytes"].as_u64().unwrap();
    assert!(bytes > 0 && shown["bytes"] == bytes);
    assert_eq!(shown.get("until"), None);
    assert_eq!(listed(&mut bench).len(), 3);

    let gone = gc(&mut bench, &json!({"only":[first["number"],999]}));
    assert_eq!((ids(&gone), &gone["left"]), (vec!["s1".to_owned()], &json!(0)));
    assert_eq!(gone["until"], json!(bench.now + DAY));
    assert_eq!(listed(&mut bench), ["s2", "s3"]);
    let undone = bench.command("_acpd/session/undo", &json!({}));
    assert_eq!(undone["result"]["session"]["sessionId"], "s1");

    let gone = gc(&mut bench, &json!({"now":true}));
    assert_eq!((ids(&gone).len(), gone.get("until")), (2, None));
    assert_eq!(bench.snapshot.sessions.len(), 1);
}

#[test]
fn by_time_some_go_at_once_and_the_others_soon_after() {
    let mut bench = kept(age(DAY), 40);
    bench.pass(DAY + 2 * HOUR);
    assert_eq!(listed(&mut bench), Vec::<String>::new());
    assert_eq!(bench.snapshot.sessions.len(), 40, "they can be brought back");
    bench.pass(2 * DAY + HOUR);
    assert_eq!(bench.snapshot.sessions.len(), 0);

    let mut bench = kept(count(1), 40);
    bench.reboot();
    bench.pass(5 * MINUTE);
    let first = listed(&mut bench).len();
    assert!((2..40).contains(&first), "{first} are left after the first look");
    bench.pass(MINUTE);
    assert_eq!(listed(&mut bench), ["s40"]);
}

#[test]
fn a_limit_of_a_workspace_is_named_and_one_that_is_kept_loses_nothing() {
    let workspace =
        |keep, retention| Workspace { path: "/w".into(), keep, retention, ..Workspace::default() };
    let mut bench = kept(age(MINUTE), 1);
    bench.configure(|config| config.workspaces = vec![workspace(true, Limits::default())]);
    bench.pass(2 * HOUR);
    assert_eq!(listed(&mut bench), ["s1"]);
    bench.configure(|config| config.workspaces = vec![workspace(false, age(3 * HOUR))]);
    assert_eq!(ids(&gc(&mut bench, &json!({"dryRun":true}))), Vec::<String>::new());
    bench.pass(2 * HOUR);
    let limits = |gone: &Value| (gone["limit"].clone(), gone["workspace"].clone());
    bench.configure(|config| config.workspaces = vec![workspace(true, age(HOUR))]);
    assert_eq!(gc(&mut bench, &json!({"dryRun":true}))["sessions"], json!([]));
    let mut bench = kept(Limits::default(), 2);
    bench.configure(|config| config.workspaces = vec![workspace(false, count(1))]);
    let shown = gc(&mut bench, &json!({"dryRun":true}));
    assert_eq!(limits(&shown["sessions"][0]), (json!("max_sessions"), json!("/w")));
}

#[test]
fn what_runs_waits_asks_or_is_open_stays() {
    let mut bench = kept(age(MINUTE), 0);
    used(&mut bench, "open");
    let client = used(&mut bench, "works");
    let asks = used(&mut bench, "asks");
    bench.prompt(client, &json!(9), "works", "go");
    bench.prompt(client, &json!(10), "works", "and then");
    bench.prompt(asks, &json!(9), "asks", "go");
    bench.ask_permission(7, "asks");
    bench.leave(client);
    bench.leave(asks);
    bench.pass(2 * HOUR);
    assert_eq!(ids(&gc(&mut bench, &json!({"dryRun":true}))), Vec::<String>::new());
    assert_eq!(listed(&mut bench), ["asks", "open", "works"]);
}

#[test]
fn nothing_goes_by_time_while_a_client_is_away() {
    let mut bench = kept(count(1), 2);
    bench.reboot();
    let away = bench.client(&token());
    bench.leave(away);
    bench.pass(6 * MINUTE);
    assert_eq!(listed(&mut bench).len(), 2);
    bench.pass(2 * HOUR);
    assert_eq!(listed(&mut bench), ["s2"]);
}

#[test]
fn deletions_by_limits_are_announced_reported_and_undone_together() {
    let mut bench = kept(count(2), 4);
    bench.command("_acpd/session/remove", &json!({"session":"s4"}));
    bench.configure(|config| config.retention = count(1));
    bench.reboot();
    let next = gc(&mut bench, &json!({"dryRun":true}))["next"].as_u64().unwrap();
    assert_eq!(next, bench.now + 5 * MINUTE);
    let watcher = bench.noticed();
    bench.pass(6 * MINUTE);

    let told = &bench.find(watcher, "_acpd/sessions_expired")["params"];
    assert_eq!((ids(told), &told["at"]), (vec!["s1".to_owned(), "s2".to_owned()], &json!(next)));
    assert_eq!(told["until"], json!(next + DAY));
    assert_eq!(bench.expired, ["s1", "s2"]);

    let since = json!({"since":next});
    let back = [1, 2].map(|_| bench.command("_acpd/session/undo", &since)["result"]["kept"].take());
    assert_eq!(back, [json!(1), json!(0)]);
    assert_eq!(listed(&mut bench), ["s1", "s2", "s3"], "what was deleted before stays deleted");
    assert_eq!(reason(&bench.command("_acpd/session/undo", &since)), "session_not_found");
}
