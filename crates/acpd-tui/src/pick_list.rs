//! A list to choose from: a menu or completions.

use acpd_view::text::Text;
use acpd_view::{Role, Style, text};
use frizbee::{Config, Matcher};

use crate::canvas::CURSOR;

const MAX_LABEL_WIDTH: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PickList<T> {
    rows: Vec<PickRow<T>>,
    at: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PickRow<T> {
    pub(crate) label: Text,
    pub(crate) note: Text,
    /// None for a heading.
    pub(crate) value: Option<T>,
}

impl<T> PickRow<T> {
    pub(crate) fn new(label: impl Into<Text>, note: impl Into<Text>, value: T) -> PickRow<T> {
        PickRow { label: label.into(), note: note.into(), value: Some(value) }
    }

    pub(crate) fn heading(label: impl Into<Text>) -> PickRow<T> {
        PickRow { label: label.into(), note: Text::new(), value: None }
    }
}

impl<T> PickList<T> {
    /// Chooses the first row. Returns none if there is nothing to choose.
    pub(crate) fn of(rows: impl IntoIterator<Item = PickRow<T>>) -> Option<PickList<T>> {
        let rows: Vec<PickRow<T>> = rows.into_iter().collect();
        let at = rows.iter().position(|row| row.value.is_some())?;
        Some(PickList { rows, at })
    }

    pub(crate) fn chosen(&self) -> Option<&T> {
        self.rows[self.at].value.as_ref()
    }

    pub(crate) fn into_chosen(mut self) -> Option<T> {
        self.rows.swap_remove(self.at).value
    }

    /// Moves the choice; the first row follows the last one.
    pub(crate) fn go(&mut self, by: isize) {
        let count = self.rows.len() as isize;
        let step = |at: usize| (at as isize + by).rem_euclid(count) as usize;
        self.at = step(self.at);
        while self.rows[self.at].value.is_none() {
            self.at = step(self.at);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn lines(&self, room: usize) -> Vec<Text> {
        let widest = self.rows.iter().map(|row| row.label.width()).max().unwrap_or(0);
        let skip = (self.at + 1).saturating_sub(room);
        let line = |(at, row): (usize, &PickRow<T>)| {
            if row.value.is_none() {
                return Text::of(Style::of(Role::Dim).strong(), text!(" {}", row.label));
            }
            let (mark, label) = if at == self.at {
                (CURSOR, row.label.restyled(Style::strong))
            } else {
                (" ", row.label.clone())
            };
            let line = Text::of(Style::of(Role::Name).strong(), text!(" {} ", mark)) + label;
            if row.note.is_empty() {
                return line;
            }
            let gap = Text::repeated(
                " ",
                widest.min(MAX_LABEL_WIDTH).saturating_sub(row.label.width()) + 2,
            );
            line + gap + Text::of(Role::Dim, &row.note)
        };
        self.rows.iter().enumerate().skip(skip).take(room).map(line).collect()
    }
}

impl<T: PartialEq> PickList<T> {
    pub(crate) fn keep_choice(&mut self, before: &PickList<T>) {
        if self.rows == before.rows {
            self.at = before.at;
        }
    }
}

/// Returns the indices of matches, the best first. If nothing is typed, returns all indices in
/// order.
pub(crate) fn fits<S: AsRef<str>>(typed: &str, candidates: &[S]) -> Vec<usize> {
    if typed.is_empty() {
        return (0..candidates.len()).collect();
    }
    let mut matcher = Matcher::new(typed, &Config::default());
    matcher.match_list(candidates).iter().map(|found| found.index as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_row_is_always_visible_and_never_a_heading() {
        let row = |n: usize| PickRow::new(text!("item {}", n), "", n);
        let rows = std::iter::once(PickRow::heading("Items")).chain((0..20).map(row));
        let mut list = PickList::of(rows).unwrap();
        for n in 0..21 {
            let lines: Vec<String> = list.lines(5).iter().map(Text::to_string).collect();
            let chosen = format!(" {CURSOR} item {}", n % 20);
            assert!(lines.len() == 5 && lines.contains(&chosen), "{lines:?}");
            list.go(1);
        }
        list.go(-1);
        list.go(-1);
        assert_eq!(list.into_chosen(), Some(19));
        assert_eq!(PickList::<usize>::of([PickRow::heading("Items")]), None);
    }
}
