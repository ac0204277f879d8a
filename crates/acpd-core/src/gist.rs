//! What an agent says, short enough for lists: the beginning of it, or its last line.

use acpd_api::Doing;

/// Bytes at the end of a piece in which its last line is looked for.
const TAIL: usize = 4 * Doing::TEXT;

/// A part of a text, on one line without control characters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gist {
    text: String,
    chars: usize,
    /// There is more than fits.
    is_full: bool,
    /// The line is over; it stays until something follows.
    is_over: bool,
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

    /// The text goes on; its beginning is shown.
    pub(crate) fn add(&mut self, more: &str) {
        for c in more.chars() {
            if self.is_full {
                return;
            }
            self.push(c);
        }
    }

    /// The text goes on; its last line is shown, and of a long line the words since it did not fit any more.
    pub(crate) fn follow(&mut self, more: &str) {
        let mut rest = more;
        // What comes before is not shown in any case; each piece of an answer comes by here.
        if let Some(mut from) = more.len().checked_sub(TAIL) {
            while !more.is_char_boundary(from) {
                from += 1;
            }
            rest = &more[from..];
            self.is_over = true;
        }
        for c in rest.chars() {
            self.is_over |= c == '\n' || (self.is_full && c.is_whitespace());
            if self.is_over && !c.is_whitespace() && !c.is_control() {
                self.text.clear();
                (self.chars, self.is_full, self.is_over) = (0, false, false);
            }
            if !self.is_over && !self.is_full {
                self.push(c);
            }
        }
    }

    fn push(&mut self, c: char) {
        let c = if c.is_whitespace() { ' ' } else { c };
        let is_nothing = c == ' ' && (self.is_empty() || self.text.ends_with(' '));
        if c.is_control() || is_nothing {
            return;
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

    pub(crate) fn text(&self) -> &str {
        self.text.trim_end()
    }
}
