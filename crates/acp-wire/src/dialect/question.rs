//! Questions of agents: permissions and elicitations.

use bytes::Bytes;

use super::call::{call_to_v2, with_call_id};
use super::objects::{object_at, quoted, value_at, with_default};
use crate::{lossy_at, remove_member, set_member, str_at};

/// Converts a question (`session/request_permission`, `elicitation/create`) of a version-1 agent for
/// a client of version 2. `turn`: the turn of the tool call.
pub fn question_to_v2(line: &Bytes, turn: u64) -> Bytes {
    match str_at(line, &["method"]).as_deref() {
        Some("session/request_permission") => permission_to_v2(line, Some(turn)),
        Some("elicitation/create") => elicitation_to_v2(line, turn),
        _ => line.clone(),
    }
}

/// Returns the question of a version-2 agent with the call that its question of version 1 has now.
/// The agent's own words about the call are in its content.
pub fn question_again(original: &Bytes, line: &Bytes) -> Bytes {
    let line = permission_to_v2(line, None);
    let original = remove_member(original, &["params", "description"]);
    ["title", "subject"].iter().fold(original, |original, name| {
        let path = ["params", name];
        match value_at(&line, &path) {
            Some(value) => set_member(&original, &path, &value),
            None => original,
        }
    })
}

fn permission_to_v2(line: &Bytes, turn: Option<u64>) -> Bytes {
    const CALL: [&str; 2] = ["params", "toolCall"];
    let call = object_at(line, &CALL);
    let named = |call| ["title", "kind"].iter().find_map(|name| lossy_at(call, &[name]));
    let title = call.as_deref().and_then(named).unwrap_or_else(|| "tool call".into());
    let title = quoted(&title);
    let line = set_member(&remove_member(line, &CALL), &["params", "title"], title.as_bytes());
    let Some(call) = call else { return line };
    let line = set_member(&line, &["params", "subject"], b"{\"type\":\"tool_call\"}");
    set_member(&line, &["params", "subject", "toolCall"], &call_to_v2(&call, turn))
}

fn elicitation_to_v2(line: &Bytes, turn: u64) -> Bytes {
    const SCHEMA: [&str; 2] = ["params", "requestedSchema"];
    let line = with_call_id(line, &["params", "toolCallId"], turn);
    let Some(schema) = object_at(&line, &SCHEMA) else { return line };
    // Version 1 has defaults for both.
    let schema = with_default(&schema, &["type"], "\"object\"");
    set_member(&line, &SCHEMA, &with_default(&schema, &["properties"], "{}"))
}
