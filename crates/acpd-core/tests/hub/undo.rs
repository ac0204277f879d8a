//! Deleted sessions that come back, or do not.

use serde_json::json;

use crate::bench::{Bench, methods};
use crate::steps::{hint, reason};

const DAY: u64 = 24 * 60 * 60_000;

fn keeping() -> Bench {
    let mut bench = Bench::with_shims();
    bench.capabilities = Some(json!({"loadSession":true,
        "sessionCapabilities":{"resume":{},"close":{},"delete":{},"list":{}}}));
    bench.configure(|config| config.keep_deleted = DAY);
    bench
}

fn listed(bench: &mut Bench) -> usize {
    let list = bench.command("_acpd/session/list", &json!({"archived":"include"}));
    list["result"]["sessions"].as_array().expect("a list").len()
}

#[test]
fn a_deleted_session_is_in_no_list_and_comes_back_with_all_that_was_said() {
    let mut bench = keeping();
    let a = bench.noticed();
    bench.used_session(a, "s");
    let head = bench.journal.values().next().unwrap().len();
    let removed = bench.command("_acpd/session/remove", &json!({"session":"s"}));
    assert_eq!(removed["result"]["until"], json!(bench.now + DAY));
    assert_eq!(methods(&bench.heard()), ["session/close"], "the agent keeps its copy");
    bench.expect_some(a, "_acpd/session_removed");
    assert_eq!((listed(&mut bench), bench.state("s")), (0, "none".to_owned()));
    bench.ask(a, 2, "session/load", &json!({"sessionId":"s","cwd":"/w","mcpServers":[]}));
    assert_eq!(reason(&bench.got(a)[0]), "session_not_found");

    bench.reboot();
    assert_eq!(listed(&mut bench), 0);
    let undone = bench.command("_acpd/session/undo", &json!({}));
    assert_eq!(undone["result"]["session"]["sessionId"], "s");
    assert_eq!(undone["result"]["session"]["seq"], json!(head));
    assert_eq!(listed(&mut bench), 1);
    bench.reboot();
    let b = bench.plain();
    bench.heard();
    bench.prompt(b, &json!(3), "s", "more");
    bench.bring_back("session/resume");
    bench.pass(2 * DAY);
    assert_eq!(bench.state("s"), "live");
}

#[test]
fn what_an_editor_deletes_is_gone_for_it_and_can_be_brought_back() {
    let (mut bench, a) = keeping().with_used();
    bench.ask(a, 2, "session/delete", &json!({"sessionId":"s"}));
    assert_eq!(bench.got(a), [json!({"jsonrpc":"2.0","id":2,"result":{}})]);
    assert_eq!(methods(&bench.heard()), ["session/close"], "the agent keeps its copy");
    // The agent still tells of it.
    bench.ask(a, 3, "session/list", &json!({}));
    bench.answers("session/list", &json!({"sessions":[{"sessionId":"s","cwd":"/w"}]}));
    assert_eq!(bench.got(a)[0]["result"]["sessions"], json!([]));
    assert_eq!(
        bench.command("_acpd/session/undo", &json!({}))["result"]["session"]["sessionId"],
        "s"
    );
    bench.ask(a, 4, "session/delete", &json!({"sessionId":"s"}));
    bench.heard();
    // An agent that does not run again is not waited for longer than that.
    bench.pass(2 * DAY + 20 * 60_000);
    assert!(bench.snapshot.sessions.is_empty());
}

#[test]
fn when_its_time_is_over_it_is_gone_from_disk_and_from_its_agent() {
    let mut bench = keeping();
    let a = bench.plain();
    bench.used_session(a, "other");
    bench.used_session(a, "s");
    bench.command("_acpd/session/remove", &json!({"session":"s"}));
    bench.heard();
    bench.reboot();
    bench.pass(DAY + 60_000);
    bench.agent_dies();
    assert_eq!(bench.heard(), [json!(null); 0], "the agent has gone to sleep");
    assert_eq!(bench.snapshot.sessions.len(), 2);
    let b = bench.plain();
    bench.prompt(b, &json!(2), "other", "wake up");
    bench.bring_back("session/resume");
    bench.pass(10 * 60_000);
    assert_eq!(bench.heard_one("session/delete")["params"]["sessionId"], "s");
    assert_eq!(bench.snapshot.sessions.len(), 1);
    assert_eq!(
        reason(&bench.command("_acpd/session/undo", &json!({"session":"s"}))),
        "session_not_found"
    );
}

#[test]
fn deletions_that_go_on_keep_no_other_one() {
    let mut bench = keeping();
    bench.configure(|config| config.keep_deleted = 60 * 60_000);
    let a = bench.plain();
    for n in 0..40 {
        let session = format!("s{n}");
        bench.used_session(a, &session);
        bench.ask(a, n, "_acpd/session/remove", &json!({"session":session}));
        bench.heard();
        bench.pass(5 * 60_000);
        bench.heard();
    }
    // Those of the last hour, and those that wait for the next look.
    assert!(bench.snapshot.sessions.len() < 20, "{} are kept", bench.snapshot.sessions.len());
}

#[test]
fn at_once_means_that_nothing_is_kept() {
    let (mut bench, _) = keeping().with_used();
    let removed = bench.command("_acpd/session/remove", &json!({"session":"s","now":true}));
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
        bench.ask(a, 1, "session/new", &params);
        bench.answers("session/new", &json!({"sessionId":"0"}));
        bench.got(a)[0]["result"]["sessionId"].clone()
    };
    assert_eq!(new(&mut bench), "0");
    bench.run_turn(a, 2, "0", "go");
    bench.got(a);
    bench.command("_acpd/session/remove", &json!({"session":"fix"}));
    bench.heard();
    assert_ne!(new(&mut bench), "0", "clients can tell them apart");
    let undone = bench.command("_acpd/session/undo", &json!({"session":"fix"}));
    assert_eq!(undone["result"]["nameTaken"], "fix");
    assert_eq!(undone["result"]["session"]["sessionId"], "0");
    assert_eq!(undone["result"]["session"]["name"], json!(null));
    assert_eq!(listed(&mut bench), 2);
}

#[test]
fn whose_session_is_deleted_hears_how_it_comes_back_if_it_does() {
    for (keep, now) in [(DAY, false), (DAY, true), (0, false)] {
        let mut bench = keeping();
        bench.configure(|config| config.keep_deleted = keep);
        let (a, _) = bench.running("s", "go");
        bench.prompt(a, &json!(2), "s", "and then");
        bench.command("_acpd/session/remove", &json!({"session":"s","now":now}));
        let got = bench.got(a);
        for id in [1, 2] {
            let refused = got.iter().find(|line| line["id"] == id).expect("an answer");
            assert_eq!(reason(refused), "session_removed");
            let kept = "`acpctl session undo s` brings it back";
            assert_eq!(hint(refused), if keep > 0 && !now { kept } else { "" });
        }
        assert!(bench.snapshot.turns.is_empty());
        bench.prompt(a, &json!(3), "s", "again");
        assert_eq!(bench.answer(a, 3)["error"]["code"], -32002);
    }
}
