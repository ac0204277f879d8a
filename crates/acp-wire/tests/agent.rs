//! Agents of version 2: what the engine hears of them is version 1, in order and complete.

use acp_wire::dialect::{Heard, Translator};
use bytes::Bytes;
use serde_json::{Value, json};

fn line(value: &Value) -> Bytes {
    value.to_string().into()
}

fn value(line: &[u8]) -> Value {
    serde_json::from_slice(line).expect("it is JSON")
}

fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn answer(id: u64, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn update(update: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": "session/update",
        "params": {"sessionId": "s", "update": update}})
}

fn prompt(id: u64) -> Value {
    request(id, "session/prompt", &json!({"sessionId": "s", "prompt": []}))
}

fn idle(stop: &str) -> Value {
    json!({"sessionUpdate": "state_update", "state": "idle", "stopReason": stop})
}

/// What the engine hears of a line: the lines, and `{"inserted": ID}`.
fn heard(translator: &mut Translator, agent: &Value) -> Value {
    let heard = translator.from_agent(&line(agent)).into_iter().map(|heard| match heard {
        Heard::Line(line) => value(&line),
        Heard::Inserted(id) => json!({ "inserted": id }),
    });
    heard.collect()
}

#[test]
fn prompts_are_inserted_and_answered_once() {
    let mut t = Translator::default();
    for id in [9, 10] {
        t.to_agent(&line(&prompt(id)));
    }
    let echo = |id: &str| {
        update(&json!({"sessionUpdate": "user_message_chunk", "messageId": id,
            "content": {"type": "text", "text": "hi"}}))
    };
    let end = |id: u64, stop: &str| json!([answer(id, &json!({"stopReason": stop}))]);
    // The end of other work.
    assert_eq!(heard(&mut t, &update(&idle("end_turn"))), json!([]));
    assert_eq!(heard(&mut t, &echo("a")), json!([{"inserted": 9}]));
    assert_eq!(heard(&mut t, &echo("a")), json!([]));
    // An answer without the id of the message does not hide the next message.
    assert_eq!(heard(&mut t, &answer(9, &json!({}))), json!([]));
    assert_eq!(heard(&mut t, &answer(9, &json!({}))), json!([]));
    assert_eq!(heard(&mut t, &echo("b")), json!([echo("b")]));
    assert_eq!(heard(&mut t, &update(&idle("refusal"))), end(9, "refusal"));
    assert_eq!(heard(&mut t, &update(&idle("end_turn"))), json!([]));
    // The turn ends before the answer, which is dropped.
    assert_eq!(heard(&mut t, &echo("c")), json!([{"inserted": 10}]));
    assert_eq!(heard(&mut t, &update(&idle("_own"))), end(10, "end_turn"));
    assert_eq!(heard(&mut t, &answer(10, &json!({"messageId": "c"}))), json!([]));
    // Nothing is known of it any longer.
    let late = answer(10, &json!({"messageId": "c"}));
    assert_eq!(heard(&mut t, &late), json!([late]));
}
