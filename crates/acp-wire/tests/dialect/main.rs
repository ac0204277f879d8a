//! Conversions between the versions of the protocol: what they make is official, and nothing is lost.

mod agent;
mod client;
mod official;
mod random;
mod traces;

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

fn update(update: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": "session/update",
        "params": {"sessionId": "s", "update": update}})
}

/// An object with further members.
fn with(mut value: Value, more: &Value) -> Value {
    let members = value.as_object_mut().expect("an object");
    members.extend(more.as_object().expect("members").clone());
    value
}

fn text(text: &str) -> Value {
    json!({"type": "content", "content": {"type": "text", "text": text}})
}

/// Lines that the engine hears of an agent's one, and `{"inserted": ID}` or `{"background": WORK}`.
fn heard(translator: &mut Translator, agent: &Value) -> Vec<Value> {
    let heard = translator.from_agent(&line(agent)).into_iter();
    let heard = heard.filter_map(|heard| match heard {
        Heard::Same => Some(agent.clone()),
        Heard::Original | Heard::Echo | Heard::State(..) => None,
        Heard::Line(line) | Heard::Part(line) => Some(value(&line)),
        Heard::Inserted(id, _) => Some(json!({ "inserted": id })),
        // Each state has the list.
        Heard::Background { work, .. } if work.is_empty() => None,
        Heard::Background { work, .. } => Some(json!({ "background": work })),
    });
    heard.collect()
}
