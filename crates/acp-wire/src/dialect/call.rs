//! Tool calls, in updates and in questions.

use bytes::Bytes;

use super::diff::diff_to_v2;
use super::objects::{convert_items, is_null, members, object_of, quoted};
use crate::{set_member, str_at};

/// The id of a tool call in version 2: `<id>~<turn>`. Agents use ids again in each turn.
pub fn call_id(id: &str, turn: u64) -> String {
    format!("{id}~{turn}")
}

/// A tool call as version 2 has it: `null` means unchanged in version 1, but cleared in version 2.
pub(super) fn call_to_v2(call: &Bytes, turn: Option<u64>) -> Bytes {
    let call = object_of(members(call).filter(|(_, value)| !is_null(value)));
    let call = convert_items(&call, &["content"], |item| {
        let is_diff = str_at(item, &["type"]).is_some_and(|kind| kind == "diff");
        Some(is_diff.then(|| diff_to_v2(item)).flatten().unwrap_or_else(|| item.clone()))
    });
    turn.map_or_else(|| call.clone(), |turn| with_call_id(&call, &["toolCallId"], turn))
}

/// Puts the turn into the id at a path.
pub(super) fn with_call_id(json: &Bytes, path: &[&str], turn: u64) -> Bytes {
    match str_at(json, path) {
        Some(id) => set_member(json, path, quoted(&call_id(&id, turn)).as_bytes()),
        None => json.clone(),
    }
}
