//! Deleted sessions that come back, or do not.

use serde_json::{Value, json};

use crate::bench::{Bench, methods, words};

const DAY: u64 = 24 * 60 * 60_000;

fn keeping() -> Bench {
    let mut bench = Bench::with_shims();
    bench.capabilities = Some(json!({"loadSession":true,
        "sessionCapabilities":{"resume":{},"close":{},"delete":{},"list":{}}}));
    bench.configure(|config| config.keep_deleted = DAY);
    bench
}

/// A person's command; its answer.
fn command(bench: &mut Bench, method: &str, params: &Value) -> Value {
    let client = bench.plain();
    bench.say(client, &json!({"id":1,"method":format!("_acpd/session/{method}"),"params":params}));
    bench.got(client).pop().expect("an answer")
}

fn listed(bench: &mut Bench) -> usize {
    let list = command(bench, "list", &json!({"archived":"include"}));
    list["result"]["sessions"].as_array().expect("a list").len()
}

#[test]
fn a_deleted_session_is_in_no_list_and_comes_back_with_all_that_was_said() {
    let mut bench = keeping();
    let a = bench.client(&json!({"notices":true}));
    bench.used_session(a, "s");
    let head = bench.journal.values().next().unwrap().len();
    let removed = command(&mut bench, "remove", &json!({"session":"s"}));
    assert_eq!(removed["result"]["until"], json!(bench.now + DAY));
    assert_eq!(methods(&bench.heard()), ["session/close"], "the agent keeps its copy");
    assert!(words(&bench.got(a)).contains(&"_acpd/session_removed".to_owned()));
    assert_eq!((listed(&mut bench), bench.state("s")), (0, "none".to_owned()));
    bench.say(a, &json!({"id":2,"method":"session/load","params":{"sessionId":"s","cwd":"/w","mcpServers":[]}}));
    assert_eq!(bench.got(a)[0]["error"]["data"]["_acpd"]["reason"], "session_not_found");

    bench.reboot();
    assert_eq!(listed(&mut bench), 0);
    let undone = command(&mut bench, "undo", &json!({}));
    assert_eq!(undone["result"]["session"]["sessionId"], "s");
    assert_eq!(undone["result"]["session"]["seq"], json!(head));
    assert_eq!(listed(&mut bench), 1);
    bench.reboot();
    let b = bench.plain();
    bench.heard();
    bench.prompt(b, &json!(3), "s", "more");
    bench.answers("session/resume", &json!({}));
    bench.heard_one("session/prompt");
    bench.pass(2 * DAY);
    assert_eq!(bench.state("s"), "live");
}

#[test]
fn what_an_editor_deletes_is_gone_for_it_and_can_be_brought_back() {
    let mut bench = keeping();
    let a = bench.plain();
    bench.used_session(a, "s");
    bench.say(a, &json!({"id":2,"method":"session/delete","params":{"sessionId":"s"}}));
    assert_eq!(bench.got(a), [json!({"jsonrpc":"2.0","id":2,"result":{}})]);
    assert_eq!(methods(&bench.heard()), ["session/close"], "the agent keeps its copy");
    // The agent still tells of it.
    bench.say(a, &json!({"id":3,"method":"session/list","params":{}}));
    bench.answers("session/list", &json!({"sessions":[{"sessionId":"s","cwd":"/w"}]}));
    assert_eq!(bench.got(a)[0]["result"]["sessions"], json!([]));
    let undone = command(&mut bench, "undo", &json!({}));
    assert_eq!(undone["result"]["session"]["sessionId"], "s");
    bench.say(a, &json!({"id":4,"method":"session/delete","params":{"sessionId":"s"}}));
    bench.heard();
    bench.pass(2 * DAY + 20 * 60_000);
    assert!(bench.snapshot.sessions.is_empty());
}

#[test]
fn when_its_time_is_over_it_is_gone_from_disk_and_from_its_agent() {
    let mut bench = keeping();
    let a = bench.plain();
    bench.used_session(a, "other");
    bench.used_session(a, "s");
    command(&mut bench, "remove", &json!({"session":"s"}));
    bench.heard();
    bench.reboot();
    bench.pass(DAY + 60_000);
    bench.agent_dies();
    assert_eq!(bench.heard(), [json!(null); 0], "the agent has gone to sleep");
    assert_eq!(bench.snapshot.sessions.len(), 2);
    let b = bench.plain();
    bench.prompt(b, &json!(2), "other", "wake up");
    bench.answers("session/resume", &json!({}));
    bench.heard_one("session/prompt");
    bench.pass(10 * 60_000);
    assert_eq!(bench.heard_one("session/delete")["params"]["sessionId"], "s");
    assert_eq!(bench.snapshot.sessions.len(), 1);
    let undone = command(&mut bench, "undo", &json!({"session":"s"}));
    assert_eq!(undone["error"]["data"]["_acpd"]["reason"], "session_not_found");
}

#[test]
fn an_agent_that_does_not_run_again_is_not_waited_for_longer_than_that() {
    let mut bench = keeping();
    let a = bench.plain();
    bench.used_session(a, "s");
    command(&mut bench, "remove", &json!({"session":"s"}));
    bench.pass(2 * DAY + 20 * 60_000);
    assert!(bench.snapshot.sessions.is_empty());
}

#[test]
fn deletions_that_go_on_keep_no_other_one() {
    let mut bench = keeping();
    bench.configure(|config| config.keep_deleted = 60 * 60_000);
    let a = bench.plain();
    for n in 0..40 {
        let session = format!("s{n}");
        bench.used_session(a, &session);
        let params = json!({"session":session});
        bench.say(a, &json!({"id":n,"method":"_acpd/session/remove","params":params}));
        bench.heard();
        bench.pass(5 * 60_000);
        bench.heard();
    }
    // Those of the last hour, and those that wait for the next look.
    assert!(bench.snapshot.sessions.len() < 20, "{} are kept", bench.snapshot.sessions.len());
}

#[test]
fn at_once_means_that_nothing_is_kept() {
    let mut bench = keeping();
    let a = bench.plain();
    bench.used_session(a, "s");
    let removed = command(&mut bench, "remove", &json!({"session":"s","now":true}));
    assert_eq!(removed["result"], json!({}));
    assert_eq!(methods(&bench.heard()), ["session/delete"]);
    assert!(bench.snapshot.sessions.is_empty());
}

#[test]
fn its_name_and_its_id_can_be_used_again_meanwhile() {
    let mut bench = keeping();
    let a = bench.plain();
    let new = |bench: &mut Bench| {
        let params = json!({"cwd":"/w","mcpServers":[],"_meta":{"_acpd":{"name":"fix"}}});
        bench.say(a, &json!({"id":1,"method":"session/new","params":params}));
        bench.answers("session/new", &json!({"sessionId":"0"}));
        bench.got(a)[0]["result"]["sessionId"].clone()
    };
    assert_eq!(new(&mut bench), "0");
    bench.prompt(a, &json!(2), "0", "go");
    bench.answers("session/prompt", &json!({"stopReason":"end_turn"}));
    bench.got(a);
    command(&mut bench, "remove", &json!({"session":"fix"}));
    bench.heard();
    let second = new(&mut bench);
    assert_ne!(second, "0", "clients can tell them apart");
    let undone = command(&mut bench, "undo", &json!({"session":"fix"}));
    assert_eq!(undone["result"]["nameTaken"], "fix");
    assert_eq!(undone["result"]["session"]["sessionId"], "0");
    assert_eq!(undone["result"]["session"]["name"], json!(null));
    assert_eq!(listed(&mut bench), 2);
}

#[test]
fn what_waits_in_a_session_that_is_deleted_is_answered() {
    let mut bench = keeping();
    let (a, _) = bench.running("s", "one");
    bench.prompt(a, &json!(2), "s", "two");
    bench.got(a);
    command(&mut bench, "remove", &json!({"session":"s"}));
    let told = words(&bench.got(a));
    assert!(told.contains(&"error 2".to_owned()), "{told:?}");
    assert!(told.iter().any(|word| word.ends_with(" 1")), "{told:?}");
    assert!(bench.snapshot.turns.is_empty());
}

#[test]
fn whose_session_is_deleted_hears_how_it_comes_back_if_it_does() {
    for (keep, now) in [(DAY, false), (DAY, true), (0, false)] {
        let mut bench = keeping();
        bench.configure(|config| config.keep_deleted = keep);
        let (a, _) = bench.running("s", "go");
        bench.prompt(a, &json!(2), "s", "and then");
        command(&mut bench, "remove", &json!({"session":"s","now":now}));
        let got = bench.got(a);
        for id in [1, 2] {
            let refused = got.iter().find(|line| line["id"] == id).expect("an answer");
            assert_eq!(refused["error"]["data"]["_acpd"]["reason"], "session_removed");
            let hint = &refused["error"]["data"]["_acpd"]["hint"];
            let kept = json!("`acpctl session undo s` brings it back");
            assert_eq!(*hint, if keep > 0 && !now { kept } else { json!(null) });
        }
    }
}
