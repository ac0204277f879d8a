//! Permissions.

use bytes::Bytes;
use serde_json::json;

use super::call::{Calls, call_from_v2};
use super::terminal::Terminals;
use super::text_item;
use crate::dialect::objects::{convert_items, items_at, list_of, object_at, quoted, with_default};
use crate::{locate, lossy_at, remove_member, set_member, str_at};

/// Converts a `session/request_permission`: everything that it says is in the call. Returns also the
/// update that shows the call, if nothing has.
pub(super) fn from_v2(
    line: &Bytes,
    calls: &mut Calls,
    terminals: &mut Terminals,
) -> (Option<Bytes>, Bytes) {
    let of = |name| lossy_at(line, &["params", name]);
    let (title, description) = (of("title").unwrap_or_default(), of("description"));
    let subject = object_at(line, &["params", "subject"]).unwrap_or_default();
    let mut update = None;
    let call = match str_at(&subject, &["type"]).as_deref() {
        Some("tool_call") => object_at(&subject, &["toolCall"]),
        Some("command") => Some(command(&subject)),
        _ => None,
    };
    let call = call.unwrap_or_else(|| Bytes::from_static(b"{}"));
    if str_at(&subject, &["type"]).is_some_and(|kind| kind == "tool_call") {
        update = calls.asked(&call, terminals);
    }
    let own_title = lossy_at(&call, &["title"]);
    let other_title = own_title.is_some_and(|own| own != title).then_some(title.clone());
    let texts = [other_title, description].into_iter().flatten().filter(|text| !text.is_empty());
    let texts: Vec<_> = texts.map(|text| text_item(&text)).collect();
    let has_content = locate(&call, &["content"]).is_some();
    let is_cleared = has_content && items_at(&call, &["content"]).is_none_or(|all| all.is_empty());
    let content = texts.iter().cloned().chain(calls.items(&call, terminals));
    let content: Vec<_> = content.collect();
    let converted = with_default(&call_from_v2(&call), &["title"], &quoted(&title));
    let converted = match content.is_empty() && !is_cleared {
        // An empty list would clear what was shown.
        true => remove_member(&converted, &["content"]),
        false if has_content || !texts.is_empty() => {
            set_member(&converted, &["content"], &list_of(content))
        }
        false => converted,
    };
    let converted = match str_at(&converted, &["toolCallId"]) {
        Some(_) => converted,
        None => set_member(&converted, &["toolCallId"], b"\"question\""),
    };
    let gone = ["title", "description", "subject"];
    let line = gone.iter().fold(line.clone(), |line, name| remove_member(&line, &["params", name]));
    let line = set_member(&line, &["params", "toolCall"], &converted);
    let is_known = |option: &Bytes| {
        let kind = str_at(option, &["kind"]);
        let known = ["allow_once", "allow_always", "reject_once", "reject_always"];
        kind.is_some_and(|kind| known.contains(&&*kind))
    };
    (
        update,
        convert_items(&line, &["params", "options"], |option| {
            is_known(option).then(|| option.clone())
        }),
    )
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
