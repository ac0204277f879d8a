//! Rows: blocks one under the other, and groups of folded neighbours.

use crate::block::{Block, Folding, Kind, Progress};
use crate::line::{Line, Role};
use crate::text;
use crate::text::Text;

/// What stands in a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Row<'a> {
    /// A block.
    Block(&'a Block),
    /// Folded calls that follow each other.
    Group(Group<'a>),
}

/// Folded calls that follow each other, with the thoughts between them and the answers to their questions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Group<'a> {
    /// At least two of them are calls.
    pub blocks: &'a [Block],
}

/// The rows of blocks, with a person's choices of folding.
pub fn rows(blocks: &[Block], folding: impl Fn(&Block) -> Folding) -> Vec<Row<'_>> {
    let joins = |block: &Block| {
        let is_kind = matches!(block.kind, Kind::Thought(_) | Kind::Question(_));
        (is_kind || block.tool_call().is_some()) && folding(block) == Folding::Closed
    };
    let mut rows = Vec::new();
    for part in blocks.chunk_by(|one, other| joins(one) && joins(other)) {
        let is_call = |block: &Block| block.tool_call().is_some() && joins(block);
        let first = part.iter().position(is_call);
        let is_thought = |block: &Block| matches!(block.kind, Kind::Thought(_));
        let last = part.iter().rposition(|block| !is_thought(block));
        let calls = part.iter().filter(|block| is_call(block)).count();
        match (first, last) {
            // Thoughts around it stay visible: what comes next often follows from them.
            (Some(first), Some(last)) if calls > 1 => {
                rows.extend(part[..first].iter().map(Row::Block));
                rows.push(Row::Group(Group { blocks: &part[first..=last] }));
                rows.extend(part[last + 1..].iter().map(Row::Block));
            }
            _ => rows.extend(part.iter().map(Row::Block)),
        }
    }
    rows
}

impl Group<'_> {
    /// What was done in it, in one line: facts alone, failures always.
    pub fn summary(&self) -> Line {
        let calls = || self.blocks.iter().filter(|block| block.tool_call().is_some());
        let count = |is_it: &dyn Fn(&Block) -> bool| calls().filter(|block| is_it(block)).count();
        let what = |block: &Block| match &block.kind {
            Kind::Edit(_) => "edit".to_owned(),
            Kind::Command(_) => "execute".to_owned(),
            _ => block.tool_call().and_then(|call| call.kind()).unwrap_or_default().to_owned(),
        };
        let mut seen: Vec<String> = Vec::new();
        for kind in calls().map(what) {
            let kind =
                if WORDS.iter().any(|(known, ..)| *known == kind) { kind } else { String::new() };
            if !seen.contains(&kind) {
                seen.push(kind);
            }
        }
        let facts = seen.iter().map(|kind| {
            let is_it = |block: &Block| {
                let other = what(block);
                other == *kind
                    || (kind.is_empty() && !WORDS.iter().any(|(known, ..)| *known == other))
            };
            let (_, verb, one, many) =
                WORDS.iter().find(|(known, ..)| known == kind).copied().unwrap_or(OTHER);
            match count(&is_it) {
                1 => text!("{} 1 {}", verb, one),
                number => text!("{} {} {}", verb, number, many),
            }
        });
        let mut line = Line::of(Role::Plain, Text::join(facts, ", "));
        for (progress, role, word) in [
            (Progress::Failed, Role::Bad, "failed"),
            (Progress::Interrupted, Role::Warning, "not finished"),
        ] {
            let number = count(&|block| block.progress == progress);
            if number > 0 {
                line = line.and(Role::Plain, ", ").and(role, text!("{} {}", number, word));
            }
        }
        let is_refused = |block: &&Block| match &block.kind {
            Kind::Question(question) => question.answer.as_ref().is_some_and(|it| it.is_refused),
            _ => false,
        };
        let refused = self.blocks.iter().filter(is_refused).count();
        if refused > 0 {
            line = line.and(Role::Plain, ", ").and(Role::Warning, text!("{} denied", refused));
        }
        line
    }
}

/// Kinds of calls, and how a number of them is told.
const WORDS: [(&str, &str, &str, &str); 7] = [
    ("read", "read", "file", "files"),
    ("edit", "edited", "file", "files"),
    ("delete", "deleted", "file", "files"),
    ("move", "moved", "file", "files"),
    ("search", "searched for", "phrase", "phrases"),
    ("execute", "ran", "command", "commands"),
    ("fetch", "fetched", "page", "pages"),
];
const OTHER: (&str, &str, &str, &str) = ("", "used", "tool", "tools");
