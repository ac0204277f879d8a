//! Ids of terminals for agents, which name the owner.

use std::fmt;

use crate::ids::InteractionId;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TerminalName<'a> {
    /// A terminal of acpd, named after the request that created it.
    Own(InteractionId),
    Editor {
        editor: u64,
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
