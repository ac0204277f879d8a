//! Directories that are gone, and sessions that move.

use serde_json::{Value, json};

use crate::bench::{Bench, words};
use crate::steps::reason;

#[test]
fn a_session_whose_directory_is_gone_is_blocked_until_it_is_back() {
    let (mut bench, a) = Bench::used();
    bench.missing.push("/w".to_owned());
    bench.restart_agent();
    assert_eq!(bench.heard(), Vec::<Value>::new(), "the agent is not asked");
    assert_eq!(bench.state("s"), "blocked");
    bench.prompt(a, &json!(2), "s", "go");
    let data = &bench.got(a)[0]["error"]["data"]["_acpd"];
    assert_eq!(data["reason"], "cwd_missing");
    let hint = data["hint"].as_str().expect("a way out");
    assert!(hint.contains("`acpctl session move s --cwd DIR`"), "{hint}");
    bench.missing.clear();
    bench.prompt(a, &json!(3), "s", "go");
    bench.bring_back("session/resume");
}

#[test]
fn a_moved_session_comes_back_in_its_new_directory() {
    let (mut bench, a) = Bench::used();
    bench.missing.push("/w".to_owned());
    bench.restart_agent();
    bench.ask(a, 5, "_acpd/session/move", &json!({"ref":{"session":"s"},"cwd":"/elsewhere/"}));
    assert_eq!(bench.got(a)[0]["result"]["cwd"], "/elsewhere");
    let resume = bench.heard_one("session/resume");
    assert_eq!(resume["params"]["cwd"], "/elsewhere");
    bench.agent_answers(&resume, &json!({}));
    assert_eq!(bench.state("s"), "live");
}

#[test]
fn a_session_that_works_is_not_moved_and_an_idle_one_is_taken_from_its_agent_first() {
    let mut bench = Bench::new();
    bench.capabilities =
        Some(json!({"loadSession":true,"sessionCapabilities":{"resume":{},"close":{}}}));
    let a = bench.plain();
    bench.used_session(a, "s");
    let prompt = bench.start_turn(a, 2, "s", "go");
    let params = json!({"ref":{"session":"s"},"cwd":"/elsewhere"});
    assert_eq!(reason(&bench.call(a, "_acpd/session/move", &params)), "session_blocked");
    bench.end_turn(&prompt);
    bench.got(a);
    bench.ask(a, 6, "_acpd/session/move", &params);
    let heard = bench.heard();
    assert_eq!(heard[0]["method"], "session/close");
    assert_eq!(heard[1]["method"], "session/resume");
    assert_eq!(heard[1]["params"]["cwd"], "/elsewhere");
    assert_eq!(words(&bench.got(a)), ["result 6"]);
}

#[test]
fn no_session_begins_in_a_directory_that_does_not_exist() {
    let (mut bench, a) = Bench::new().with_client();
    bench.missing.push("/gone".to_owned());
    let params = json!({"sessionId":"theirs","cwd":"/gone","mcpServers":[]});
    for method in ["session/load", "session/resume", "session/new"] {
        assert_eq!(reason(&bench.call(a, method, &params)), "cwd_missing", "{method}");
        assert_eq!(bench.heard(), Vec::<Value>::new(), "{method}");
    }
    bench.missing.clear();
    bench.ask(a, 2, "session/load", &params);
    bench.answers("session/load", &json!({}));
    assert_eq!(words(&bench.got(a)), ["result 2"]);
}
