//! Turns journal lines into items: chunks become messages, updates become tool calls.

use std::collections::HashSet;

use acp_wire::{Message, parse};
use acpd_api::{Untrusted, method};
use serde::Deserialize;
use serde_json::{Map, Value};

/// What acpd's own notices begin with.
const NOTICES: &str = "_acpd/";

/// Something that was said or done.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Item {
    /// A message, whole.
    Message {
        /// Its first line in the journal.
        seq: u64,
        /// Who said it.
        by: Speaker,
        /// Content blocks; texts that follow each other are one.
        content: Vec<Value>,
    },
    /// A tool call as it was in the end.
    Call {
        /// Its first line in the journal.
        seq: u64,
        /// Its members.
        call: Map<String, Value>,
    },
    /// The last plan.
    Plan {
        /// Its line in the journal.
        seq: u64,
        /// Its entries.
        entries: Value,
    },
    /// A notice of acpd.
    Notice {
        /// Its line in the journal.
        seq: u64,
        /// Its method.
        method: String,
        /// Its params.
        params: Map<String, Value>,
    },
}

/// Who said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaker {
    /// The user.
    User,
    /// The agent.
    Agent,
    /// The agent, to itself.
    Thought,
}

impl Item {
    /// The item as `session export --format json` prints it.
    pub(crate) fn into_json(self) -> Value {
        let (kind, seq, mut members) = match self {
            Item::Message { seq, by, content } => {
                let kind = match by {
                    Speaker::User => "user",
                    Speaker::Agent => "agent",
                    Speaker::Thought => "thought",
                };
                (kind.to_owned(), seq, Map::from_iter([("content".to_owned(), content.into())]))
            }
            Item::Call { seq, call } => ("tool_call".to_owned(), seq, call),
            Item::Plan { seq, entries } => {
                ("plan".to_owned(), seq, Map::from_iter([("entries".to_owned(), entries)]))
            }
            Item::Notice { seq, method, mut params } => {
                params.remove("sessionId");
                params.remove("_meta");
                (method.trim_start_matches(NOTICES).to_owned(), seq, params)
            }
        };
        members.insert("type".to_owned(), kind.into());
        members.insert("seq".to_owned(), seq.into());
        Value::Object(members)
    }
}

/// Makes items of the lines of a journal, but for those of subagents. It holds the message and the
/// tool calls that are not over, the last plan, and the ids of a turn's tool calls.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    session: Untrusted,
    /// In the order in which they began; at most one is a message.
    open: Vec<Open>,
    /// Calls of this turn that were handed out: what comes later for them is left out.
    done: HashSet<String>,
    plan: Option<(u64, Value)>,
}

#[derive(Debug)]
enum Open {
    Message { seq: u64, by: Speaker, id: Option<String>, content: Vec<Value> },
    Call { seq: u64, id: String, call: Map<String, Value> },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk {
    content: Value,
    message_id: Option<String>,
}

impl Collector {
    /// For the journal of the session with this id.
    pub(crate) fn of(session: &Untrusted) -> Collector {
        Collector { session: session.clone(), ..Collector::default() }
    }

    /// Takes a line; returns what is over now, in the order in which it began.
    pub(crate) fn line(&mut self, seq: u64, line: &str) -> Vec<Item> {
        let Ok(Message::Notification { method, params: Some(params) }) = parse(line.as_bytes())
        else {
            return Vec::new();
        };
        let Ok(Value::Object(mut params)) = serde_json::from_str(params.get()) else {
            return Vec::new();
        };
        let whose = params.get("sessionId").and_then(Value::as_str);
        if whose.is_some_and(|whose| self.session != whose) {
            return Vec::new();
        }
        match (&*method, params.remove("update")) {
            ("session/update", Some(Value::Object(update))) => self.update(seq, update),
            (method, _) if method.starts_with(NOTICES) => {
                self.notice(seq, method.to_owned(), params)
            }
            _ => Vec::new(),
        }
    }

    /// The journal is over.
    pub(crate) fn end(mut self) -> Vec<Item> {
        let mut items = self.close(true);
        items.extend(self.plan.map(|(seq, entries)| Item::Plan { seq, entries }));
        items
    }

    fn update(&mut self, seq: u64, mut update: Map<String, Value>) -> Vec<Item> {
        let kind = update.remove("sessionUpdate");
        match kind.as_ref().and_then(Value::as_str).unwrap_or_default() {
            "user_message_chunk" => self.chunk(seq, Speaker::User, update),
            "agent_message_chunk" => self.chunk(seq, Speaker::Agent, update),
            "agent_thought_chunk" => self.chunk(seq, Speaker::Thought, update),
            "tool_call" | "tool_call_update" => self.call(seq, update),
            "plan" => {
                self.plan = update.remove("entries").map(|entries| (seq, entries));
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn chunk(&mut self, seq: u64, by: Speaker, update: Map<String, Value>) -> Vec<Item> {
        let Ok(chunk) = serde_json::from_value::<Chunk>(Value::Object(update)) else {
            return Vec::new();
        };
        for open in &mut self.open {
            if let Open::Message { by: same, id, content, .. } = open
                && *same == by
                && *id == chunk.message_id
            {
                join(content, chunk.content);
                return Vec::new();
            }
        }
        let items = self.close(false);
        let mut content = Vec::new();
        join(&mut content, chunk.content);
        let id = chunk.message_id;
        self.open.push(Open::Message { seq, by, id, content });
        items
    }

    fn call(&mut self, seq: u64, mut update: Map<String, Value>) -> Vec<Item> {
        let Some(id) = update.get("toolCallId").and_then(Value::as_str).map(str::to_owned) else {
            return Vec::new();
        };
        update.remove("_meta");
        // Null means unchanged (protocol brief, section 3.3).
        update.retain(|_, value| !value.is_null());
        if self.done.contains(&id) {
            return Vec::new();
        }
        for open in &mut self.open {
            if let Open::Call { id: same, call, .. } = open
                && *same == id
            {
                call.extend(update);
                return Vec::new();
            }
        }
        let items = self.close(false);
        self.open.push(Open::Call { seq, id, call: update });
        items
    }

    fn notice(&mut self, seq: u64, method: String, params: Map<String, Value>) -> Vec<Item> {
        let mut items = self.close(matches!(&*method, method::TURN_STARTED | method::TURN_ENDED));
        if method == method::TURN_STARTED {
            self.done.clear();
        }
        items.push(Item::Notice { seq, method, params });
        items
    }

    /// Something else begins: hands out what is over, or everything.
    fn close(&mut self, all: bool) -> Vec<Item> {
        let mut items = Vec::new();
        for open in std::mem::take(&mut self.open) {
            match open {
                Open::Message { seq, by, content, .. } => {
                    items.push(Item::Message { seq, by, content });
                }
                Open::Call { seq, id, call } if all || has_ended(&call) => {
                    self.done.insert(id);
                    items.push(Item::Call { seq, call });
                }
                call @ Open::Call { .. } => self.open.push(call),
            }
        }
        items
    }
}

fn has_ended(call: &Map<String, Value>) -> bool {
    matches!(call.get("status").and_then(Value::as_str), Some("completed" | "failed"))
}

/// Adds a block; text is appended to the text before it.
fn join(content: &mut Vec<Value>, block: Value) {
    let is_text = |block: &Value| block["type"] == "text";
    let last =
        content.last_mut().filter(|last| is_text(last)).and_then(|last| last.get_mut("text"));
    match (last, block["text"].as_str().filter(|_| is_text(&block))) {
        (Some(Value::String(text)), Some(more)) => text.push_str(more),
        _ => content.push(block),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn items(updates: &[Value]) -> Vec<Item> {
        let mut collector = Collector::of(&"s".into());
        let mut items = Vec::new();
        for (seq, update) in (1..).zip(updates) {
            let params = json!({"sessionId": "s", "update": update});
            let line = json!({"jsonrpc": "2.0", "method": "session/update", "params": params});
            items.extend(collector.line(seq, &line.to_string()));
        }
        items.extend(collector.end());
        items
    }

    fn say(text: &str) -> Value {
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})
    }

    fn call(id: &str, status: &str) -> Value {
        json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status})
    }

    fn seqs(items: &[Item]) -> Vec<u64> {
        let seq = |item: &Item| match item {
            Item::Message { seq, .. } | Item::Call { seq, .. } => *seq,
            Item::Plan { seq, .. } | Item::Notice { seq, .. } => *seq,
        };
        items.iter().map(seq).collect()
    }

    #[test]
    fn a_message_is_the_same_however_it_was_cut() {
        let whole = "Let me see: \u{e4}\u{1f600}\n\ndone.";
        let expected = items(&[say(whole)]);
        for (first, _) in whole.char_indices() {
            for (second, _) in whole.char_indices().filter(|(second, _)| *second >= first) {
                let (head, rest) = whole.split_at(first);
                let (middle, tail) = rest.split_at(second - first);
                assert_eq!(items(&[say(head), say(middle), say(tail)]), expected);
            }
        }
    }

    #[test]
    fn messages_with_other_ids_are_other_messages() {
        let chunk = |id: &str| {
            let mut chunk = say("x");
            chunk["messageId"] = json!(id);
            chunk
        };
        assert_eq!(seqs(&items(&[chunk("a"), chunk("a"), chunk("b")])), [1, 3]);
    }

    #[test]
    fn calls_beside_each_other_come_in_the_order_in_which_they_began() {
        let updates = [
            call("a", "pending"),
            call("b", "pending"),
            call("b", "completed"),
            say("meanwhile"),
            call("a", "completed"),
            say(" more"),
            call("b", "failed"),
            call("c", "pending"),
        ];
        let items = items(&updates);
        // `b` is handed out when the message begins; what comes for it later is left out.
        assert_eq!(seqs(&items), [2, 1, 4, 8]);
        assert!(matches!(&items[0], Item::Call { call, .. } if call["status"] == "completed"));
        let text = json!({"type": "text", "text": "meanwhile more"});
        assert!(matches!(&items[2], Item::Message { content, .. } if *content == [text]));
    }

    #[test]
    fn what_a_subagent_says_and_does_is_none_of_the_session() {
        let mut collector = Collector::of(&"s".into());
        let mut items = Vec::new();
        for (session, update) in
            [("s", say("a")), ("c", say("x")), ("c", call("t", "failed")), ("s", say("b"))]
        {
            let params = json!({"sessionId": session, "update": update});
            let line = json!({"jsonrpc": "2.0", "method": "session/update", "params": params});
            items.extend(collector.line(1, &line.to_string()));
        }
        items.extend(collector.end());
        let content = vec![json!({"type": "text", "text": "ab"})];
        assert_eq!(items, [Item::Message { seq: 1, by: Speaker::Agent, content }]);
    }

    #[test]
    fn what_is_no_update_is_left_out() {
        let mut collector = Collector::default();
        for line in [
            "junk",
            "{}",
            r#"{"jsonrpc":"2.0","method":"session/update"}"#,
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"update":7}}"#,
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"tool_call"}}}"#,
            r#"{"jsonrpc":"2.0","method":"other","params":{}}"#,
        ] {
            assert_eq!(collector.line(1, line), []);
        }
        assert_eq!(collector.end(), []);
    }
}
