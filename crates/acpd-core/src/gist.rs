//! The beginning of what an agent says, for lists.

use acpd_api::Doing;

/// The beginning of a text, on one line without control characters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gist {
    text: String,
    chars: usize,
    /// There is more than fits.
    is_full: bool,
}

impl Gist {
    pub(crate) fn of(text: &str) -> Gist {
        let mut gist = Gist::default();
        gist.add(text);
        gist
    }

    /// Nothing was said yet that can be shown.
    fn is_empty(&self) -> bool {
        self.chars == 0
    }

    /// What follows would not be shown.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// The text goes on.
    pub(crate) fn add(&mut self, more: &str) {
        for c in more.chars().map(|c| if c.is_whitespace() { ' ' } else { c }) {
            let is_nothing = c == ' ' && (self.is_empty() || self.text.ends_with(' '));
            if c.is_control() || is_nothing {
                continue;
            }
            if self.chars == Doing::TEXT {
                self.text.pop();
                self.text.push('…');
                self.is_full = true;
                return;
            }
            self.text.push(c);
            self.chars += 1;
        }
    }

    pub(crate) fn text(&self) -> &str {
        self.text.trim_end()
    }
}
