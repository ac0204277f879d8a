//! Columns for lists.

use anstyle::Style;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::paint::{Paint, visible};

/// Rows under a header; every column is as wide as its widest cell.
pub(crate) struct Table {
    rows: Vec<Vec<Cell>>,
}

/// One cell.
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// A cell in a style.
    pub(crate) fn new(text: impl AsRef<str>, style: Style) -> Cell {
        let text = text.as_ref();
        let text = if text.is_empty() { "-" } else { text };
        Cell { text: visible(text).replace(['\n', '\t'], " "), style }
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell::new(text, Style::new())
    }
}

impl Table {
    /// A table with these column titles.
    pub(crate) fn new<const N: usize>(titles: [&str; N]) -> Table {
        Table { rows: vec![titles.map(|title| Cell::new(title, Style::new().dimmed())).into()] }
    }

    /// Adds a row.
    pub(crate) fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        self.rows.push(cells.into());
    }

    /// The table as lines; the last column is cut where a terminal of this width ends.
    pub(crate) fn render(&self, paint: Paint, width: Option<usize>) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                cells.map(|cell| cell.text.width()).max().unwrap_or(0)
            })
            .collect();
        // A column that is cut to nothing tells less than one that wraps.
        let before = widths.iter().rev().skip(1).map(|width| width + 2).sum();
        let last = width.and_then(|width| width.checked_sub(before)).filter(|left| *left >= 10);
        let mut lines = String::new();
        for row in &self.rows {
            for (column, cell) in row.iter().enumerate() {
                let is_last = column + 1 == row.len();
                let text = match last {
                    Some(room) if is_last => cut(&cell.text, room),
                    _ => cell.text.clone(),
                };
                lines.push_str(&paint.apply(cell.style, &text));
                if !is_last {
                    let gap = widths[column] - cell.text.width() + 2;
                    lines.extend(std::iter::repeat_n(' ', gap));
                }
            }
            lines.push('\n');
        }
        lines
    }
}

/// The text in at most so many columns.
pub(crate) fn cut(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let mut used = 1;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= room
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paint::GREEN;

    #[test]
    fn columns_line_up_by_display_width() {
        let mut table = Table::new(["NAME", "STATE", "WHY"]);
        table.row(["日本".into(), Cell::new("ready", GREEN), "two\nlines".into()]);
        table.row(["long-name".into(), "stopped".into(), "".into()]);
        insta::assert_snapshot!(table.render(Paint::plain(), None), @"
        NAME       STATE    WHY
        日本       ready    two lines
        long-name  stopped  -
        ");
    }

    #[test]
    fn the_last_column_ends_where_the_terminal_does() {
        let mut table = Table::new(["NAME", "WHY"]);
        table.row(["a".into(), "日本 and more words".into()]);
        insta::assert_snapshot!(table.render(Paint::plain(), Some(16)), @"
        NAME  WHY
        a     日本 and …
        ");
        // No room is no reason to show nothing.
        assert!(table.render(Paint::plain(), Some(8)).contains("more words"));
    }

    #[test]
    fn colours_do_not_count_as_width() {
        let mut table = Table::new(["A", "B"]);
        table.row([Cell::new("x", GREEN), "y".into()]);
        assert_eq!(
            table.render(Paint::colour(), None),
            "\u{1b}[2mA\u{1b}[0m  \u{1b}[2mB\u{1b}[0m\n\u{1b}[32mx\u{1b}[0m  y\n"
        );
    }
}
