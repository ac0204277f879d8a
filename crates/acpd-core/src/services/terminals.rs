//! Terminals of agents, run by an editor or by acpd.

use std::collections::{BTreeMap, BTreeSet};

use acp_wire::bound::LONGEST_ID;
use acp_wire::{ErrorObject, code, set_member, str_at};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::cx::Cx;
use crate::ids::{InteractionId, SessionKey, Time};
use crate::input::{Effect, TerminalEnd, TerminalTail};
use crate::services::AgentServices;
use crate::views::TerminalName;

/// Remembered terminals of one session.
const MOST: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TerminalCall {
    Output,
    Wait,
    Kill,
    Release,
}

/// A terminal of an editor or of acpd. Its name says which.
#[derive(Debug, Default)]
pub(super) struct Terminal {
    pub(super) session: SessionKey,
    /// acpd's: the agent has released it.
    released: bool,
    /// acpd's: the command has ended.
    pub(super) end: Option<TerminalEnd>,
    pub(super) tail: TerminalTail,
    pub(super) looked: Time,
    pub(super) looks: u32,
    pub(super) steps: u32,
    /// A repeated call lacks the output that was shown before.
    pub(super) again: bool,
}

#[derive(Debug)]
pub(super) struct Mirror {
    /// Content from the agent.
    pub(super) content: Bytes,
    pub(super) running: BTreeSet<InteractionId>,
    /// The row of its final update.
    pub(super) last_word: InteractionId,
}

/// Tool calls that show running commands, by session and id.
pub(super) type Mirrors = BTreeMap<(SessionKey, String), Mirror>;

impl AgentServices {
    pub(super) fn has_terminals(&self, key: SessionKey) -> bool {
        self.terminals.values().any(|terminal| terminal.session == key && !terminal.released)
    }

    /// Returns `None` if the runner of the terminal will answer.
    ///
    /// # Errors
    /// When the session has no such terminal, which may have ended with the last daemon.
    pub(super) fn call_terminal(
        &mut self,
        cx: &mut Cx,
        key: SessionKey,
        call: TerminalCall,
        number: InteractionId,
    ) -> Result<Option<Value>, ErrorObject> {
        let name = TerminalName::Own(number).to_string();
        let Some(own) = self.own_mut(number).filter(|own| own.session == key) else {
            if number.0 >> 32 == cx.ids.boot() {
                return Err(unknown(&name));
            }
            let text = format!("the terminal `{name}` ended when acpd was restarted");
            return Err(ErrorObject::new(code::NOT_FOUND, text));
        };
        if own.released {
            return Err(unknown(&name));
        }
        Ok(match (call, &own.end) {
            (TerminalCall::Output, _) | (TerminalCall::Wait, None) => None,
            (TerminalCall::Wait, Some(end)) => Some(exit_status(end)),
            (TerminalCall::Kill, _) => {
                cx.send(Effect::KillTerminal { terminal: number });
                Some(json!({}))
            }
            (TerminalCall::Release, _) => {
                own.released = true;
                cx.send(Effect::ReleaseTerminal { terminal: number });
                Some(json!({}))
            }
        })
    }

    /// Drops unused terminals. `is_there`: the editor is attached to the session.
    ///
    /// # Errors
    /// When all are needed.
    pub(super) fn make_room_for_terminal(
        &mut self,
        key: SessionKey,
        is_there: impl Fn(u64) -> bool,
    ) -> Result<(), ErrorObject> {
        let of_session = self.terminals.iter().filter(|(_, terminal)| terminal.session == key);
        if of_session.clone().count() < MOST {
            return Ok(());
        }
        let is_over = |(name, terminal): &(&String, &Terminal)| match TerminalName::parse(name) {
            // A running command is shown until its end.
            Some(TerminalName::Own(_)) => terminal.released && terminal.end.is_some(),
            Some(TerminalName::Editor { editor, .. }) => !is_there(editor),
            None => true,
        };
        match of_session.clone().find(is_over).map(|(name, _)| name.clone()) {
            Some(name) => {
                self.terminals.remove(&name);
                Ok(())
            }
            None if of_session.filter(|(_, terminal)| !terminal.released).count() < MOST => Ok(()),
            None => {
                let text = format!(
                    "this session has {MOST} terminals, which is the limit; release those that are not needed any more"
                );
                Err(ErrorObject::new(code::INTERNAL, text))
            }
        }
    }

    /// Returns the answer to the agent's request.
    pub(super) fn terminal_made(
        &mut self,
        key: SessionKey,
        number: InteractionId,
        now: Time,
    ) -> Bytes {
        let name = TerminalName::Own(number).to_string();
        let result = json!({ "terminalId": name }).to_string();
        let terminal = Terminal { session: key, looked: now, ..Terminal::default() };
        self.terminals.insert(name, terminal);
        result.into()
    }

    /// Returns the answer with the agent's id of the terminal.
    pub(super) fn terminal_made_by_editor(
        &mut self,
        key: SessionKey,
        editor: u64,
        line: &Bytes,
    ) -> Bytes {
        let id = str_at(line, &["result", "terminalId"]).filter(|id| id.len() <= LONGEST_ID);
        let Some(id) = id else { return line.clone() };
        let name = TerminalName::Editor { editor, id: &id }.to_string();
        let line = set_member(line, &["result", "terminalId"], json!(name).to_string().as_bytes());
        self.terminals.insert(name, Terminal { session: key, ..Terminal::default() });
        line
    }

    /// Drops the terminals of a session. Returns those of editors, which must release them.
    pub(super) fn drop_terminals(&mut self, cx: &mut Cx, key: SessionKey) -> Vec<(u64, String)> {
        let mut of_editors = Vec::new();
        for (name, terminal) in self.terminals.extract_if(.., |_, terminal| terminal.session == key)
        {
            match TerminalName::parse(&name) {
                Some(TerminalName::Own(number)) if !terminal.released => {
                    cx.send(Effect::ReleaseTerminal { terminal: number });
                }
                Some(TerminalName::Editor { editor, id }) => {
                    of_editors.push((editor, id.to_owned()));
                }
                _ => {}
            }
        }
        of_editors
    }

    pub(super) fn own(&self, number: InteractionId) -> Option<&Terminal> {
        self.terminals.get(&TerminalName::Own(number).to_string())
    }

    pub(super) fn own_mut(&mut self, number: InteractionId) -> Option<&mut Terminal> {
        self.terminals.get_mut(&TerminalName::Own(number).to_string())
    }
}

pub(crate) fn own_terminal(line: &[u8]) -> Option<InteractionId> {
    match TerminalName::parse(&str_at(line, &["params", "terminalId"])?)? {
        TerminalName::Own(number) => Some(number),
        TerminalName::Editor { .. } => None,
    }
}

pub(super) fn exit_status(end: &TerminalEnd) -> Value {
    json!({ "exitCode": end.code, "signal": end.signal })
}

pub(crate) fn unknown(name: &str) -> ErrorObject {
    let text = format!("the terminal `{name}` does not exist or was released");
    ErrorObject::new(code::NOT_FOUND, text)
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
