//! Changes of files as a person reads them.

use acpd_api::{Untrusted, escape};
use similar::{ChangeTag, TextDiff};

use super::update::FileDiff;
use crate::paint::{CYAN, DIM, GREEN, Paint, RED};
use crate::text::{Text, text};

/// Unchanged lines around a change.
const CONTEXT: usize = 2;
/// Longer diffs are cut here; the count in the head tells the whole.
const MAX_LINES: usize = 60;

/// A head with the counts, then the hunks.
pub(super) fn diff(file: &FileDiff, paint: Paint) -> Text {
    let old = file.old_text.as_ref().map_or("", Untrusted::raw);
    let changes = TextDiff::from_lines(old, file.new_text.raw());
    let count = |tag| changes.iter_all_changes().filter(|change| change.tag() == tag).count();
    let mut text = text!(
        "    {} {} {}{}\n",
        paint.apply(CYAN, &file.path),
        paint.apply(GREEN, text!("+{}", count(ChangeTag::Insert))),
        paint.apply(RED, text!("-{}", count(ChangeTag::Delete))),
        if file.old_text.is_none() { " new file" } else { "" },
    );
    let lines = hunks(&changes, paint);
    for line in lines.iter().take(MAX_LINES) {
        text += line;
    }
    if lines.len() > MAX_LINES {
        text += paint.apply(DIM, text!("      … {} more lines\n", lines.len() - MAX_LINES));
    }
    text
}

fn hunks(changes: &TextDiff<'_, '_, '_, str>, paint: Paint) -> Vec<Text> {
    let mut lines = Vec::new();
    for (number, group) in changes.grouped_ops(CONTEXT).iter().enumerate() {
        if number > 0 {
            lines.push(paint.apply(DIM, "         ⋮\n"));
        }
        for change in group.iter().flat_map(|op| changes.iter_changes(op)) {
            let (sign, style) = match change.tag() {
                ChangeTag::Insert => ("+", GREEN),
                ChangeTag::Delete => ("-", RED),
                ChangeTag::Equal => (" ", DIM),
            };
            let place = change.new_index().or(change.old_index()).unwrap_or(0) + 1;
            let content = escape::verbatim(change.value().trim_end_matches(['\n', '\r']));
            let line = text!("{:>8} {} {}", place, sign, content);
            lines.push(paint.apply(style, line.trim_end()) + "\n");
        }
    }
    lines
}
