//! Text that may be printed ([`mod@acpd_view::text`]). [`Ui`](crate::ui::Ui) prints nothing else to a user.

use acpd_api::{Untrusted, escape};

pub(crate) use acpd_view::text;
pub(crate) use acpd_view::text::{BOLD, Cut, Role, Style, Table, Text, key_values};

/// Returns any text as a word of a command line that a user may copy to a shell.
pub(crate) fn shell_word(word: &Untrusted) -> Text {
    Untrusted::from(escape::shell_word(word.raw())).into()
}
