//! Rows: blocks, and groups of folded neighbours.

use crate::block::{Block, Consent, Folding, Kind, Progress};
use crate::text;
use crate::text::{Role, Text};

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Row<'a> {
    Block(&'a Block),
    Group(Group<'a>),
}

/// Adjacent folded calls, with the thoughts between them and the answers to their questions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Group<'a> {
    /// At least two are calls.
    pub blocks: &'a [Block],
}

/// Returns the rows of blocks; `folding` includes the user's choices.
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
            // Thoughts around a group stay visible, because they explain the next step.
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
    /// Summarizes the group in one line; failures are always shown.
    pub fn summary(&self) -> Text {
        let mut facts: Vec<(&Words, usize)> = Vec::new();
        let happened = self.blocks.iter().filter(|block| block.consent() != Some(Consent::Refused));
        for words in happened.filter_map(words) {
            match facts.iter_mut().find(|(known, _)| *known == words) {
                Some((_, count)) => *count += 1,
                None => facts.push((words, 1)),
            }
        }
        let facts = facts.into_iter().map(|((_, verb, one, many), count)| match count {
            1 => text!("{} 1 {}", verb, one),
            _ => text!("{} {} {}", verb, count, many),
        });
        let line = Text::of(Role::Plain, Text::join(facts, ", "));
        let calls = || self.blocks.iter().filter(|block| block.tool_call().is_some());
        let is_cut = |block: &&Block| {
            block.progress == Progress::Interrupted && block.consent() != Some(Consent::Refused)
        };
        let is_refused = |block: &&Block| matches!(&block.kind, Kind::Question(question) if question.answer.is_refused);
        let bad = [
            (calls().filter(|block| block.has_failed()).count(), Role::Bad, "failed"),
            (calls().filter(is_cut).count(), Role::Warning, "not finished"),
            (self.blocks.iter().filter(is_refused).count(), Role::Warning, "denied"),
        ];
        bad.into_iter().filter(|(count, ..)| *count > 0).fold(line, |line, (count, role, word)| {
            let gap = if line.is_empty() { "" } else { ", " };
            line.and(Role::Plain, gap).and(role, text!("{} {}", count, word))
        })
    }
}

/// Kind, verb, singular noun, plural noun.
type Words = (&'static str, &'static str, &'static str, &'static str);
const WORDS: [Words; 8] = [
    ("read", "read", "file", "files"),
    ("edit", "edited", "file", "files"),
    ("delete", "deleted", "file", "files"),
    ("move", "moved", "file", "files"),
    ("search", "searched for", "phrase", "phrases"),
    ("execute", "ran", "command", "commands"),
    ("fetch", "fetched", "page", "pages"),
    ("other", "used", "tool", "tools"),
];

fn words(block: &Block) -> Option<&'static Words> {
    let kind = match &block.kind {
        Kind::Edit(_) => "edit",
        Kind::Command(_) => "execute",
        _ => block.tool_call()?.kind().unwrap_or_default(),
    };
    WORDS.iter().find(|(known, ..)| *known == kind).or(WORDS.last())
}
