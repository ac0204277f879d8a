//! Lines on a screen: text with what it means.

use unicode_width::UnicodeWidthChar as _;

use crate::text::Text;

/// A line on a screen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// From left to right.
    pub spans: Vec<Span>,
}

/// A part of a line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Span {
    /// What is shown, escaped.
    pub text: Text,
    pub style: Style,
}

/// What a text is. Emphasis adds to the role.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    pub role: Role,
    pub strong: bool,
    pub emphasis: bool,
    /// It is struck through.
    pub struck: bool,
}

/// What a text means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Role {
    #[default]
    Plain,
    Dim,
    Heading,
    Code,
    /// An address, or the text that leads to one.
    Link,
    /// A bullet, a number of a list, the bar of a quote, the border of a table.
    Mark,
    /// What the user said.
    User,
    /// The name of a file, a tool or an agent.
    Name,
    Good,
    /// Something to look at.
    Warning,
    Bad,
    /// A line that was added.
    Added,
    /// A line that was removed.
    Removed,
}

impl Style {
    pub const fn of(role: Role) -> Style {
        Style { role, strong: false, emphasis: false, struck: false }
    }

    /// The same, but it matters more.
    #[must_use]
    pub const fn strong(self) -> Style {
        Style { strong: true, ..self }
    }
}

impl From<Role> for Style {
    fn from(role: Role) -> Style {
        Style::of(role)
    }
}

impl Span {
    /// A text that is something.
    pub fn new(style: impl Into<Style>, text: impl Into<Text>) -> Span {
        Span { text: text.into().without_tabs(), style: style.into() }
    }
}

impl Line {
    /// A line of one span.
    pub fn of(style: impl Into<Style>, text: impl Into<Text>) -> Line {
        Line::default().and(style, text)
    }

    /// The line with something at its end.
    #[must_use]
    pub fn and(mut self, style: impl Into<Style>, text: impl Into<Text>) -> Line {
        self.push(Span::new(style, text));
        self
    }

    /// Adds something at its end.
    pub fn push(&mut self, span: Span) {
        match self.spans.last_mut() {
            _ if span.text.is_empty() => {}
            Some(last) if last.style == span.style => last.text += span.text,
            _ => self.spans.push(span),
        }
    }

    pub fn width(&self) -> usize {
        self.spans.iter().map(|span| span.text.width()).sum()
    }

    /// Whether it has no text.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Without white space at its end.
    #[must_use]
    pub fn trim_end(mut self) -> Line {
        while let Some(last) = self.spans.last_mut() {
            last.text = last.text.trim_end();
            if !last.text.is_empty() {
                break;
            }
            self.spans.pop();
        }
        self
    }

    /// Adds another line at its end.
    pub fn append(&mut self, more: Line) {
        for span in more.spans {
            self.push(span);
        }
    }

    /// The line on rows of at most this many columns, broken between words where that can be. White space at a break
    /// is left out.
    pub fn wrap(&self, room: usize) -> Vec<Line> {
        let chars = self.chars();
        let width = |at: usize| chars[at].0.width().unwrap_or(0);
        let is_space = |at: usize| chars[at].0 == ' ';
        let (mut rows, mut start, mut used) = (Vec::new(), 0, 0);
        // The space behind the last word that fits.
        let mut space = None;
        let mut at = 0;
        while at < chars.len() {
            if used + width(at) <= room || at == start {
                used += width(at);
                if is_space(at) && (start..at).any(|before| !is_space(before)) {
                    space = Some(at);
                }
                at += 1;
                continue;
            }
            let end = if is_space(at) { at } else { space.unwrap_or(at) };
            rows.push(line_of(&chars[start..end]));
            start = end;
            while start < chars.len() && is_space(start) && (is_space(end)) {
                start += 1;
            }
            (at, used, space) = (start, 0, None);
        }
        rows.push(line_of(&chars[start..]));
        rows
    }

    /// The line on rows of exactly this many columns, as for code: nothing is left out.
    pub fn split(&self, room: usize) -> Vec<Line> {
        let chars = self.chars();
        let (mut rows, mut start, mut used) = (Vec::new(), 0, 0);
        for (at, (char, _)) in chars.iter().enumerate() {
            let width = char.width().unwrap_or(0);
            if used + width > room && at > start {
                rows.push(line_of(&chars[start..at]));
                (start, used) = (at, 0);
            }
            used += width;
        }
        rows.push(line_of(&chars[start..]));
        rows
    }

    /// Cut to at most this many columns.
    #[must_use]
    pub fn cut(&self, room: usize) -> Line {
        if self.width() <= room {
            return self.clone();
        }
        let mut rest = room.saturating_sub(1);
        let chars = self.chars();
        let fits = chars.iter().take_while(|(char, _)| {
            let width = char.width().unwrap_or(0);
            let is_in = width <= rest;
            rest = rest.saturating_sub(width);
            is_in
        });
        let fits = fits.count();
        line_of(&chars[..fits]).and(Role::Dim, if room == 0 { "" } else { "…" })
    }

    fn chars(&self) -> Vec<(char, Style)> {
        let chars = self
            .spans
            .iter()
            .flat_map(|span| span.text.as_str().chars().map(|char| (char, span.style)));
        chars.collect()
    }

    /// Its text without styles.
    pub fn plain(&self) -> Text {
        self.spans.iter().map(|span| span.text.clone()).collect()
    }
}

fn line_of(chars: &[(char, Style)]) -> Line {
    let mut line = Line::default();
    for part in chars.chunk_by(|(_, one), (_, other)| one == other) {
        let text = Text::of_chars(part.iter().map(|(char, _)| *char));
        line.push(Span { text, style: part[0].1 });
    }
    line
}
