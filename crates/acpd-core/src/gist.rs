//! Short forms of agents' texts for lists: the beginning, or the last line.

use acpd_api::Doing;

/// The beginning of a text, on one line without control characters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gist {
    text: String,
    chars: usize,
    is_full: bool,
}

impl Gist {
    pub(crate) fn of(text: &str) -> Gist {
        let mut gist = Gist::default();
        gist.add(text);
        gist
    }

    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    pub(crate) fn add(&mut self, more: &str) {
        for c in more.chars() {
            let c = if c.is_whitespace() { ' ' } else { c };
            let is_nothing = c == ' ' && (self.chars == 0 || self.text.ends_with(' '));
            if self.is_full {
                return;
            }
            if c.is_control() || is_nothing {
                continue;
            }
            if self.chars < Doing::TEXT {
                self.text.push(c);
                self.chars += 1;
            } else {
                self.text.pop();
                self.text.push('…');
                self.is_full = true;
            }
        }
    }

    /// Returns the last line of an unfinished text, or its last words that fit.
    pub(crate) fn last_line(text: &str) -> Gist {
        let line = text.trim_end().rsplit('\n').next().unwrap_or_default();
        let mut words = Vec::new();
        let mut room = Doing::TEXT + 1;
        for word in line.split_whitespace().rev() {
            let takes = word.chars().count() + 1;
            if takes > room && !words.is_empty() {
                break;
            }
            room = room.saturating_sub(takes);
            words.push(word);
        }
        words.reverse();
        Gist::of(&words.join(" "))
    }

    pub(crate) fn text(&self) -> &str {
        self.text.trim_end()
    }
}
