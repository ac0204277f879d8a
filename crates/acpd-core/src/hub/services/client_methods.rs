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
use crate::client_methods::{By, Call, ClientMethod, Kind, file_service};
use crate::hub::Hub;
use crate::ids::{ClientId, HostId, InteractionId, Process, SessionKey};
use crate::input::{Batch, Effect, ServeError, ToClient};
use crate::record::{InteractionRow, Record};

impl Hub {
    /// A request of an agent that is not for a person; whether it was taken.
    pub(crate) fn client_method_asked(
        &mut self,
        process: Process,
        id: &Id,
        method: &str,
        line: &Bytes,
        out: &mut Batch,
    ) -> bool {
        let Some(kind) = Kind::of(method) else { return false };
        let session = str_at(line, &["params", "sessionId"]);
        let key = session.and_then(|id| self.sessions.routed(process.slot, &id));
        let Some(key) = key else { return false };
        let line = self.to_public_id(key, line.clone());
        let given = match kind {
            Kind::Call(call) => self.terminal_called(key, call, id, &line, out),
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
                self.host_write(process.slot, build::error(id, &error), out);
                return true;
            }
        };
        let row = InteractionRow {
            id: InteractionId(self.ids.issue()),
            session: Some(key),
            host: process.host,
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
        self.client_methods.check_room(key)?;
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
        let method = ClientMethod { session, host: row.host, agent_request, line, by };
        self.client_methods.open(row.id, method);
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
                if let Some(slot) = self.processes.slot_of(row.host) {
                    let error = ErrorObject::new(code::INTERNAL, "acpd was restarted meanwhile");
                    self.host_write(slot, build::error(&id, &error), out);
                }
            }
        }
        true
    }

    /// The owner if it offers the method, else acpd if it does, else none.
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
        let mut senders = session.running.iter().flat_map(|turn| &turn.senders).map(|to| to.client);
        let sender = senders.find(|client| self.clients.contains_key(client));
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

    /// Returns whether an agent's requests about a session may go to a client.
    pub(crate) fn may_serve(&self, client: ClientId, key: SessionKey) -> bool {
        self.is_controller(client, key) && self.may_decide(client)
    }

    fn begin_client_method(&mut self, id: InteractionId, out: &mut Batch) {
        let Some(method) = self.client_methods.get(id) else { return };
        match method.by {
            By::Client(client) => {
                let line = self.for_viewer(client, method.session, method.line.clone());
                let line = set_id(&line, &Id::issued(id.0));
                out.effects.push(Effect::Client(client, ToClient::Line(line)));
            }
            By::Acpd => match self.own_part(id, method) {
                Ok(effect) => out.effects.extend(effect),
                Err(text) => {
                    let error = ErrorObject::new(code::INVALID_PARAMS, text);
                    self.end_client_method(id, |id| build::error(id, &error), out);
                }
            },
        }
    }

    /// Returns acpd's work for a request; `None` for a wait, which ends with the command.
    fn own_part(&self, id: InteractionId, method: &ClientMethod) -> Result<Option<Effect>, String> {
        let ClientMethod { session, host, line, .. } = method;
        Ok(match method.kind() {
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
    pub(crate) fn roots(&self, key: SessionKey) -> Vec<String> {
        let row = &self.session(key).row;
        let more = locate(&row.params, &["additionalDirectories"]);
        let more = more.and_then(|at| serde_json::from_slice::<Vec<String>>(&row.params[at]).ok());
        std::iter::once(row.cwd.clone()).chain(more.unwrap_or_default()).collect()
    }

    pub(crate) fn on_served(
        &mut self,
        id: InteractionId,
        result: Result<Bytes, ServeError>,
        out: &mut Batch,
    ) {
        if self.on_file_seen(id, &result, out) {
            return;
        }
        let Some(done) = self.client_methods.get(id) else { return };
        let (session, host) = (done.session, done.host);
        let result = match result {
            Ok(_) if done.kind() == Some(Kind::Terminal) => {
                self.own_terminal_made(session, host, id, out)
            }
            result => result,
        };
        let answer = |id: &Id| match &result {
            Ok(result) => set_member(&build::response(id, &json!(null)), &["result"], result),
            Err(ServeError { code, message }) => {
                build::error(id, &ErrorObject::new(*code, message.clone()))
            }
        };
        self.end_client_method(id, answer, out);
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
        let Some(id) = id.as_issued().map(InteractionId) else { return false };
        let open = self.client_methods.get(id).filter(|open| open.by == By::Client(client));
        let Some(open) = open else { return false };
        if let (Outcome::Error(error), Some(Kind::Read)) = (outcome, open.kind())
            && ErrorObject::from_raw(error).code == code::METHOD_NOT_FOUND
        {
            // The client declared the method but does not have it.
            self.give_to_acpd(id, out);
            return true;
        }
        let line = match (outcome, open.kind()) {
            (Outcome::Result(_), Some(Kind::Terminal)) => {
                let editor = self.clients.get(&client).map_or(0, |client| client.view.editor);
                self.terminals.made_by_editor(open.session, editor, line)
            }
            _ => line.clone(),
        };
        self.end_client_method(id, |id| set_id(&line, id), out);
        true
    }

    fn give_to_acpd(&mut self, id: InteractionId, out: &mut Batch) {
        self.client_methods.give_to_acpd(id);
        self.begin_client_method(id, out);
    }

    /// A client that was carrying out requests is gone.
    pub(crate) fn client_methods_of_gone(&mut self, client: ClientId, out: &mut Batch) {
        for id in self.client_methods.which(|method| method.by == By::Client(client)) {
            let kind = self.client_methods.get(id).and_then(ClientMethod::kind);
            if kind == Some(Kind::Read) {
                self.give_to_acpd(id, out);
            } else {
                let text = "the editor that was doing it is gone";
                let error = ErrorObject::new(code::INTERNAL, text);
                self.end_client_method(id, |id| build::error(id, &error), out);
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
        let is_it = |method: &ClientMethod| method.host == host && method.agent_request == *request;
        let Some(&id) = self.client_methods.which(is_it).first() else { return false };
        let error = ErrorObject::new(code::CANCELLED, "cancelled by the agent");
        self.withdraw_client_method(id, &error, out);
        true
    }

    /// A session is deleted: nothing is done for it any more.
    pub(crate) fn withdraw_client_methods(&mut self, key: SessionKey, out: &mut Batch) {
        let error = ErrorObject::new(code::INTERNAL, "the session was deleted");
        for id in self.client_methods.which(|method| method.session == key) {
            self.withdraw_client_method(id, &error, out);
        }
    }

    /// Drops all waits for the commands of a session.
    pub(crate) fn withdraw_waits(&mut self, key: SessionKey, error: &ErrorObject, out: &mut Batch) {
        for wait in self.client_methods.waits(key, |_| true) {
            self.withdraw_client_method(wait, error, out);
        }
    }

    /// Answers a request with an error, in place of its executor.
    fn withdraw_client_method(&mut self, id: InteractionId, error: &ErrorObject, out: &mut Batch) {
        let answer = self.client_methods.withdraw(id, error, out);
        self.write_answer(answer, out);
    }

    pub(crate) fn end_client_method(
        &mut self,
        id: InteractionId,
        answer: impl FnOnce(&Id) -> Bytes,
        out: &mut Batch,
    ) {
        let answer = self.client_methods.end(id, answer, out);
        self.write_answer(answer, out);
    }
}
