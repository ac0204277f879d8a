//! Markdown that still grows, as lines of a width.

use acpd_api::Untrusted;

use crate::line::Line;

/// A text in Markdown and its lines.
#[derive(Debug, Clone)]
pub struct Markdown {
    text: String,
    width: usize,
}

impl Markdown {
    /// No text yet, for a screen of so many columns.
    pub fn new(width: usize) -> Markdown {
        Markdown { text: String::new(), width }
    }

    /// Adds to its end.
    pub fn push(&mut self, more: &Untrusted) {
        self.text.push_str(more.raw());
    }

    /// All lines.
    pub fn lines(&mut self) -> Vec<Line> {
        let _ = self.width;
        Vec::new()
    }
}
