//! Colours.

use acpd_view::{Line, Role};
use anstyle::{AnsiColor, Effects, Style};

use crate::text::{Text, styled};

pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
pub(crate) const RED: Style = AnsiColor::Red.on_default();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();
pub(crate) const CYAN: Style = AnsiColor::Cyan.on_default();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const BOLD: Style = Style::new().bold();

/// Whether text is coloured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// Colours text if `on`.
    pub(crate) fn new(on: bool) -> Paint {
        Paint { on }
    }

    #[cfg(feature = "tui")]
    pub(crate) fn is_on(self) -> bool {
        self.on
    }

    pub(crate) fn plain() -> Paint {
        Paint::new(false)
    }

    #[cfg(test)]
    pub(crate) fn colour() -> Paint {
        Paint::new(true)
    }

    /// The text in this style.
    pub(crate) fn apply(self, style: Style, text: impl Into<Text>) -> Text {
        let text = text.into();
        if self.on && !style.is_plain() && !text.is_empty() { styled(style, &text) } else { text }
    }

    /// A line in the colours of what its parts mean.
    pub(crate) fn line(self, line: &Line) -> Text {
        line.spans.iter().map(|span| self.apply(style_of(span.style), &span.text)).collect()
    }

    /// Lines, each with its end.
    pub(crate) fn lines(self, lines: &[Line]) -> Text {
        lines.iter().map(|line| self.line(line) + "\n").collect()
    }
}

/// The colours of a meaning.
fn style_of(meaning: acpd_view::Style) -> Style {
    let style = match meaning.role {
        Role::Plain | Role::Heading => Style::new(),
        Role::Dim | Role::Mark => DIM,
        Role::Code | Role::Name => CYAN,
        Role::Link => Style::new().underline(),
        Role::User => BOLD,
        Role::Good | Role::Added => GREEN,
        Role::Warning => YELLOW,
        Role::Bad | Role::Removed => RED,
    };
    let effects = [
        (meaning.strong, Effects::BOLD),
        (meaning.emphasis, Effects::ITALIC),
        (meaning.struck, Effects::STRIKETHROUGH),
    ];
    effects.iter().filter(|(is_on, _)| *is_on).fold(style, |style, (_, effect)| style | *effect)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_coloured_when_colour_is_off() {
        assert_eq!(Paint::plain().apply(RED, "x").as_str(), "x");
        assert_eq!(Paint::colour().apply(RED, "x").as_str(), "\u{1b}[31mx\u{1b}[0m");
        assert_eq!(Paint::colour().apply(RED, "").as_str(), "");
    }
}
