//! Agents of version 2: what the engine hears of them is version 1, in order and complete.

use acp_wire::dialect::{Heard, Translator};
use bytes::Bytes;
use proptest::prelude::*;
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

/// The texts of the chunks that the engine hears of an update.
fn texts(translator: &mut Translator, of: &Value) -> String {
    let heard = heard(translator, &update(of));
    let chunks = heard.as_array().expect("a list").iter();
    let of_chunk = |chunk: &Value| {
        let update = &chunk["params"]["update"];
        assert_eq!(update["sessionUpdate"], "agent_message_chunk");
        update["content"]["text"].as_str().expect("a text").to_owned()
    };
    chunks.map(of_chunk).collect()
}

fn chunk(text: &str) -> Value {
    json!({"sessionUpdate": "agent_message_chunk", "messageId": "m",
        "content": {"type": "text", "text": text}})
}

fn message(texts: &[String]) -> Value {
    let blocks = texts.iter().map(|text| json!({"type": "text", "text": text}));
    json!({"sessionUpdate": "agent_message", "messageId": "m", "content": Value::from_iter(blocks)})
}

#[test]
fn a_replay_begins_with_nothing_shown() {
    let mut t = Translator::default();
    assert_eq!(texts(&mut t, &chunk("old")), "old");
    assert_eq!(texts(&mut t, &message(&[])), "");
    assert_eq!(texts(&mut t, &chunk("new")), "\n\nnew");
    t.to_agent(&line(&request(1, "session/load", &json!({"sessionId": "s", "cwd": "/"}))));
    assert_eq!(texts(&mut t, &message(&[])), "");
    assert_eq!(texts(&mut t, &chunk("new")), "new");
}

#[derive(Debug, Clone)]
enum Change {
    Chunk(String),
    Replace(Vec<String>),
    Continue(Vec<String>),
}

fn change() -> impl Strategy<Value = Change> {
    let text = "[ab\u{e9}]{0,3}";
    let texts = prop::collection::vec(text, 0..3);
    prop_oneof![
        text.prop_map(Change::Chunk),
        texts.clone().prop_map(Change::Replace),
        texts.prop_map(Change::Continue),
    ]
}

proptest! {
    #[test]
    fn texts_of_messages_are_complete_and_in_order(changes in prop::collection::vec(change(), 0..9)) {
        let mut t = Translator::default();
        let (mut now, mut shown) = (String::new(), String::new());
        for change in changes {
            let more = match change {
                Change::Chunk(text) => {
                    now.push_str(&text);
                    texts(&mut t, &chunk(&text))
                }
                Change::Replace(blocks) => {
                    now = blocks.concat();
                    texts(&mut t, &message(&blocks))
                }
                Change::Continue(blocks) => {
                    let all: Vec<_> = [now.clone()].into_iter().chain(blocks).collect();
                    let (is_whole, was) = (shown.ends_with(&now), now);
                    now = all.concat();
                    let more = texts(&mut t, &message(&all));
                    prop_assert!(is_whole && (was.is_empty() || more == now[was.len()..]));
                    more
                }
            };
            shown.push_str(&more);
            prop_assert!(shown.ends_with(&now), "{:?} is not the end of {:?}", now, shown);
        }
    }
}
