//! Changes of blocks: a block is sent once, and then its additions.

use acpd_view::{Block, Content, Folding, Id, Kind, Progress, State};
use serde_json::json;

use super::encoding;
use super::{Outgoing, PageConversation};

impl PageConversation {
    /// Sends an unfolded block, and first the subagents that it is in.
    pub(super) fn send_body(&mut self, id: Id, out: &mut Outgoing) {
        self.open.insert(id);
        let of = find(&self.state, id).and_then(|(_, _, of)| of);
        if let Some(of) = of.filter(|of| !self.shown.contains(of)) {
            self.send_body(of, out);
        }
        self.send_whole(id, out);
    }

    fn send_whole(&mut self, id: Id, out: &mut Outgoing) {
        self.sent.remove(&id);
        self.shown.remove(&id);
        self.send_block(id, out);
    }

    /// Sends changed blocks, and changes of the header.
    pub(super) fn send(&mut self, changed: Vec<Id>, out: &mut Outgoing) {
        for id in changed {
            self.send_block(id, out);
        }
        self.send_header(out);
    }

    pub(super) fn send_header(&mut self, out: &mut Outgoing) {
        let now = self.state.header();
        if *now == self.header && !self.head.is_empty() {
            return;
        }
        self.header = now.clone();
        let head = encoding::header(&self.header);
        let mut changed = head.clone();
        changed.retain(|name, value| self.head.get(name) != Some(value));
        self.head = head;
        if !changed.is_empty() {
            out.notify("_page/head", &changed);
        }
    }

    fn send_block(&mut self, id: Id, out: &mut Outgoing) {
        let Some((block, turn, of)) = find(&self.state, id) else {
            self.sent.remove(&id);
            self.shown.remove(&id);
            return out.notify("_page/gone", &json!({"id": encoding::id(id)}));
        };
        let is_open = self.open.contains(&id);
        if of.is_some_and(|of| !self.shown.contains(&of)) {
            // Blocks in a subagent are sent when the subagent is unfolded.
            return;
        }
        let now = size(block);
        let before = now.and_then(|_| self.sent.get(&id).copied());
        match (now, before) {
            (Some((parts, bytes)), Some((old_parts, old_bytes)))
                if parts == old_parts
                    && bytes > old_bytes
                    && block.progress == Progress::Running =>
            {
                let more = last_text(block).get(old_bytes..).unwrap_or_default();
                let delta = json!({"id": encoding::id(id), "last": block.last, "text": more});
                out.notify("_page/delta", &delta);
            }
            (Some(now), Some(before)) if now == before => {
                let mut done = json!({
                    "id": encoding::id(id), "last": block.last, "progress": block.progress,
                    "folding": block.folding,
                });
                if let Kind::Thought(_) = block.kind {
                    done["line"] = encoding::line(&block.summary());
                }
                out.notify("_page/done", &done);
            }
            _ => {
                let drawn = encoding::block((block, turn, of), &self.state, is_open);
                out.notify("_page/block", &drawn);
            }
        }
        match now.filter(|_| block.progress == Progress::Running) {
            Some(now) => drop(self.sent.insert(id, now)),
            None => drop(self.sent.remove(&id)),
        }
        if let Kind::Subagent(subagent) = &block.kind {
            let is_unfolded = is_open || block.folding != Folding::Closed;
            let inside: Vec<Id> = subagent.blocks.iter().map(|block| block.id).collect();
            if !is_unfolded {
                self.shown.remove(&id);
            } else if self.shown.insert(id) {
                for id in inside {
                    self.send_whole(id, out);
                }
            }
        }
    }
}

/// Returns the ids of blocks and of the blocks inside of them.
pub(super) fn ids(blocks: &[Block]) -> Vec<Id> {
    let inside = |block: &Block| match &block.kind {
        Kind::Subagent(subagent) => ids(&subagent.blocks),
        _ => Vec::new(),
    };
    blocks.iter().flat_map(|block| std::iter::once(block.id).chain(inside(block))).collect()
}

fn find(state: &State, id: Id) -> Option<(&Block, u64, Option<Id>)> {
    let (block, turn, of) = state.find(id)?;
    Some((block, turn.started.map_or(0, |started| started.seq), of))
}

/// Returns the number of parts of a message, and the bytes of the last one.
fn size(block: &Block) -> Option<(usize, usize)> {
    let message = block.message()?;
    Some((message.content.len(), last_text(block).len()))
}

fn last_text(block: &Block) -> &str {
    match block.message().and_then(|message| message.content.last()) {
        Some(Content::Text(text)) => text.raw(),
        _ => "",
    }
}
