//! Terminals of agents: whose they are, and what of those of acpd is remembered.
//!
//! ```text
//!  create ─▶ the editor of the session ─▶ `editor-E-ID` ─▶ every later call goes to that editor
//!     └────▶ acpd ─▶ running ─▶ ended ─▶ waits are answered
//!                       └─────────┴─▶ released; its output stays known as long as there is room
//! ```
//!
//! What a conversation shows of those of acpd is in [`crate::hub::services::terminal_mirror`].
//!
//! The id that an agent gets names the owner ([`TerminalName`]), so what two editors call the same is
//! not the same for the agent, and what a client is shown needs no memory.
//!
//! Architecture invariant: nothing of a terminal survives the session's hold on its process. acpd's
//! own end then, editors are told to release theirs.

use std::collections::BTreeSet;

use acp_wire::{ErrorObject, Id, build, code, locate, set_member, str_at};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;

use crate::client_methods::terminal::{Called, own_terminal, unknown};
use crate::client_methods::{By, Call};
use crate::hub::Hub;
use crate::ids::{ClientId, HostId, InteractionId, SessionKey};
use crate::input::{Batch, Effect, NewTerminal, ServeError, TerminalEnd, ToClient};
use crate::views::terminal_name::TerminalName;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Create {
    command: String,
    args: Option<Vec<String>>,
    env: Option<Vec<Variable>>,
    cwd: Option<String>,
    output_byte_limit: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct Variable {
    name: String,
    value: String,
}

impl Hub {
    /// A call about a terminal: who is to do it, and the line for it; `None` if it is done.
    pub(crate) fn terminal_called(
        &mut self,
        key: SessionKey,
        call: Call,
        id: &Id,
        line: &Bytes,
        out: &mut Batch,
    ) -> Result<Option<(By, Bytes)>, ErrorObject> {
        let text = str_at(line, &["params", "terminalId"]);
        let Some(text) = text else {
            return Err(ErrorObject::new(code::INVALID_PARAMS, "`terminalId` is missing"));
        };
        match TerminalName::parse(&text) {
            Some(TerminalName::Editor { editor, id }) => {
                if call == Call::Release {
                    self.terminals.forget(&text);
                }
                let client = self.editor(key, editor).ok_or_else(|| {
                    let gone = format!("the editor that has the terminal `{text}` is gone");
                    ErrorObject::new(code::NOT_FOUND, gone)
                })?;
                let id = json!(id).to_string();
                let line = set_member(line, &["params", "terminalId"], id.as_bytes());
                Ok(Some((By::Client(client), line)))
            }
            Some(TerminalName::Own(number)) => {
                match self.terminals.call(key, call, number, self.ids.boot(), out)? {
                    Called::Later => Ok(Some((By::Acpd, line.clone()))),
                    Called::Now(result) => {
                        let slot = self.session(key).slot;
                        self.host_write(slot, build::response(id, &result), out);
                        Ok(None)
                    }
                }
            }
            None => Err(unknown(&text)),
        }
    }

    /// Returns whether the session may have one more terminal.
    pub(crate) fn room_for_terminal(&mut self, key: SessionKey) -> Result<(), ErrorObject> {
        let attached = self.session(key).attached.keys();
        let serving = attached.filter(|client| self.may_serve(**client, key));
        let here = serving.filter_map(|client| Some(self.clients.get(client)?.view.editor));
        let here: BTreeSet<u64> = here.collect();
        self.terminals.make_room(key, |editor| here.contains(&editor))
    }

    /// Returns the command to run for a request.
    pub(crate) fn terminal_to_make(
        &self,
        key: SessionKey,
        host: HostId,
        line: &[u8],
    ) -> Result<NewTerminal, String> {
        let params = locate(line, &["params"]).map_or(&b"null"[..], |range| &line[range]);
        let asked: Create = serde_json::from_slice(params).map_err(|error| error.to_string())?;
        let session = self.session(key);
        let cwd = asked.cwd.unwrap_or_else(|| session.row.cwd.clone());
        if !cwd.starts_with('/') {
            return Err(format!("`cwd` is not an absolute path: `{cwd}`"));
        }
        let env = asked.env.unwrap_or_default();
        Ok(NewTerminal {
            agent: session.row.agent.clone(),
            host,
            command: asked.command,
            args: asked.args.unwrap_or_default(),
            env: env.into_iter().map(|variable| (variable.name, variable.value)).collect(),
            cwd,
            output_byte_limit: asked.output_byte_limit,
        })
    }

    /// acpd runs a command for the agent: the answer to its request.
    pub(crate) fn own_terminal_made(
        &mut self,
        key: SessionKey,
        host: HostId,
        number: InteractionId,
        out: &mut Batch,
    ) -> Result<Bytes, ServeError> {
        let session = self.sessions.get(&key);
        if session.is_none_or(|session| session.row.host != Some(host)) {
            out.effects.push(Effect::ReleaseTerminal { terminal: number });
            let message = "the session was closed meanwhile".to_owned();
            return Err(ServeError { code: code::INTERNAL, message });
        }
        Ok(self.terminals.made(key, number, self.now))
    }

    /// The client that has this editor's terminals, if it is at the session.
    fn editor(&self, key: SessionKey, editor: u64) -> Option<ClientId> {
        let attached = self.session(key).attached.keys().copied();
        let is_it = |client: &ClientId| {
            self.clients.get(client).is_some_and(|here| here.view.editor == editor)
        };
        attached.filter(|client| self.may_serve(*client, key)).find(is_it)
    }

    pub(crate) fn on_terminal_ended(
        &mut self,
        number: InteractionId,
        end: TerminalEnd,
        out: &mut Batch,
    ) {
        let Some(key) = self.terminals.session_of(number) else { return };
        let Some(status) = self.terminals.ended(number, end) else { return };
        for wait in self.client_methods.waits(key, |line| own_terminal(line) == Some(number)) {
            self.end_client_method(wait, |id| build::response(id, &status), out);
        }
        self.show_end(key, number, out);
    }

    /// The process no longer holds the session, so it cannot release its terminals.
    pub(crate) fn drop_terminals(&mut self, key: SessionKey, out: &mut Batch) {
        let error = ErrorObject::new(code::INTERNAL, "the session was closed");
        self.withdraw_waits(key, &error, out);
        self.end_shown(key, "ended with the session", out);
        for (editor, id) in self.terminals.drop_session(key, out) {
            let Some(client) = self.editor(key, editor) else { continue };
            let session = &self.session(key).row.public_id;
            let params = json!({ "sessionId": session, "terminalId": id });
            // The answer does not matter.
            let ask = Id::issued(self.ids.issue());
            let line = build::request(&ask, "terminal/release", &params);
            out.effects.push(Effect::Client(client, ToClient::Line(line)));
        }
    }
}
