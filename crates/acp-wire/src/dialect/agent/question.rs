//! Permissions.

use bytes::Bytes;
use serde_json::json;

use super::call::{CallUpdate, Calls, call_from_v2};
use super::terminal::Terminals;
use super::text_item;
use crate::dialect::objects::{
    convert_items, is_null, items_at, list_of, members, object_at, object_of, quoted, with_default,
};
use crate::scan::json::is_key;
use crate::{locate, lossy_at, remove_member, set_member, str_at};

/// A `session/request_permission` as version 1 has it.
pub(super) struct Question {
    /// The update that shows the call, if nothing has.
    pub(super) update: Option<CallUpdate>,
    pub(super) line: Bytes,
    /// The content of the call has everything that the agent has said.
    pub(super) is_whole: bool,
}

/// Converts a `session/request_permission`: everything that it says is in the call. `number`: makes
/// the id of a call that the agent does not name. Two questions without an id must not be about one
/// call.
pub(super) fn from_v2(
    line: &Bytes,
    number: u64,
    calls: &mut Calls,
    terminals: &mut Terminals,
) -> Question {
    let of = |name| lossy_at(line, &["params", name]);
    let (title, description) = (of("title").unwrap_or_default(), of("description"));
    let subject = object_at(line, &["params", "subject"]).unwrap_or_default();
    let kind = str_at(&subject, &["type"]);
    let call = match kind.as_deref() {
        Some("tool_call") => object_at(&subject, &["toolCall"]),
        Some("command") => Some(command(&subject)),
        _ => None,
    };
    let call = call.unwrap_or_else(|| other(line));
    let is_known = calls.is_shown(&call);
    let update = (kind.is_some_and(|kind| kind == "tool_call"))
        .then(|| calls.asked(&call, terminals))
        .flatten();
    // A known call keeps its title.
    let is_title = lossy_at(&call, &["title"]).map_or(!is_known, |own| own == title);
    let other_title = (!is_title).then_some(title.clone());
    let texts = [other_title, description].into_iter().flatten().filter(|text| !text.is_empty());
    let texts: Vec<_> = texts.map(|text| text_item(&text)).collect();
    let has_content = locate(&call, &["content"]).is_some();
    let is_cleared = has_content && items_at(&call, &["content"]).is_none_or(|all| all.is_empty());
    let (items, has_all) = calls.items(&call, terminals);
    let is_whole = has_all || !has_content && texts.is_empty();
    let content = texts.iter().cloned().chain(items);
    let content: Vec<_> = content.collect();
    let converted = call_from_v2(&call);
    let converted =
        if is_known { converted } else { with_default(&converted, &["title"], &quoted(&title)) };
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
        None => {
            let id = quoted(&format!("question-{number}"));
            set_member(&converted, &["toolCallId"], id.as_bytes())
        }
    };
    let gone = ["title", "description", "subject"];
    let line = gone.iter().fold(line.clone(), |line, name| remove_member(&line, &["params", name]));
    let line = set_member(&line, &["params", "toolCall"], &converted);
    let has_name = |option: &Bytes| {
        let kind = str_at(option, &["kind"]);
        let known = ["allow_once", "allow_always", "reject_once", "reject_always"];
        kind.is_some_and(|kind| known.contains(&&*kind))
    };
    let line = convert_items(&line, &["params", "options"], |option| {
        has_name(option).then(|| option.clone())
    });
    Question { update, line, is_whole }
}

/// The call that a command becomes. All that is said of it is the input.
fn command(subject: &Bytes) -> Bytes {
    let call = json!({
        "title": lossy_at(subject, &["command"]),
        "kind": "execute",
    });
    let call = set_member(
        &call.to_string().into(),
        &["rawInput"],
        &without(subject, &["type", "toolCallId", "terminalId", "_meta"]),
    );
    match str_at(subject, &["toolCallId"]) {
        Some(id) => set_member(&call, &["toolCallId"], quoted(&id).as_bytes()),
        None => call,
    }
}

/// The call of a question about something else. As with version 1, its input is the question, which
/// no rule understands.
fn other(line: &Bytes) -> Bytes {
    let params = object_at(line, &["params"]).unwrap_or_default();
    let input = without(&params, &["sessionId", "options", "toolCall", "_meta"]);
    set_member(&Bytes::from_static(b"{}"), &["rawInput"], &input)
}

/// The object without these members, and without those that are `null`.
fn without(object: &Bytes, names: &[&str]) -> Bytes {
    let is_left = |(name, value): &(Bytes, Bytes)| {
        !is_null(value) && !names.iter().any(|gone| is_key(name, gone))
    };
    object_of(members(object).filter(is_left))
}
