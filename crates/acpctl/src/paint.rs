//! Colours, and what of a foreign text may reach a terminal.

use std::borrow::Cow;

use anstyle::{AnsiColor, Style};

/// Success, additions.
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
/// Errors, removals.
pub(crate) const RED: Style = AnsiColor::Red.on_default();
/// Warnings.
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();
/// Paths, hints, tools.
pub(crate) const CYAN: Style = AnsiColor::Cyan.on_default();
/// What matters less.
pub(crate) const DIM: Style = Style::new().dimmed();
/// What matters more.
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

    /// Never colours.
    pub(crate) fn plain() -> Paint {
        Paint::new(false)
    }

    /// Always colours.
    #[cfg(test)]
    pub(crate) fn colour() -> Paint {
        Paint::new(true)
    }

    /// The text in this style.
    pub(crate) fn apply(self, style: Style, text: &str) -> String {
        if self.on && !style.is_plain() && !text.is_empty() {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }
}

/// Makes control characters visible, newline and tab excepted.
///
/// What an agent writes must not steer the terminal (move the cursor, set the clipboard).
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    let harmful = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(harmful) {
        return Cow::Borrowed(text);
    }
    let show = |c: char| match c {
        '\u{7f}' => '\u{2421}',
        c if !harmful(c) => c,
        c if (c as u32) < 0x20 => char::from_u32(0x2400 + c as u32).unwrap_or('\u{fffd}'),
        _ => '\u{fffd}',
    };
    Cow::Owned(text.chars().map(show).collect())
}

/// The text on one line, control characters made visible.
pub(crate) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    visible(&words.join(" ")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_of_an_agent_become_visible() {
        assert_eq!(visible("a\u{1b}]52;c;x\u{7}\n\tb\u{9b}1m\u{7f}"), "a␛]52;c;x␇\n\tb\u{fffd}1m␡");
        assert!(matches!(visible("plain ä\n"), Cow::Borrowed(_)));
        assert_eq!(one_line("  two\r\n lines\u{8}"), "two lines␈");
    }

    #[test]
    fn nothing_is_coloured_when_colour_is_off() {
        assert_eq!(Paint::plain().apply(RED, "x"), "x");
        assert_eq!(Paint::colour().apply(RED, "x"), "\u{1b}[31mx\u{1b}[0m");
        assert_eq!(Paint::colour().apply(RED, ""), "");
    }
}
