//! Tool calls: version 2 has one update for all, and content that is added.

use std::borrow::Cow;

use bytes::Bytes;
use hashlink::LinkedHashMap;
use serde_json::json;

use super::patch::diffs_from_v2;
use super::terminal::Terminals;
use super::{id_at, recent, text_item};
use crate::dialect::objects::{
    is_null, items_at, list_of, members, object_of, quoted, value_at, with_default,
};
use crate::scan::json::is_key;
use crate::{locate, remove_member, set_member, str_at};

/// Calls of one session that are remembered.
const MOST: usize = 512;
/// Bytes of a call's content that are remembered, to be shown again with more.
const KEPT: usize = 256 << 10;

#[derive(Debug, Clone, Default)]
pub(super) struct Calls {
    /// Those of this turn, and those that go on.
    shown: LinkedHashMap<String, Call>,
}

/// An update for the engine.
#[derive(Debug)]
pub(super) struct CallUpdate {
    pub(super) update: Bytes,
    /// The content in it has everything that the agent has said.
    pub(super) is_whole: bool,
}

#[derive(Debug, Clone, Default)]
struct Call {
    content: Vec<Item>,
    /// Bytes of the content that were shown, and those that were not.
    shown: usize,
    news: usize,
    is_over: bool,
    /// A part of the content was not kept, or version 1 has nothing like it.
    is_part: bool,
}

#[derive(Debug, Clone)]
enum Item {
    /// As version 1 has it.
    Plain(Bytes),
    /// The output of this terminal.
    Terminal(String),
}

impl Item {
    /// Roughly what it takes in memory.
    fn bytes(&self) -> usize {
        size_of::<Self>()
            + match self {
                Item::Plain(item) => item.len(),
                Item::Terminal(id) => id.len(),
            }
    }
}

impl Call {
    /// The content as version 1 has it, which counts as shown now, and whether it is everything.
    /// `None`: only terminals without output.
    fn content(&mut self, terminals: &mut Terminals) -> Option<(Bytes, bool)> {
        let items = self.items(terminals);
        self.terminals().for_each(|id| terminals.set_shown(id));
        (self.shown, self.news) = (items.iter().map(Bytes::len).sum(), 0);
        let is_whole = !self.is_part;
        let content =
            (!items.is_empty() || self.content.is_empty()).then(|| (list_of(items), is_whole));
        let mut bytes: usize = self.content.iter().map(Item::bytes).sum();
        let gone = self.content.iter().take_while(|item| {
            let is_gone = bytes > KEPT;
            bytes -= item.bytes();
            is_gone
        });
        let gone = gone.count();
        self.content.drain(..gone);
        self.is_part |= gone > 0;
        content
    }

    fn items(&self, terminals: &Terminals) -> Vec<Bytes> {
        let items = self.content.iter().filter_map(|item| match item {
            Item::Plain(item) => Some(item.clone()),
            Item::Terminal(id) => terminals.text(id).map(|text| text_item(&text)),
        });
        items.collect()
    }

    fn set_content(&mut self, call: &Bytes) {
        let items = items_at(call, &["content"]).unwrap_or_default();
        (self.content, self.is_part) = (Vec::new(), false);
        for item in &items {
            self.add(item);
        }
    }

    fn add(&mut self, item: &Bytes) {
        let (items, is_whole) = item_from_v2(item);
        self.content.extend(items);
        self.is_part |= !is_whole;
    }

    fn has_news(&self, terminals: &Terminals) -> bool {
        self.news > 0 || self.terminals().any(|id| terminals.has_news(id))
    }

    fn terminals(&self) -> impl Iterator<Item = &str> {
        self.content.iter().filter_map(|item| match item {
            Item::Terminal(id) => Some(id.as_str()),
            Item::Plain(_) => None,
        })
    }
}

impl Calls {
    /// Restores that a call was shown. Its content is lost.
    pub(super) fn restore(&mut self, id: &str) {
        recent(&mut self.shown, id, MOST).is_part = true;
    }

    pub(super) fn is_shown(&self, call: &Bytes) -> bool {
        id_at(call, &["toolCallId"]).is_some_and(|id| self.shown.contains_key(&*id))
    }

    /// Converts an update of a call; the first one has to name it.
    pub(super) fn update(&mut self, update: &Bytes, terminals: &mut Terminals) -> CallUpdate {
        let Some(id) = id_at(update, &["toolCallId"]) else {
            return CallUpdate { update: update.clone(), is_whole: true };
        };
        let is_first = !self.shown.contains_key(&*id);
        let call = recent(&mut self.shown, &id, MOST);
        if locate(update, &["status"]).is_some() {
            let status = str_at(update, &["status"]);
            call.is_over = matches!(status.as_deref(), Some("completed" | "failed" | "cancelled"));
        }
        let has_content = locate(update, &["content"]).is_some();
        if has_content {
            call.set_content(update);
        }
        let (mut update, mut is_whole) = (call_from_v2(update), true);
        if has_content || call.is_over && call.has_news(terminals) {
            is_whole = !call.is_part;
            // An empty list would clear what was shown.
            update = match call.content(terminals) {
                Some((content, _)) => set_member(&update, &["content"], &content),
                None => remove_member(&update, &["content"]),
            };
        }
        if !is_first {
            return CallUpdate { update, is_whole };
        }
        let name = str_at(&update, &["name"]).map_or_else(|| "tool".into(), Cow::into_owned);
        let update = with_default(&update, &["title"], &quoted(&name));
        let update = set_member(&update, &["sessionUpdate"], b"\"tool_call\"");
        CallUpdate { update, is_whole }
    }

    /// Takes a `tool_call_content_chunk`. Returns the update that shows it, if it is due: each one
    /// repeats the content, so the steps grow with it.
    pub(super) fn add_content(
        &mut self,
        update: &Bytes,
        terminals: &mut Terminals,
    ) -> Option<CallUpdate> {
        let id = str_at(update, &["toolCallId"])?;
        let item = value_at(update, &["content"])?;
        let call = self.shown.get_mut(&*id)?;
        call.add(&item);
        call.news += item.len();
        let is_due = call.is_over || call.news > call.shown / 2;
        is_due
            .then(|| call.content(terminals))
            .flatten()
            .map(|(content, is_whole)| content_update(&id, &content, is_whole))
    }

    /// The updates of the calls that show a terminal.
    pub(super) fn showing(&mut self, terminal: &str, terminals: &mut Terminals) -> Vec<CallUpdate> {
        self.updates(terminals, |call, _| call.terminals().any(|id| id == terminal))
    }

    /// Returns the updates with what is not yet shown. Forgets calls that are over: an agent may use
    /// their ids again.
    pub(super) fn turn_ended(&mut self, terminals: &mut Terminals) -> Vec<CallUpdate> {
        let updates = self.updates(terminals, Call::has_news);
        self.shown
            .retain(|_, call| !call.is_over || call.terminals().any(|id| !terminals.is_over(id)));
        terminals.turn_ended(&self.shown.values().flat_map(Call::terminals).collect());
        updates
    }

    fn updates(
        &mut self,
        terminals: &mut Terminals,
        is_meant: impl Fn(&Call, &Terminals) -> bool,
    ) -> Vec<CallUpdate> {
        let calls = self.shown.iter_mut().filter(|(_, call)| is_meant(call, terminals));
        let calls: Vec<_> = calls.collect();
        let update = |(id, call): (&String, &mut Call)| {
            let (content, is_whole) = call.content(terminals)?;
            Some(content_update(id, &content, is_whole))
        };
        calls.into_iter().filter_map(update).collect()
    }

    /// Takes the call of a question, which the question changes. Returns the update that shows it,
    /// if nothing has.
    pub(super) fn asked(&mut self, call: &Bytes, terminals: &mut Terminals) -> Option<CallUpdate> {
        let id = id_at(call, &["toolCallId"])?;
        if !self.shown.contains_key(&*id) {
            let update = set_member(call, &["sessionUpdate"], b"\"tool_call_update\"");
            return Some(self.update(&update, terminals));
        }
        if locate(call, &["content"]).is_some() {
            recent(&mut self.shown, &id, MOST).set_content(call);
        }
        None
    }

    /// The content of a call as it is now, and whether it is everything.
    pub(super) fn items(&self, call: &Bytes, terminals: &Terminals) -> (Vec<Bytes>, bool) {
        if let Some(known) = id_at(call, &["toolCallId"]).and_then(|id| self.shown.get(&*id)) {
            return (known.items(terminals), !known.is_part);
        }
        let mut own = Call::default();
        own.set_content(call);
        (own.items(terminals), !own.is_part)
    }
}

fn content_update(id: &str, content: &Bytes, is_whole: bool) -> CallUpdate {
    let update = json!({"sessionUpdate": "tool_call_update", "toolCallId": id});
    let update = set_member(&update.to_string().into(), &["content"], content);
    CallUpdate { update, is_whole }
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
            // For version 1, `null` says nothing: rules would judge the input of before.
            ("rawInput", "{}"),
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

/// Converts an item of a call's content. Returns also whether the items say all that it says.
fn item_from_v2(item: &Bytes) -> (Vec<Item>, bool) {
    match str_at(item, &["type"]).as_deref() {
        Some("terminal") => {
            let id = str_at(item, &["terminalId"]);
            (id.map(|id| Item::Terminal(id.into_owned())).into_iter().collect(), true)
        }
        Some("diff") => {
            let (items, is_whole) = diffs_from_v2(item);
            (items.into_iter().map(Item::Plain).collect(), is_whole)
        }
        // A copy, which does not keep the whole line.
        _ => (vec![Item::Plain(Bytes::copy_from_slice(item))], true),
    }
}
