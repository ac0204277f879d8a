//! List of completions.

use acpd_view::text::Text;
use acpd_view::{Role, Style, text};
use frizbee::{Config, Matcher};

use crate::canvas::CURSOR;

/// Maximum of listed suggestions.
const MOST: usize = 200;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Suggestions {
    items: Vec<Suggestion>,
    at: usize,
}

/// A possible completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Suggestion {
    /// The inserted text.
    pub(crate) value: String,
    pub(crate) label: Text,
    pub(crate) note: Text,
}

impl Suggestions {
    /// Returns the list with the first one chosen, unless it is empty.
    pub(crate) fn of(items: impl IntoIterator<Item = Suggestion>) -> Option<Suggestions> {
        let items: Vec<Suggestion> = items.into_iter().take(MOST).collect();
        (!items.is_empty()).then_some(Suggestions { items, at: 0 })
    }

    pub(crate) fn chosen(&self) -> &Suggestion {
        &self.items[self.at]
    }

    /// Moves the choice; the first one follows the last one.
    pub(crate) fn go(&mut self, by: isize) {
        let count = self.items.len() as isize;
        self.at = (self.at as isize + by).rem_euclid(count) as usize;
    }

    /// Keeps the choice if the list is the same as before.
    pub(crate) fn keep_choice(&mut self, before: &Suggestions) {
        if self.items == before.items {
            self.at = before.at;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns the rows that fit, with the chosen one.
    pub(crate) fn lines(&self, room: usize) -> Vec<Text> {
        let widest = self.items.iter().map(|item| item.label.width()).max().unwrap_or(0);
        let skip = (self.at + 1).saturating_sub(room);
        let line = |(at, item): (usize, &Suggestion)| {
            let is_chosen = at == self.at;
            let mark = if is_chosen { CURSOR } else { " " };
            let name = Style::of(Role::Name);
            let line = Text::of(name.strong(), text!(" {} ", mark));
            let line = line.and(if is_chosen { name.strong() } else { name }, &item.label);
            if item.note.is_empty() {
                return line;
            }
            let gap = Text::repeated(" ", widest.min(32).saturating_sub(item.label.width()) + 2);
            line.and(Role::Dim, text!("{}{}", gap, item.note))
        };
        self.items.iter().enumerate().skip(skip).take(room).map(line).collect()
    }
}

/// Returns the indices of the candidates that match, the best first; all of them in order if
/// nothing is typed.
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

    fn suggestions(count: usize) -> Suggestions {
        let item = |n: usize| Suggestion {
            value: n.to_string(),
            label: text!("item {}", n),
            note: Text::default(),
        };
        Suggestions::of((0..count).map(item)).unwrap()
    }

    #[test]
    fn what_is_chosen_is_always_among_the_rows() {
        let mut list = suggestions(20);
        for _ in 0..21 {
            let rows: Vec<String> = list.lines(5).iter().map(Text::to_string).collect();
            let chosen = format!(" {CURSOR} item {}", list.chosen().value);
            assert!(rows.len() == 5 && rows.contains(&chosen), "{rows:?}");
            list.go(1);
        }
        list.go(-2);
        assert_eq!(list.chosen().value, "19");
        assert_eq!(Suggestions::of([]), None);
    }

    #[test]
    fn the_best_fit_is_the_first() {
        let files = ["docs/cookies.md", "src/auth/cookie.rs", "src/main.rs", "Cargo.toml"];
        assert_eq!(fits("cookie.rs", &files), [1]);
        assert_eq!(fits("srcmain", &files), [2]);
        assert_eq!(fits("", &files), [0, 1, 2, 3]);
        assert!(fits("zzz", &files).is_empty());
    }
}
