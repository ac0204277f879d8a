//! Changes of files for users.

use std::time::Duration;

use acpd_api::{Untrusted, escape};
use similar::{ChangeTag, TextDiff};

use crate::block::FileDiff;
use crate::text;
use crate::text::{Role, Text};

const CONTEXT_LINES: usize = 2;
/// Time limit for a comparison. A comparison that is cut short reports too many changed lines.
const MAX_COMPARE_TIME: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub struct Change {
    /// Path, counts, and a mark for a new file.
    pub head: Text,
    pub lines: Vec<DiffLine>,
    pub added: usize,
    pub removed: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiffLine {
    /// Omitted lines without changes.
    Gap,
    Text {
        /// Line number in the new text; for a removed line in the old text.
        number: usize,
        /// `+`, `-` or a space.
        sign: char,
        text: Text,
    },
}

impl DiffLine {
    pub fn line(&self) -> Text {
        match self {
            DiffLine::Gap => Text::of(Role::Dim, "         ⋮"),
            DiffLine::Text { number, sign, text } => {
                let role = match sign {
                    '+' => Role::Added,
                    '-' => Role::Removed,
                    _ => Role::Dim,
                };
                let line: Text = text!("{:>8} {} {}", *number, *sign, text);
                Text::of(role, line.trim_end())
            }
        }
    }
}

impl Change {
    pub fn of(path: &Untrusted, file: &FileDiff) -> Change {
        let old = file.old_text.as_ref().map_or("", Untrusted::raw);
        let changes =
            TextDiff::configure().timeout(MAX_COMPARE_TIME).diff_lines(old, file.new_text.raw());
        let count = |tag| changes.iter_all_changes().filter(|change| change.tag() == tag).count();
        let (added, removed) = (count(ChangeTag::Insert), count(ChangeTag::Delete));
        let new = if file.old_text.is_none() { " new file" } else { "" };
        let head = with_counts(Text::of(Role::Name, path), added, removed).and(Role::Plain, new);
        Change { head, lines: hunks(&changes), added, removed }
    }
}

pub(crate) fn with_counts(line: Text, added: usize, removed: usize) -> Text {
    line.and(Role::Plain, " ")
        .and(Role::Added, text!("+{}", added))
        .and(Role::Plain, " ")
        .and(Role::Removed, text!("-{}", removed))
}

fn hunks(changes: &TextDiff<'_, '_, '_, str>) -> Vec<DiffLine> {
    let mut lines = Vec::new();
    for (at, group) in changes.grouped_ops(CONTEXT_LINES).iter().enumerate() {
        if at > 0 {
            lines.push(DiffLine::Gap);
        }
        for change in group.iter().flat_map(|op| changes.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Insert => '+',
                ChangeTag::Delete => '-',
                ChangeTag::Equal => ' ',
            };
            let number = change.new_index().or(change.old_index()).unwrap_or(0) + 1;
            let text = escape::verbatim(change.value().trim_end_matches(['\n', '\r'])).into();
            lines.push(DiffLine::Text { number, sign, text });
        }
    }
    lines
}
