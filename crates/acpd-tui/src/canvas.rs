//! Draws lines on the screen. Only this module knows colours and marks.

use acpd_view::text;
use acpd_view::text::{BOLD, Role, Text};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style as CellStyle};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr as _;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Theme {
    /// Without colours, words and marks show the meaning.
    pub is_coloured: bool,
    pub is_unicode: bool,
}

pub(crate) const DOT: &str = " · ";
pub(crate) const CURSOR: &str = "▸";

/// Returns the ASCII form of a mark; other characters are unchanged.
fn ascii(char: char) -> char {
    match char {
        '▸' => '>',
        '▾' | '─' | '·' | '•' | '○' => '-',
        '│' | '▌' => '|',
        '┆' | '⋮' => ':',
        '═' => '=',
        '█' => '_',
        '↓' => 'v',
        '…' => '~',
        '✓' => 'x',
        '✎' | '⇄' => '+',
        '→' | '◇' => '>',
        '−' => '-',
        char => char,
    }
}

#[derive(Debug)]
pub(crate) struct Canvas<'a> {
    buffer: &'a mut Buffer,
    theme: Theme,
}

impl<'a> Canvas<'a> {
    pub(crate) fn new(buffer: &'a mut Buffer, theme: Theme) -> Canvas<'a> {
        Canvas { buffer, theme }
    }

    pub(crate) fn theme(&self) -> Theme {
        self.theme
    }

    pub(crate) fn buffer(&mut self) -> &mut Buffer {
        self.buffer
    }

    /// Cuts the line to the room and the screen.
    pub(crate) fn line(&mut self, x: u16, y: u16, room: u16, line: &Text) {
        let area = self.buffer.area;
        let end = x.saturating_add(room).min(area.right());
        if y >= area.bottom() || x >= end {
            return;
        }
        let spans = line.parts().map(|(words, style)| {
            let look = CellStyle::from(style.look());
            let look = if self.theme.is_coloured { look } else { CellStyle { fg: None, ..look } };
            // Tabs have no cells.
            let mut shown = words.replace('\t', "    ");
            if !self.theme.is_unicode {
                shown = shown.chars().map(ascii).collect();
            }
            Span::styled(shown, look)
        });
        let spans: Line<'_> = spans.collect();
        self.buffer.set_line(x, y, &spans, end - x);
        if line.width() > usize::from(end - x) {
            let more = if self.theme.is_unicode { "…" } else { "~" };
            self.buffer.set_stringn(end - 1, y, more, 1, CellStyle::new());
        }
    }

    /// Draws the lines that fit into an area.
    pub(crate) fn lines(&mut self, area: Rect, lines: impl IntoIterator<Item = Text>) {
        for (y, line) in (area.y..area.bottom()).zip(lines) {
            self.line(area.x, y, area.width, &line);
        }
    }

    /// Draws a rule across the screen.
    pub(crate) fn rule(&mut self, y: u16) {
        let width = self.buffer.area.width;
        let ruled = Text::repeated("─", usize::from(width.saturating_sub(2)));
        self.line(1, y, width, &Text::of(Role::Dim, ruled));
    }

    /// Highlights `words`, which are in lower case, in a line that was drawn here.
    pub(crate) fn mark(&mut self, x: u16, y: u16, room: u16, line: &Text, words: &str) {
        if words.is_empty() {
            return;
        }
        let small = line.as_str().to_lowercase();
        // If lower case changes the length, nothing is highlighted.
        if small.len() != line.as_str().len() {
            return;
        }
        let columns = |part: &str| u16::try_from(part.width()).unwrap_or(u16::MAX);
        for (at, found) in small.match_indices(words) {
            let (before, width) = (columns(&small[..at]), columns(found));
            if before < room {
                let area = Rect { x: x + before, y, width: width.min(room - before), height: 1 };
                let look = CellStyle::new().add_modifier(Modifier::REVERSED);
                self.buffer.set_style(area.intersection(self.buffer.area), look);
            }
        }
    }

    /// Draws a line at the right edge if it fits. Returns its width.
    pub(crate) fn right(&mut self, x: u16, y: u16, room: u16, line: &Text) -> u16 {
        let width = u16::try_from(line.width()).unwrap_or(u16::MAX);
        if width > room {
            return 0;
        }
        self.line(x + room - width, y, width, line);
        width
    }

    pub(crate) fn select(&mut self, area: Rect) {
        let look = CellStyle::new().add_modifier(Modifier::BOLD);
        self.buffer.set_style(area.intersection(self.buffer.area), look);
    }

    pub(crate) fn footer(&mut self, y: u16, keys: &[(String, &'static str)]) {
        let room = usize::from(self.buffer.area.width).saturating_sub(1);
        let mut line = Text::of(Role::Plain, " ");
        for (key, word) in keys {
            // Names of keys are from the table of keys.
            let key = acpd_api::Untrusted::from(key.as_str());
            let entry = Text::of(BOLD, &key).and(Role::Dim, text!(" {}  ", *word));
            if line.width() + entry.width() > room + 2 {
                break;
            }
            line += entry;
        }
        self.line(0, y, self.buffer.area.width, &line);
    }
}
