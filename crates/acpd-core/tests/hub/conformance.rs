//! Demands of ACP on a program between clients and agents, line by line.
//!
//! | line | shown by |
//! | --- | --- |
//! | forwarded messages are byte-identical | `transparency` |
//! | id types, equal ids of two clients | `protocol::ids_come_back_with_their_type_and_do_not_clash_between_clients` |
//! | the answer to a prompt never overtakes | `protocol::the_end_of_a_turn_comes_after_its_updates_for_a_slow_client_too`, and here |
//! | cancel while two clients are asked | `turns::a_cancel_withdraws_a_question_from_everybody_and_answers_the_agent_once` |
//! | update before the answer to `session/new` | `protocol::an_update_before_the_answer_to_session_new_is_shown_after_it` |
//! | load of a live session | `protocol::load_of_a_live_session_is_served_from_the_journal`, `views`, and here |
//! | a crash within a turn | `restores::a_crash_in_a_turn_is_told_and_the_session_comes_back_with_its_mode`, `restores::options_are_set_again_and_later_clients_see_them`, and here |
//! | `session/resume` that does not exist, no `session/load` | `restores::an_agent_that_lies_about_resume_is_asked_to_load_and_the_lie_is_remembered`, and here |
//! | -32000 at any point | `auth::a_refused_restore_answers_the_newest_prompt_that_somebody_waits_for_and_keeps_the_others`, and here |
//! | what is unknown survives a round trip | `transparency`, and here |
//! | a slow client, a line that is too long | here; `protocol::an_oversized_answer_of_an_agent_fails_its_request_only` |
//! | lines that are no messages | `protocol::garbage_from_an_agent_is_noted_and_skipped`, `protocol::malformed_lines_are_answered_and_harm_nothing`; line ends in `acp-wire/tests/frame.rs` |
//!
//! The brief drops slow clients; the architecture lets them go on from their cursor, and so do the
//! tests.

use acpd_core::ids::{ClientId, Time};
use acpd_core::profile::OnLost;
use acpd_core::{Batch, ClientEvent, Input};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::bench::{Bench, client_line, words};
use crate::steps::{hint, reason};

fn load(bench: &mut Bench, client: ClientId, id: u64) {
    bench.ask(client, id, "session/load", &json!({"sessionId":"s","cwd":"/w","mcpServers":[]}));
}

/// Texts of the messages in these lines.
fn texts(lines: &[Value]) -> Vec<&str> {
    lines.iter().filter_map(|line| line["params"]["update"]["content"]["text"].as_str()).collect()
}

#[test]
fn the_answer_to_a_prompt_does_not_overtake_its_updates_for_a_client_that_still_reads_the_history()
{
    let (mut bench, a, request) = Bench::new().in_turn("go");
    bench.chunk("s", "one");
    bench.got(a);
    // All in one batch: the history is not read before the answer is there.
    let mut batch = Batch::default();
    let load = json!({"id":2,"method":"session/load","params":{"sessionId":"s"}});
    let line = Bytes::from(load.to_string());
    bench.hub.handle(Time(bench.now), client_line(a, line), &mut batch);
    let content = json!({"type":"text","text":"two"});
    let update = json!({"sessionUpdate":"agent_message_chunk","content":content});
    let chunk = json!({"method":"session/update","params":{"sessionId":"s","update":update}});
    for said in [chunk, json!({"id":request["id"],"result":{"stopReason":"end_turn"}})] {
        let input = bench.agent_says_unheard(&said);
        bench.hub.handle(Time(bench.now), input, &mut batch);
    }
    bench.run_batch(batch);
    let got = bench.got(a);
    assert_eq!(words(&got).last().expect("an answer"), "result 1", "{got:?}");
    assert_eq!(texts(&got), ["go", "one", "two"]);
}

#[test]
fn a_crash_gives_each_open_request_one_error_and_closes_every_tool_call() {
    let (mut bench, a, b) = Bench::new().with_two_clients();
    bench.session(a, "s");
    bench.prompt(a, &json!(1), "s", "go");
    bench.ask(a, 2, "session/set_mode", &json!({"sessionId":"s","modeId":"m"}));
    bench.ask(b, 3, "_vendor/ask", &json!({"sessionId":"s"}));
    bench.ask(b, 4, "_vendor/ask", &json!({}));
    bench.ask_session(b, 5);
    for id in ["t1", "t2"] {
        bench.send_update("s", &json!({"sessionUpdate":"tool_call","toolCallId":id,"title":"x"}));
    }
    bench.got(a);
    bench.got(b);
    bench.agent_dies_for(60_000);
    let errors = |lines: &[Value]| {
        let mut ids: Vec<u64> = Vec::new();
        for line in lines.iter().filter(|line| line.get("error").is_some()) {
            assert_eq!(line["error"]["code"], -32603);
            ids.push(line["id"].as_u64().expect("a number"));
        }
        ids.sort_unstable();
        ids
    };
    let (of_a, of_b) = (bench.got(a), bench.got(b));
    assert_eq!((errors(&of_a), errors(&of_b)), (vec![1, 2], vec![3, 4, 5]));
    let failed = of_a.iter().filter(|line| line["params"]["update"]["status"] == "failed");
    let mut failed: Vec<_> = failed.map(|l| &l["params"]["update"]["toolCallId"]).collect();
    failed.sort_by_key(ToString::to_string);
    assert_eq!(failed, ["t1", "t2"]);
}

#[test]
fn of_an_agent_that_can_neither_resume_nor_load_the_history_remains() {
    let bench = Bench::with(|profile| profile.on_lost = OnLost::Stop);
    let (mut bench, a, request) = bench.with_capabilities(json!({})).in_turn("go");
    bench.chunk("s", "done");
    bench.end_turn(&request);
    bench.got(a);
    bench.agent_dies();
    bench.prompt(a, &json!(2), "s", "go on");
    bench.pass(60_000);
    assert_eq!(reason(bench.got(a).last().expect("told")), "session_lost");
    assert_eq!(bench.heard(), Vec::<Value>::new(), "no other context is passed off as this one");
    let late = bench.plain();
    load(&mut bench, late, 3);
    let got = bench.got(late);
    assert_eq!(texts(&got), ["go", "done"]);
    assert_eq!(words(&got).last().expect("an answer"), "result 3");
}

#[test]
fn a_login_that_is_wanted_reaches_who_asked_whatever_was_asked() {
    for method in ["session/new", "session/prompt", "session/set_mode", "_vendor/ask"] {
        let (mut bench, a) = Bench::used();
        let params = match method {
            "session/new" => json!({"cwd":"/w","mcpServers":[]}),
            "session/prompt" => json!({"sessionId":"s","prompt":[{"type":"text","text":"go"}]}),
            _ => json!({"sessionId":"s","modeId":"m"}),
        };
        let request = bench.relay(a, 7, method, &params);
        bench.agent_refuses(&request, -32000);
        let refused = bench.expect(a, ["error 7"]).remove(0);
        assert_eq!((&refused["error"]["code"], reason(&refused)), (&json!(-32000), "needs_login"));
        assert_eq!(hint(&refused), "`acpctl auth login gem`, then try again");
        assert_eq!(bench.agent_state(), "needs_auth", "after {method}");

        bench.log_in(a);
        assert_eq!(bench.agent_state(), "ready", "after {method}");
        bench.got(a);
        bench.prompt(a, &json!(9), "s", "go on");
        let mut heard = bench.heard();
        if heard[0]["method"] == "session/resume" {
            bench.agent_answers(&heard[0], &json!({}));
            heard = bench.heard();
        }
        let text = &heard[0]["params"]["prompt"][0]["text"];
        assert_eq!(text, "go on", "nothing runs twice: {heard:?}");
    }
}

#[test]
fn a_capability_that_nobody_knows_reaches_the_client_and_acpd_adds_its_own() {
    let mut bench = Bench::able(&json!({
        "telepathy": {"range": 1.5}, "sessionCapabilities": {"rewind": {"x": []}},
        "_meta": {"vendor": {"queue": true}},
    }));
    let a = bench.connect(&json!({}));
    let capabilities = &bench.got(a)[0]["result"]["agentCapabilities"];
    assert_eq!(capabilities["telepathy"], json!({"range":1.5}));
    assert_eq!(capabilities["_meta"]["vendor"], json!({"queue":true}));
    assert_eq!(capabilities["_meta"]["_acpd"]["agent"], "gem");
    assert_eq!(capabilities["sessionCapabilities"]["rewind"], json!({"x":[]}));
}

#[test]
fn a_client_that_does_not_read_delays_nobody_and_misses_nothing() {
    let (mut bench, slow, quick) = Bench::new().with_two_clients();
    bench.session(quick, "s");
    bench.join(slow, "s");
    bench.feed(Input::Client(slow, ClientEvent::Lagged));
    let wanted: Vec<String> = (0..100).map(|n| n.to_string()).collect();
    for text in &wanted {
        let acked = bench.acked;
        bench.chunk("s", text);
        assert!(bench.acked > acked, "the agent goes on");
        assert_eq!(texts(&bench.got(quick)), [text]);
    }
    assert_eq!(bench.got(slow), Vec::<Value>::new());
    bench.feed(Input::Client(slow, ClientEvent::Drained));
    assert_eq!(texts(&bench.got(slow)), wanted);
}
