//! Tables with column titles, and key-value lists.

use super::{Role, Text};
use crate::text;

const COLUMN_GAP: usize = 2;
const MIN_LAST_WIDTH: usize = 10;

/// Rows under a header. To fit a terminal, columns are cut, then dropped.
#[derive(Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Text>>,
    /// Columns that may be dropped, the first one first.
    dropped: &'static [&'static str],
}

const EMPTY: &str = "-";

#[derive(Debug)]
struct Column {
    title: &'static str,
    cut: Option<Cut>,
    hides: bool,
}

/// How to shorten cells, with their minimum width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    End(usize),
    /// For paths.
    Middle(usize),
}

impl Table {
    /// Only the last column may be cut.
    pub fn new<const N: usize>(
        titles: [&'static str; N],
        rows: impl IntoIterator<Item = [Text; N]>,
    ) -> Table {
        let mut columns: Vec<Column> =
            titles.into_iter().map(|title| Column { title, cut: None, hides: false }).collect();
        if let Some(last) = columns.last_mut() {
            last.cut = Some(Cut::End(MIN_LAST_WIDTH));
        }
        let header = titles.map(|title| Text::styled(Role::Dim, title));
        let shown = |cell: Text| if cell.is_empty() { EMPTY.into() } else { cell };
        let rows = rows.into_iter().map(|cells| cells.map(shown));
        let rows = std::iter::once(header).chain(rows).map(Vec::from).collect();
        Table { columns, rows, dropped: &[] }
    }

    #[must_use]
    pub fn cut(mut self, title: &'static str, cut: Cut) -> Table {
        for column in self.columns.iter_mut().filter(|column| column.title == title) {
            column.cut = Some(cut);
        }
        self
    }

    #[must_use]
    pub fn hide_if_empty(mut self, title: &'static str) -> Table {
        for column in self.columns.iter_mut().filter(|column| column.title == title) {
            column.hides = true;
        }
        self
    }

    #[must_use]
    pub fn drop(mut self, titles: &'static [&'static str]) -> Table {
        self.dropped = titles;
        self
    }

    pub fn render(&self, width: Option<usize>) -> Text {
        let widths = self.layout(width);
        let shown: Vec<usize> = (0..widths.len()).filter(|at| widths[*at] > 0).collect();
        let mut lines = Text::new();
        for row in &self.rows {
            for (place, at) in shown.iter().enumerate() {
                let (cell, room) = (&row[*at], widths[*at]);
                let text = match self.columns[*at].cut {
                    Some(Cut::Middle(_)) => cell.cut_middle(room),
                    _ => cell.cut(room),
                };
                let gap = room - text.width() + COLUMN_GAP;
                lines += text;
                if place + 1 < shown.len() {
                    lines += Text::repeated(" ", gap);
                }
            }
            lines += "\n";
        }
        lines
    }

    /// Returns the widths of the columns; 0 for dropped ones.
    fn layout(&self, width: Option<usize>) -> Vec<usize> {
        let is_hidden = |at: usize| {
            let mut cells = self.rows.iter().skip(1).map(|row| row[at].as_str());
            self.columns[at].hides && cells.all(|text| text == EMPTY)
        };
        let natural: Vec<usize> = (0..self.columns.len())
            .map(|at| {
                let widest = self.rows.iter().map(|row| row[at].width()).max();
                widest.filter(|_| !is_hidden(at)).unwrap_or(0)
            })
            .collect();
        let Some(width) = width else { return natural };
        let least = |at: usize| match self.columns[at].cut {
            Some(Cut::End(least) | Cut::Middle(least)) => natural[at].min(least),
            None => natural[at],
        };
        let mut widths: Vec<usize> = (0..natural.len()).map(least).collect();
        for title in self.dropped {
            if total(&widths) <= width {
                break;
            }
            let column = self.columns.iter().position(|column| column.title == *title);
            if let Some(at) = column {
                widths[at] = 0;
            }
        }
        let mut room = width.saturating_sub(total(&widths));
        while room > 0 {
            let before = room;
            for at in 0..widths.len() {
                if room > 0 && widths[at] > 0 && widths[at] < natural[at] {
                    widths[at] += 1;
                    room -= 1;
                }
            }
            if room == before {
                break;
            }
        }
        // On extremely narrow screens, the last columns go first.
        for at in (1..widths.len()).rev() {
            if total(&widths) > width {
                widths[at] = 0;
            }
        }
        widths[0] = widths[0].min(width.max(1));
        widths
    }
}

fn total(widths: &[usize]) -> usize {
    let shown = widths.iter().filter(|width| **width > 0);
    (shown.clone().sum::<usize>() + shown.count() * COLUMN_GAP).saturating_sub(COLUMN_GAP)
}

pub fn key_values(rows: &[(&'static str, Text)]) -> Text {
    let width = rows.iter().map(|(key, _)| key.len()).max().unwrap_or(0);
    let line = |(key, value): &(&'static str, Text)| {
        let gap = Text::repeated(" ", width - key.len());
        text!("{}{}  {}\n", Text::styled(Role::Dim, *key), gap, value)
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use acpd_api::Untrusted;

    use super::*;

    #[test]
    fn columns_are_cut_then_left_out_and_no_row_is_too_wide() {
        let row = ["fix".into(), "12345".into(), "~/src/long/way/api".into(), "because".into()];
        let table = Table::new(["NAME", "PID", "DIRECTORY", "WHY"], [row])
            .cut("DIRECTORY", Cut::Middle(8))
            .drop(&["PID", "DIRECTORY"]);
        let shown = |width| table.render(Some(width)).to_string();
        insta::assert_snapshot!(shown(40), @"
        NAME  PID    DIRECTORY           WHY
        fix   12345  ~/src/long/way/api  because
        ");
        insta::assert_snapshot!(shown(34), @"
        NAME  PID    DIRECTORY     WHY
        fix   12345  ~/s…/way/api  because
        ");
        insta::assert_snapshot!(shown(26), @"
        NAME  DIRECTORY    WHY
        fix   ~/s…way/api  because
        ");
        insta::assert_snapshot!(shown(16), @"
        NAME  WHY
        fix   because
        ");
        for width in 1..60 {
            let text = table.render(Some(width));
            let widest =
                text.as_str().lines().map(|line| Text::from(Untrusted::from(line)).width());
            assert!(widest.max().unwrap() <= width, "{width}:\n{}", text.as_str());
        }
    }
}
