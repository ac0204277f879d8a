//! Names from peers are bounded where they are kept or repeated.

use serde_json::json;

use crate::bench::{Bench, words};
use crate::steps::reason;

/// Longer than anything that has a name.
fn long() -> String {
    "x".repeat(1 << 20)
}

#[test]
fn l2_an_agents_id_that_is_too_long_makes_no_session() {
    let (mut bench, a) = Bench::new().with_client();
    for (at, length) in [(1, 1_025), (2, 1 << 20), (3, 1_024)] {
        bench.ask_session(a, at);
        bench.answers("session/new", &json!({"sessionId":"x".repeat(length)}));
        let got = bench.got(a);
        let expected = if length > 1_024 { format!("error {at}") } else { format!("result {at}") };
        assert_eq!(words(&got), [expected]);
    }
    let listed = bench.command("_acpd/session/list", &json!({})).to_string();
    assert!(listed.len() < 3_000, "{}", listed.len());
}

#[test]
fn l2_what_an_agent_says_of_itself_and_its_sessions_does_not_fill_every_list() {
    let (mut bench, a) = Bench::connecting();
    let initialize = bench.process_asks();
    let methods = json!([{"id":long(),"name":"A"},{"id":"b","name":long(),"description":long()}]);
    let result = json!({"protocolVersion":1,"authMethods":methods,
        "agentInfo":{"name":long(),"title":long(),"version":long()},
        "agentCapabilities":{"sessionCapabilities":{"list":{}},"loadSession":true}});
    bench.agent_answers(&initialize, &result);
    bench.got(a);
    let options = json!([{"id":long(),"currentValue":"v"},{"id":"o","currentValue":long()}]);
    let modes = json!({"currentModeId":long(),"availableModes":[]});
    bench.session_with(a, "s", &json!({"modes":modes,"configOptions":options}));
    bench.send_update("s", &json!({"sessionUpdate":"session_info_update","title":long()}));
    let request = bench.start_turn(a, 1, "s", "go");
    bench.send_update("s", &json!({"sessionUpdate":"tool_call","toolCallId":long(),"title":"T"}));
    bench.agent_answers(&request, &json!({"stopReason":long()}));
    for method in ["_acpd/status", "_acpd/agent/list", "_acpd/session/list"] {
        let listed = bench.command(method, &json!({})).to_string();
        assert!(listed.len() < 10_000, "{method}: {} bytes", listed.len());
    }
    assert_eq!(bench.snapshot.sessions.values().next().expect("one").row.mode, None);
    bench.got(a);
    let request = bench.relay(a, 2, "session/list", &json!({}));
    let own = json!({"sessionId":"b","cwd":"/w","title":long(),"updatedAt":long()});
    let sessions = json!([{"sessionId":long(),"cwd":"/w"},{"sessionId":"c","cwd":long()},own]);
    bench.agent_answers(&request, &json!({"sessions":sessions}));
    let listed = bench.got(a).pop().expect("listed");
    let ids: Vec<_> = listed["result"]["sessions"].as_array().expect("a list").iter().collect();
    assert!(ids.iter().any(|session| session["sessionId"] == "b"), "{listed}");
    assert!(listed.to_string().len() < 3_000);
}

#[test]
fn l2_why_an_agent_failed_is_told_in_a_sentence() {
    let (mut bench, _) = Bench::connecting();
    let initialize = bench.process_asks();
    bench.agent_fails(&initialize, &json!({"code":-32603,"message":long()}));
    let listed = bench.command("_acpd/agent/list", &json!({})).to_string();
    assert!(listed.contains("xxx") && listed.len() < 5_000, "{}", listed.len());
}

#[test]
fn l2_a_request_has_an_id_of_some_length() {
    let (mut bench, a) = Bench::begun();
    bench.say(a, &json!({"id":long(),"method":"session/list","params":{}}));
    assert_eq!(bench.expect(a, ["error null"])[0]["error"]["code"], -32600);
    bench.agent(&json!({"id":long(),"method":"_vendor/want","params":{"sessionId":"s"}}));
    assert_eq!((bench.got(a), bench.heard()), (vec![], vec![]));
    // The longest that there may be.
    let id = "x".repeat(1_022);
    bench.ask(a, &id, "session/list", &json!({}));
    assert_eq!(bench.got(a)[0]["id"], id);
}

#[test]
fn l8_a_note_in_a_log_is_one_short_line_whatever_it_quotes() {
    let (mut bench, a) = Bench::begun();
    let forged = "a\n2030-01-01T00:00:00Z acpd: all is well\x1b[2J";
    for name in [long(), forged.to_owned()] {
        bench.agent(&json!({"id":1,"method":name,"params":{}}));
        bench.agent(&json!({"method":"_acpd/".to_owned() + &name,"params":{}}));
        bench.send_update(&name, &json!({}));
        bench.agent(&json!({"id":"nobody's","result":{"x":name}}));
    }
    bench.say(a, &json!({"id":9,"method":long(),"params":{"sessionId":"s"}}));
    bench.agent_raw(&long());
    assert!(bench.notes.len() >= 8, "{}", bench.notes.len());
    for note in &bench.notes {
        let is_line = !note.chars().any(char::is_control);
        assert!(is_line && note.chars().count() <= 1_500, "{} bytes", note.len());
    }
    assert!(bench.failures.iter().all(|(_, what, _)| what.len() <= 1_024));
    assert!(bench.heard().iter().all(|line| line.to_string().len() < 5_000));
}

#[test]
fn l9_no_directory_has_a_zero_byte_wherever_one_is_taken() {
    let session = json!({"resume":{},"list":{},"fork":{}});
    let (mut bench, a) = Bench::new().with_session_capabilities(session).with_begun();
    let bad = "/w\0/../etc";
    let reference = json!({"session":"s"});
    let of = |session: &str, cwd: &str, more: &str| {
        let more = json!([more]);
        json!({"sessionId":session,"cwd":cwd,"mcpServers":[],"additionalDirectories":more})
    };
    let new = |cwd: &str, more: &str| of("t", cwd, more);
    let call = json!({"toolCallId":"t","kind":"execute","rawInput":{"command":"ls"}});
    for (method, params) in [
        ("session/new", new(bad, "/x")),
        ("session/new", new("/w", bad)),
        ("session/load", new(bad, "/x")),
        ("session/load", new("/w", bad)),
        ("session/resume", new(bad, "/x")),
        ("session/load", of("s", bad, "/x")),
        ("session/resume", of("s", bad, "/x")),
        ("session/fork", of("s", bad, "/x")),
        ("session/fork", of("s", "/w", bad)),
        ("session/list", json!({"cwd":bad})),
        ("_acpd/session/move", json!({"ref":reference,"cwd":bad})),
        ("_acpd/policy/test", json!({"cwd":bad,"toolCall":call})),
    ] {
        bench.ask(a, 1, method, &params);
        let got = bench.got(a);
        let told = got.last().expect("answered");
        assert_eq!(reason(told), "invalid", "{method} {told}");
        assert!(!told.to_string().contains("\\u0000\\u0000"), "{method}");
        assert!(bench.heard().is_empty(), "{method}");
    }
    assert_eq!(bench.snapshot.sessions.values().next().expect("one").row.cwd, "/w");
}
