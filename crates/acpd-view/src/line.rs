//! Lines on a screen: text with what it means.

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
    /// What it is.
    pub style: Style,
}

/// What a text is. Emphasis adds to the role.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    /// What it means.
    pub role: Role,
    /// It matters more.
    pub strong: bool,
    /// It is emphasised.
    pub emphasis: bool,
    /// It is struck through.
    pub struck: bool,
}

/// What a text means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Role {
    /// Ordinary text.
    #[default]
    Plain,
    /// Matters less.
    Dim,
    /// A heading.
    Heading,
    /// Code.
    Code,
    /// An address, or the text that leads to one.
    Link,
    /// A bullet, a number of a list, the bar of a quote, the border of a table.
    Mark,
    /// What the user said.
    User,
    /// The name of a file, a tool or an agent.
    Name,
    /// It succeeded.
    Good,
    /// Something to look at.
    Warning,
    /// It failed.
    Bad,
    /// A line that was added.
    Added,
    /// A line that was removed.
    Removed,
}

impl Style {
    /// Just this role.
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
        Span { text: text.into(), style: style.into() }
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

    /// Its columns.
    pub fn width(&self) -> usize {
        self.spans.iter().map(|span| span.text.width()).sum()
    }

    /// Its text without styles.
    pub fn plain(&self) -> Text {
        self.spans.iter().map(|span| span.text.clone()).collect()
    }
}
