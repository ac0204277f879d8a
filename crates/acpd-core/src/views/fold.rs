//! Folding: the chunks of a message, the updates of a tool call, and the versions of a plan become
//! one line each, for clients that load a conversation.
//!
//! The journal keeps each line, and a client that continues from its cursor gets each. Only lines
//! without others between them are folded. A folded line has the number of the last one, so it is a
//! cursor like any other.

use std::collections::BTreeMap;
use std::ops::Range;

use acp_wire::{locate, set_member, splice, str_at};
use bytes::Bytes;
use serde_json::value::RawValue;

use crate::input::View;
use crate::record::{EventKind, EventRow};

const UPDATE: [&str; 2] = ["params", "update"];
const UPDATE_KIND: [&str; 3] = ["params", "update", "sessionUpdate"];
const TEXT: [&str; 4] = ["params", "update", "content", "text"];
/// Bytes of a folded line.
const MOST: usize = 256 << 10;

/// A line that later lines may continue.
struct Folded {
    row: EventRow,
    /// The client gets the line as the agent has sent it.
    is_original: bool,
    /// The place of a chunk's text, without its quotes.
    text: Option<Range<usize>>,
    /// Texts of later chunks, as JSON has them.
    more: Vec<u8>,
}

/// Folds the lines of a view.
pub(super) fn fold(rows: Vec<EventRow>, view: &View) -> Vec<EventRow> {
    let max_line = view.max_line;
    let most = if max_line == 0 { MOST } else { MOST.min(max_line as usize) };
    let mut folded = Vec::new();
    let mut open: Option<Folded> = None;
    for row in rows {
        let text = text_of(&row);
        let is_original = view.gets_original(row.form);
        let facts = (text.as_ref(), is_original);
        if open.as_mut().is_some_and(|open| open.takes(&row, facts, most)) {
            continue;
        }
        let next = Folded { row, is_original, text, more: Vec::new() };
        folded.extend(open.replace(next).map(Folded::row));
    }
    folded.extend(open.map(Folded::row));
    folded
}

/// Returns the place of a chunk's text, without its quotes.
fn text_of(row: &EventRow) -> Option<Range<usize>> {
    if !matches!(row.kind, EventKind::Update | EventKind::Imported) {
        return None;
    }
    let update = str_at(&row.line, &UPDATE_KIND)?;
    if !matches!(&*update, "agent_message_chunk" | "agent_thought_chunk") {
        return None;
    }
    let text = locate(&row.line, &TEXT)?;
    row.line[text.clone()].starts_with(b"\"").then(|| text.start + 1..text.end - 1)
}

impl Folded {
    /// Adds a line, unless it is a line of its own.
    fn takes(
        &mut self,
        row: &EventRow,
        (text, is_original): (Option<&Range<usize>>, bool),
        most: usize,
    ) -> bool {
        let own = &self.row;
        let is_same = row.kind == own.kind
            && row.origin == own.origin
            && self.is_original == is_original
            && (is_original || row.entity == own.entity);
        if !is_same {
            return false;
        }
        match (&self.text, text) {
            (Some(own), Some(text)) => {
                let (line, chunk) = (&self.row.line, &row.line);
                if line[..own.start] != chunk[..text.start]
                    || line[own.end..] != chunk[text.end..]
                    || line.len() + self.more.len() + text.len() > most
                {
                    return false;
                }
                self.more.extend(&chunk[text.clone()]);
            }
            (None, None) => match merged(&self.row.line, &row.line, is_original) {
                Some(line) if line.len() <= most => self.row.line = line,
                _ => return false,
            },
            _ => return false,
        }
        (self.row.seq, self.row.at) = (row.seq, row.at);
        true
    }

    fn row(self) -> EventRow {
        match self.text {
            Some(text) if !self.more.is_empty() => {
                let line = splice(&self.row.line, &[(text.end..text.end, &self.more)]);
                EventRow { line, ..self.row }
            }
            _ => self.row,
        }
    }
}

/// Returns the line of a tool call with an update of it, or a plan's next version.
fn merged(line: &Bytes, next: &Bytes, is_original: bool) -> Option<Bytes> {
    let kind = str_at(next, &UPDATE_KIND)?;
    let (own, new) = (locate(line, &UPDATE)?, locate(next, &UPDATE)?);
    if line[..own.start] != next[..new.start] || line[own.end..] != next[new.end..] {
        return None;
    }
    let is = |name| str_at(line, &UPDATE_KIND).as_deref() == Some(name);
    match &*kind {
        "plan" if is("plan") => Some(next.clone()),
        "tool_call_update" if is("tool_call") || is("tool_call_update") => {
            let id = ["params", "update", "toolCallId"];
            if str_at(line, &id)? != str_at(next, &id)? {
                return None;
            }
            let mut line = line.clone();
            for (name, value) in members(&next[new])? {
                let path = ["params", "update", name];
                line = match name {
                    "sessionUpdate" | "toolCallId" => continue,
                    // It clears the member, which is more than a first line can say.
                    _ if is_original && value.get() == "null" => return None,
                    // It replaces each of them as a whole, too.
                    "_meta" if is_original && locate(&line, &path).is_some() => return None,
                    "_meta" => with_meta(line, &mut path.to_vec(), value)?,
                    // The protocol replaces a member as a whole, and keeps it for `null`.
                    _ if value.get() == "null" => continue,
                    _ => set_member(&line, &path, value.get().as_bytes()),
                };
            }
            Some(line)
        }
        _ => None,
    }
}

/// Adds members of `_meta`. `None`: one has another value already, and may be meant as a second
/// part.
fn with_meta<'a>(mut line: Bytes, path: &mut Vec<&'a str>, new: &'a RawValue) -> Option<Bytes> {
    let Some(old) = locate(&line, path) else {
        return Some(set_member(&line, path, new.get().as_bytes()));
    };
    if &line[old.clone()] == new.get().as_bytes() {
        return Some(line);
    }
    if line[old.start] != b'{' {
        return None;
    }
    for (name, value) in members(new.get().as_bytes())? {
        path.push(name);
        line = with_meta(line, path, value)?;
        path.pop();
    }
    Some(line)
}

fn members(object: &[u8]) -> Option<BTreeMap<&str, &RawValue>> {
    serde_json::from_slice(object).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::ids::{SessionKey, Time};
    use crate::record::LineForm;

    fn folded(updates: &[Value]) -> Vec<(u64, Value)> {
        folded_rows(updates.iter().map(|update| (update, None)))
    }

    fn folded_rows<'a>(
        updates: impl IntoIterator<Item = (&'a Value, Option<u64>)>,
    ) -> Vec<(u64, Value)> {
        let row = |((update, entity), seq)| {
            let params = json!({"sessionId": "s", "update": update});
            let line = json!({"method": "session/update", "params": params}).to_string().into();
            let (session, kind, at) = (SessionKey(1), EventKind::Update, Time(seq));
            EventRow {
                session,
                seq,
                form: LineForm::default(),
                kind,
                at,
                line,
                origin: None,
                entity,
            }
        };
        let rows = fold(updates.into_iter().zip(1..).map(row).collect(), &View::default());
        let update = |row: EventRow| {
            let mut line: Value = serde_json::from_slice(&row.line).unwrap();
            (row.seq, line["params"]["update"].take())
        };
        rows.into_iter().map(update).collect()
    }

    fn call(kind: &str, id: &str, mut more: Value) -> Value {
        more["sessionUpdate"] = kind.into();
        more["toolCallId"] = id.into();
        more
    }

    #[test]
    fn updates_of_a_call_are_one_line_but_parts_of_an_output() {
        let updates = [
            call("tool_call", "a", json!({"title": "T", "_meta": {"x": {"name": "n"}}})),
            call("tool_call_update", "a", json!({"title": null, "rawInput": {"n": 1.0}})),
            call("tool_call_update", "a", json!({"title": "U", "_meta": {"x": {"more": 1}}})),
            call("tool_call_update", "b", json!({"title": "B"})),
        ];
        let whole = json!({"title": "U", "rawInput": {"n": 1.0},
            "_meta": {"x": {"name": "n", "more": 1}}});
        let expected = [(3, call("tool_call", "a", whole)), (4, updates[3].clone())];
        assert_eq!(folded(&updates), expected);
        let part = |data| call("tool_call_update", "a", json!({"_meta": {"output": data}}));
        assert_eq!(folded(&[part("1"), part("2"), call("tool_call", "a", json!({}))]).len(), 3);
    }

    #[test]
    fn lines_of_two_messages_or_turns_are_not_folded() {
        let content = json!({"type": "text", "text": "x"});
        let chunk = json!({"sessionUpdate": "agent_message_chunk", "content": content});
        let update = call("tool_call_update", "a", json!({}));
        for line in [chunk, update] {
            let entities = [Some(1), Some(1), Some(3), Some(3), None];
            let rows = folded_rows(entities.map(|entity| (&line, entity)));
            assert_eq!(rows.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), [2, 4, 5]);
        }
    }

    #[test]
    fn the_last_plan_replaces_the_one_before_it() {
        let plan = |entries| json!({"sessionUpdate": "plan", "entries": entries});
        assert_eq!(folded(&[plan(json!([1])), plan(json!([2]))]), [(2, plan(json!([2])))]);
    }
}
