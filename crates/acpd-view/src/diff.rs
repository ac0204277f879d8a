//! Changes of files as a person reads them.

use acpd_api::{Untrusted, escape};
use similar::{ChangeTag, TextDiff};

use crate::block::FileDiff;
use crate::text;
use crate::text::{Role, Text};

/// Unchanged lines around a change.
const CONTEXT: usize = 2;

/// A change of a file.
#[derive(Debug)]
pub struct Change {
    /// The path, the counts, and whether the file is new.
    pub head: Text,
    /// The lines that change, with some around them.
    pub lines: Vec<Text>,
    pub added: usize,
    pub removed: usize,
}

impl Change {
    /// Compares the texts. The path may be shown in a shorter form.
    pub fn of(path: &Untrusted, file: &FileDiff) -> Change {
        let old = file.old_text.as_ref().map_or("", Untrusted::raw);
        let changes = TextDiff::from_lines(old, file.new_text.raw());
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

fn hunks(changes: &TextDiff<'_, '_, '_, str>) -> Vec<Text> {
    let mut lines = Vec::new();
    for (number, group) in changes.grouped_ops(CONTEXT).iter().enumerate() {
        if number > 0 {
            lines.push(Text::of(Role::Dim, "         ⋮"));
        }
        for change in group.iter().flat_map(|op| changes.iter_changes(op)) {
            let (sign, role) = match change.tag() {
                ChangeTag::Insert => ("+", Role::Added),
                ChangeTag::Delete => ("-", Role::Removed),
                ChangeTag::Equal => (" ", Role::Dim),
            };
            let place = change.new_index().or(change.old_index()).unwrap_or(0) + 1;
            let content = escape::verbatim(change.value().trim_end_matches(['\n', '\r']));
            let line: Text = text!("{:>8} {} {}", place, sign, content);
            lines.push(Text::of(role, line.trim_end()));
        }
    }
    lines
}
