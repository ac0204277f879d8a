//! Text that may be printed ([`mod@acpd_view::text`]). [`Ui`](crate::ui::Ui) prints nothing else to
//! a user.

use acpd_api::{Untrusted, escape};

pub(crate) use acpd_view::text;
pub(crate) use acpd_view::text::{BOLD, Cut, Role, Style, Table, Text, key_values};

/// Returns a text as a shell word that a user may copy.
pub(crate) fn shell_word(word: &Untrusted) -> Text {
    Untrusted::from(escape::shell_word(word.raw())).into()
}
