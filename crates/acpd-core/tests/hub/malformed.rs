//! Malformed lines of agents and clients: the waiting party is told.

use acpd_core::ids::ClientId;
use bytes::Bytes;
use serde_json::{Value, json};

use crate::bench::{Bench, host_line, host_oversized, words};
use crate::questions::asks;
use crate::steps::reason;

/// The agent writes bytes that need be no text.
fn agent_bytes(bench: &mut Bench, line: &[u8], end: u64) {
    let (host, line) = (bench.host(), Bytes::copy_from_slice(line));
    bench.feed(host_line(host, line, end));
}

/// Answers that are none, to the request with this id.
fn malformed_answers(id: &Value) -> Vec<Vec<u8>> {
    let texts = [
        r#"{"jsonrpc":"2.0","id":ID,"result":{"sessionId":"n"},"error":{"code":1,"message":"no"}}"#,
        r#"{"id":ID,"result":{"stopReason":"end_turn"},"result":{}}"#,
        r#"{"id":ID,"result":{"sessionId":"n","#,
        r#"{"id":ID,"result":{"sessionId":"n"}}}"#,
        "{\"id\":ID,\"result\":{\"x\":\"a\u{1}b\"}}",
        r#"{"id":ID,"result":{"x":"BAD"}}"#,
        r#"{"result":{"x":"BAD","id":5,"method":"m"},"id":ID}"#,
    ];
    let id = id.to_string();
    let line = |text: &str| {
        let text = text.replace("ID", &id);
        let parts: Vec<&[u8]> = text.split("BAD").map(str::as_bytes).collect();
        parts.join(&b"\xed\xa0\x80"[..])
    };
    texts.into_iter().map(line).collect()
}

/// A client's request that an agent answers, and the method that reaches the agent.
fn requests() -> Vec<(&'static str, Value)> {
    let s = json!({"sessionId":"s","modeId":"m","prompt":[{"type":"text","text":"go"}]});
    let new = json!({"cwd":"/w","mcpServers":[]});
    let fork = json!({"sessionId":"s","cwd":"/w","mcpServers":[]});
    vec![
        ("session/new", new),
        ("session/fork", fork),
        ("session/prompt", s.clone()),
        ("session/set_mode", s.clone()),
        ("_vendor/ask", s),
        ("_vendor/ask", json!({})),
        ("authenticate", json!({"methodId":"m"})),
    ]
}

fn with_fork() -> Bench {
    Bench::new().with_session_capabilities(json!({"resume":{},"list":{},"fork":{}}))
}

/// The only answer to the request with this id.
#[track_caller]
fn answer(bench: &mut Bench, client: ClientId, id: u64) -> Value {
    let got = bench.got(client);
    let answers: Vec<_> = got.iter().filter(|line| line["id"] == id).collect();
    let [answer] = answers[..] else { panic!("one answer: {got:?}") };
    answer.clone()
}

#[test]
fn l3_l4_every_malformed_answer_of_an_agent_ends_its_request_with_an_error() {
    for (method, params) in requests() {
        let kinds = malformed_answers(&json!(0)).len();
        for kind in 0..kinds {
            let (mut bench, a) = with_fork().with_begun();
            let request = bench.relay(a, 7, method, &params);
            let line = malformed_answers(&request["id"]).swap_remove(kind);
            let shown = String::from_utf8_lossy(&line).into_owned();
            agent_bytes(&mut bench, &line, 1 << 30);
            let told = answer(&mut bench, a, 7);
            assert_eq!(reason(&told), "agent_protocol", "{method}: {shown}: {told}");
            assert!(bench.notes.iter().any(|note| note.contains("skipped a line")), "{shown}");
            // The request is answered: the agent's second try is dropped, and the session
            // continues.
            bench.agent_answers(&request, &json!({"sessionId":"n","stopReason":"end_turn"}));
            bench.run_turn(a, 8, "s", "go on");
            assert_eq!(answer(&mut bench, a, 8)["result"], json!({"stopReason":"end_turn"}));
        }
    }
}

#[test]
fn l3_a_session_that_was_made_and_refused_in_one_answer_is_not_there() {
    let (mut bench, a) = Bench::new().with_client();
    let request = bench.relay(a, 1, "session/new", &json!({"cwd":"/w","mcpServers":[]}));
    let error = json!({"code":-32603,"message":"no"});
    bench.agent(&json!({"id":request["id"],"result":{"sessionId":"n"},"error":error}));
    let told = answer(&mut bench, a, 1);
    assert!(told.get("result").is_none() && told["error"]["code"] == -32603, "{told}");
    let of = |line: Value| line["result"]["sessions"].as_array().map(Vec::len);
    bench.ask(a, 2, "session/list", &json!({}));
    assert_eq!(of(answer(&mut bench, a, 2)), Some(0));
}

/// Some agents write the other outcome beside the one that they mean, as `null`; some write neither.
#[test]
fn l3_an_answer_is_given_with_one_outcome() {
    for (said, told) in [
        (r#""result":null,"error":{"code":7,"message":""}"#, r#""error":{"code":7,"message":""}"#),
        (r#""error":null,"result":{"k": 1}"#, r#""result":{"k": 1}"#),
        (r#""error":null"#, r#""result":null"#),
    ] {
        let (mut bench, a) = Bench::begun();
        let request = bench.relay(a, 7, "_vendor/ask", &json!({"sessionId":"s"}));
        bench.agent_raw(&format!(r#"{{"id":{},{said}}}"#, request["id"]));
        assert_eq!(bench.got_raw(a), [format!(r#"{{"id":7,{told}}}"#)]);
    }
}

#[test]
fn l4_an_answer_without_an_id_that_can_be_read_ends_nothing_by_a_guess() {
    let (mut bench, a) = Bench::begun();
    let request = bench.start_turn(a, 7, "s", "go");
    let id = &request["id"];
    let lines = [
        b"{\"id\":\"\xed\xa0\x80\",\"result\":{\"stopReason\":\"end_turn\"}}".to_vec(),
        format!(r#"{{"id":{id},"id":{id},"result":{{}}}}"#).into_bytes(),
        br#"{"id":1.0,"result":{}}"#.to_vec(),
        format!(r#"{{"id":"0{}","result":{{}}}}"#, id.as_str().expect("text")).into_bytes(),
        format!(r#"{{"id":[{id}],"result":{{}}"#).into_bytes(),
    ];
    for (at, line) in (1..).zip(&lines) {
        agent_bytes(&mut bench, line, at << 30);
        assert_eq!(bench.got(a), Vec::<Value>::new(), "{}", String::from_utf8_lossy(line));
        assert_eq!(bench.notes.len() as u64, at);
    }
    bench.end_turn(&request);
    assert_eq!(words(&bench.got(a)), ["result 7"]);
}

#[test]
fn l4_a_malformed_answer_to_initialize_is_a_failed_start() {
    let (mut bench, a) = Bench::connecting();
    let initialize = bench.process_asks();
    let line = format!(r#"{{"id":{},"result":{{"protocolVersion":1,"x":"#, initialize["id"]);
    agent_bytes(&mut bench, line.as_bytes(), 1 << 30);
    bench.agent_dies();
    let told = bench.got(a).pop().expect("an answer");
    let message = told["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("cannot be read"), "{told}");
}

#[test]
fn l4_a_malformed_answer_in_a_restore_does_not_hold_it_up() {
    let (mut bench, a, resume) = Bench::new().with_restoring("s", "session/resume");
    bench.prompt(a, &json!(7), "s", "go on");
    bench.agent_raw(&format!(r#"{{"id":{},"result":{{"#, resume["id"]));
    for _ in 0..3 {
        bench.pass(60_000);
        for load in bench.heard() {
            bench.agent_raw(&format!(r#"{{"id":{},"result":{{}},"error":{{}}}}"#, load["id"]));
        }
    }
    let told = bench.got(a);
    assert!(words(&told).contains(&"error 7".to_owned()), "{:?}", words(&told));
    assert_eq!(bench.state("s"), "blocked");
}

#[test]
fn l4_a_malformed_request_of_an_agent_is_answered_under_its_id() {
    let (mut bench, a) = Bench::begun();
    for (id, code, rest) in [
        ("7", -32700, r#""params":{"sessionId":"s","path":"/w/x""#),
        ("\"x\"", -32600, r#""params":{"sessionId":"s","sessionId":"t"}}"#),
        ("8", -32700, "\"params\":{\"sessionId\":\"s\",\"path\":\"\u{1}\"}}"),
    ] {
        let method = r#""method":"fs/read_text_file""#;
        bench.agent_raw(&format!(r#"{{"jsonrpc":"2.0","id":{id},{method},{rest}"#));
        let heard = bench.heard();
        let [answer] = &heard[..] else { panic!("one answer: {heard:?}") };
        let told = (answer["id"].to_string(), answer["error"]["code"].as_i64());
        assert_eq!(told, (id.to_owned(), Some(code)));
    }
    assert_eq!(bench.got(a), Vec::<Value>::new());
    let head = br#"{"id":9,"method":"fs/write_text_file","params":{"sessionId":"s","content":"x"#;
    let (host, head) = (bench.host(), Bytes::from_static(head));
    bench.feed(host_oversized(host, head, 9_000_000, 1 << 40));
    let heard = bench.heard();
    assert_eq!((&heard[0]["id"], &heard[0]["error"]["code"]), (&json!(9), &json!(-32600)));
}

/// The agent waits for what a client was to do.
#[test]
fn l3_l4_a_malformed_answer_of_a_client_ends_what_it_was_asked_for() {
    for broken in [r#""result":{},"error":{}}"#, r#""result":{"x":"#, r#""result":1,"result":2}"#] {
        let (mut bench, a) = Bench::begun();
        bench.agent_asks("r", "_vendor/want", &json!({"sessionId":"s"}));
        let asked = bench.got(a).pop().expect("asked");
        bench.say_raw(a, &format!(r#"{{"id":{},{broken}"#, asked["id"]));
        let heard = bench.heard();
        assert_eq!((&heard[0]["id"], &heard[0]["error"]["code"]), (&json!("r"), &json!(-32603)));
        assert_eq!(words(&bench.got(a)), ["error null"]);
        // A question is asked again, under another id.
        asks(&mut bench, 7, &json!({"toolCallId":"t"}));
        let asked = bench.got(a).pop().expect("asked");
        bench.say_raw(a, &format!(r#"{{"id":{},{broken}"#, asked["id"]));
        let got = bench.expect(a, ["error null", "session/request_permission"]);
        assert_ne!(got[1]["id"], asked["id"]);
        assert_eq!(bench.heard(), Vec::<Value>::new());
    }
}
