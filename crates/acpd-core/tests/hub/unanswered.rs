//! Requests of people that an agent does not answer.

use serde_json::{Value, json};

use crate::bench::{AGENT, Bench};
use crate::steps::reason;

const NOTICE: u64 = 5 * 60_000;

/// Returns a client's notices about missing answers.
fn told(bench: &mut Bench, client: acpd_core::ids::ClientId) -> Vec<Value> {
    let got = bench.got(client).into_iter();
    got.filter(|line| line["method"] == "_acpd/unanswered").map(|l| l["params"].clone()).collect()
}

#[test]
fn who_waits_for_a_new_session_is_told_that_the_agent_does_not_answer() {
    let mut bench = Bench::new();
    let (a, b) = (bench.noticed(), bench.noticed());
    let named = json!({"cwd":"/w","mcpServers":[],"_meta":{"_acpd":{"name":"fix"}}});
    bench.ask(a, 1, "session/new", &named);
    let request = bench.heard_one("session/new");
    bench.pass(NOTICE - 1);
    assert_eq!(told(&mut bench, a), Vec::<Value>::new());
    // Another client wants the same name.
    bench.ask(b, 1, "session/new", &named);
    for time in 1..=2 {
        bench.pass(if time == 1 { 1 } else { NOTICE });
        let expected = json!({"agent":AGENT,"method":"session/new","waited":time * NOTICE});
        assert_eq!(told(&mut bench, a), std::slice::from_ref(&expected));
        assert_eq!(told(&mut bench, b), [expected]);
    }
    assert_eq!(bench.failures[0], (None, "session/new: no answer for 5 min".to_owned(), None));
    bench.agent_answers(&request, &json!({"sessionId":"s"}));
    bench.got(a);
    bench.pass(2 * NOTICE);
    assert_eq!(told(&mut bench, a), Vec::<Value>::new());
}

#[test]
fn who_waits_for_a_mode_is_told_also_by_the_next_daemon_and_nobody_while_a_person_is_asked() {
    let (mut bench, a) = Bench::with_shims().with_token();
    bench.ask(a, 2, "session/set_mode", &json!({"sessionId":"s","modeId":"code"}));
    let request = bench.heard_one("session/set_mode");
    let schema = json!({"type":"object","properties":{"name":{"type":"string"}}});
    let params = json!({"mode":"form","message":"?","requestedSchema":schema,
        "requestId":request["id"]});
    bench.agent_asks(8, "elicitation/create", &params);
    bench.pass(NOTICE);
    assert_eq!(told(&mut bench, a), Vec::<Value>::new(), "the agent waits for a person");
    bench.agent(&json!({"method":"$/cancel_request","params":{"requestId":8}}));
    bench.pass(NOTICE);
    let due =
        json!({"agent":AGENT,"method":"session/set_mode","sessionId":"s","waited":2 * NOTICE});
    assert_eq!(told(&mut bench, a), [due]);
    bench.reboot();
    bench.pass(NOTICE);
    assert!(bench.failures.iter().any(|(of, what, _)| {
        of.as_deref() == Some("s") && what == "session/set_mode: no answer for 5 min"
    }));
}

#[test]
fn a_cancel_frees_who_asked_also_if_the_agent_ignores_it() {
    let mut bench = Bench::new();
    let (a, b) = (bench.plain(), bench.noticed());
    let params = json!({"cwd":"/w","mcpServers":[],"_meta":{"_acpd":{"name":"fix"}}});
    bench.ask(a, 1, "session/new", &params);
    let request = bench.heard_one("session/new");
    bench.cancel_request(a, 1);
    bench.heard_one("$/cancel_request");
    assert_eq!(bench.got(a), Vec::<Value>::new(), "the agent may have something to say to that");
    bench.pass(10_000);
    assert_eq!(bench.expect(a, ["error 1"])[0]["error"]["code"], -32800);
    // No client waits, so none is notified.
    bench.pass(2 * NOTICE);
    assert_eq!(bench.failures, []);
    // A later client with this name waits for the same answer.
    bench.ask(b, 1, "session/new", &params);
    bench.pass(NOTICE);
    assert_eq!(told(&mut bench, b).len(), 1);
    // The agent's late answer is not for the client that cancelled, and the id is free.
    bench.agent_answers(&request, &json!({"sessionId":"s"}));
    assert_eq!(bench.got(a), Vec::<Value>::new());
    assert_eq!(reason(&bench.got(b)[0]), "name_taken");
    bench.ask(a, 1, "session/new", &json!({"cwd":"/w","mcpServers":[]}));
    bench.answers("session/new", &json!({"sessionId":"t"}));
    bench.expect(a, ["result 1"]);
}
