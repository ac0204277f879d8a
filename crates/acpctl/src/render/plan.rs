//! Plans: always whole, with a mark at what has changed.

use std::fmt::Write as _;

use super::update::PlanEntry;
use crate::paint::{BOLD, CYAN, DIM, GREEN, Paint, YELLOW, one_line};

/// The plan as it should be shown after `before`; empty when nothing changed.
pub(super) fn plan(before: &[PlanEntry], entries: &[PlanEntry], paint: Paint) -> String {
    if before == entries {
        return String::new();
    }
    let done = entries.iter().filter(|entry| entry.status == "completed").count();
    let mut text = format!("{} {done}/{}\n", paint.apply(BOLD, "plan"), entries.len());
    for entry in entries {
        let is_changed = !before.is_empty() && !before.contains(entry);
        let mark = if is_changed { paint.apply(YELLOW, "*") } else { " ".to_owned() };
        let _ = writeln!(text, "{mark} {}", step(entry, paint));
    }
    text
}

fn step(entry: &PlanEntry, paint: Paint) -> String {
    let content = one_line(&entry.content);
    let (sign, content) = match entry.status.as_str() {
        "completed" => (paint.apply(GREEN, "✓"), paint.apply(DIM, &content)),
        "in_progress" => (paint.apply(CYAN, "▸"), paint.apply(BOLD, &content)),
        _ => ("○".to_owned(), content),
    };
    // Medium is what most agents say about everything, so only the others are worth a word.
    let priority = match entry.priority.as_str() {
        "" | "medium" => String::new(),
        other => paint.apply(DIM, &format!(" ({})", one_line(other))),
    };
    format!("{sign} {content}{priority}")
}
