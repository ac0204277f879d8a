//! Requests of agents that a program answers: `fs/*`, `terminal/*` and extensions. Only [`ClientMethods`]
//! knows which are open; it is told who carries one out, and returns the answer for the agent. The diagram
//! is in `hub/services/client_methods.rs`.

pub(crate) mod terminal;
pub(crate) mod terminal_mirror;

use std::collections::BTreeMap;

use acp_wire::{ErrorObject, Id, build, code, locate, str_at};
use bytes::Bytes;
use serde_json::json;

use crate::answer::Answer;
use crate::ids::{ClientId, HostId, InteractionId, SessionKey};
use crate::input::{Batch, Effect, FileService, ToClient};
use crate::record::Record;

/// Requests of one session that may be open at once.
const OPEN: usize = 64;

/// A request of an agent that a program answers.
#[derive(Debug)]
pub(crate) struct ClientMethod {
    pub(crate) session: SessionKey,
    pub(crate) host: HostId,
    /// The agent's own id of the request.
    pub(crate) agent_request: Id,
    /// The request with the session's public id.
    pub(crate) line: Bytes,
    pub(crate) by: By,
}

impl ClientMethod {
    pub(crate) fn kind(&self) -> Option<Kind> {
        Kind::of(&str_at(&self.line, &["method"])?)
    }

    /// Notifies the executor of a request that it is no longer needed.
    fn stop(&self, id: InteractionId, out: &mut Batch) {
        match self.by {
            By::Client(client) => {
                let line = build::notification(
                    "$/cancel_request",
                    &json!({ "requestId": Id::issued(id.0) }),
                );
                out.effects.push(Effect::Client(client, ToClient::Line(line)));
            }
            By::Acpd if self.kind() == Some(Kind::Terminal) => {
                // The agent will never know that it was made.
                out.effects.push(Effect::ReleaseTerminal { terminal: id });
            }
            By::Acpd => {}
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Client(ClientId),
    Acpd,
}

/// Operations on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Output,
    Wait,
    Kill,
    Release,
}

/// Returns whether acpd can do it, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
    Terminal,
    /// A call about a terminal.
    Call(Call),
    /// A method of the agent's own, which only a client can know.
    Extension,
}

impl Kind {
    pub(crate) fn of(method: &str) -> Option<Kind> {
        match method {
            "fs/read_text_file" => Some(Kind::Read),
            "fs/write_text_file" => Some(Kind::Write),
            "terminal/create" => Some(Kind::Terminal),
            "terminal/output" => Some(Kind::Call(Call::Output)),
            "terminal/wait_for_exit" => Some(Kind::Call(Call::Wait)),
            "terminal/kill" => Some(Kind::Call(Call::Kill)),
            "terminal/release" => Some(Kind::Call(Call::Release)),
            method if method.starts_with('_') => Some(Kind::Extension),
            _ => None,
        }
    }
}

/// The requests that are open.
#[derive(Debug, Default)]
pub(crate) struct ClientMethods {
    open: BTreeMap<InteractionId, ClientMethod>,
}

impl ClientMethods {
    /// # Errors
    /// When too many requests of a session are open.
    pub(crate) fn check_room(&self, key: SessionKey) -> Result<(), ErrorObject> {
        if self.open.values().filter(|method| method.session == key).count() >= OPEN {
            let text = format!("{OPEN} requests of this session are open already");
            return Err(ErrorObject::new(code::INTERNAL, text));
        }
        Ok(())
    }

    pub(crate) fn open(&mut self, id: InteractionId, method: ClientMethod) {
        self.open.insert(id, method);
    }

    pub(crate) fn get(&self, id: InteractionId) -> Option<&ClientMethod> {
        self.open.get(&id)
    }

    /// acpd carries it out, in place of the client that was to do it.
    pub(crate) fn give_to_acpd(&mut self, id: InteractionId) {
        if let Some(method) = self.open.get_mut(&id) {
            method.by = By::Acpd;
        }
    }

    /// The requests that are meant.
    pub(crate) fn which(&self, is_meant: impl Fn(&ClientMethod) -> bool) -> Vec<InteractionId> {
        self.open.iter().filter(|(_, method)| is_meant(method)).map(|(id, _)| *id).collect()
    }

    /// Waits of a session for the end of a command, of those whose line is meant.
    pub(crate) fn waits(
        &self,
        key: SessionKey,
        is_meant: impl Fn(&[u8]) -> bool,
    ) -> Vec<InteractionId> {
        let wait = Some(Kind::Call(Call::Wait));
        self.which(|method| {
            method.session == key && method.kind() == wait && is_meant(&method.line)
        })
    }

    /// A request is answered.
    pub(crate) fn end(
        &mut self,
        id: InteractionId,
        answer: impl FnOnce(&Id) -> Bytes,
        out: &mut Batch,
    ) -> Option<Answer> {
        let done = self.open.remove(&id)?;
        out.records.push(Record::InteractionGone { id });
        Some(Answer { host: done.host, line: answer(&done.agent_request) })
    }

    /// Answers a request with an error, in place of its executor.
    pub(crate) fn withdraw(
        &mut self,
        id: InteractionId,
        error: &ErrorObject,
        out: &mut Batch,
    ) -> Option<Answer> {
        self.open.get(&id)?.stop(id, out);
        self.end(id, |id| build::error(id, error), out)
    }

    /// The process that asked is gone.
    pub(crate) fn drop_host(&mut self, host: HostId, out: &mut Batch) {
        for (id, method) in self.open.extract_if(.., |_, method| method.host == host) {
            out.records.push(Record::InteractionGone { id });
            method.stop(id, out);
        }
    }
}

/// Returns acpd's operation on a file.
pub(crate) fn file_service(line: &[u8]) -> Result<FileService, String> {
    let text = |name: &str| {
        let text = str_at(line, &["params", name]);
        text.map(std::borrow::Cow::into_owned).ok_or_else(|| format!("`{name}` is missing"))
    };
    let number = |name: &str| -> Result<Option<u32>, String> {
        let Some(range) = locate(line, &["params", name]) else { return Ok(None) };
        serde_json::from_slice(&line[range])
            .map_err(|_| format!("`{name}` is not a number of lines"))
    };
    let path = text("path")?;
    let is_write = str_at(line, &["method"]).as_deref() == Some("fs/write_text_file");
    if is_write {
        return Ok(FileService::WriteTextFile { path, content: text("content")? });
    }
    Ok(FileService::ReadTextFile { path, line: number("line")?, limit: number("limit")? })
}
