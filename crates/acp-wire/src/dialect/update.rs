//! `session/update`.

use bytes::Bytes;

use super::call::call_to_v2;
use super::objects::{convert_items, object_at, quoted, value_at, with_default};
use crate::{locate, remove_member, set_member, str_at};

const UPDATE: [&str; 2] = ["params", "update"];

/// The id of a message in version 2: `acpd-<entity>`.
pub fn message_id(entity: u64) -> String {
    format!("acpd-{entity}")
}

/// Converts a `session/update` notification of version 1 for a client of version 2.
///
/// `entity`: for a chunk of a message, the number that names the message; for a tool call, the turn
/// that the call belongs to. `None`: version 2 has nothing for it, or acpd sends its own.
pub fn update_to_v2(line: &Bytes, entity: Option<u64>) -> Option<Bytes> {
    let Some(update) = locate(line, &UPDATE).map(|range| line.slice(range)) else {
        return Some(line.clone());
    };
    let converted = match &*str_at(&update, &["sessionUpdate"]).unwrap_or_default() {
        "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk" => match entity {
            Some(entity) => {
                set_member(&update, &["messageId"], quoted(&message_id(entity)).as_bytes())
            }
            None => str_at(&update, &["messageId"]).map(|_| update.clone())?,
        },
        "tool_call" | "tool_call_update" => {
            set_member(&call_to_v2(&update, entity), &["sessionUpdate"], b"\"tool_call_update\"")
        }
        "plan" => plan_to_v2(&update),
        "available_commands_update" => {
            convert_items(&update, &["availableCommands"], |command| Some(command_to_v2(command)))
        }
        // Options are listed as a whole, and only acpd knows states. A cursor's anchor has an id of
        // the agent, which the client does not know.
        "current_mode_update"
        | "config_option_update"
        | "state_update"
        | "replay_complete"
        | "cursor_update" => return None,
        _ => return Some(line.clone()),
    };
    Some(set_member(line, &UPDATE, &converted))
}

fn plan_to_v2(update: &Bytes) -> Bytes {
    let entries = value_at(update, &["entries"]).unwrap_or_else(|| Bytes::from_static(b"[]"));
    let plan = Bytes::from_static(br#"{"type":"items","planId":"acpd-plan"}"#);
    let plan = set_member(&plan, &["entries"], &entries);
    let update = set_member(update, &["sessionUpdate"], b"\"plan_update\"");
    set_member(&remove_member(&update, &["entries"]), &["plan"], &plan)
}

fn command_to_v2(command: &Bytes) -> Bytes {
    let command = with_default(command, &["type"], "\"command\"");
    match object_at(&command, &["input"]) {
        Some(_) => with_default(&command, &["input", "type"], "\"text\""),
        None => command,
    }
}
