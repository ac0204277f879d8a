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

use acp_wire::bound::LONGEST_ID;
use acp_wire::{ErrorObject, Id, build, code, locate, set_member, str_at};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;

use crate::client_methods::terminal::{Of, Own, Terminal, own_terminal};
use crate::client_methods::terminal_mirror::Growth;
use crate::client_methods::{By, Call};
use crate::hub::Hub;
use crate::ids::{ClientId, HostId, InteractionId, SessionKey};
use crate::input::{Batch, Effect, NewTerminal, ServeError, TerminalEnd};
use crate::views::terminal_name::TerminalName;

/// Terminals of one session that are remembered.
const MOST: usize = 64;

/// `params` of `terminal/create`.
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
        (id, line): (&Id, &Bytes),
        out: &mut Batch,
    ) -> Result<Option<(By, Bytes)>, ErrorObject> {
        let text = str_at(line, &["params", "terminalId"]);
        let Some(text) = text else {
            return Err(ErrorObject::new(code::INVALID_PARAMS, "`terminalId` is missing"));
        };
        match TerminalName::parse(&text) {
            Some(TerminalName::Editor { editor, id }) => {
                if call == Call::Release {
                    self.terminals.remove(&*text);
                }
                let client = self.editor(key, editor).ok_or_else(|| {
                    let gone = format!("the editor that has the terminal `{text}` is gone");
                    ErrorObject::new(code::NOT_FOUND, gone)
                })?;
                let id = json!(id).to_string();
                let line = set_member(line, &["params", "terminalId"], id.as_bytes());
                Ok(Some((By::Client(client), line)))
            }
            Some(TerminalName::Own(number)) => self.own_called(key, call, number, (id, line), out),
            None => Err(unknown(&text)),
        }
    }

    fn own_called(
        &mut self,
        key: SessionKey,
        call: Call,
        number: InteractionId,
        (id, line): (&Id, &Bytes),
        out: &mut Batch,
    ) -> Result<Option<(By, Bytes)>, ErrorObject> {
        let name = TerminalName::Own(number).to_string();
        let boot = self.ids.boot();
        let terminal = self.terminals.get_mut(&name).filter(|terminal| terminal.session == key);
        let Some(Of::Acpd(own)) = terminal.map(|terminal| &mut terminal.of) else {
            if number.0 >> 32 == boot {
                return Err(unknown(&name));
            }
            let text = format!("the terminal `{name}` ended when acpd was restarted");
            return Err(ErrorObject::new(code::NOT_FOUND, text));
        };
        if own.released {
            return Err(unknown(&name));
        }
        let answer = match (call, &own.end) {
            (Call::Output, _) | (Call::Wait, None) => {
                return Ok(Some((By::Acpd, line.clone())));
            }
            (Call::Wait, Some(end)) => exit_status(end),
            (Call::Kill, _) => {
                out.effects.push(Effect::KillTerminal { terminal: number });
                json!({})
            }
            (Call::Release, _) => {
                own.released = true;
                out.effects.push(Effect::ReleaseTerminal { terminal: number });
                json!({})
            }
        };
        let slot = self.session(key).slot;
        self.host_write(slot, build::response(id, &answer), out);
        Ok(None)
    }

    /// Whether the session may have one more terminal. What nobody asks for any more makes room.
    pub(crate) fn room_for_terminal(&mut self, key: SessionKey) -> Result<(), ErrorObject> {
        let of_session = self.terminals.iter().filter(|(_, terminal)| terminal.session == key);
        if of_session.clone().count() < MOST {
            return Ok(());
        }
        let is_over = |(name, terminal): &(&String, &Terminal)| match &terminal.of {
            // What still runs is shown until its end.
            Of::Acpd(own) => own.released && own.end.is_some(),
            Of::Editor => match TerminalName::parse(name) {
                Some(TerminalName::Editor { editor, .. }) => self.editor(key, editor).is_none(),
                _ => true,
            },
        };
        match of_session.clone().find(is_over).map(|(name, _)| name.clone()) {
            Some(name) => {
                self.terminals.remove(&name);
                Ok(())
            }
            None if of_session.filter(|(_, terminal)| !terminal.is_released()).count() < MOST => {
                Ok(())
            }
            None => {
                let text = format!(
                    "this session has {MOST} terminals, which is the limit; release those that are not needed any more"
                );
                Err(ErrorObject::new(code::INTERNAL, text))
            }
        }
    }

    /// What acpd is to run for a request.
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
        let name = TerminalName::Own(number).to_string();
        let growth = Growth::new(self.now);
        let own = Own { number, released: false, end: None, growth };
        let result = json!({ "terminalId": name }).to_string();
        self.terminals.insert(name, Terminal { session: key, of: Of::Acpd(own) });
        Ok(result.into())
    }

    /// An editor runs a command for the agent: its answer, with the agent's id of the terminal.
    pub(crate) fn editor_terminal_made(
        &mut self,
        key: SessionKey,
        client: ClientId,
        line: &Bytes,
    ) -> Bytes {
        let editor = self.clients.get(&client).map_or(0, |client| client.view.editor);
        let id = str_at(line, &["result", "terminalId"]).filter(|id| id.len() <= LONGEST_ID);
        let Some(id) = id else { return line.clone() };
        let name = TerminalName::Editor { editor, id: &id }.to_string();
        let line = set_member(line, &["result", "terminalId"], json!(name).to_string().as_bytes());
        self.terminals.insert(name, Terminal { session: key, of: Of::Editor });
        line
    }

    /// The client that has this editor's terminals, if it is at the session.
    fn editor(&self, key: SessionKey, editor: u64) -> Option<ClientId> {
        let attached = self.session(key).attached.keys().copied();
        let is_it = |client: &ClientId| {
            self.clients.get(client).is_some_and(|here| here.view.editor == editor)
        };
        attached.filter(|client| self.may_serve(*client, key)).find(is_it)
    }

    /// A command of acpd's has ended.
    pub(crate) fn on_terminal_ended(
        &mut self,
        number: InteractionId,
        end: TerminalEnd,
        out: &mut Batch,
    ) {
        let status = exit_status(&end);
        let Some((key, own)) = self.own_mut(number) else { return };
        own.end = Some(end);
        for wait in self.waits(key, |line| own_terminal(line) == Some(number)) {
            self.end_client_method(wait, |id| build::response(id, &status), out);
        }
        self.show_end(number, out);
    }

    /// A terminal of acpd, and whose it is.
    pub(crate) fn own(&self, number: InteractionId) -> Option<(SessionKey, &Own)> {
        let terminal = self.terminals.get(&TerminalName::Own(number).to_string())?;
        let Of::Acpd(own) = &terminal.of else { return None };
        Some((terminal.session, own))
    }

    pub(crate) fn own_mut(&mut self, number: InteractionId) -> Option<(SessionKey, &mut Own)> {
        let terminal = self.terminals.get_mut(&TerminalName::Own(number).to_string())?;
        let Of::Acpd(own) = &mut terminal.of else { return None };
        Some((terminal.session, own))
    }

    /// The process does not hold the session any more: nobody is going to release its terminals.
    pub(crate) fn drop_terminals(&mut self, key: SessionKey, out: &mut Batch) {
        for wait in self.waits(key, |_| true) {
            let error = ErrorObject::new(code::INTERNAL, "the session was closed");
            self.withdraw_client_method(wait, &error, out);
        }
        self.end_shown(key, "ended with the session", out);
        let gone = self.terminals.extract_if(.., |_, terminal| terminal.session == key);
        for (name, terminal) in gone.collect::<Vec<_>>() {
            match (terminal.of, TerminalName::parse(&name)) {
                (Of::Acpd(own), _) if !own.released => {
                    out.effects.push(Effect::ReleaseTerminal { terminal: own.number });
                }
                (Of::Editor, Some(TerminalName::Editor { editor, id })) => {
                    let Some(client) = self.editor(key, editor) else { continue };
                    let session = &self.session(key).row.public_id;
                    let params = json!({ "sessionId": session, "terminalId": id });
                    // Its answer matters to nobody.
                    let ask = Id::from(self.ids.issue());
                    let line = build::request(&ask, "terminal/release", &params);
                    out.effects.push(Effect::Send { client, line });
                }
                _ => {}
            }
        }
    }

    /// A turn is to end: the agent is not to wait for commands.
    pub(crate) fn cancel_waits(&mut self, key: SessionKey, out: &mut Batch) {
        for wait in self.waits(key, |_| true) {
            let error = ErrorObject::new(code::CANCELLED, "the turn was cancelled");
            self.withdraw_client_method(wait, &error, out);
        }
    }
}

fn exit_status(end: &TerminalEnd) -> serde_json::Value {
    json!({ "exitCode": end.code, "signal": end.signal })
}

fn unknown(name: &str) -> ErrorObject {
    let text = format!("the terminal `{name}` does not exist or was released");
    ErrorObject::new(code::NOT_FOUND, text)
}
