//! Reads JSON of agents into the displayed types: one unreadable member never hides the others.

use acp_wire::legible;
use acpd_api::Untrusted;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

pub(crate) const NOT_READ: &str = "could not be read";

/// Names of members that must be text. Other values in them are shown as JSON.
const TEXTS: &str = "category compactionId currentModeId description error hint id kind \
    messageId mimeType name newText oldText path planId priority severity status step text \
    title toolCallId uri value";

fn is_text(name: &str) -> bool {
    TEXTS.split(' ').any(|text| text == name)
}

/// Data of the agent that is never changed.
const DATA: [&str; 4] = ["_meta", "currentValue", "rawInput", "rawOutput"];

/// Reads an object; values that no Rust type can hold are replaced.
pub(crate) fn members(json: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(&legible(json)).ok()
}

pub(crate) fn text(members: &Map<String, Value>, name: &str) -> Option<Untrusted> {
    members.get(name).and_then(Value::as_str).map(Untrusted::from)
}

/// Reads a list without its unreadable items; any other value is an empty list.
pub(crate) fn list<T: DeserializeOwned>(items: Option<&Value>) -> Vec<T> {
    let items = items.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|item| T::deserialize(item).ok()).collect()
}

/// Reads a member like [`list`].
pub(crate) fn list_in<'de, T, D>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    T: DeserializeOwned,
    D: Deserializer<'de>,
{
    Value::deserialize(deserializer).map(|items| list(Some(&items)))
}

/// Converts members that must be text, and drops null texts. A null `title` stays: it removes the
/// title.
pub(crate) fn mend(members: &mut Map<String, Value>) {
    members.retain(|name, value| !value.is_null() || !is_text(name) || name == "title");
    for (name, value) in members {
        match value {
            Value::String(_) | Value::Null => {}
            _ if is_text(name) => *value = value.to_string().into(),
            _ if DATA.contains(&name.as_str()) => {}
            _ => mend_value(value),
        }
    }
}

fn mend_value(value: &mut Value) {
    match value {
        Value::Object(members) => mend(members),
        Value::Array(items) => items.iter_mut().for_each(mend_value),
        _ => {}
    }
}

/// Returns a chunk's content blocks. Some agents write a list or plain text.
pub(crate) fn blocks(content: Option<Value>) -> Vec<Value> {
    match content {
        Some(Value::Array(items)) => items.into_iter().map(block).collect(),
        other => vec![block(other.unwrap_or_default())],
    }
}

/// Returns a tool call's content as objects with a type.
pub(crate) fn items(content: Value) -> Value {
    let items = match content {
        Value::Array(items) => items,
        other => vec![other],
    };
    let item = |item: Value| match item {
        Value::Object(mut item) => {
            let is_known = is_of(&item, &["content", "diff", "terminal", "session"]);
            let names = [("content", "content"), ("path", "diff"), ("terminalId", "terminal")];
            let guess = names.iter().find(|(member, _)| item.contains_key(*member));
            if let Some((_, kind)) = guess.filter(|_| !is_known) {
                item.insert("type".to_owned(), (*kind).into());
            }
            if is_of(&item, &["content"]) {
                let content = block(item.remove("content").unwrap_or_default());
                item.insert("content".to_owned(), content);
            } else if !item.get("type").is_some_and(Value::is_string) {
                return json!({"type": "content", "content": block(Value::Object(item))});
            }
            Value::Object(item)
        }
        other => json!({"type": "content", "content": block(other)}),
    };
    items.into_iter().map(item).collect()
}

/// Returns a content block. Plain text and text of an unknown type become text blocks.
fn block(value: Value) -> Value {
    match value {
        Value::Object(mut block) => {
            let is_known = is_of(&block, &["image", "audio", "resource_link", "resource"]);
            if block.contains_key("text") && !is_known {
                block.insert("type".to_owned(), "text".into());
            }
            Value::Object(block)
        }
        Value::String(text) => json!({"type": "text", "text": text}),
        Value::Number(_) | Value::Bool(_) => json!({"type": "text", "text": value.to_string()}),
        Value::Null | Value::Array(_) => Value::Null,
    }
}

fn is_of(members: &Map<String, Value>, kinds: &[&str]) -> bool {
    members.get("type").and_then(Value::as_str).is_some_and(|kind| kinds.contains(&kind))
}

/// Returns a plan's steps, with the names that ACP has for their members.
pub(crate) fn steps(plan: &mut Map<String, Value>) -> Option<Value> {
    let Value::Array(items) = plan.remove("entries").or_else(|| plan.remove("steps"))? else {
        return None;
    };
    let step = |item: Value| match item {
        Value::Object(mut step) if step.get("content").is_none_or(Value::is_null) => {
            let content = ["step", "title", "text", "description"];
            let content = content.iter().find_map(|name| step.remove(*name));
            step.insert("content".to_owned(), content.unwrap_or_else(|| NOT_READ.into()));
            Value::Object(step)
        }
        Value::Object(mut step) => {
            let content = &mut step["content"];
            if let Value::Object(block) = content {
                *content = block.remove("text").unwrap_or_else(|| NOT_READ.into());
            } else if !content.is_string() {
                *content = content.to_string().into();
            }
            Value::Object(step)
        }
        Value::String(text) => json!({"content": text}),
        _ => json!({"content": NOT_READ}),
    };
    Some(items.into_iter().map(step).collect())
}
