//! Markdown tables for a given width.

use pulldown_cmark::Alignment;

use crate::text::{Role, Style, Text};

const MIN_WIDTH: usize = 6;
const GAP: &str = " │ ";

#[derive(Debug)]
pub(super) struct Table {
    pub(super) alignments: Vec<Alignment>,
    pub(super) rows: Vec<Vec<Text>>,
}

impl Table {
    pub(super) fn lines(mut self, room: usize) -> Vec<Text> {
        if let Some(head) = self.rows.first_mut() {
            for cell in head {
                *cell = cell.restyled(Style::strong);
            }
        }
        let Some(widths) = self.widths(room) else { return self.one_by_one(room) };
        let mut lines = Vec::new();
        for (at, row) in self.rows.iter().enumerate() {
            let cells: Vec<Vec<Text>> =
                row.iter().zip(&widths).map(|(cell, width)| cell.wrap(*width)).collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(1);
            for at in 0..height {
                let mut line = Text::new();
                for (column, width) in widths.iter().enumerate() {
                    if column > 0 {
                        line += Text::of(Role::Mark, GAP);
                    }
                    let cell = cells.get(column).and_then(|rows| rows.get(at));
                    let alignment = self.alignments.get(column).copied();
                    line += aligned(cell.cloned().unwrap_or_default(), *width, alignment);
                }
                lines.push(line.trim_end());
            }
            if at == 0 {
                let rules = widths.iter().map(|width| Text::repeated("─", *width));
                lines.push(Text::of(Role::Mark, Text::join(rules, "─┼─")));
            }
        }
        lines
    }

    /// Returns the width of each column; none if the columns do not fit.
    fn widths(&self, room: usize) -> Option<Vec<usize>> {
        let columns = self.alignments.len();
        let wanted = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(Text::width).max().unwrap_or(0).max(1)
        };
        let mut widths: Vec<usize> = (0..columns).map(wanted).collect();
        let room = room.checked_sub(columns.saturating_sub(1) * 3)?;
        // Make the widest columns narrower until all fit.
        let least: usize = widths.iter().map(|width| (*width).min(MIN_WIDTH)).sum();
        if least > room {
            return None;
        }
        let total: usize = widths.iter().sum();
        let mut over = total.saturating_sub(room);
        while over > 0 {
            let widest = *widths.iter().max()?;
            let next =
                widths.iter().copied().filter(|width| *width < widest).max().unwrap_or(MIN_WIDTH);
            let number = widths.iter().filter(|width| **width == widest).count();
            let step = (widest - next.max(MIN_WIDTH)).min(over.div_ceil(number)).max(1);
            for width in widths.iter_mut().filter(|width| **width == widest) {
                let less = step.min(over);
                *width -= less;
                over -= less;
            }
        }
        Some(widths)
    }

    fn one_by_one(&self, room: usize) -> Vec<Text> {
        let Some((head, rows)) = self.rows.split_first() else { return Vec::new() };
        let mut lines = Vec::new();
        for row in rows {
            for (at, cell) in row.iter().enumerate() {
                let mark = Text::of(Role::Mark, if at == 0 { "- " } else { "  " });
                let name = head.get(at).cloned().unwrap_or_default();
                let line = mark + name + Text::of(Role::Mark, ": ") + cell;
                lines.extend(line.wrap(room));
            }
        }
        if rows.is_empty() {
            lines.extend(head.iter().flat_map(|cell| cell.wrap(room)));
        }
        lines
    }
}

fn aligned(cell: Text, width: usize, alignment: Option<Alignment>) -> Text {
    let rest = width.saturating_sub(cell.width());
    let before = match alignment {
        Some(Alignment::Right) => rest,
        Some(Alignment::Center) => rest / 2,
        _ => 0,
    };
    Text::repeated(" ", before) + cell + Text::repeated(" ", rest - before)
}
