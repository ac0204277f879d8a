//! A terminal that an agent has: an editor's, or one that acpd runs.

use acp_wire::str_at;

use crate::client_methods::terminal_mirror::Growth;
use crate::ids::{InteractionId, SessionKey};
use crate::input::TerminalEnd;
use crate::views::terminal_name::TerminalName;

/// A terminal that an agent has.
#[derive(Debug)]
pub(crate) struct Terminal {
    pub(crate) session: SessionKey,
    pub(crate) of: Of,
}

#[derive(Debug)]
pub(crate) enum Of {
    Editor,
    Acpd(Own),
}

impl Terminal {
    pub(crate) fn is_released(&self) -> bool {
        matches!(&self.of, Of::Acpd(own) if own.released)
    }
}

/// One that acpd runs.
#[derive(Debug)]
pub(crate) struct Own {
    pub(crate) number: InteractionId,
    pub(crate) released: bool,
    pub(crate) end: Option<TerminalEnd>,
    pub(crate) growth: Growth,
}

/// The terminal of acpd that a call is about.
pub(crate) fn own_terminal(line: &[u8]) -> Option<InteractionId> {
    match TerminalName::parse(&str_at(line, &["params", "terminalId"])?)? {
        TerminalName::Own(number) => Some(number),
        TerminalName::Editor { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_it_was_written_and_others_are_no_names() {
        let editor = TerminalName::Editor { editor: (3 << 32) | 7, id: "term-1-ü" };
        for name in [TerminalName::Own(InteractionId((2 << 32) | 9)), editor] {
            assert_eq!(TerminalName::parse(&name.to_string()), Some(name));
        }
        for other in ["", "term_1", "acpd-", "acpd-1", "editor-1-2", "editor-x-2-t", "editor-0-0-t"]
        {
            assert_eq!(TerminalName::parse(other), None, "{other}");
        }
    }
}
