//! Agents' requests that an editor or acpd carries out: files, terminals, and methods of the
//! agent's own.
//!
//! ```text
//!  request ─▶ the owner can do it ─▶ with the owner ── answered ────────────▶ answered
//!     │                                │ gone: a read ─▶ with acpd; else ─▶ refused
//!     └────── acpd offers it ─▶ with acpd ─┴── served ──────────────────────▶ answered
//! ```
//!
//! The owner is the sender of the running prompt, else the last attached controller. An agent is
//! always offered the same, because acpd serves it without clients. Calls about a terminal go to
//! the program that runs it, even if the session has another owner by then.
//!
//! ```text
//!  terminal/create ─▶ the editor ─▶ `editor-E-ID` ─▶ every later call goes to that editor
//!     └────▶ acpd ─▶ running ─▶ ended ─▶ waits are answered
//!                       └─────────┴─▶ released; its output stays known as long as there is room
//! ```
//!
//! An agent's id of a terminal names the owner ([`TerminalName`]), so two editors may use the same
//! id. [`terminals`] shows the output of acpd's terminals in tool calls.
//!
//! | Input | Handler |
//! | --- | --- |
//! | request, cancel of an agent | `on_request`, `on_agent_cancel` |
//! | answer, end of a client | `on_client_answer`, `on_client_gone` |
//! | acpd served, ended or read a terminal | `on_served`, `on_terminal_end`, `on_terminal_output` |
//! | a turn is cancelled, a session is deleted or leaves its process, a process is gone | `end_waits`, `on_session_deleted`, `on_process_left`, `on_process_gone` |
//!
//! Architecture invariants: a request is on disk until it is answered. The next daemon repeats only
//! reads and writes, because a command would run twice. A terminal ends when its session leaves the
//! process.

mod terminals;

use std::collections::BTreeMap;

use acp_wire::acp::{ClientCapabilities, Services};
use acp_wire::{ErrorObject, Id, Outcome, build, code, locate, set_id, set_member, str_at};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cx::Cx;
use crate::event::EngineEvent;
use crate::ids::{ClientId, HostId, InteractionId, SessionKey};
use crate::input::{Effect, FileService, NewTerminal, TerminalEnd, ToClient};
use crate::params::session_roots;
use crate::record::{InteractionRow, Row, RowId, SessionRow};
use crate::services::terminals::{
    Executor, Mirrors, Terminal, TerminalCall, exit_status, own_terminal, unknown,
};
use crate::views::{Responder, TerminalName, with_known_session};

pub(crate) use crate::services::terminals::RequestKind;

/// Open requests of one session.
const OPEN: usize = 64;

/// The session of a request, and the programs that can carry it out.
#[derive(Debug)]
pub(crate) struct Workplace<'a> {
    pub(crate) row: &'a SessionRow,
    /// acpd's services that the profile offers.
    pub(crate) offers: Services,
    pub(crate) sender: Option<ClientId>,
    /// In the order of attachment.
    pub(crate) editors: Vec<Responder<'a>>,
}

impl Workplace<'_> {
    /// Returns the owner if it serves the method, else acpd if acpd does.
    fn executor(&self, kind: RequestKind) -> Option<Executor> {
        let (serves, is_offered): (fn(&ClientCapabilities) -> bool, bool) = match kind {
            RequestKind::Read => (|can| can.fs_read, self.offers.fs),
            RequestKind::Write => (|can| can.fs_write, self.offers.fs),
            RequestKind::Terminal => (|can| can.terminal, self.offers.terminal),
            RequestKind::Extension => (|_| true, false),
            RequestKind::Call(_) => return None,
        };
        let owner = self.editors.iter().rfind(|editor| {
            let is_owner = self.sender.is_none_or(|sender| sender == editor.client);
            is_owner && serves(&editor.view.capabilities)
        });
        let owner = owner.map(|owner| Executor::Client(owner.client));
        owner.or_else(|| is_offered.then_some(Executor::Acpd))
    }

    fn editor(&self, number: u64) -> Option<&Responder<'_>> {
        self.editors.iter().find(|editor| editor.view.editor == number)
    }
}

#[derive(Debug, Default)]
pub(crate) struct AgentServices {
    open: BTreeMap<InteractionId, AgentRequest>,
    /// By the ids that agents know.
    terminals: BTreeMap<String, Terminal>,
    mirrors: Mirrors,
}

enum CallRoute {
    Open(Executor, Bytes),
    Answered(Value),
}

impl AgentServices {
    /// Handles a line with the session's public id. Returns whether the request is served.
    pub(crate) fn on_request(
        &mut self,
        cx: &mut Cx,
        place: &Workplace<'_>,
        (host, id): (HostId, &Id),
        kind: RequestKind,
        line: Bytes,
    ) -> bool {
        let route = match (kind, place.executor(kind)) {
            (RequestKind::Call(call), _) => self.route_call(cx, place, call, line),
            (_, Some(by)) => Ok(CallRoute::Open(by, line)),
            (_, None) => return false,
        };
        let line = match route {
            Ok(CallRoute::Answered(result)) => build::response(id, &result),
            Err(error) => build::error(id, &error),
            Ok(CallRoute::Open(by, line)) => {
                if let Err(error) = self.check_room(place, kind) {
                    cx.answer(host, build::error(id, &error));
                    return true;
                }
                let (request, session) = (InteractionId(cx.ids.issue()), Some(place.row.key));
                let row = InteractionRow {
                    id: request,
                    session,
                    host,
                    line,
                    original: None,
                    at: cx.now,
                    frozen: None,
                };
                cx.out.durable = true;
                cx.put(Row::Interaction(row.clone()));
                self.open(cx, place, row, id.clone(), (by, kind));
                return true;
            }
        };
        cx.answer(host, line);
        true
    }

    /// `place`: the session that the process still holds.
    pub(crate) fn recover(
        &mut self,
        cx: &mut Cx,
        place: Option<&Workplace<'_>>,
        row: InteractionRow,
        (id, kind): (Id, RequestKind),
    ) {
        let is_repeatable = matches!(kind, RequestKind::Read | RequestKind::Write);
        match place.filter(|_| is_repeatable) {
            Some(place) => self.open(cx, place, row, id, (Executor::Acpd, kind)),
            None => {
                cx.delete(RowId::Interaction(row.id));
                let error = ErrorObject::new(code::INTERNAL, "acpd was restarted meanwhile");
                cx.answer(row.host, build::error(&id, &error));
            }
        }
    }

    fn open(
        &mut self,
        cx: &mut Cx,
        place: &Workplace<'_>,
        row: InteractionRow,
        asked_as: Id,
        (by, kind): (Executor, RequestKind),
    ) {
        let (session, agent) = (place.row.key, place.row.agent.clone());
        let roots = session_roots(&place.row.cwd, &place.row.params);
        let InteractionRow { id, host, line, .. } = row;
        if let Executor::Client(client) = by {
            let mut editors = place.editors.iter();
            let shows = editors.any(|it| it.client == client && it.view.capabilities.subagents);
            let line = with_known_session(line.clone(), &place.row.public_id, shows);
            let line = set_id(&line, &Id::issued(id.0));
            cx.send(Effect::Client(client, ToClient::Line(line)));
        }
        let request = AgentRequest { session, agent, roots, host, asked_as, kind, line, by };
        self.open.insert(id, request);
        if by == Executor::Acpd {
            self.serve(cx, id);
        }
    }

    /// Begins acpd's work for a request. A wait ends with its command.
    fn serve(&mut self, cx: &mut Cx, id: InteractionId) {
        match self.open.get(&id).map(|request| request.effect(id)) {
            Some(Ok(effect)) => cx.send_all(effect),
            Some(Err(text)) => {
                let error = ErrorObject::new(code::INVALID_PARAMS, text);
                self.end(cx, id, |id| build::error(id, &error));
            }
            None => {}
        }
    }

    fn check_room(&mut self, place: &Workplace<'_>, kind: RequestKind) -> Result<(), ErrorObject> {
        let key = place.row.key;
        if self.which(|request| request.session == key).len() >= OPEN {
            let text = format!("{OPEN} requests of this session are open already");
            return Err(ErrorObject::new(code::INTERNAL, text));
        }
        if kind == RequestKind::Terminal {
            self.make_room_for_terminal(key, |number| place.editor(number).is_some())?;
        }
        Ok(())
    }

    fn route_call(
        &mut self,
        cx: &mut Cx,
        place: &Workplace<'_>,
        call: TerminalCall,
        line: Bytes,
    ) -> Result<CallRoute, ErrorObject> {
        let Some(name) = str_at(&line, &["params", "terminalId"]) else {
            let text = "`terminalId` is missing";
            return Err(ErrorObject::new(code::INVALID_PARAMS, text));
        };
        match TerminalName::parse(&name) {
            Some(TerminalName::Editor { editor, id }) => {
                if call == TerminalCall::Release {
                    self.terminals.remove(&*name);
                }
                let Some(editor) = place.editor(editor) else {
                    let gone = format!("the editor that has the terminal `{name}` is gone");
                    return Err(ErrorObject::new(code::NOT_FOUND, gone));
                };
                let id = json!(id).to_string();
                let line = set_member(&line, &["params", "terminalId"], id.as_bytes());
                Ok(CallRoute::Open(Executor::Client(editor.client), line))
            }
            Some(TerminalName::Own(number)) => {
                let name = TerminalName::Own(number).to_string();
                let own = self.own_mut(number).filter(|own| own.session == place.row.key);
                let Some(own) = own else {
                    if number.0 >> 32 == cx.ids.boot() {
                        return Err(unknown(&name));
                    }
                    let text = format!("the terminal `{name}` ended when acpd was restarted");
                    return Err(ErrorObject::new(code::NOT_FOUND, text));
                };
                if own.released {
                    return Err(unknown(&name));
                }
                match (call, &own.end) {
                    // The runner of the terminal will answer.
                    (TerminalCall::Output, _) | (TerminalCall::Wait, None) => {
                        return Ok(CallRoute::Open(Executor::Acpd, line));
                    }
                    (TerminalCall::Wait, Some(end)) => {
                        return Ok(CallRoute::Answered(exit_status(end)));
                    }
                    (TerminalCall::Kill, _) => cx.send(Effect::KillTerminal(number)),
                    (TerminalCall::Release, _) => {
                        own.released = true;
                        cx.send(Effect::ReleaseTerminal(number));
                    }
                }
                Ok(CallRoute::Answered(json!({})))
            }
            None => Err(unknown(&name)),
        }
    }

    pub(crate) fn on_served(
        &mut self,
        cx: &mut Cx,
        id: InteractionId,
        result: Result<Bytes, ErrorObject>,
        is_held: impl Fn(SessionKey, HostId) -> bool,
    ) {
        let Some(request) = self.open.get(&id) else { return };
        let (session, host) = (request.session, request.host);
        let is_new_terminal = result.is_ok() && request.kind == RequestKind::Terminal;
        let result = match result {
            _ if is_new_terminal && is_held(session, host) => {
                let name = TerminalName::Own(id).to_string();
                let result = json!({ "terminalId": name }).to_string();
                let terminal = Terminal { session, looked: cx.now, ..Terminal::default() };
                self.terminals.insert(name, terminal);
                Ok(result.into())
            }
            _ if is_new_terminal => {
                cx.send(Effect::ReleaseTerminal(id));
                Err(ErrorObject::new(code::INTERNAL, "the session was closed meanwhile"))
            }
            result => result,
        };
        self.end(cx, id, |id| match &result {
            Ok(result) => set_member(&build::response(id, &json!(null)), &["result"], result),
            Err(error) => build::error(id, error),
        });
    }

    /// `editor`: the number in the ids of the client's terminals. Returns whether the line is an
    /// answer here.
    pub(crate) fn on_client_answer(
        &mut self,
        cx: &mut Cx,
        (client, editor): (ClientId, u64),
        id: &Id,
        line: &Bytes,
        outcome: &Outcome<'_>,
    ) -> bool {
        let Some(id) = id.as_issued().map(InteractionId) else { return false };
        let Some(request) = self.open.get(&id) else { return false };
        if request.by != Executor::Client(client) {
            return false;
        }
        match (outcome, request.kind) {
            // The client declared the method but does not have it.
            (Outcome::Error(error), RequestKind::Read)
                if ErrorObject::from_raw(error).code == code::METHOD_NOT_FOUND =>
            {
                self.give_to_acpd(cx, id);
            }
            (Outcome::Result(_), RequestKind::Terminal) => {
                let line = self.terminal_made_by_editor(request.session, editor, line);
                self.end(cx, id, |id| set_id(&line, id));
            }
            _ => self.end(cx, id, |id| set_id(line, id)),
        }
        true
    }

    fn give_to_acpd(&mut self, cx: &mut Cx, id: InteractionId) {
        if let Some(request) = self.open.get_mut(&id) {
            request.by = Executor::Acpd;
        }
        self.serve(cx, id);
    }

    /// Handles the end of a client: acpd continues reads of files, and other requests fail.
    pub(crate) fn on_client_gone(&mut self, cx: &mut Cx, client: ClientId) {
        for id in self.which(|request| request.by == Executor::Client(client)) {
            if self.open[&id].kind == RequestKind::Read {
                self.give_to_acpd(cx, id);
                continue;
            }
            let text = "the editor that was doing it is gone";
            let error = ErrorObject::new(code::INTERNAL, text);
            self.end(cx, id, |id| build::error(id, &error));
        }
    }

    /// Returns whether the request is open here.
    pub(crate) fn on_agent_cancel(&mut self, cx: &mut Cx, host: HostId, id: &Id) -> bool {
        let is_it = |request: &AgentRequest| request.host == host && request.asked_as == *id;
        let Some(request) = self.which(is_it).first().copied() else { return false };
        let error = ErrorObject::new(code::CANCELLED, "cancelled by the agent");
        self.withdraw(cx, [request], &error);
        true
    }

    pub(crate) fn end_waits(&mut self, cx: &mut Cx, key: SessionKey, error: &ErrorObject) {
        let waits = self.waits(key, |_| true);
        self.withdraw(cx, waits, error);
    }

    pub(crate) fn on_session_deleted(&mut self, cx: &mut Cx, key: SessionKey) {
        let open = self.which(|request| request.session == key);
        self.withdraw(cx, open, &ErrorObject::new(code::INTERNAL, "the session was deleted"));
    }

    /// The session cannot release its terminals any longer. Returns the last updates about its
    /// commands.
    pub(crate) fn on_process_left(&mut self, cx: &mut Cx, place: &Workplace<'_>) -> Vec<Bytes> {
        let (row, key) = (place.row, place.row.key);
        self.end_waits(cx, key, &ErrorObject::new(code::INTERNAL, "the session was closed"));
        let updates = self.end_mirrors(cx, row, "ended with the session");
        for (name, terminal) in self.terminals.extract_if(.., |_, terminal| terminal.session == key)
        {
            match TerminalName::parse(&name) {
                Some(TerminalName::Own(number)) if !terminal.released => {
                    cx.send(Effect::ReleaseTerminal(number));
                }
                Some(TerminalName::Editor { editor, id }) => {
                    let Some(editor) = place.editor(editor) else { continue };
                    let params = json!({ "sessionId": row.public_id, "terminalId": id });
                    let id = Id::issued(cx.ids.issue());
                    let line = build::request(&id, "terminal/release", &params);
                    let client = editor.client;
                    cx.report(EngineEvent::ClientLine { client, session: None, line });
                }
                _ => {}
            }
        }
        updates
    }

    pub(crate) fn on_process_gone(&mut self, cx: &mut Cx, host: HostId) {
        for (id, request) in self.open.extract_if(.., |_, request| request.host == host) {
            cx.delete(RowId::Interaction(id));
            request.stop(cx, id);
        }
    }

    pub(crate) fn works_for(&self, key: SessionKey) -> bool {
        let mut held = self.terminals.values();
        held.any(|terminal| terminal.session == key && !terminal.released)
            || self.open.values().any(|open| open.session == key)
    }

    fn withdraw(
        &mut self,
        cx: &mut Cx,
        requests: impl IntoIterator<Item = InteractionId>,
        error: &ErrorObject,
    ) {
        for id in requests {
            if let Some(request) = self.open.get(&id) {
                request.stop(cx, id);
                self.end(cx, id, |id| build::error(id, error));
            }
        }
    }

    fn end(&mut self, cx: &mut Cx, id: InteractionId, answer: impl FnOnce(&Id) -> Bytes) {
        let Some(done) = self.open.remove(&id) else { return };
        cx.delete(RowId::Interaction(id));
        cx.answer(done.host, answer(&done.asked_as));
    }

    fn which(&self, is_meant: impl Fn(&AgentRequest) -> bool) -> Vec<InteractionId> {
        self.open.iter().filter(|(_, request)| is_meant(request)).map(|(id, _)| *id).collect()
    }

    fn waits(&self, key: SessionKey, is_meant: impl Fn(&[u8]) -> bool) -> Vec<InteractionId> {
        let wait = RequestKind::Call(TerminalCall::Wait);
        self.which(|open| open.session == key && open.kind == wait && is_meant(&open.line))
    }

    pub(crate) fn on_terminal_end<'r>(
        &mut self,
        cx: &mut Cx,
        row: impl FnOnce(SessionKey) -> &'r SessionRow,
        terminal: InteractionId,
        end: TerminalEnd,
    ) {
        let Some(own) = self.own_mut(terminal) else { return };
        let (row, status) = (row(own.session), exit_status(&end));
        own.end = Some(end);
        let is_it = |line: &[u8]| own_terminal(line) == Some(terminal);
        for wait in self.waits(row.key, is_it) {
            self.end(cx, wait, |id| build::response(id, &status));
        }
        self.show_end(cx, row, terminal);
    }
}

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

    fn stop(&self, cx: &mut Cx, id: InteractionId) {
        match self.by {
            Executor::Client(client) => {
                let line = build::cancel_request(&Id::issued(id.0));
                cx.send(Effect::Client(client, ToClient::Line(line)));
            }
            Executor::Acpd if self.kind == RequestKind::Terminal => {
                // The agent will never know about this terminal.
                cx.send(Effect::ReleaseTerminal(id));
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
