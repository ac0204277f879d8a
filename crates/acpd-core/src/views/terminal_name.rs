//! The ids of terminals as agents know them: they say whose a terminal is.

use std::fmt;

use crate::ids::InteractionId;

/// The id of a terminal as the agent knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TerminalName<'a> {
    /// One of acpd's own, named after the request that made it.
    Own(InteractionId),
    /// One of an editor.
    Editor {
        editor: u64,
        /// As the editor calls it.
        id: &'a str,
    },
}

impl<'a> TerminalName<'a> {
    pub(crate) fn parse(text: &'a str) -> Option<TerminalName<'a>> {
        if let Some(number) = text.strip_prefix("acpd-") {
            return InteractionId::parse(number).map(TerminalName::Own);
        }
        let mut parts = text.strip_prefix("editor-")?.splitn(3, '-');
        let (boot, number, id) = (parts.next()?, parts.next()?, parts.next()?);
        let (boot, number): (u32, u32) = (boot.parse().ok()?, number.parse().ok()?);
        let editor = (u64::from(boot) << 32) | u64::from(number);
        // A client without terminals has this number.
        (editor != 0).then_some(TerminalName::Editor { editor, id })
    }
}

impl fmt::Display for TerminalName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TerminalName::Own(number) => write!(f, "acpd-{}", number.text()),
            TerminalName::Editor { editor, id } => {
                write!(f, "editor-{}-{id}", InteractionId(*editor).text())
            }
        }
    }
}
