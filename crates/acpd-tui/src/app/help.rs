//! The page of keys, written from the table of keys.

use acpd_api::Untrusted;
use acpd_view::text::Text;
use acpd_view::{Line, Role, Style, text};
use ratatui::layout::Rect;

use super::OnScreen;
use crate::canvas::Canvas;
use crate::keymap::{self, Place, TABLE};

/// The parts of the page.
const PARTS: &[(Place, &str)] = &[
    (Place::Top, "All sessions"),
    (Place::Prompt, "Prompt of a conversation"),
    (Place::Blocks, "Blocks of a conversation (Tab; Esc goes back to the prompt)"),
    (Place::Question, "Question (Tab goes there; it never takes the keys by itself)"),
    (Place::Line, "A line that is typed"),
    (Place::Everywhere, "Everywhere"),
];
/// Columns of the keys.
const KEYS: usize = 18;
/// Columns of an entry; where there is room for two, there are two.
const ENTRY: usize = 50;

/// Draws it.
pub(super) fn view(scroll: usize, canvas: &mut Canvas<'_>, area: Rect) -> OnScreen {
    let theme = canvas.theme();
    let columns = (usize::from(area.width) / ENTRY).clamp(1, 2);
    let mut lines = Vec::new();
    for (place, title) in PARTS {
        lines.push(Line::of(Style::of(Role::Heading), text!(" {}", *title)));
        let entries: Vec<Line> = TABLE
            .iter()
            .filter(|row| row.place == *place)
            .map(|row| {
                let keys = Untrusted::from(keymap::shown(row.keys, theme.is_unicode));
                let keys = Text::from(&keys).cut(KEYS);
                let gap = Text::repeated(" ", KEYS + 2 - keys.width());
                Line::of(Style::of(Role::Name).strong(), text!("   {}", keys))
                    .and(Role::Plain, text!("{}{}", gap, row.words))
            })
            .collect();
        let rows = entries.len().div_ceil(columns);
        for at in 0..rows {
            let mut line = entries[at].clone();
            if let Some(second) = entries.get(at + rows) {
                let gap = Text::repeated(" ", ENTRY.saturating_sub(line.width()));
                line = line.and(Role::Plain, gap);
                second.spans.iter().for_each(|span| line.push(span.clone()));
            }
            lines.push(line);
        }
        lines.push(Line::default());
    }
    let page = usize::from(area.height.saturating_sub(2));
    let scroll = scroll.min(lines.len().saturating_sub(page));
    canvas.line(0, 0, area.width, &Line::of(Style::of(Role::Plain).strong(), " KEYS"));
    canvas.right(0, 0, area.width.saturating_sub(1), &Line::of(Role::Dim, "Esc back"));
    let rule = theme.rule(usize::from(area.width.saturating_sub(2)));
    canvas.line(1, 1, area.width.saturating_sub(2), &Line::of(Role::Dim, rule));
    for (y, line) in (area.y + 2..area.bottom()).zip(lines.iter().skip(scroll)) {
        canvas.line(0, y, area.width, line);
    }
    OnScreen { page, ..OnScreen::default() }
}
