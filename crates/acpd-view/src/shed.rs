//! Bodies of blocks that nobody looks at: they are dropped, and read again from the journal.
//!
//! ```text
//!  whole ──shed──▶ its summary, its place in the journal ──lines of that place: State::fill──▶ whole
//! ```

use serde_json::Value;

use crate::block::{Block, Content, Id, Kind, Progress, ToolCall};
use crate::fold::State;
use crate::line::Line;

/// What stays of a tool call: what says which it is, and what it was about.
const STAY: [&str; 4] = ["toolCallId", "kind", "status", "title"];

impl Block {
    /// How much it holds, in bytes of text.
    pub fn bytes(&self) -> usize {
        match &self.kind {
            Kind::Prompt(message) | Kind::Answer(message) | Kind::Thought(message) => {
                let parts = message.content.iter().map(|part| match part {
                    Content::Text(text) => text.raw().len(),
                    Content::Other(value) => bytes(value),
                });
                parts.sum()
            }
            Kind::Call(call) | Kind::Edit(call) | Kind::Command(call) => {
                call.members.values().map(bytes).sum()
            }
            Kind::Subagent(subagent) => subagent.blocks.iter().map(Block::bytes).sum(),
            _ => 0,
        }
    }

    /// Whether its body was dropped.
    pub fn is_shed(&self) -> bool {
        self.shed.is_some()
    }

    /// What is left of it in a line.
    pub(crate) fn left(&self) -> Option<&Line> {
        self.shed.as_deref()
    }

    /// Drops its body, if it is over and the journal has it.
    fn shed(&mut self) {
        let is_kept = matches!(self.kind, Kind::Prompt(_)) || !matches!(self.id, Id::Line(_));
        if is_kept || self.is_shed() || self.partial || self.progress == Progress::Running {
            return;
        }
        let summary = self.summary();
        match &mut self.kind {
            Kind::Answer(message) | Kind::Thought(message) => message.content = Vec::new(),
            Kind::Call(call) | Kind::Edit(call) | Kind::Command(call) => call.shed(),
            Kind::Subagent(subagent) => subagent.blocks = Vec::new(),
            _ => return,
        }
        self.shed = Some(Box::new(summary));
    }
}

impl ToolCall {
    fn shed(&mut self) {
        self.members = STAY
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), self.members.remove(name)?)))
            .collect();
    }
}

impl State {
    /// Drops the bodies of blocks outside of subagents.
    pub fn shed(&mut self, ids: impl IntoIterator<Item = Id>) {
        for id in ids {
            if let Some(block) = self.block_mut(id) {
                block.shed();
            }
        }
    }

    /// Takes lines that were read again, and restores each block that lies wholly within them.
    pub fn fill(&mut self, again: State) {
        for whole in again.into_turns().into_iter().flat_map(|turn| turn.blocks) {
            if let Some(block) = self.block_mut(whole.id)
                && block.is_shed()
                && block.last == whole.last
            {
                (block.kind, block.shed) = (whole.kind, None);
            }
        }
    }
}

fn bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(bytes).sum(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| name.len() + bytes(value)).sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}
