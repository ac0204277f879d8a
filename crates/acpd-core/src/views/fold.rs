//! Folding: the chunks of one message become one line, for clients that load a conversation.
//!
//! The journal keeps each chunk, and a client that continues from its cursor gets each. A folded line
//! has the number of its last chunk, so it is a cursor like any other.

use std::ops::Range;

use acp_wire::{locate, splice, str_at};
use bytes::Bytes;

use crate::record::{EventKind, EventRow};

const UPDATE: [&str; 3] = ["params", "update", "sessionUpdate"];
const TEXT: [&str; 4] = ["params", "update", "content", "text"];
/// Bytes of a folded line.
const MOST: usize = 256 << 10;

/// A line whose text grows.
struct Folded {
    first: EventRow,
    /// The text's place in that line, without its quotes.
    text: Range<usize>,
    /// Texts of later lines, as JSON has them.
    more: Vec<u8>,
}

/// Folds consecutive chunks that differ in their text only, up to `max_line` bytes (0 = no limit).
pub(super) fn fold(rows: Vec<EventRow>, max_line: u64) -> Vec<EventRow> {
    let most = if max_line == 0 { MOST } else { MOST.min(max_line as usize) };
    let mut folded = Vec::new();
    let mut open: Option<Folded> = None;
    for row in rows {
        let text = text_of(&row);
        if let (Some(open), Some(text)) = (&mut open, &text)
            && open.continues(&row, text, most)
        {
            open.more.extend(&row.line[text.clone()]);
            (open.first.seq, open.first.at) = (row.seq, row.at);
            continue;
        }
        folded.extend(open.take().map(Folded::row));
        match text {
            Some(text) => open = Some(Folded { first: row, text, more: Vec::new() }),
            None => folded.push(row),
        }
    }
    folded.extend(open.map(Folded::row));
    folded
}

/// Returns the place of a chunk's text, without its quotes.
fn text_of(row: &EventRow) -> Option<Range<usize>> {
    if !matches!(row.kind, EventKind::Update | EventKind::Imported) {
        return None;
    }
    let update = str_at(&row.line, &UPDATE)?;
    if !matches!(&*update, "agent_message_chunk" | "agent_thought_chunk") {
        return None;
    }
    let text = locate(&row.line, &TEXT)?;
    row.line[text.clone()].starts_with(b"\"").then(|| text.start + 1..text.end - 1)
}

impl Folded {
    fn continues(&self, row: &EventRow, text: &Range<usize>, most: usize) -> bool {
        let (before, behind) =
            (&self.first.line[..self.text.start], &self.first.line[self.text.end..]);
        row.kind == self.first.kind
            && row.pv == self.first.pv
            && row.origin == self.first.origin
            && row.line[..text.start] == *before
            && row.line[text.end..] == *behind
            && self.first.line.len() + self.more.len() + text.len() <= most
    }

    fn row(self) -> EventRow {
        if self.more.is_empty() {
            return self.first;
        }
        let end = self.text.end..self.text.end;
        let line: Bytes = splice(&self.first.line, &[(end, &self.more)]);
        EventRow { line, ..self.first }
    }
}
