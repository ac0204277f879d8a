use std::collections::BTreeMap;

use acp_wire::{ErrorObject, Id, build, code, locate, str_at};
use bytes::Bytes;
use serde::Deserialize;

use crate::cx::Cx;
use crate::event::Answer;
use crate::ids::{ClientId, HostId, InteractionId, SessionKey};
use crate::input::{Effect, FileService, NewTerminal, ToClient};
use crate::record::Record;
use crate::services::terminals::{TerminalCall, own_terminal};

/// Open requests of one session.
const OPEN: usize = 64;

#[derive(Debug)]
pub(crate) struct AgentRequest {
    pub(crate) session: SessionKey,
    pub(crate) agent: String,
    /// Folders of the session, the working directory first.
    pub(crate) roots: Vec<String>,
    pub(crate) host: HostId,
    /// The agent's id of the request.
    pub(crate) asked_as: Id,
    /// The request with the session's public id.
    pub(crate) line: Bytes,
    pub(crate) by: Executor,
}

impl AgentRequest {
    pub(crate) fn kind(&self) -> Option<RequestKind> {
        RequestKind::of(&str_at(&self.line, &["method"])?)
    }

    /// Returns `None` for a wait, which ends with its command.
    ///
    /// # Errors
    /// When the params are wrong, with the reason.
    pub(crate) fn effect(&self, id: InteractionId) -> Result<Option<Effect>, String> {
        Ok(match self.kind() {
            Some(RequestKind::Terminal) => {
                let new = Box::new(self.new_terminal()?);
                Some(Effect::CreateTerminal { terminal: id, new })
            }
            Some(RequestKind::Call(TerminalCall::Output)) => {
                let terminal = own_terminal(&self.line).ok_or("`terminalId` is none of acpd's")?;
                Some(Effect::TerminalOutput { request: id, terminal })
            }
            Some(RequestKind::Call(_)) => None,
            _ => {
                let (host, roots) = (self.host, self.roots.clone());
                let service = file_service(&self.line)?;
                Some(Effect::Serve { host, request: id, roots, service })
            }
        })
    }

    fn new_terminal(&self) -> Result<NewTerminal, String> {
        let params = locate(&self.line, &["params"]).map_or(&b"null"[..], |at| &self.line[at]);
        let create: CreateTerminal =
            serde_json::from_slice(params).map_err(|error| error.to_string())?;
        let cwd = create.cwd.unwrap_or_else(|| self.roots[0].clone());
        if !cwd.starts_with('/') {
            return Err(format!("`cwd` is not an absolute path: `{cwd}`"));
        }
        let env = create.env.unwrap_or_default();
        Ok(NewTerminal {
            agent: self.agent.clone(),
            host: self.host,
            command: create.command,
            args: create.args.unwrap_or_default(),
            env: env.into_iter().map(|variable| (variable.name, variable.value)).collect(),
            cwd,
            output_byte_limit: create.output_byte_limit,
        })
    }

    fn stop(&self, cx: &mut Cx, id: InteractionId) {
        match self.by {
            Executor::Client(client) => {
                let line = build::cancel_request(&Id::issued(id.0));
                cx.send(Effect::Client(client, ToClient::Line(line)));
            }
            Executor::Acpd if self.kind() == Some(RequestKind::Terminal) => {
                // The agent will never know about this terminal.
                cx.send(Effect::ReleaseTerminal { terminal: id });
            }
            Executor::Acpd => {}
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CreateTerminal {
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Executor {
    Client(ClientId),
    Acpd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestKind {
    Read,
    Write,
    Terminal,
    Call(TerminalCall),
    /// A method of the agent's own, which only a client can know.
    Extension,
}

impl RequestKind {
    pub(crate) fn of(method: &str) -> Option<RequestKind> {
        match method {
            "fs/read_text_file" => Some(RequestKind::Read),
            "fs/write_text_file" => Some(RequestKind::Write),
            "terminal/create" => Some(RequestKind::Terminal),
            "terminal/output" => Some(RequestKind::Call(TerminalCall::Output)),
            "terminal/wait_for_exit" => Some(RequestKind::Call(TerminalCall::Wait)),
            "terminal/kill" => Some(RequestKind::Call(TerminalCall::Kill)),
            "terminal/release" => Some(RequestKind::Call(TerminalCall::Release)),
            method if method.starts_with('_') => Some(RequestKind::Extension),
            _ => None,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct OpenRequests {
    open: BTreeMap<InteractionId, AgentRequest>,
}

impl OpenRequests {
    pub(crate) fn check_room(&self, key: SessionKey) -> Result<(), ErrorObject> {
        if self.open.values().filter(|method| method.session == key).count() >= OPEN {
            let text = format!("{OPEN} requests of this session are open already");
            return Err(ErrorObject::new(code::INTERNAL, text));
        }
        Ok(())
    }

    pub(crate) fn open(&mut self, id: InteractionId, method: AgentRequest) {
        self.open.insert(id, method);
    }

    pub(crate) fn get(&self, id: InteractionId) -> Option<&AgentRequest> {
        self.open.get(&id)
    }

    pub(crate) fn give_to_acpd(&mut self, id: InteractionId) {
        if let Some(method) = self.open.get_mut(&id) {
            method.by = Executor::Acpd;
        }
    }

    pub(crate) fn which(&self, is_meant: impl Fn(&AgentRequest) -> bool) -> Vec<InteractionId> {
        self.open.iter().filter(|(_, method)| is_meant(method)).map(|(id, _)| *id).collect()
    }

    pub(crate) fn waits(
        &self,
        key: SessionKey,
        is_meant: impl Fn(&[u8]) -> bool,
    ) -> Vec<InteractionId> {
        let wait = Some(RequestKind::Call(TerminalCall::Wait));
        self.which(|method| {
            method.session == key && method.kind() == wait && is_meant(&method.line)
        })
    }

    pub(crate) fn end(
        &mut self,
        cx: &mut Cx,
        id: InteractionId,
        answer: impl FnOnce(&Id) -> Bytes,
    ) -> Option<Answer> {
        let done = self.open.remove(&id)?;
        cx.record(Record::InteractionGone { id });
        Some(Answer { host: done.host, line: answer(&done.asked_as) })
    }

    pub(crate) fn withdraw(
        &mut self,
        cx: &mut Cx,
        id: InteractionId,
        error: &ErrorObject,
    ) -> Option<Answer> {
        self.open.get(&id)?.stop(cx, id);
        self.end(cx, id, |id| build::error(id, error))
    }

    pub(crate) fn drop_host(&mut self, cx: &mut Cx, host: HostId) {
        for (id, method) in self.open.extract_if(.., |_, method| method.host == host) {
            cx.record(Record::InteractionGone { id });
            method.stop(cx, id);
        }
    }
}

fn file_service(line: &[u8]) -> Result<FileService, String> {
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
