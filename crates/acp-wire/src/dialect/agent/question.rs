//! Permissions.

use bytes::Bytes;
use serde_json::json;

use super::call::{call_from_v2, content_in_question, text_item};
use crate::dialect::objects::{list_of, object_at, quoted, value_at, with_default};
use crate::{lossy_at, remove_member, set_member, str_at};

/// Converts a `session/request_permission`: everything that it says is in the call.
pub(super) fn from_v2(line: &Bytes) -> Bytes {
    let of = |name| lossy_at(line, &["params", name]);
    let (title, description) = (of("title").unwrap_or_default(), of("description"));
    let subject = object_at(line, &["params", "subject"]).unwrap_or_default();
    let call = match str_at(&subject, &["type"]).as_deref() {
        Some("tool_call") => object_at(&subject, &["toolCall"]),
        Some("command") => Some(command(&subject)),
        _ => None,
    };
    let call = call.unwrap_or_else(|| Bytes::from_static(b"{}"));
    let own_title = lossy_at(&call, &["title"]);
    let other_title = own_title.is_some_and(|own| own != title).then_some(title.clone());
    let texts = [other_title, description].into_iter().flatten().filter(|text| !text.is_empty());
    let texts: Vec<_> = texts.map(|text| text_item(&text)).collect();
    let shown = content_in_question(&call);
    let call = with_default(&call_from_v2(&call), &["title"], &quoted(&title));
    let call = with_default(&call, &["toolCallId"], "\"question\"");
    let has_content = value_at(&call, &["content"]).is_some() || !texts.is_empty();
    let content = list_of(texts.into_iter().chain(shown));
    let call = if has_content { set_member(&call, &["content"], &content) } else { call };
    let gone = ["title", "description", "subject"];
    let line = gone.iter().fold(line.clone(), |line, name| remove_member(&line, &["params", name]));
    set_member(&line, &["params", "toolCall"], &call)
}

/// The call that a command becomes.
fn command(subject: &Bytes) -> Bytes {
    let of = |name| lossy_at(subject, &[name]);
    let call = json!({
        "toolCallId": of("toolCallId").unwrap_or_else(|| "question".into()),
        "title": of("command"),
        "kind": "execute",
        "rawInput": {"command": of("command"), "cwd": of("cwd")},
    });
    call.to_string().into()
}
