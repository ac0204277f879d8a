//! Directories that are gone, and sessions that move.

use serde_json::{Value, json};

use crate::bench::{Bench, words};

#[test]
fn a_session_whose_directory_is_gone_is_blocked_until_it_is_back() {
    let (mut bench, a) = Bench::used();
    bench.missing.push("/w".to_owned());
    bench.agent_dies();
    bench.pass(1_000);
    assert_eq!(bench.heard(), Vec::<Value>::new(), "the agent is not asked");
    assert_eq!(bench.state("s"), "blocked");
    bench.prompt(a, &json!(2), "s", "go");
    let got = bench.got(a);
    let data = &got[0]["error"]["data"]["_acpd"];
    assert_eq!(data["reason"], "cwd_missing");
    let hint = data["hint"].as_str().expect("a way out");
    assert!(hint.contains("`acpctl session move s --cwd DIR`"), "{hint}");
    bench.missing.clear();
    bench.prompt(a, &json!(3), "s", "go");
    bench.answers("session/resume", &json!({}));
    bench.heard_one("session/prompt");
}

#[test]
fn a_moved_session_comes_back_in_its_new_directory() {
    let (mut bench, a) = Bench::used();
    bench.missing.push("/w".to_owned());
    bench.agent_dies();
    bench.pass(1_000);
    let params = json!({"ref":{"session":"s"},"cwd":"/elsewhere/"});
    bench.say(a, &json!({"id":5,"method":"_acpd/session/move","params":params}));
    let got = bench.got(a);
    assert_eq!(got[0]["result"]["cwd"], "/elsewhere");
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
    bench.prompt(a, &json!(2), "s", "go");
    let prompt = bench.heard_one("session/prompt");
    let params = json!({"ref":{"session":"s"},"cwd":"/elsewhere"});
    bench.say(a, &json!({"id":5,"method":"_acpd/session/move","params":params}));
    assert_eq!(bench.got(a)[0]["error"]["data"]["_acpd"]["reason"], "session_blocked");
    bench.agent_answers(&prompt, &json!({"stopReason":"end_turn"}));
    bench.got(a);
    bench.say(a, &json!({"id":6,"method":"_acpd/session/move","params":params}));
    let heard = bench.heard();
    assert_eq!(heard[0]["method"], "session/close");
    assert_eq!(heard[1]["method"], "session/resume");
    assert_eq!(heard[1]["params"]["cwd"], "/elsewhere");
    assert_eq!(words(&bench.got(a)), ["result 6"]);
}

#[test]
fn no_session_is_taken_over_in_a_directory_that_does_not_exist() {
    let mut bench = Bench::new();
    let a = bench.plain();
    bench.missing.push("/gone".to_owned());
    for (time, method) in ["session/load", "session/resume"].into_iter().enumerate() {
        let params = json!({"sessionId":"theirs","cwd":"/gone","mcpServers":[]});
        bench.say(a, &json!({"id":time,"method":method,"params":params}));
        assert_eq!(bench.heard(), Vec::<Value>::new());
        let got = bench.got(a);
        assert_eq!(got[0]["error"]["data"]["_acpd"]["reason"], "cwd_missing");
    }
    bench.missing.clear();
    let params = json!({"sessionId":"theirs","cwd":"/gone","mcpServers":[]});
    bench.say(a, &json!({"id":2,"method":"session/load","params":params}));
    bench.answers("session/load", &json!({}));
    assert_eq!(words(&bench.got(a)), ["result 2"]);
}

#[test]
fn no_session_is_made_in_a_directory_that_does_not_exist() {
    let mut bench = Bench::new();
    let a = bench.plain();
    bench.missing.push("/gone".to_owned());
    let params = json!({"cwd":"/gone","mcpServers":[]});
    bench.say(a, &json!({"id":1,"method":"session/new","params":params}));
    assert_eq!(bench.heard(), Vec::<Value>::new());
    let got = bench.got(a);
    assert_eq!(got[0]["error"]["data"]["_acpd"]["reason"], "cwd_missing");
}
