//! Changes of files as a person reads them.

use std::time::Duration;

use acpd_api::{Untrusted, escape};
use similar::{ChangeTag, TextDiff};

use crate::block::FileDiff;
use crate::text;
use crate::text::{Role, Text};

/// Unchanged lines around a change.
const CONTEXT: usize = 2;
/// Time for one comparison; a longer one is cut short, and then shows more lines as changed than there are.
const PATIENCE: Duration = Duration::from_millis(200);

/// A change of a file.
#[derive(Debug)]
pub struct Change {
    /// The path, the counts, and whether the file is new.
    pub head: Text,
    /// The lines that change, with some around them.
    pub lines: Vec<DiffLine>,
    pub added: usize,
    pub removed: usize,
}

/// A line of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiffLine {
    /// Lines are left out here that did not change.
    Gap,
    Text {
        /// Number in the new text; of a removed line, in the old one.
        number: usize,
        /// `+`, `-` or a space.
        sign: char,
        text: Text,
    },
}

impl DiffLine {
    /// The line as a terminal shows it.
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
    /// Compares the texts. The path may be shown in a shorter form.
    pub fn of(path: &Untrusted, file: &FileDiff) -> Change {
        let old = file.old_text.as_ref().map_or("", Untrusted::raw);
        let changes = TextDiff::configure().timeout(PATIENCE).diff_lines(old, file.new_text.raw());
        let count = |tag| changes.iter_all_changes().filter(|change| change.tag() == tag).count();
        let (added, removed) = (count(ChangeTag::Insert), count(ChangeTag::Delete));
        let new = if file.old_text.is_none() { " new file" } else { "" };
        let head = Text::of(Role::Name, path)
            .and(Role::Plain, " ")
            .and(Role::Added, text!("+{}", added))
            .and(Role::Plain, " ")
            .and(Role::Removed, text!("-{}", removed))
            .and(Role::Plain, new);
        Change { head, lines: hunks(&changes), added, removed }
    }
}

fn hunks(changes: &TextDiff<'_, '_, '_, str>) -> Vec<DiffLine> {
    let mut lines = Vec::new();
    for (at, group) in changes.grouped_ops(CONTEXT).iter().enumerate() {
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
