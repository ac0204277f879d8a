//! Sentences of acpd for clients that do not take notices.

use acp_wire::{build, locate, str_at};
use acpd_api::{Reseed, RestoreLevel, Restored, Untrusted, method};
use bytes::Bytes;
use serde_json::json;

/// Begins acpd's sentences among those of the agent.
pub(super) const OWN_VOICE: &str = "[acpd] ";

/// Returns a sentence of acpd for clients without notices.
pub(crate) fn sentence(session: &str, text: &str) -> Bytes {
    let content = json!({ "type": "text", "text": format!("{OWN_VOICE}{text}\n\n") });
    let update = json!({ "sessionUpdate": "agent_message_chunk", "content": content });
    build::notification("session/update", &json!({ "sessionId": session, "update": update }))
}

/// Describes a restore that lost a part of the conversation of a session. Daemons before the member
/// `gets` journalled the sentence itself.
pub(super) fn missing_in_words(line: &Bytes) -> Option<(String, String)> {
    if str_at(line, &["method"])? != method::RESTORED {
        return None;
    }
    let restored: Restored = serde_json::from_slice(&line[locate(line, &["params"])?]).ok()?;
    let reason = restored.reason.as_ref().map_or("", Untrusted::raw);
    let text = match (restored.level, restored.gets) {
        (RestoreLevel::Reseeded, Some(gets)) => {
            let gets = match gets {
                Reseed::Summary => "a summary of the last request",
                Reseed::Transcript => "a transcript of the conversation",
            };
            format!(
                "The previous session could not be restored: {reason}. The agent continues in a new one, \
                 with {gets}; your history is intact."
            )
        }
        (RestoreLevel::Partial, _) => format!(
            "The agent may have only a part of this conversation: {reason}. Your history is intact."
        ),
        _ => return None,
    };
    Some((restored.session_id.into_raw(), text))
}
