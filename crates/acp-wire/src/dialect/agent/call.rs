//! Tool calls: version 2 has one update for all, and content that is added.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::json;

use super::patch::diffs_from_v2;
use super::terminal::Terminals;
use crate::dialect::objects::{
    is_null, items_at, list_of, members, object_of, quoted, value_at, with_default,
};
use crate::scan::json::is_key;
use crate::{locate, remove_member, set_member, str_at};

#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Those of this turn, and those that go on.
    shown: BTreeMap<String, Call>,
}

#[derive(Debug, Default)]
struct Call {
    content: Vec<Item>,
    is_over: bool,
}

#[derive(Debug)]
enum Item {
    /// As version 1 has it.
    Plain(Bytes),
    /// The output of this terminal.
    Terminal(String),
}

impl Call {
    /// The content as version 1 has it. `None`: only terminals without output.
    fn content(&self, terminals: &mut Terminals) -> Option<Bytes> {
        let items = self.content.iter().filter_map(|item| match item {
            Item::Plain(item) => Some(item.clone()),
            Item::Terminal(id) => terminals.show(id).map(|text| text_item(&text)),
        });
        let items: Vec<_> = items.collect();
        (!items.is_empty() || self.content.is_empty()).then(|| list_of(items))
    }

    fn terminals(&self) -> impl Iterator<Item = &str> {
        self.content.iter().filter_map(|item| match item {
            Item::Terminal(id) => Some(id.as_str()),
            Item::Plain(_) => None,
        })
    }
}

impl Calls {
    pub(super) fn restore(&mut self, id: &str) {
        self.shown.entry(id.to_owned()).or_default();
    }

    /// Converts an update of a call; the first one has to name it.
    pub(super) fn update(&mut self, update: &Bytes, terminals: &mut Terminals) -> Bytes {
        let id = str_at(update, &["toolCallId"]).unwrap_or_default();
        let is_first = !self.shown.contains_key(&*id);
        let call = self.shown.entry(id.into_owned()).or_default();
        if let Some(status) = str_at(update, &["status"]) {
            call.is_over = matches!(&*status, "completed" | "failed" | "cancelled");
        }
        let has_content = locate(update, &["content"]).is_some();
        if has_content {
            let items = items_at(update, &["content"]).unwrap_or_default();
            call.content = items.iter().flat_map(item_from_v2).collect();
        }
        let mut update = call_from_v2(update);
        if has_content || call.is_over && call.terminals().any(|id| terminals.has_news(id)) {
            // An empty list would clear what was shown.
            update = match call.content(terminals) {
                Some(content) => set_member(&update, &["content"], &content),
                None => remove_member(&update, &["content"]),
            };
        }
        if !is_first {
            return update;
        }
        let name = str_at(&update, &["name"]).map_or_else(|| "tool".into(), Cow::into_owned);
        let update = with_default(&update, &["title"], &quoted(&name));
        set_member(&update, &["sessionUpdate"], b"\"tool_call\"")
    }

    /// Takes a `tool_call_content_chunk`. Returns the update that shows it.
    pub(super) fn add_content(
        &mut self,
        update: &Bytes,
        terminals: &mut Terminals,
    ) -> Option<Bytes> {
        let id = str_at(update, &["toolCallId"])?;
        let item = value_at(update, &["content"])?;
        let call = self.shown.get_mut(&*id)?;
        call.content.extend(item_from_v2(&item));
        Some(content_update(&id, &call.content(terminals)?))
    }

    /// The updates of the calls that show a terminal.
    pub(super) fn showing(&self, terminal: &str, terminals: &mut Terminals) -> Vec<Bytes> {
        let shows = |call: &Call| call.terminals().any(|id| id == terminal);
        let calls = self.shown.iter().filter(|(_, call)| shows(call));
        calls.filter_map(|(id, call)| Some(content_update(id, &call.content(terminals)?))).collect()
    }

    /// Forgets calls that are over: an agent may use their ids again.
    pub(super) fn turn_ended(&mut self, terminals: &Terminals) {
        self.shown
            .retain(|_, call| !call.is_over || call.terminals().any(|id| !terminals.is_over(id)));
    }
}

fn content_update(id: &str, content: &Bytes) -> Bytes {
    let update = json!({"sessionUpdate": "tool_call_update", "toolCallId": id});
    set_member(&update.to_string().into(), &["content"], content)
}

/// A call as version 1 has it, but for its content: `null` clears in version 2.
pub(super) fn call_from_v2(call: &Bytes) -> Bytes {
    let converted = members(call).filter_map(|(name, value)| {
        let is = |key| is_key(&name, key);
        let cleared = [
            ("title", "\"\""),
            ("kind", "\"other\""),
            ("status", "\"pending\""),
            ("content", "[]"),
            ("locations", "[]"),
        ];
        let value = match () {
            () if is("capabilities") => return None,
            () if is_null(&value) => cleared.iter().find(|(key, _)| is(key))?.1.into(),
            () if is("status") => status_from_v2(value),
            () => value,
        };
        Some((name, value))
    });
    object_of(converted)
}

fn status_from_v2(status: Bytes) -> Bytes {
    let status_of = str_at(&status, &[]);
    match status_of.as_deref() {
        Some("pending" | "in_progress" | "completed" | "failed") => status,
        Some("cancelled") => "\"failed\"".into(),
        // Paused, and what the future has.
        _ => "\"in_progress\"".into(),
    }
}

fn item_from_v2(item: &Bytes) -> Vec<Item> {
    match str_at(item, &["type"]).as_deref() {
        Some("terminal") => {
            let id = str_at(item, &["terminalId"]);
            id.map(|id| Item::Terminal(id.into_owned())).into_iter().collect()
        }
        Some("diff") => diffs_from_v2(item).into_iter().map(Item::Plain).collect(),
        _ => vec![Item::Plain(item.clone())],
    }
}

/// The content of a call that a question shows: a terminal has shown nothing yet.
pub(super) fn content_in_question(call: &Bytes) -> Vec<Bytes> {
    let items = items_at(call, &["content"]).unwrap_or_default();
    let items = items.iter().flat_map(item_from_v2).filter_map(|item| match item {
        Item::Plain(item) => Some(item),
        Item::Terminal(_) => None,
    });
    items.collect()
}

pub(super) fn text_item(text: &str) -> Bytes {
    json!({"type": "content", "content": {"type": "text", "text": text}}).to_string().into()
}
