//! Requests whose batch cannot be written.

use acpd_core::ids::{ClientId, Time};
use acpd_core::{Batch, Input};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::bench::{Bench, client_line, words};
use crate::steps::reason;
use crate::survival::back;

/// Lets the store fail over what a client says, and gives what would have been done.
fn met_by(bench: &mut Bench, client: ClientId, line: &Value) -> Batch {
    let mut unwritten = Batch::default();
    let line = Bytes::from(line.to_string());
    bench.hub.handle(Time(bench.now), client_line(client, line), &mut unwritten);
    bench.hub.seal(&mut unwritten);
    let hint = Some("make room".to_owned());
    bench.feed(Input::StoreFailing { reason: "disk full".to_owned(), hint });
    let accepted = std::mem::take(&mut unwritten.accepted);
    let mut told = Batch::default();
    bench.hub.answer_unwritten(accepted, &mut [&mut unwritten.effects], &mut told);
    bench.run_batch(told);
    unwritten
}

fn prompt(id: u64) -> Value {
    let params = json!({"sessionId":"s","prompt":[{"type":"text","text":"go"}]});
    json!({"id":id,"method":"session/prompt","params":params})
}

#[test]
fn l12_a_prompt_that_cannot_be_written_is_answered_at_once_and_never_twice() {
    let (mut bench, a) = Bench::begun();
    let unwritten = met_by(&mut bench, a, &prompt(1));
    let got = bench.expect(a, ["error 1"]);
    let data = &got[0]["error"]["data"]["_acpd"];
    assert_eq!((&data["reason"], &data["hint"]), (&json!("outcome_unknown"), &json!("make room")));
    assert!(got[0]["error"]["message"].as_str().unwrap().contains("may still be carried out"));

    // There is room again, and it is carried out as it was said.
    bench.feed(Input::StoreWorks);
    bench.run_batch(unwritten);
    bench.end_prompt();
    assert!(!words(&bench.got(a)).contains(&"result 1".to_owned()));
    // The id of the request is free.
    bench.say(a, &prompt(1));
    bench.end_prompt();
    bench.expect_some(a, "result 1");
}

#[test]
fn l12_a_change_whose_answer_waits_for_the_store_is_answered_at_once_and_never_twice() {
    let (mut bench, a) = Bench::begun();
    let rename = json!({"id":1,"method":"_acpd/session/rename",
        "params":{"session":"s","name":"other"}});
    let unwritten = met_by(&mut bench, a, &rename);
    let got = bench.expect(a, ["error 1"]);
    assert_eq!(reason(&got[0]), "outcome_unknown");
    bench.feed(Input::StoreWorks);
    bench.run_batch(unwritten);
    assert!(!words(&bench.got(a)).contains(&"result 1".to_owned()));
}

#[test]
fn l12_an_initialize_that_meets_the_failure_can_be_sent_again() {
    let mut bench = Bench::new();
    let a = bench.open();
    let initialize = json!({"id":1,"method":"initialize","params":{"protocolVersion":1}});
    let unwritten = met_by(&mut bench, a, &initialize);
    assert_eq!(reason(&bench.expect(a, ["error 1"])[0]), "store_failed");
    bench.feed(Input::StoreWorks);
    bench.run_batch(unwritten);
    bench.ask(a, 2, "initialize", &json!({"protocolVersion":1}));
    bench.expect(a, ["result 2"]);
}

#[test]
fn a_client_that_is_gone_before_it_reads_the_error_gets_the_answer_and_repeats_nothing() {
    let (mut bench, a) = Bench::new().with_token();
    let unwritten = met_by(&mut bench, a, &prompt(7));
    bench.feed(Input::StoreWorks);
    bench.run_batch(unwritten);
    bench.end_prompt();
    bench.leave(a);
    let got = back(&mut bench, 0, &json!([7]));
    assert!(words(&got).contains(&"result 7".to_owned()), "{got:?}");
}
