//! Client methods: requests of an agent that a program answers, the editor of the session or acpd itself.
//!
//! ```text
//!  request ─▶ the owner can do it ─▶ with the owner ── answers ──────────────▶ answered
//!     │                                │ gone: a read ─▶ with acpd; else ─▶ refused
//!     └────── nobody can ─▶ with acpd ─┴── served ───────────────────────────▶ answered
//! ```
//!
//! Calls about a terminal go to who made it, whoever owns the session by then ([`crate::hub::services::terminal`]).
//!
//! The owner is the sender of the running prompt, else the last controller that came. What an agent is
//! offered does not depend on who is attached: acpd gives it with nobody there.
//!
//! Architecture invariant: a request is on disk until it is answered. A read or a write that the last
//! daemon did not finish is done again; both can be. Nothing else is: a command would run twice.

use acp_wire::{ErrorObject, Id, Outcome, build, code, locate, set_id, set_member, str_at};
use bytes::Bytes;
use serde_json::json;

use crate::client_methods::terminal::own_terminal;
use crate::client_methods::{By, Call, ClientMethod};
use crate::hub::Hub;
use crate::ids::{ClientId, HostId, InteractionId, SessionKey, SlotId};
use crate::input::{Batch, Effect, FileService, ServeError};
use crate::record::{InteractionRow, Record};

/// Requests of one session that may be open at once.
const OPEN: usize = 64;

/// Whether acpd can do it, and where it can be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    /// `terminal/create`.
    Terminal,
    /// A call about a terminal.
    Call(Call),
    /// A method of the agent's own, which only a client can know.
    Extension,
}

impl Kind {
    fn of(method: &str) -> Option<Kind> {
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

    fn of_line(line: &[u8]) -> Option<Kind> {
        Kind::of(&str_at(line, &["method"])?)
    }
}

impl Hub {
    /// A request of an agent that is not for a person; whether it was taken.
    pub(crate) fn client_method_asked(
        &mut self,
        slot: SlotId,
        host: HostId,
        (id, method): (&Id, &str),
        line: &Bytes,
        out: &mut Batch,
    ) -> bool {
        let Some(kind) = Kind::of(method) else { return false };
        let session = str_at(line, &["params", "sessionId"]);
        let key = session.and_then(|id| self.routed(slot, &id));
        let Some(key) = key else { return false };
        let line = self.to_public_id(key, line.clone());
        let given = match kind {
            Kind::Call(call) => self.terminal_called(key, call, (id, &line), out),
            _ => match self.who_does(key, kind) {
                Some(by) => Ok(Some((by, line))),
                None => return false,
            },
        };
        let given = given.and_then(|given| match given {
            Some(given) => self.room_for_client_method(key, kind).map(|()| Some(given)),
            None => Ok(None),
        });
        let (by, line) = match given {
            Ok(Some(given)) => given,
            Ok(None) => return true,
            Err(error) => {
                self.host_write(slot, build::error(id, &error), out);
                return true;
            }
        };
        let client_method = InteractionId(self.ids.issue());
        let row = InteractionRow {
            id: client_method,
            session: Some(key),
            host,
            line,
            at: self.now,
            frozen: None,
        };
        out.records.push(Record::Interaction(row.clone()));
        self.recover_client_method(&row, id.clone(), by, out);
        out.durable = true;
        true
    }

    fn room_for_client_method(&mut self, key: SessionKey, kind: Kind) -> Result<(), ErrorObject> {
        let open = self
            .client_methods
            .values()
            .filter(|client_method| client_method.session == key)
            .count();
        if open >= OPEN {
            let text = format!("{OPEN} requests of this session are open already");
            return Err(ErrorObject::new(code::INTERNAL, text));
        }
        if kind == Kind::Terminal { self.room_for_terminal(key) } else { Ok(()) }
    }

    fn recover_client_method(
        &mut self,
        row: &InteractionRow,
        agent_request: Id,
        by: By,
        out: &mut Batch,
    ) {
        let Some(session) = row.session else { return };
        let line = row.line.clone();
        self.client_methods
            .insert(row.id, ClientMethod { session, host: row.host, agent_request, line, by });
        self.begin_client_method(row.id, out);
    }

    /// Goes on with a request of the last daemon; whether the row is one.
    pub(crate) fn client_method_again(&mut self, row: &InteractionRow, out: &mut Batch) -> bool {
        let Ok(acp_wire::Message::Request { id, method, .. }) = acp_wire::parse(&row.line) else {
            return false;
        };
        let Some(kind) = Kind::of(&method) else { return false };
        let held = row.session.is_some_and(|key| {
            self.sessions.get(&key).is_some_and(|session| session.row.host == Some(row.host))
        });
        match row.session.filter(|_| held && matches!(kind, Kind::Read | Kind::Write)) {
            Some(_) => self.recover_client_method(row, id, By::Acpd, out),
            None => {
                out.records.push(Record::InteractionGone { id: row.id });
                if let Some(&slot) = self.hosts.get(&row.host) {
                    let error = ErrorObject::new(code::INTERNAL, "acpd was restarted meanwhile");
                    self.host_write(slot, build::error(&id, &error), out);
                }
            }
        }
        true
    }

    /// The owner, if it can do it; acpd, if it offers that; else nobody.
    fn who_does(&self, key: SessionKey, kind: Kind) -> Option<By> {
        let session = self.session(key);
        let can = |client: &ClientId| {
            let here = self.clients.get(client).filter(|_| self.may_serve(*client, key));
            here.is_some_and(|here| match kind {
                Kind::Read => here.capabilities.fs_read,
                Kind::Write => here.capabilities.fs_write,
                Kind::Terminal => here.capabilities.terminal,
                Kind::Call(_) => false,
                Kind::Extension => true,
            })
        };
        let sender = session.running.as_ref().and_then(|turn| turn.sender.as_ref());
        let sender = sender.map(|to| to.client).filter(|client| self.clients.contains_key(client));
        // Connections are numbered as they come.
        let owner = sender.or_else(|| session.attached.keys().rev().find(|of| can(of)).copied());
        if let Some(client) = owner.filter(can) {
            return Some(By::Client(client));
        }
        let services = self.profile_of(session.slot).services;
        let offered = match kind {
            Kind::Read | Kind::Write => services.fs,
            Kind::Terminal => services.terminal,
            Kind::Call(_) | Kind::Extension => false,
        };
        offered.then_some(By::Acpd)
    }

    /// Whether an agent's requests about a session may be given to a client.
    pub(crate) fn may_serve(&self, client: ClientId, key: SessionKey) -> bool {
        self.is_controller(client, key) && self.may_decide(client)
    }

    fn begin_client_method(&mut self, id: InteractionId, out: &mut Batch) {
        let Some(client_method) = self.client_methods.get(&id) else { return };
        match client_method.by {
            By::Client(client) => {
                let line =
                    self.for_viewer(client, client_method.session, client_method.line.clone());
                let line = set_id(&line, &Id::from(id.0));
                out.effects.push(Effect::Send { client, line });
            }
            By::Acpd => match self.own_part(id, client_method) {
                Ok(effect) => out.effects.extend(effect),
                Err(text) => {
                    let error = ErrorObject::new(code::INVALID_PARAMS, text);
                    self.end_client_method(id, |id| build::error(id, &error), out);
                }
            },
        }
    }

    /// What acpd is to do at once; nothing for a wait, which the end of the command answers.
    fn own_part(
        &self,
        id: InteractionId,
        client_method: &ClientMethod,
    ) -> Result<Option<Effect>, String> {
        let ClientMethod { session, host, line, .. } = client_method;
        Ok(match Kind::of_line(line) {
            Some(Kind::Terminal) => {
                let new = Box::new(self.terminal_to_make(*session, *host, line)?);
                Some(Effect::CreateTerminal { terminal: id, new })
            }
            Some(Kind::Call(Call::Output)) => {
                let terminal = own_terminal(line).ok_or("`terminalId` is none of acpd's")?;
                Some(Effect::TerminalOutput { request: id, terminal })
            }
            Some(Kind::Call(_)) => None,
            _ => {
                let (roots, service) = (self.roots(*session), file_service(line)?);
                Some(Effect::Serve { host: *host, request: id, roots, service })
            }
        })
    }

    /// The folders that a session works in, its working directory first.
    fn roots(&self, key: SessionKey) -> Vec<String> {
        let row = &self.session(key).row;
        let more = locate(&row.params, &["additionalDirectories"]);
        let more = more.and_then(|at| serde_json::from_slice::<Vec<String>>(&row.params[at]).ok());
        std::iter::once(row.cwd.clone()).chain(more.unwrap_or_default()).collect()
    }

    /// acpd has done it.
    pub(crate) fn on_served(
        &mut self,
        client_method: InteractionId,
        result: Result<Bytes, ServeError>,
        out: &mut Batch,
    ) {
        let Some(done) = self.client_methods.get(&client_method) else { return };
        let (session, host) = (done.session, done.host);
        let result = match result {
            Ok(_) if Kind::of_line(&done.line) == Some(Kind::Terminal) => {
                self.own_terminal_made(session, host, client_method, out)
            }
            result => result,
        };
        let answer = |id: &Id| match &result {
            Ok(result) => set_member(&build::response(id, &json!(null)), &["result"], result),
            Err(ServeError { code, message }) => {
                build::error(id, &ErrorObject::new(*code, message.clone()))
            }
        };
        self.end_client_method(client_method, answer, out);
    }

    /// A client's answer to such a request; whether it was one.
    pub(crate) fn client_method_answered(
        &mut self,
        client: ClientId,
        id: &Id,
        line: &Bytes,
        outcome: &Outcome<'_>,
        out: &mut Batch,
    ) -> bool {
        let Some(client_method) = id.as_u64().map(InteractionId) else { return false };
        let Some(open) =
            self.client_methods.get(&client_method).filter(|open| open.by == By::Client(client))
        else {
            return false;
        };
        let is_read = str_at(&open.line, &["method"]).as_deref() == Some("fs/read_text_file");
        if let (Outcome::Error(error), true) = (outcome, is_read)
            && ErrorObject::from_raw(error).code == code::METHOD_NOT_FOUND
        {
            // It said that it could, and cannot.
            self.give_to_acpd(client_method, out);
            return true;
        }
        let is_made = Kind::of_line(&open.line) == Some(Kind::Terminal);
        let line = match outcome {
            Outcome::Result(_) if is_made => self.editor_terminal_made(open.session, client, line),
            _ => line.clone(),
        };
        self.end_client_method(client_method, |id| set_id(&line, id), out);
        true
    }

    fn give_to_acpd(&mut self, client_method: InteractionId, out: &mut Batch) {
        if let Some(open) = self.client_methods.get_mut(&client_method) {
            open.by = By::Acpd;
        }
        self.begin_client_method(client_method, out);
    }

    /// A client that was carrying out requests is gone.
    pub(crate) fn client_methods_of_gone(&mut self, client: ClientId, out: &mut Batch) {
        let of_client = |client_method: &ClientMethod| client_method.by == By::Client(client);
        let open: Vec<_> =
            self.client_methods.iter().filter(|(_, e)| of_client(e)).map(|(id, _)| *id).collect();
        for client_method in open {
            let line = &self.client_methods[&client_method].line;
            if str_at(line, &["method"]).as_deref() == Some("fs/read_text_file") {
                self.give_to_acpd(client_method, out);
            } else {
                let text = "the editor that was doing it is gone";
                let error = ErrorObject::new(code::INTERNAL, text);
                self.end_client_method(client_method, |id| build::error(id, &error), out);
            }
        }
    }

    /// `$/cancel_request` of an agent for such a request; whether it was one.
    pub(crate) fn cancel_client_method(
        &mut self,
        host: HostId,
        request: &Id,
        out: &mut Batch,
    ) -> bool {
        let wanted = |client_method: &ClientMethod| {
            client_method.host == host && client_method.agent_request == *request
        };
        let Some((&client_method, _)) =
            self.client_methods.iter().find(|(_, client_method)| wanted(client_method))
        else {
            return false;
        };
        let error = ErrorObject::new(code::CANCELLED, "cancelled by the agent");
        self.withdraw_client_method(client_method, &error, out);
        true
    }

    /// Waits of a session for the end of a command, of those whose line is meant.
    pub(crate) fn waits(
        &self,
        key: SessionKey,
        is_meant: impl Fn(&[u8]) -> bool,
    ) -> Vec<InteractionId> {
        let is_wait = |client_method: &ClientMethod| {
            client_method.session == key
                && Kind::of_line(&client_method.line) == Some(Kind::Call(Call::Wait))
                && is_meant(&client_method.line)
        };
        self.client_methods
            .iter()
            .filter(|(_, client_method)| is_wait(client_method))
            .map(|(id, _)| *id)
            .collect()
    }

    /// Answers a request with an error, whoever is doing it.
    pub(crate) fn withdraw_client_method(
        &mut self,
        client_method: InteractionId,
        error: &ErrorObject,
        out: &mut Batch,
    ) {
        if let Some(open) = self.client_methods.get(&client_method) {
            stop_client_method(client_method, open, out);
        }
        self.end_client_method(client_method, |id| build::error(id, error), out);
    }

    /// A session is deleted: nothing is done for it any more.
    pub(crate) fn withdraw_client_methods(&mut self, key: SessionKey, out: &mut Batch) {
        let of_session =
            self.client_methods.iter().filter(|(_, client_method)| client_method.session == key);
        let open: Vec<_> = of_session.map(|(id, _)| *id).collect();
        for client_method in open {
            let error = ErrorObject::new(code::INTERNAL, "the session was deleted");
            self.withdraw_client_method(client_method, &error, out);
        }
    }

    /// The process that asked is gone.
    pub(crate) fn drop_client_methods(&mut self, host: HostId, out: &mut Batch) {
        let gone =
            self.client_methods.extract_if(.., |_, client_method| client_method.host == host);
        for (id, client_method) in gone.collect::<Vec<_>>() {
            out.records.push(Record::InteractionGone { id });
            stop_client_method(id, &client_method, out);
        }
    }

    pub(crate) fn end_client_method(
        &mut self,
        client_method: InteractionId,
        answer: impl FnOnce(&Id) -> Bytes,
        out: &mut Batch,
    ) {
        let Some(done) = self.client_methods.remove(&client_method) else { return };
        out.records.push(Record::InteractionGone { id: client_method });
        if let Some(&slot) = self.hosts.get(&done.host) {
            self.host_write(slot, answer(&done.agent_request), out);
        }
    }
}

/// Tells who is doing it that nobody waits for it any more.
fn stop_client_method(id: InteractionId, client_method: &ClientMethod, out: &mut Batch) {
    match client_method.by {
        By::Client(client) => {
            let line = build::notification("$/cancel_request", &json!({ "requestId": id.0 }));
            out.effects.push(Effect::Send { client, line });
        }
        By::Acpd if Kind::of_line(&client_method.line) == Some(Kind::Terminal) => {
            // The agent will never know that it was made.
            out.effects.push(Effect::ReleaseTerminal { terminal: id });
        }
        By::Acpd => {}
    }
}

/// What acpd is to do with a file.
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
