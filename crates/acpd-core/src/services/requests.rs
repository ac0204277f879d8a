use acp_wire::{Id, build, locate, str_at};
use bytes::Bytes;
use serde::Deserialize;

use crate::cx::Cx;
use crate::ids::{ClientId, HostId, InteractionId, SessionKey};
use crate::input::{Effect, FileService, NewTerminal, ToClient};
use crate::services::terminals::{TerminalCall, own_terminal};

#[derive(Debug)]
pub(crate) struct AgentRequest {
    pub(crate) session: SessionKey,
    pub(crate) agent: String,
    /// Folders of the session, the working directory first.
    pub(crate) roots: Vec<String>,
    pub(crate) host: HostId,
    /// The agent's id of the request.
    pub(crate) asked_as: Id,
    pub(crate) kind: RequestKind,
    /// The request with the session's public id.
    pub(crate) line: Bytes,
    pub(crate) by: Executor,
}

impl AgentRequest {
    /// Returns `None` for a wait, which ends with its command.
    ///
    /// # Errors
    /// When the params are wrong, with the reason.
    pub(crate) fn effect(&self, id: InteractionId) -> Result<Option<Effect>, String> {
        Ok(match self.kind {
            RequestKind::Terminal => {
                let new = Box::new(self.new_terminal()?);
                Some(Effect::CreateTerminal { terminal: id, new })
            }
            RequestKind::Call(TerminalCall::Output) => {
                let terminal = own_terminal(&self.line).ok_or("`terminalId` is none of acpd's")?;
                Some(Effect::TerminalOutput { request: id, terminal })
            }
            RequestKind::Call(_) => None,
            _ => {
                let (host, roots) = (self.host, self.roots.clone());
                let service = self.file_service()?;
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

    fn file_service(&self) -> Result<FileService, String> {
        let text = |name: &str| {
            let text = str_at(&self.line, &["params", name]);
            text.map(std::borrow::Cow::into_owned).ok_or_else(|| format!("`{name}` is missing"))
        };
        let number = |name: &str| -> Result<Option<u32>, String> {
            let Some(range) = locate(&self.line, &["params", name]) else { return Ok(None) };
            serde_json::from_slice(&self.line[range])
                .map_err(|_| format!("`{name}` is not a number of lines"))
        };
        let path = text("path")?;
        if self.kind == RequestKind::Write {
            return Ok(FileService::WriteTextFile { path, content: text("content")? });
        }
        Ok(FileService::ReadTextFile { path, line: number("line")?, limit: number("limit")? })
    }

    pub(super) fn stop(&self, cx: &mut Cx, id: InteractionId) {
        match self.by {
            Executor::Client(client) => {
                let line = build::cancel_request(&Id::issued(id.0));
                cx.send(Effect::Client(client, ToClient::Line(line)));
            }
            Executor::Acpd if self.kind == RequestKind::Terminal => {
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
