//! Conversations as JSON items of `session export --format json`.

use acpd_view::{Block, Content, Kind, Message, Turn};
use serde_json::{Map, Value, json};

/// Prefix of acpd's own notices.
const NOTICES: &str = "_acpd/";

/// The items of a turn, in order. Plans are not among them: only the last one counts.
pub(crate) fn items(turn: &Turn) -> impl Iterator<Item = Value> {
    let started = turn.started.map(|started| {
        json!({"type": "turn_started", "seq": started.seq, "turn": started.turn, "at": started.at})
    });
    started.into_iter().chain(turn.blocks.iter().filter_map(item))
}

pub(crate) fn plan(block: &Block) -> Option<Value> {
    match &block.kind {
        Kind::Plan(plan) if plan.text.is_none() => {
            Some(json!({"type": "plan", "seq": block.last, "entries": plan.entries}))
        }
        _ => None,
    }
}

/// The item of a block; none for those that are for people alone.
fn item(block: &Block) -> Option<Value> {
    let (kind, mut members) = match (block.source(), &block.kind) {
        (Some(notice), _) => (notice.method.trim_start_matches(NOTICES), notice.params.clone()),
        (None, Kind::Prompt(message)) => ("user", said(message)),
        (None, Kind::Answer(message)) => ("agent", said(message)),
        (None, Kind::Thought(message)) => ("thought", said(message)),
        (None, Kind::Call(call) | Kind::Edit(call) | Kind::Command(call)) => {
            ("tool_call", call.members().clone())
        }
        _ => return None,
    };
    members.insert("type".to_owned(), kind.into());
    members.insert("seq".to_owned(), block.id.seq().into());
    Some(Value::Object(members))
}

fn said(message: &Message) -> Map<String, Value> {
    let content = message.content.iter().map(|part| match part {
        Content::Text(text) => json!({"type": "text", "text": text}),
        Content::Other(block) => block.clone(),
    });
    Map::from_iter([("content".to_owned(), content.collect())])
}
