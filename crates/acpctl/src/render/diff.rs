//! Changes of files as a person reads them.

use similar::{ChangeTag, TextDiff};

use super::update::FileDiff;
use crate::paint::{CYAN, DIM, GREEN, Paint, RED, one_line, visible};

/// Unchanged lines around a change.
const CONTEXT: usize = 2;
/// Longer diffs are cut here; the count in the head tells the whole.
const MAX_LINES: usize = 60;

/// A head with the counts, then the hunks.
pub(super) fn diff(file: &FileDiff, paint: Paint) -> String {
    let old = file.old_text.as_deref().unwrap_or_default();
    let changes = TextDiff::from_lines(old, &file.new_text);
    let count = |tag| changes.iter_all_changes().filter(|change| change.tag() == tag).count();
    let mut text = format!(
        "    {} {} {}{}\n",
        paint.apply(CYAN, &one_line(&file.path)),
        paint.apply(GREEN, &format!("+{}", count(ChangeTag::Insert))),
        paint.apply(RED, &format!("-{}", count(ChangeTag::Delete))),
        if file.old_text.is_none() { " new file" } else { "" },
    );
    let lines = hunks(&changes, paint);
    for line in lines.iter().take(MAX_LINES) {
        text.push_str(line);
    }
    if lines.len() > MAX_LINES {
        let rest = format!("      … {} more lines\n", lines.len() - MAX_LINES);
        text.push_str(&paint.apply(DIM, &rest));
    }
    text
}

fn hunks(changes: &TextDiff<'_, '_, '_, str>, paint: Paint) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, group) in changes.grouped_ops(CONTEXT).iter().enumerate() {
        if number > 0 {
            lines.push(paint.apply(DIM, "         ⋮\n"));
        }
        for change in group.iter().flat_map(|op| changes.iter_changes(op)) {
            let (sign, style) = match change.tag() {
                ChangeTag::Insert => ('+', GREEN),
                ChangeTag::Delete => ('-', RED),
                ChangeTag::Equal => (' ', DIM),
            };
            let place = change.new_index().or(change.old_index()).unwrap_or(0) + 1;
            let content = visible(change.value().trim_end_matches(['\n', '\r'])).into_owned();
            let line = format!("{place:>8} {sign} {content}");
            lines.push(paint.apply(style, line.trim_end()) + "\n");
        }
    }
    lines
}
