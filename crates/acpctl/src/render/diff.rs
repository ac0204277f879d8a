//! Changes of files as a person reads them.

use acpd_api::{Untrusted, escape};
use anstyle::Style;
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
    let changes = changes(file);
    let (path, [added, removed], new) = head(file, &changes);
    let mut text = text!(
        "    {} {} {}{}\n",
        paint.apply(CYAN, path),
        paint.apply(GREEN, added),
        paint.apply(RED, removed),
        new
    );
    let lines = hunks(&changes);
    for (style, line) in lines.iter().take(MAX_LINES) {
        text += paint.apply(*style, line) + "\n";
    }
    if lines.len() > MAX_LINES {
        text += paint.apply(DIM, text!("      … {} more lines\n", lines.len() - MAX_LINES));
    }
    text
}

/// All lines of a change, for the person who decides on it: the head, then the hunks.
pub(super) fn lines_of(file: &FileDiff) -> (Text, Vec<(Style, Text)>) {
    let changes = changes(file);
    let (path, [added, removed], new) = head(file, &changes);
    (text!("{} {} {}{}", path, added, removed, new), hunks(&changes))
}

fn changes(file: &FileDiff) -> TextDiff<'_, '_, '_, str> {
    let old = file.old_text.as_ref().map_or("", Untrusted::raw);
    TextDiff::from_lines(old, file.new_text.raw())
}

/// The path, how many lines come and go, and whether the file is new.
fn head<'a>(
    file: &FileDiff,
    changes: &TextDiff<'a, 'a, 'a, str>,
) -> (Text, [Text; 2], &'static str) {
    let count = |tag| changes.iter_all_changes().filter(|change| change.tag() == tag).count();
    let counts = [text!("+{}", count(ChangeTag::Insert)), text!("-{}", count(ChangeTag::Delete))];
    let new = if file.old_text.is_none() { " new file" } else { "" };
    ((&file.path).into(), counts, new)
}

fn hunks(changes: &TextDiff<'_, '_, '_, str>) -> Vec<(Style, Text)> {
    let mut lines = Vec::new();
    for (number, group) in changes.grouped_ops(CONTEXT).iter().enumerate() {
        if number > 0 {
            lines.push((DIM, "         ⋮".into()));
        }
        for change in group.iter().flat_map(|op| changes.iter_changes(op)) {
            let (sign, style) = match change.tag() {
                ChangeTag::Insert => ("+", GREEN),
                ChangeTag::Delete => ("-", RED),
                ChangeTag::Equal => (" ", DIM),
            };
            let place = change.new_index().or(change.old_index()).unwrap_or(0) + 1;
            let content = escape::verbatim(change.value().trim_end_matches(['\n', '\r']));
            lines.push((style, text!("{:>8} {} {}", place, sign, content).trim_end()));
        }
    }
    lines
}
