//! Requests and notifications of clients. `initialize` binds a connection to one agent profile, in
//! which session ids are resolved. A known result of `initialize` and known sessions
//! (`session/load`, `resume`, `list`, `close`) need no agent; other methods are relayed.
//!
//! While the journal cannot be written, requests are still accepted:
//!
//! ```text
//!  request ─▶ accepted ─▶ its batch is committed ─▶ its answer
//!                 │ the batch cannot be written
//!                 ├─ it only reads ────────▶ its answer, at once
//!                 ├─ `initialize` ─────────▶ an error at once; the client can send it again
//!                 └─ it changes something ─▶ an error at once; a later answer is dropped
//! ```
//!
//! The batch is kept and retried, so the request may still be carried out. The error says so: a
//! client that sends the request again may have it carried out twice.

use std::mem::{replace, take};

use acp_wire::acp::{PromptParams, SetModeParams, cancelled_request};
use acp_wire::dialect::{MODE_OPTION, Request};
use acp_wire::{Body, ErrorObject, Head, Id, Malformed, Message, Outcome, build, code, str_at};
use acpd_api::method::{CLIENT_LEAVE, DAEMON_RESTART, DAEMON_STOP, MethodEffect, SESSION_LOG};
use acpd_api::{Reason, Role, is_own, method};
use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;

use crate::clients::{Asked, Served};
use crate::fault::{Fault, store_fault};
use crate::hub::Hub;
use crate::ids::{ClientId, Requester, SessionKey};
use crate::input::{Accepted, Batch, Effect, ReadStyle, ToClient};
use crate::mcp::client_servers::{CallEnd, MESSAGE};
use crate::params::raw_at;
use crate::process::slot::{WaitFor, Waiting};
use crate::record::Dormant;

impl Hub {
    pub(crate) fn on_client_line(&mut self, client: ClientId, body: Body) {
        let line = match body {
            Body::Line(line) => line,
            Body::Oversized { head, len, .. } => {
                return self.on_client_oversized(client, &head, len);
            }
        };
        acp_wire::receive(&line, None, |message, line, is_intact| {
            if self.admit(client, message.as_ref().ok()) {
                self.client_said(client, message, line, is_intact);
            }
        });
    }

    fn client_said(
        &mut self,
        client: ClientId,
        message: Result<Message<'_>, Malformed>,
        line: &Bytes,
        is_intact: bool,
    ) {
        let is_first =
            matches!(&message, Ok(Message::Request { method, .. }) if method == "initialize");
        let is_last =
            matches!(&message, Ok(Message::Notification { method, .. }) if method == CLIENT_LEAVE);
        if !is_first && !is_last {
            self.clients.count_line(client);
        }
        match message {
            Err(malformed) => {
                let error = ErrorObject::new(malformed.code(), malformed.to_string());
                let answer = build::error(&Id::null(), &error);
                // Urgent, like every answer that changes nothing: answers keep their order.
                self.cx.out.urgent.push(Effect::Client(client, ToClient::Line(answer)));
                self.answer_unreadable(client, &Head::of(line), &malformed.to_string());
            }
            Ok(Message::Response { id, outcome }) => {
                self.on_client_answer(client, &id, line, outcome, is_intact);
            }
            Ok(Message::Notification { method, params }) => {
                self.client_notified(client, &method, params, line);
            }
            Ok(Message::Request { id, method, params }) => {
                let to = Requester::new(client, id);
                let own = self.clients.version_of(client).request(&method, line);
                let asked = match &own {
                    Ok(Some(Request { method, line })) => {
                        Asked { to: &to, method, params: raw_at(line, &["params"]), line }
                    }
                    Ok(None) | Err(_) => Asked { to: &to, method: &method, params, line },
                };
                let (method, forbidden) = (asked.method, own.as_ref().err());
                // Reactions to an evicted connection are no part of the request.
                self.route();
                let before = take(&mut self.cx.out);
                let accepted = self.accept(&to, method);
                if let Err(fault) = &accepted {
                    self.send_lines(None, [(client, build::error(&to.id, &fault.object()))]);
                } else if let Some(error) = forbidden {
                    self.respond(&to, None, build::error(&to.id, error));
                } else if let Err(fault) = self.client_asked(asked) {
                    self.refuse(&to, &fault);
                }
                self.route();
                let mut served = replace(&mut self.cx.out, before);
                // A log shows the journal, so it waits for lines that are being written.
                let only_reads = is_reading(method) && method != SESSION_LOG;
                let from_memory = (only_reads || accepted.is_err()) && served.records.is_empty();
                if self.cx.is_failing() || from_memory {
                    // Do not wait for the store, which may be about to fail.
                    self.cx.out.urgent.append(&mut served.effects);
                } else {
                    served.accepted.push(Accepted { to, is_initialize: is_first });
                }
                self.cx.out.append(served);
            }
        }
    }

    /// Handles an unreadable answer: a program's work has failed, and a question is asked again.
    /// Returns whether a request with that id was open.
    fn answer_unreadable(&mut self, client: ClientId, head: &Head, reason: &str) -> bool {
        let Head { id: Some(id), has_method: false } = head else { return false };
        let text = format!("the client's answer cannot be read: {reason}");
        let failed = build::error(id, &ErrorObject::new(code::INTERNAL, text));
        let Ok(Message::Response { outcome, .. }) = acp_wire::parse(&failed) else { return false };
        self.on_client_answer(client, id, &failed, outcome, false)
    }

    /// Returns whether a request with that id was open.
    fn on_client_answer(
        &mut self,
        client: ClientId,
        id: &Id,
        line: &Bytes,
        outcome: Outcome<'_>,
        is_intact: bool,
    ) -> bool {
        let number = self.clients.number_of(client);
        let (cx, editor) = (&mut self.cx, (client, number));
        if self.services.on_client_answer(cx, editor, id, line, &outcome)
            || self.client_servers.on_client_answer(cx, number, id, line)
        {
            return true;
        }
        // Duplicate members are no consent.
        let answer = if is_intact { outcome } else { Outcome::Result(RawValue::NULL) };
        self.on_question_answer(client, id, &answer, line)
    }

    fn on_client_oversized(&mut self, client: ClientId, head: &Bytes, len: u64) {
        if !self.admit(client, None) {
            return;
        }
        let limit = self.cx.config.line_limit;
        let (text, hint) = if len > limit {
            let text = format!("a line of {len} bytes is over the limit of {limit}");
            (text, "raise `line_limit` under `[daemon]` in the configuration")
        } else {
            let text = format!(
                "a line of {len} bytes was dropped: the first line of a connection has a limit of 64 KiB, and all \
                 connections share one for lines that are not complete"
            );
            (text, "begin with a short line, such as `initialize`, and send this one again")
        };
        self.clients.count_line(client);
        let head = Head::of(head);
        if self.answer_unreadable(client, &head, &text) {
            return;
        }
        let fault = Fault::new(Reason::LineTooLong, text).with_code(code::INVALID_REQUEST);
        let fault = fault.hint(hint);
        let id = head.id.unwrap_or_else(Id::null);
        let line = build::error(&id, &fault.object());
        self.cx.out.urgent.push(Effect::Client(client, ToClient::Line(line)));
    }

    fn accept(&mut self, to: &Requester, method: &str) -> Result<(), Fault> {
        // These need no store: the daemon may end as if it had been killed.
        let ends = matches!(method, DAEMON_STOP | DAEMON_RESTART);
        match store_fault(&self.cx.store).filter(|_| !is_reading(method) && !ends) {
            Some(fault) => Err(fault),
            None => self.clients.accept(&mut self.cx, to, method),
        }
    }

    fn admit(&mut self, client: ClientId, message: Option<&Message<'_>>) -> bool {
        self.clients.admit(&mut self.cx, client, message, &|id| self.watch.has(id))
    }

    fn client_asked(&mut self, asked: Asked<'_>) -> Served {
        let Asked { to, method, params, line } = asked;
        self.may_send(to.client, method, params)?;
        if method == "initialize" {
            return self.initialize(asked);
        }
        if is_own(method) {
            return self.manage(asked);
        }
        let profile = self.clients[&to.client].profile.clone().ok_or_else(|| {
            Fault::invalid(format!("`{method}` came before `initialize`"))
                .with_code(code::INVALID_REQUEST)
        })?;
        // These name other requests by ids, which differ at the agent.
        if method.starts_with("$/") || method == MESSAGE {
            return Err(Fault::invalid(format!("`{method}` is not a request"))
                .with_code(code::METHOD_NOT_FOUND));
        }
        match method {
            "session/new" => return self.new_session(to.clone(), &profile, params),
            "session/fork" => return self.fork_session(asked, &profile),
            "session/list" => return self.list_sessions(asked, &profile),
            _ => {}
        }
        let session = str_at(line, &["params", "sessionId"]);
        let Some(session) = session else {
            let name = method.strip_prefix("session/").unwrap_or_default();
            if ["load", "resume", "close", "delete", "prompt"].contains(&name) {
                return Err(Fault::invalid(format!("`{method}` needs a `sessionId`")));
            }
            let slot = self.processes.shared(&profile, self.cx.now);
            let what = WaitFor::Relay { method: method.to_owned(), line: line.clone() };
            return self.with_agent(slot, Waiting::new(to.clone(), what));
        };
        let Some(key) = self.sessions.by_public_id(&profile, &session) else {
            self.sessions.refuse_for_child(&profile, method, &session)?;
            // The client may follow a session of another agent.
            if method == "session/close"
                && self.clients.version_of(to.client).closes_unknown()
                && self.sessions.of_any_agent(&session).is_none()
            {
                self.answer(to, &json!({}));
                return Ok(());
            }
            return self.ask_about_foreign(asked, &profile, &session);
        };
        if !matches!(method, "session/load" | "session/resume" | "session/status") {
            self.clients.may_control(to.client, key)?;
        }
        match method {
            "session/load" => self.open_session(asked, key, ReadStyle::History)?,
            "session/resume" => self.open_session(asked, key, ReadStyle::Resume)?,
            "session/close" | "session/delete" | "session/archive" | "session/unarchive" => {
                match method {
                    "session/close" => self.close_for(to.client, key),
                    "session/delete" => self.delete_for(to.client, key)?,
                    "session/archive" => self.archive_for(Some(to.client), key)?,
                    // `session/unarchive`.
                    _ => self.set_archived(key, false),
                }
                self.answer(to, &json!({}));
            }
            "_session/steering" | "session/inject" => {
                self.ensure_attached(to.client, key);
                self.steer(asked, key)?;
            }
            "session/status" => {
                let status = if self.session(key).is_open() { "open" } else { "saved" };
                self.answer(to, &json!({ "status": status }));
            }
            "session/set_title" => self.set_title(asked, key)?,
            "tool_call/cancel" | "terminal/cancel" if !self.keeps_originals(key) => {
                let text =
                    "the item cannot be cancelled alone: its agent is not up, or speaks version 1";
                let hint = "cancel the turn: `session/cancel`";
                return Err(Fault::invalid(text).hint(hint));
            }
            "session/prompt" => {
                let params = params.ok_or_else(|| Fault::invalid("`params` is missing"))?;
                PromptParams::from_raw(params).map_err(|e| Fault::invalid(e.to_string()))?;
                self.ensure_attached(to.client, key);
                self.prompt(to.clone(), key, line.clone())?;
            }
            _ => {
                if self.session(key).row.rest == Dormant::Lost {
                    return Err(self.session(key).lost_fault());
                }
                self.ensure_attached(to.client, key);
                let mode = self.as_mode(&asked, key);
                let asked = mode.as_ref().map_or(asked, |line| {
                    let params = raw_at(line, &["params"]);
                    Asked { to, method: "session/set_mode", params, line }
                });
                self.relay_later(asked, key);
            }
        }
        Ok(())
    }

    /// Returns the change of the session's mode that a client asks for as a change of an option,
    /// because its version has no modes.
    fn as_mode(&self, asked: &Asked<'_>, key: SessionKey) -> Option<Bytes> {
        let Asked { to, method, line, .. } = asked;
        let of = |name| str_at(line, &["params", name]);
        let row = &self.session(key).row;
        let is_mode = *method == "session/set_config_option"
            && self.clients.version_of(to.client).has_modes_as_option()
            && of("configId").as_deref() == Some(MODE_OPTION)
            && row.mode.is_some()
            && !row.options.contains_key(MODE_OPTION);
        let mode = of("value").filter(|_| is_mode)?;
        let params = SetModeParams { session_id: &row.public_id, mode_id: &mode };
        Some(build::request(&to.id, "session/set_mode", &params))
    }

    fn ensure_attached(&mut self, client: ClientId, key: SessionKey) {
        if !self.clients.is_attached(client, key) {
            let head = self.session(key).head;
            self.attach(client, key, Role::Controller, Some(head), ReadStyle::Resume);
        }
    }

    fn client_notified(
        &mut self,
        client: ClientId,
        method: &str,
        params: Option<&RawValue>,
        line: &Bytes,
    ) {
        if self.may_send(client, method, params).is_err() {
            return;
        }
        if matches!(method, "$/cancel_request" | "$/cancelRequest") {
            if let Some(id) = params.and_then(cancelled_request) {
                self.cancel_request(&Requester::new(client, id));
            }
            return;
        }
        if method == method::CLIENT_ANSWERED {
            return self.clients.on_replies_taken(&mut self.cx, client, params);
        }
        if method == CLIENT_LEAVE {
            if let Some(token) = self.clients.token_of(client).map(str::to_owned) {
                self.forget_resumable(&token);
            }
            return;
        }
        if method == MESSAGE {
            let number = self.clients.number_of(client);
            return self.client_servers.on_client_notification(&mut self.cx, number, line);
        }
        // From a newer client, and not for agents.
        if is_own(method) {
            return;
        }
        let Some(profile) = self.clients[&client].profile.clone() else { return };
        let Some(session) = str_at(line, &["params", "sessionId"]) else {
            let slot = self.processes.shared(&profile, self.cx.now);
            if self.processes[&slot].is_up() {
                self.processes.notify(&mut self.cx, slot, line.clone());
            }
            return;
        };
        let Some(key) = self.sessions.by_public_id(&profile, &session) else {
            if method == "session/cancel" {
                self.cancel_child(client, &profile, &session, line);
            }
            return;
        };
        if self.clients.may_control(client, key).is_err() {
            return;
        }
        if method == "session/cancel" {
            let by = self.clients.name_of(client, None);
            self.cancel(key, by, Some(line.clone()));
        } else if self.session(key).is_live() {
            let slot = self.session(key).slot;
            let line = self.session(key).to_agent_id(line.clone());
            self.processes.notify(&mut self.cx, slot, line);
        }
    }

    /// `$/cancel_request` of a client. Never forwarded verbatim, because ids differ at the agent.
    fn cancel_request(&mut self, to: &Requester) {
        let prompt = self
            .sessions
            .awake()
            .find_map(|(key, session)| session.senders().any(|sender| sender == to).then_some(key));
        if let Some(key) = prompt {
            return self.cancel_prompt(to, key);
        }
        if self.forget_waiting(to) {
            let fault = Fault::new(Reason::Interrupted, "cancelled while it waited for the agent")
                .with_code(code::CANCELLED);
            return self.refuse(to, &fault);
        }
        if !self.client_servers.on_call_end(&mut self.cx, &CallEnd::ToolCancel(to))
            && !self.cancel_opener(to)
        {
            self.cancel_relayed(to);
        }
    }

    /// Answers the `accepted` requests of `batches` that cannot be written, in their order. Call
    /// after [`Input::StoreFailing`](crate::Input::StoreFailing).
    pub fn answer_unwritten(
        &mut self,
        accepted: Vec<Accepted>,
        batches: &mut [&mut Vec<Effect>],
        out: &mut Batch,
    ) {
        let Some(fault) = store_fault(&self.cx.store) else { return };
        for Accepted { to, is_initialize } in accepted {
            let is_open = self.clients.give_up(&to);
            let taken = if is_open { None } else { self.clients.take_answer(&to, batches) };
            match taken {
                None if !is_open => continue,
                Some(
                    answer @ Effect::Client(
                        _,
                        ToClient::Log(_)
                        | ToClient::LogLevel { .. }
                        | ToClient::Search { .. }
                        | ToClient::Status { .. }
                        | ToClient::Usage { .. },
                    ),
                ) => {
                    out.urgent.push(answer);
                    continue;
                }
                _ => {}
            }
            let mut fault = fault.clone();
            if is_initialize {
                if is_open {
                    self.forget_waiting(&to);
                    self.clients.close_request(&to);
                }
                self.clients.set_initialized(to.client, false);
            } else {
                fault.data.reason = Reason::OutcomeUnknown;
                fault.message +=
                    "; what was asked for may still be carried out when it can be written";
            }
            let line = build::error(&to.id, &fault.object());
            out.urgent.push(Effect::Client(to.client, ToClient::Line(line)));
        }
    }
}

fn is_reading(method: &str) -> bool {
    MethodEffect::of_method(method) == MethodEffect::Reads
}
