//! Draws lines on the screen: the only place that knows colours and marks.

use acpd_view::text::Text;
use acpd_view::{Line, Role, Style, text};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style as Look};
use unicode_width::UnicodeWidthStr as _;

/// Abilities of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    /// Set for colours; words and marks say the same without them.
    pub is_coloured: bool,
    pub is_unicode: bool,
}

impl Theme {
    pub(crate) fn look(self, style: Style) -> Look {
        let mut look = Look::new();
        let colour = match style.role {
            Role::Plain | Role::Dim | Role::Heading | Role::User => None,
            Role::Code | Role::Name | Role::Link => Some(Color::Cyan),
            Role::Mark => Some(Color::Blue),
            Role::Good | Role::Added => Some(Color::Green),
            Role::Warning => Some(Color::Yellow),
            Role::Bad | Role::Removed => Some(Color::Red),
        };
        if let Some(colour) = colour.filter(|_| self.is_coloured) {
            look = look.fg(colour);
        }
        let bold = style.strong || matches!(style.role, Role::Heading | Role::User);
        let modifiers = [
            (bold, Modifier::BOLD),
            (style.role == Role::Dim, Modifier::DIM),
            (style.emphasis, Modifier::ITALIC),
            (style.struck, Modifier::CROSSED_OUT),
            (style.role == Role::Link, Modifier::UNDERLINED),
        ];
        for (_, modifier) in modifiers.into_iter().filter(|(is_on, _)| *is_on) {
            look = look.add_modifier(modifier);
        }
        look
    }
}

/// Separator of facts on one line.
pub(crate) const DOT: &str = " · ";
/// Mark of the selected row.
pub(crate) const CURSOR: &str = "▸";

pub(crate) fn rule(width: usize) -> Text {
    Text::repeated("─", width)
}

/// Returns the ASCII form of a mark. Other characters stay as they are.
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

    /// Returns the cells, for widgets of libraries.
    pub(crate) fn buffer(&mut self) -> &mut Buffer {
        self.buffer
    }

    /// Draws a line from this cell on, cut to the room and to the screen.
    pub(crate) fn line(&mut self, x: u16, y: u16, room: u16, line: &Line) {
        let area = self.buffer.area;
        if y >= area.bottom() || x >= area.right() {
            return;
        }
        let end = x.saturating_add(room).min(area.right());
        let (mut at, is_long) = (x, line.width() > usize::from(end - x));
        for span in &line.spans {
            let look = self.theme.look(span.style);
            let left = usize::from(end - at);
            // Tabs have no cells.
            let mut shown = span.text.as_str().replace('\t', "    ");
            if !self.theme.is_unicode {
                shown = shown.chars().map(ascii).collect();
            }
            (at, _) = self.buffer.set_stringn(at, y, shown, left, look);
        }
        if is_long && end > x {
            let more = if self.theme.is_unicode { "…" } else { "~" };
            self.buffer.set_stringn(end - 1, y, more, 1, Look::new());
        }
    }

    /// Highlights words of a line that was drawn here. They are in lower case.
    pub(crate) fn mark(&mut self, x: u16, y: u16, room: u16, line: &Line, words: &str) {
        if words.is_empty() {
            return;
        }
        let text = line.plain();
        let small = text.as_str().to_lowercase();
        // In scripts whose lower case has another length, nothing is highlighted.
        if small.len() != text.as_str().len() {
            return;
        }
        let columns = |part: &str| u16::try_from(part.width()).unwrap_or(u16::MAX);
        for (at, found) in small.match_indices(words) {
            let (before, width) = (columns(&small[..at]), columns(found));
            if before < room {
                let area = Rect { x: x + before, y, width: width.min(room - before), height: 1 };
                let look = Look::new().add_modifier(Modifier::REVERSED);
                self.buffer.set_style(area.intersection(self.buffer.area), look);
            }
        }
    }

    /// Draws a line at the right edge of the room if it fits. Returns its width.
    pub(crate) fn right(&mut self, x: u16, y: u16, room: u16, line: &Line) -> u16 {
        let width = u16::try_from(line.width()).unwrap_or(u16::MAX);
        if width > room {
            return 0;
        }
        self.line(x + room - width, y, width, line);
        width
    }

    pub(crate) fn select(&mut self, area: Rect) {
        let look = Look::new().add_modifier(Modifier::BOLD);
        self.buffer.set_style(area.intersection(self.buffer.area), look);
    }

    /// Draws the keys of the footer that fit.
    pub(crate) fn footer(&mut self, y: u16, keys: &[(String, &'static str)]) {
        let room = usize::from(self.buffer.area.width).saturating_sub(1);
        let mut line = Line::of(Role::Plain, " ");
        for (key, word) in keys {
            // Names of keys are from the table of keys.
            let key = acpd_api::Untrusted::from(key.as_str());
            let entry = Line::of(Style::of(Role::Plain).strong(), &key)
                .and(Role::Dim, text!(" {}  ", *word));
            if line.width() + entry.width() > room + 2 {
                break;
            }
            entry.spans.into_iter().for_each(|span| line.push(span));
        }
        self.line(0, y, self.buffer.area.width, &line);
    }
}
