//! Plans: the whole one first, then what changed.

use super::update::PlanEntry;
use crate::paint::{BOLD, CYAN, DIM, GREEN, Paint, one_line};

/// The plan as it should be shown after `before`; empty when nothing changed.
pub(super) fn plan(before: &[PlanEntry], entries: &[PlanEntry], paint: Paint) -> String {
    let same_steps = !before.is_empty()
        && before.len() == entries.len()
        && before.iter().zip(entries).all(|(old, new)| old.content == new.content);
    let changed: Vec<&PlanEntry> = if same_steps {
        before.iter().zip(entries).filter(|(old, new)| old != new).map(|(_, new)| new).collect()
    } else {
        entries.iter().collect()
    };
    if changed.is_empty() {
        return String::new();
    }
    let done = entries.iter().filter(|entry| entry.status == "completed").count();
    let mut text = format!("{} {done}/{}\n", paint.apply(BOLD, "plan"), entries.len());
    for entry in changed {
        text.push_str(&step(entry, paint));
    }
    text
}

fn step(entry: &PlanEntry, paint: Paint) -> String {
    let content = one_line(&entry.content);
    let (mark, content) = match entry.status.as_str() {
        "completed" => (paint.apply(GREEN, "✓"), paint.apply(DIM, &content)),
        "in_progress" => (paint.apply(CYAN, "▸"), paint.apply(BOLD, &content)),
        _ => ("○".to_owned(), content),
    };
    // Medium is what most agents say about everything, so only the others are worth a word.
    let priority = match entry.priority.as_str() {
        "" | "medium" => String::new(),
        other => paint.apply(DIM, &format!(" ({})", one_line(other))),
    };
    format!("  {mark} {content}{priority}\n")
}
