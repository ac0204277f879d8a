//! Columns for lists.

use anstyle::Style;

use crate::paint::{DIM, Paint};
use crate::text::{Text, text};

/// Rows under a header; every column is as wide as its widest cell.
pub(crate) struct Table {
    rows: Vec<Vec<Cell>>,
}

/// One cell: a text of one line.
pub(crate) struct Cell {
    text: Text,
    style: Style,
}

impl Cell {
    /// A cell in a style.
    pub(crate) fn new(text: impl Into<Text>, style: Style) -> Cell {
        let text = text.into();
        Cell { text: if text.is_empty() { "-".into() } else { text }, style }
    }
}

impl<T: Into<Text>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell::new(text, Style::new())
    }
}

impl Table {
    /// A table with these column titles.
    pub(crate) fn new<const N: usize>(titles: [&'static str; N]) -> Table {
        Table { rows: vec![titles.map(|title| Cell::new(title, Style::new().dimmed())).into()] }
    }

    /// Adds a row.
    pub(crate) fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        self.rows.push(cells.into());
    }

    /// The table as lines; the last column is cut where a terminal of this width ends.
    pub(crate) fn render(&self, paint: Paint, width: Option<usize>) -> Text {
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
        let mut lines = Text::new();
        for row in &self.rows {
            for (column, cell) in row.iter().enumerate() {
                let is_last = column + 1 == row.len();
                let text = match last {
                    Some(room) if is_last => cell.text.cut(room),
                    _ => cell.text.clone(),
                };
                lines += paint.apply(cell.style, text);
                if !is_last {
                    let gap = widths[column] - cell.text.width() + 2;
                    lines += Text::repeated(" ", gap);
                }
            }
            lines += "\n";
        }
        lines
    }
}

/// Lines of `key  value`.
pub(crate) fn key_values(rows: &[(&'static str, Text)], paint: Paint) -> Text {
    let width = rows.iter().map(|(key, _)| key.len()).max().unwrap_or(0);
    let line = |(key, value): &(&'static str, Text)| {
        let gap = Text::repeated(" ", width - key.len());
        text!("{}{}  {}\n", paint.apply(DIM, *key), gap, value)
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use acpd_api::Untrusted;

    use super::*;
    use crate::paint::GREEN;

    #[test]
    fn columns_line_up_by_display_width() {
        let mut table = Table::new(["NAME", "STATE", "WHY"]);
        table.row(["日本".into(), Cell::new("ready", GREEN), Untrusted::from("two\nlines").into()]);
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
        assert!(table.render(Paint::plain(), Some(8)).as_str().contains("more words"));
    }

    #[test]
    fn colours_do_not_count_as_width() {
        let mut table = Table::new(["A", "B"]);
        table.row([Cell::new("x", GREEN), "y".into()]);
        assert_eq!(
            table.render(Paint::colour(), None).as_str(),
            "\u{1b}[2mA\u{1b}[0m  \u{1b}[2mB\u{1b}[0m\n\u{1b}[32mx\u{1b}[0m  y\n"
        );
    }
}
