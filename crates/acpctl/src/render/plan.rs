//! Plans: each time the whole plan, with a mark at every changed entry.

use super::update::PlanEntry;
use crate::paint::{BOLD, CYAN, DIM, GREEN, Paint, YELLOW};
use crate::text::{Text, text};

/// The plan as it should be shown after `before`; empty when nothing changed.
pub(super) fn plan(before: &[PlanEntry], entries: &[PlanEntry], paint: Paint) -> Text {
    if before == entries {
        return Text::new();
    }
    let done = entries.iter().filter(|entry| entry.status == "completed").count();
    let mut text = text!("{} {}/{}\n", paint.apply(BOLD, "plan"), done, entries.len());
    for entry in entries {
        let is_changed = !before.is_empty() && !before.contains(entry);
        let mark = if is_changed { paint.apply(YELLOW, "*") } else { " ".into() };
        text += text!("{} {}\n", mark, step(entry, paint));
    }
    text
}

fn step(entry: &PlanEntry, paint: Paint) -> Text {
    let (sign, content) = match entry.status.raw() {
        "completed" => (paint.apply(GREEN, "✓"), paint.apply(DIM, &entry.content)),
        "in_progress" => (paint.apply(CYAN, "▸"), paint.apply(BOLD, &entry.content)),
        _ => ("○".into(), Text::from(&entry.content)),
    };
    // Medium is what most agents say about everything, so only the others are worth a word.
    let priority = match entry.priority.raw() {
        "" | "medium" => Text::new(),
        _ => paint.apply(DIM, text!(" ({})", entry.priority)),
    };
    text!("{} {}{}", sign, content, priority)
}
