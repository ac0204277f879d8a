//! Searchable texts of a turn: chunks become messages, updates become the titles of calls.

use std::borrow::Cow;
use std::collections::HashMap;

use acp_wire::{lossy_at, str_at, strs_lossy_at};
use acpd_api::{Speaker, method};
use acpd_core::ids::{Seq, Time};
use acpd_core::record::{EventKind, Reads};

use crate::code::Line;

const UPDATE: &[&str] = &["params", "update"];

/// Searchable bytes of a message, from its beginning.
const MESSAGE: usize = 64 << 10;
/// Searchable bytes of all messages of a turn.
const TURN: usize = 4 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Document {
    /// The first line in the journal, and the last one that changed the text.
    pub(super) seq: Seq,
    pub(super) last: Seq,
    pub(super) at: Time,
    pub(super) by: Speaker,
    /// A message, or the title of a call.
    pub(super) text: String,
}

/// The documents of a turn, built line by line.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// In the order in which they began.
    pub(super) documents: Vec<Document>,
    /// Bytes of all texts.
    bytes: usize,
    /// The message that later chunks continue.
    open: Option<Open>,
    /// Tool call ids to indexes of documents.
    calls: HashMap<String, usize>,
}

#[derive(Debug)]
struct Open {
    by: Speaker,
    id: Option<String>,
    place: usize,
}

impl Turn {
    /// Takes a line. Returns whether it ends the turn.
    pub(super) fn line(&mut self, line: &Line<'_>) -> bool {
        match line.kind {
            _ if !line.form.is_for(Reads::First) => {}
            EventKind::Update | EventKind::Imported => self.update(line),
            EventKind::Notice => {
                self.open = None;
                return str_at(line.bytes, &["method"]).as_deref() == Some(method::TURN_ENDED);
            }
            // A subagent's line or acpd's own may come in the middle of a message, which stays whole.
            _ => {}
        }
        false
    }

    fn update(&mut self, line: &Line<'_>) {
        let names = ["sessionUpdate", "messageId", "toolCallId", "title"];
        let [update, message, call, title] = strs_lossy_at(line.bytes, UPDATE, names);
        match (update.as_deref(), call) {
            (Some("user_message_chunk"), _) => self.chunk(line, Speaker::User, message),
            (Some("agent_message_chunk"), _) => self.chunk(line, Speaker::Agent, message),
            (Some("agent_thought_chunk"), _) => self.open = None,
            (Some("tool_call" | "tool_call_update"), call) => self.call(line, call, title),
            _ => {}
        }
    }

    fn chunk(&mut self, line: &Line<'_>, by: Speaker, id: Option<Cow<'_, str>>) {
        let place = match &self.open {
            Some(open) if open.by == by && open.id.as_deref() == id.as_deref() => open.place,
            _ => {
                let (place, id) = (self.begin(line, by), id.map(Cow::into_owned));
                self.open = Some(Open { by, id, place });
                place
            }
        };
        if self.room(place) == 0 {
            return;
        }
        // An image, say, is a part of the message without words.
        let content = ["params", "update", "content"];
        let [kind, text] = strs_lossy_at(line.bytes, &content, ["type", "text"]);
        let text = text.filter(|_| kind.is_none_or(|kind| kind == "text"));
        // Some agents send the text itself instead of the block.
        if let Some(text) = text.or_else(|| lossy_at(line.bytes, &content)) {
            self.say(line, place, &text);
        }
    }

    fn call(&mut self, line: &Line<'_>, id: Option<Cow<'_, str>>, title: Option<Cow<'_, str>>) {
        let place = match id.as_ref().and_then(|id| self.calls.get(&**id)) {
            Some(place) => *place,
            None => {
                self.open = None;
                let place = self.begin(line, Speaker::Tool);
                if let Some(id) = id {
                    self.calls.insert(id.into_owned(), place);
                }
                place
            }
        };
        if let Some(title) = title {
            self.bytes -= std::mem::take(&mut self.documents[place].text).len();
            self.say(line, place, &title);
        }
    }

    /// Adds to a text up to its limit; the end of a very long message is not searchable.
    fn say(&mut self, line: &Line<'_>, place: usize, more: &str) {
        let more = &more[..more.floor_char_boundary(self.room(place))];
        self.documents[place].text.push_str(more);
        self.documents[place].last = line.seq;
        self.bytes += more.len();
    }

    fn room(&self, place: usize) -> usize {
        (MESSAGE - self.documents[place].text.len()).min(TURN - self.bytes)
    }

    fn begin(&mut self, line: &Line<'_>, by: Speaker) -> usize {
        let (seq, at) = (line.seq, line.at);
        self.documents.push(Document { seq, last: seq, at, by, text: String::new() });
        self.documents.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use acpd_core::record::LineForm;
    use serde_json::{Value, json};

    use super::*;

    fn documents<T: ToString>(updates: &[T]) -> Vec<(Seq, Speaker, String)> {
        let lines: Vec<_> = updates.iter().map(|update| (EventKind::Update, update)).collect();
        documents_of(&lines)
    }

    fn documents_of<T: ToString>(lines: &[(EventKind, &T)]) -> Vec<(Seq, Speaker, String)> {
        let mut turn = Turn::default();
        for (seq, (kind, update)) in (1..).zip(lines) {
            let params = format!(r#"{{"sessionId":"s","update":{}}}"#, update.to_string());
            let line = format!(r#"{{"method":"session/update","params":{params}}}"#);
            let line = Line {
                form: LineForm::default(),
                origin: None,
                entity: None,
                seq,
                at: Time(seq),
                kind: *kind,
                bytes: line.as_bytes(),
            };
            assert!(!turn.line(&line));
        }
        let documents = turn.documents.into_iter();
        documents.map(|found| (found.seq, found.by, found.text)).collect()
    }

    fn chunk(kind: &str, text: &str) -> Value {
        json!({"sessionUpdate": format!("{kind}_chunk"), "content": {"type": "text", "text": text}})
    }

    #[test]
    fn what_cannot_be_decoded_hides_nothing_else() {
        let update =
            |text: &str| serde_json::value::RawValue::from_string(text.to_owned()).unwrap();
        let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
        let lines = [
            r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"key \ud83d"}}"#,
            &format!(
                r#"{{"_meta":{deep},"sessionUpdate":"agent_message_chunk","content":{{"\udc00":1,"text":"lock"}}}}"#
            ),
            r#"{"sessionUpdate":"agent_message_chunk","content":" door"}"#,
            r#"{"sessionUpdate":"tool_call","title":"open \ud83d","toolCallId":7}"#,
        ];
        let lines = lines.map(update);
        let found = documents(&lines);
        let texts: Vec<String> = found.into_iter().map(|(_, _, text)| text).collect();
        assert_eq!(texts, ["key \u{fffd}lock door", "open \u{fffd}"]);
    }

    #[test]
    fn what_a_subagent_says_is_no_part_of_what_its_session_says() {
        let (one, two) = (chunk("agent_message", "one"), chunk("agent_message", "two"));
        let (own, child) = (EventKind::Update, EventKind::Child);
        let found = documents_of(&[(own, &one), (child, &two), (own, &one)]);
        assert_eq!(found, [(1, Speaker::Agent, "oneone".to_owned())]);
    }

    #[test]
    fn messages_with_other_ids_and_pictures_in_between_stay_apart_and_whole() {
        let named = |id: &str, text: &str| {
            let mut chunk = chunk("agent_message", text);
            chunk["messageId"] = json!(id);
            chunk
        };
        let mut picture = named("b", "");
        picture["content"] = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
        let found = documents(&[named("a", "one"), named("b", "tw"), picture, named("b", "o")]);
        let texts: Vec<String> = found.into_iter().map(|(_, _, text)| text).collect();
        assert_eq!(texts, ["one", "two"]);
    }

    #[test]
    fn of_a_giant_message_and_of_a_giant_turn_the_beginning_is_found() {
        let text = format!("begin {}", "ü".repeat(MESSAGE));
        let mut updates = vec![chunk("agent_message", &text), chunk("agent_message", "end")];
        for _ in 0..2 * TURN / MESSAGE {
            updates.extend([chunk("user_message", "x"), chunk("agent_message", &text)]);
        }
        let found = documents(&updates);
        assert_eq!(found[0].2.len(), MESSAGE);
        let all: usize = found.iter().map(|(_, _, text)| text.len()).sum();
        assert!((TURN - 1..=TURN).contains(&all), "{all}");
    }
}
