//! Styles: the meaning of a text's parts, and their look.

use anstyle::{AnsiColor, Effects, Style as Look};
use serde::Serialize;
use strum::FromRepr;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    pub role: Role,
    pub strong: bool,
    pub emphasis: bool,
    pub struck: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, FromRepr)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    #[default]
    Plain,
    Dim,
    Heading,
    Code,
    /// An address, or text that links to one.
    Link,
    /// A bullet, a list number, the bar of a quote, the border of a table.
    Mark,
    User,
    Name,
    Good,
    Warning,
    Bad,
    Added,
    Removed,
}

/// Added to a style's number to get its character during formatting.
const CODES: u32 = 0x100;

pub const BOLD: Style = Style::of(Role::Plain).strong();

impl Style {
    pub const fn of(role: Role) -> Style {
        Style { role, strong: false, emphasis: false, struck: false }
    }

    #[must_use]
    pub const fn strong(self) -> Style {
        Style { strong: true, ..self }
    }

    /// The background stays that of the terminal.
    pub fn look(self) -> Look {
        let look = match self.role {
            Role::Plain => Look::new(),
            Role::Dim | Role::Mark => Look::new().dimmed(),
            Role::Code | Role::Name => AnsiColor::Cyan.on_default(),
            Role::Link => Look::new().underline(),
            Role::Heading | Role::User => Look::new().bold(),
            Role::Good | Role::Added => AnsiColor::Green.on_default(),
            Role::Warning => AnsiColor::Yellow.on_default(),
            Role::Bad | Role::Removed => AnsiColor::Red.on_default(),
        };
        let effects = [
            (self.strong, Effects::BOLD),
            (self.emphasis, Effects::ITALIC),
            (self.struck, Effects::STRIKETHROUGH),
        ];
        effects.iter().filter(|(is_on, _)| *is_on).fold(look, |look, (_, effect)| look | *effect)
    }

    /// Returns the character that stands for the style during formatting; none for plain text.
    pub(super) fn code(self) -> Option<char> {
        let flags = [self.strong, self.emphasis, self.struck];
        let flags = flags.iter().fold(0, |flags, flag| flags << 1 | u32::from(*flag));
        let code = self.role as u32 * 8 + flags;
        char::from_u32(CODES + code).filter(|_| code > 0)
    }

    pub(super) fn of_code(code: char) -> Option<Style> {
        let code = (code as u32).checked_sub(CODES)?;
        let (role, flags) = (code as usize / 8, code % 8);
        let [strong, emphasis, struck] = [4, 2, 1].map(|flag| flags & flag != 0);
        Some(Style { role: Role::from_repr(role)?, strong, emphasis, struck })
    }
}

impl From<Role> for Style {
    fn from(role: Role) -> Style {
        Style::of(role)
    }
}
