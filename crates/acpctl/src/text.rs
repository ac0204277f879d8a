//! Text that may be printed ([`mod@acpd_view::text`]). [`Ui`](crate::ui::Ui) prints nothing else to a person.

use std::fmt;

use acpd_api::{Untrusted, escape};
use anstyle::Style;

pub(crate) use acpd_view::text;
pub(crate) use acpd_view::text::{Show, Text};

/// The text in a style.
pub(crate) fn styled(style: Style, text: &Text) -> Text {
    text!("{}{}{}", Begin(style), text, End(style))
}

/// The codes that begin a style, and those that end it.
struct Begin(Style);
struct End(Style);

impl Show for Begin {
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl Show for End {
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.0)
    }
}
/// One word of a command line that a person may copy to a shell, whatever somebody else has put into it.
pub(crate) fn shell_word(word: &Untrusted) -> Text {
    Untrusted::from(escape::shell_word(word.raw())).into()
}
