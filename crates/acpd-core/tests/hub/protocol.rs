//! Wire rules: ids, malformed lines, order, and bytes that stay bytes.

use acp_wire::Id;
use acpd_core::{ClientEvent, Input};
use serde_json::{Value, json};

use crate::bench::{Bench, client_line, client_oversized, host_oversized, methods, word, words};
use crate::questions::{asks, run};
use crate::settings::modes;
use crate::steps::reason;

#[test]
fn ids_come_back_with_their_type_and_do_not_clash_between_clients() {
    let (mut bench, a) = Bench::begun();
    let b = bench.plain();
    for id in ["0", "\"0\"", "-7", "null", "\"a\\u0062\"", "1.5", "1.0", "1e3"] {
        for client in [a, b] {
            let params = r#"{"sessionId":"s","modeId":"m"}"#;
            let line = format!(r#"{{"id":{id},"method":"session/set_mode","params":{params}}}"#);
            bench.say_raw(client, &line);
        }
        let requests = bench.heard();
        assert_eq!(methods(&requests), ["session/set_mode"; 2]);
        assert_ne!(requests[0]["id"], requests[1]["id"]);
        for (request, client) in requests.iter().zip([a, b]) {
            bench.agent_answers(request, &json!({}));
            let got = bench.got_raw(client);
            assert!(got.iter().any(|line| line.contains(&format!("\"id\":{id},"))), "{got:?}");
        }
        bench.got(a);
        bench.got(b);
    }
}

/// Daemons up to 0.2 issued numbers, and some peers answer with every id as a string.
#[test]
fn answers_count_under_each_spelling_of_an_issued_id() {
    let number = |line: &Value| Id::from_value(&line["id"]).and_then(|id| id.as_issued());
    for spelled in [|id: u64| json!(id), |id: u64| json!(id.to_string())] {
        let (mut bench, a) = Bench::begun();
        bench.prompt(a, &json!(1), "s", "go");
        let prompt = number(&bench.heard_one("session/prompt")).expect("an issued id");
        asks(&mut bench, 5, &run("ls"));
        let asked = bench.got(a).pop().expect("a question");
        let asked = spelled(number(&asked).expect("an issued id"));
        let chosen = json!({"outcome":{"outcome":"selected","optionId":"y"}});
        bench.say(a, &json!({"id":asked,"result":chosen}));
        assert_eq!(bench.heard(), [json!({"id":5,"result":chosen})]);
        bench.got(a);
        bench.agent(&json!({"id":spelled(prompt),"result":{"stopReason":"end_turn"}}));
        bench.expect_some(a, "result 1");
        let noted = bench.notes.iter().filter(|note| note.contains("under the id")).count();
        assert_eq!(noted, usize::from(spelled(1).is_string()), "{:?}", bench.notes);
    }
}

#[test]
fn malformed_lines_are_answered_and_harm_nothing() {
    let mut bench = Bench::new();
    let a = bench.plain();
    let odd = [("{nonsense", -32700), ("[]", -32600), (r#"[{"id":1}]"#, -32600), ("7", -32600)];
    for (line, code) in odd {
        bench.say_raw(a, line);
        assert_eq!(bench.expect(a, ["error null"])[0]["error"]["code"], code);
    }
    bench.say(a, &json!({"id":1,"method":"session/list"}));
    bench.expect(a, ["result 1"]);
}

#[test]
fn a_connection_is_initialized_once() {
    let mut bench = Bench::with_agents(&["one", "two"]);
    let hello = |id: &str, agent: &str| {
        let params = json!({"protocolVersion":1,"_meta":{"_acpd":{"agent":agent}}});
        json!({"id":id,"method":"initialize","params":params})
    };
    // One that failed is none.
    let a = bench.connect(&json!({"agent":"three"}));
    assert!(bench.got(a)[0]["error"].is_object());
    // Neither a second one that does not wait for the first.
    let capabilities = bench.capabilities.take();
    bench.say(a, &hello("1", "one"));
    bench.say(a, &hello("2", "two"));
    bench.expect(a, ["error \"2\""]);
    bench.capabilities = capabilities;
    bench.process_starts();
    let got = bench.got(a);
    assert_eq!(got[0]["result"]["agentCapabilities"]["_meta"]["_acpd"]["agent"], "one");
    for agent in ["one", "two"] {
        bench.say(a, &hello("3", agent));
        let got = bench.got(a);
        assert_eq!(got[0]["error"]["code"], -32600);
        assert_eq!(got[0]["error"]["message"], "this connection is initialized already");
    }
    assert_eq!(bench.started, ["one"]);
}

#[test]
fn garbage_from_an_agent_is_noted_and_skipped() {
    let (mut bench, a) = Bench::begun();
    for line in ["npm WARN deprecated", "", "[]", "{\"id\":99,\"result\":{}}", "\r"] {
        bench.agent_raw(line);
    }
    assert!(bench.notes.len() >= 4);
    bench.chunk("s", "x");
    bench.expect(a, ["agent_message_chunk"]);
}

#[test]
fn a_second_request_under_an_open_id_is_refused_and_the_first_is_kept() {
    let (mut bench, a, request) = Bench::new().in_turn("one");
    bench.prompt(a, &json!(1), "s", "two");
    assert_eq!(bench.got(a)[0]["error"]["code"], -32600);
    bench.end_turn(&request);
    bench.expect(a, ["result 1"]);
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn the_end_of_a_turn_comes_after_its_updates_for_a_slow_client_too() {
    for (breaks, end) in [(false, "result 1"), (true, "error 1")] {
        let (mut bench, a, request) = Bench::new().in_turn("go");
        bench.chunk("s", "one");
        bench.feed(Input::Client(a, ClientEvent::Lagged));
        bench.chunk("s", "two");
        if breaks {
            bench.agent_dies();
        } else {
            bench.end_turn(&request);
        }
        bench.expect(a, ["agent_message_chunk"]);
        bench.feed(Input::Client(a, ClientEvent::Drained));
        let got = bench.expect(a, ["agent_message_chunk", end]);
        assert_eq!(got[0]["params"]["update"]["content"]["text"], "two");
    }
}

#[test]
fn an_update_before_the_answer_to_session_new_is_shown_after_it() {
    let mut bench = Bench::new();
    let a = bench.plain();
    bench.ask(a, 3, "session/new", &json!({"cwd":"/w","mcpServers":[]}));
    let request = bench.heard_one("session/new");
    assert_eq!(request["params"], json!({"cwd":"/w","mcpServers":[]}));
    let acked = bench.acked;
    bench.chunk("s", "early");
    assert!(bench.acked > acked, "an agent held back here would never answer");
    bench.agent_answers(&request, &json!({"sessionId":"s"}));
    bench.expect(a, ["result 3", "agent_message_chunk"]);
}

#[test]
fn load_of_a_live_session_is_served_from_the_journal() {
    let mut bench = Bench::new();
    let (a, b) = (bench.plain(), bench.plain());
    bench.session_with(a, "s", &json!({"modes":modes("ask")}));
    let request = bench.start_turn(a, 1, "s", "go");
    bench.chunk("s", "one");
    bench.ask(b, 2, "session/load", &json!({"sessionId":"s","cwd":"/w","mcpServers":[]}));
    bench.chunk("s", "two");
    bench.end_turn(&request);
    let got = bench.got(b);
    let expected = ["user_message_chunk", "agent_message_chunk", "result 2", "agent_message_chunk"];
    assert_eq!(words(&got), expected);
    assert_eq!(got[2]["result"]["modes"]["currentModeId"], "ask");
    assert_eq!(bench.heard(), Vec::<Value>::new());

    bench.ask(b, 3, "session/load", &json!({"sessionId":"s","cwd":"/else","mcpServers":[]}));
    assert_eq!(bench.got(b)[0]["error"]["code"], -32602);
}

#[test]
fn attaching_again_while_a_piece_of_journal_is_on_its_way_shows_no_line_twice() {
    let (mut bench, _) = Bench::begun();
    for text in ["1", "2", "3"] {
        bench.chunk("s", text);
    }
    let watcher = bench.client(&json!({"seq":true}));
    let params = json!({"ref":{"session":"s"},"after":0});
    // Both in one batch: the second replaces the first before anything of it was read.
    let mut batch = acpd_core::Batch::default();
    for id in [1, 2] {
        let attach = json!({"id":id,"method":"_acpd/session/attach","params":params});
        let input = client_line(watcher, attach.to_string());
        bench.hub.handle(acpd_core::ids::Time(bench.now), input, &mut batch);
    }
    bench.chunk("s", "4");
    bench.run_batch(batch);
    let got = bench.got(watcher);
    let seqs: Vec<_> =
        got.iter().filter_map(|l| l["params"]["_meta"]["_acpd"]["seq"].as_u64()).collect();
    assert_eq!(seqs, [1, 2, 3, 1, 2, 3, 4], "{:?}", got.iter().map(word).collect::<Vec<_>>());
}

#[test]
fn an_oversized_answer_of_an_agent_fails_its_request_only() {
    let (mut bench, a, request) = Bench::new().in_turn("go");
    let head = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"method":"aaaa"#, request["id"]);
    bench.feed(host_oversized(bench.host(), head.into(), 9_000_000, 9_999_999));
    assert_eq!(reason(&bench.expect(a, ["error 1"])[0]), "line_too_long");
    assert_eq!(bench.acked, 9_999_999);
}

#[test]
fn an_oversized_request_of_a_client_is_refused_under_its_id() {
    let mut bench = Bench::new();
    let a = bench.plain();
    for (id, head) in [
        ("5", r#"{"jsonrpc":"2.0","id":5,"method":"session/prompt","par"#),
        (r#""five""#, r#"{"jsonrpc":"2.0","id":"five","method":"session/prompt","par"#),
        (r#""big""#, r#"{"method":"session/prompt","params":{"x":{"id":5}},"id":"big""#),
    ] {
        bench.feed(client_oversized(a, head.into(), 9_000_000));
        assert_eq!(words(&bench.got(a)), [format!("error {id}")]);
    }
}

#[test]
fn a_client_sees_only_updates_that_it_declared() {
    let (mut bench, plain) = Bench::begun();
    let items = json!([{"content":"look","priority":"high","status":"pending"}]);
    for update in [
        json!({"sessionUpdate":"notice","severity":"info","title":"T"}),
        json!({"sessionUpdate":"compaction_update","compactionId":"c","status":"completed"}),
        json!({"sessionUpdate":"compaction_summary_chunk","compactionId":"c","content":{}}),
        json!({"sessionUpdate":"plan_update","plan":{"type":"markdown","planId":"p","content":"#"}}),
        json!({"sessionUpdate":"plan_update","plan":{"type":"items","planId":"p","entries":items}}),
        json!({"sessionUpdate":"plan_removed","planId":"p"}),
        json!({"sessionUpdate":"subagent_update","sessionId":"child"}),
        json!({"sessionUpdate":"session_message","messageId":"m"}),
        json!({"sessionUpdate":"session_message_chunk","messageId":"m","content":{}}),
    ] {
        bench.send_update("s", &update);
    }
    let live = bench.expect(plain, ["plan"]);
    assert_eq!(live[0]["params"]["update"], json!({"sessionUpdate":"plan","entries":items}));

    bench.ask(plain, 1, "session/load", &json!({"sessionId":"s","cwd":"/w","mcpServers":[]}));
    let replayed = bench.got(plain);
    assert_eq!(replayed[0], live[0], "the journal is shown as it was live");
    assert_eq!(words(&replayed), ["plan", "result 1"]);
}

#[test]
fn a_client_that_resumes_learns_the_commands() {
    let mut bench = Bench::new();
    let (a, b) = (bench.client(&json!({"seq":true})), bench.client(&json!({"seq":true})));
    bench.session(a, "s");
    for name in ["old", "new"] {
        let update = json!({"sessionUpdate":"available_commands_update",
            "availableCommands":[{"name":name,"description":"d"}]});
        bench.send_update("s", &update);
    }
    bench.chunk("s", "text");
    bench.ask(b, 1, "session/resume", &json!({"sessionId":"s","cwd":"/w","mcpServers":[]}));
    let got = bench.expect(b, ["result 1", "available_commands_update"]);
    assert_eq!(got[1]["params"]["update"]["availableCommands"][0]["name"], "new");
    assert_eq!(got[1]["params"].get("_meta"), None, "it is no step forward");
    bench.chunk("s", "more");
    bench.expect(b, ["agent_message_chunk"]);
}

#[test]
fn paths_are_absolute() {
    let mut bench = Bench::new();
    let a = bench.plain();
    for (cwd, more) in [("w", "/x"), ("", "/x"), ("/w", "x"), ("/w", "")] {
        let params = json!({"cwd":cwd,"mcpServers":[],"additionalDirectories":[more]});
        bench.ask(a, 1, "session/new", &params);
        assert_eq!(bench.got(a)[0]["error"]["code"], -32602, "{cwd} {more}");
    }
    assert!(bench.heard().is_empty());
}
