//! Client connections: what a client asks, and who answers it.
//!
//! A connection is bound to one agent profile by its `initialize`; session ids resolve inside it.
//! Some methods are answered from memory and journal without the agent (`initialize` when its result
//! is known, `session/load`, `resume`, `list`, `close` of known sessions), the others are relayed.

use std::collections::BTreeSet;

use acp_wire::acp::{ClientInitialize, PromptParams, SessionParams, cancelled_request};
use acp_wire::{
    Body, ErrorObject, Head, Id, Malformed, Message, Outcome, build, code, locate, remove_member,
    set_id, set_member, str_at,
};
use acpd_api::method::{self, CLIENT_LEAVE, DAEMON_RESTART, DAEMON_STOP, SESSION_LOG};
use acpd_api::{ClientMeta, NAMESPACE, NewSessionMeta, Reason, Role, is_own};
use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;

use crate::auth::changes_login;
use crate::clients::Naming;
use crate::clients::name::name_in;
use crate::clients::resumable::is_kept;
use crate::clients::{Asked, Open, Served};
use crate::cx::Cx;
use crate::fault::Fault;
use crate::hub::Hub;
use crate::hub::session::naming::NameClash;
use crate::ids::{ClientId, Requester, SessionKey, SlotId};
use crate::input::{Accepted, Batch, Effect, ReadStyle, ToClient, View};
use crate::mcp::client_servers::{CallEnd, MESSAGE};
use crate::mcp::put_names;
use crate::offer::offer;
use crate::params::{needs_store, own_meta, raw, session_cwd, valid_name};
use crate::process::slot::{Asker, Slot, WaitFor, Waiting};
use crate::profile::Profile;
use crate::record::Dormant;
use crate::requests::purpose::{Directory, NewSession, Purpose};
use crate::session::kin::{unrelated, with_parent};
use crate::session::{Relayed, State};

/// Requests of one client that may be open at once.
const OPEN_REQUESTS: usize = 128;

impl Hub {
    pub(crate) fn on_client_closed(&mut self, client: ClientId, out: &mut Batch) {
        let was_at = || {
            let places = self.sessions.iter();
            places.filter_map(|(key, at)| Some((*key, at.attached.get(&client)?.since))).collect()
        };
        let Some(gone) = self.clients.disconnect(client, was_at, self.now) else { return };
        step!(self.services.on_client_gone(client), out);
        self.end_server_calls(&CallEnd::ToolGone(client), out);
        self.questions.on_client_gone(client);
        self.watch.end(client);
        if gone.token.is_some() {
            self.went_away(client);
        } else {
            self.end_server_calls(&CallEnd::ClientGone(gone.number), out);
        }
        let mut slots = BTreeSet::new();
        for key in gone.sessions {
            let session = self.session_mut(key);
            session.attached.remove(&client);
            slots.insert(session.slot);
            if gone.token.is_some() {
                continue;
            }
            // The turn continues without a receiver of its response.
            let queued = session.queue.iter_mut().map(|prompt| &mut prompt.senders);
            for senders in queued.chain(session.running.iter_mut().map(|turn| &mut turn.senders)) {
                senders.retain(|to| to.client != client);
            }
        }
        for slot in slots {
            self.check_idle(slot, out);
        }
    }

    pub(crate) fn on_client_line(&mut self, client: ClientId, body: Body, out: &mut Batch) {
        let line = match body {
            Body::Line(line) => line,
            Body::Oversized { head, len, .. } => {
                return self.on_client_oversized(client, &head, len, out);
            }
        };
        if !self.clients.contains_key(&client) {
            return;
        }
        acp_wire::receive(&line, None, |message, line, is_intact| {
            if self.admit(client, message.as_ref().ok(), out) {
                self.client_said(client, message, line, is_intact, out);
            }
        });
    }

    fn client_said(
        &mut self,
        client: ClientId,
        message: Result<Message<'_>, Malformed>,
        line: &Bytes,
        is_intact: bool,
        out: &mut Batch,
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
                // As an answer that changes nothing: it comes before that of the next line.
                out.urgent.push(Effect::Client(client, ToClient::Line(answer)));
                self.answer_unreadable(client, &Head::of(line), &malformed.to_string(), out);
            }
            Ok(Message::Response { id, outcome }) => {
                if self.on_service_answer(client, &id, line, &outcome, out)
                    || self.on_server_answer(client, &id, line, out)
                {
                    return;
                }
                // Duplicate members are no consent.
                let outcome = if is_intact { outcome } else { Outcome::Result(RawValue::NULL) };
                self.on_question_answer(client, &id, &outcome, line, out);
            }
            Ok(Message::Notification { method, params }) => {
                self.client_notified(client, &method, params, line, out);
            }
            Ok(Message::Request { id, method, params }) => {
                let to = Requester { client, id };
                let asked = Asked { to: &to, method: &method, params, line };
                let mut served = Batch::default();
                let accepted = self.accept(&to, &method, &mut served);
                if let Err(fault) = &accepted {
                    self.send_error(&to, &fault.object(), &mut served);
                } else if let Err(fault) = self.client_asked(asked, &mut served) {
                    self.refuse(&to, &fault, &mut served);
                }
                // A log shows the journal, so it waits for what is on its way there.
                let only_reads = !needs_store(&method) && method != SESSION_LOG;
                let from_memory = (only_reads || accepted.is_err()) && served.records.is_empty();
                if self.store_health.is_failing() || from_memory {
                    // Changes nothing: it does not wait for the store, which may be about to fail.
                    out.urgent.append(&mut served.effects);
                } else {
                    served.accepted.push(Accepted { to, is_initialize: is_first });
                }
                out.append(served);
            }
        }
    }

    /// A malformed line was to be an answer: the work of a program has failed, and a question is
    /// asked again. Returns whether a request with that id was open.
    fn answer_unreadable(
        &mut self,
        client: ClientId,
        head: &Head,
        reason: &str,
        out: &mut Batch,
    ) -> bool {
        let Head { id: Some(id), has_method: false } = head else { return false };
        let text = format!("the client's answer cannot be read: {reason}");
        let failed = build::error(id, &ErrorObject::new(code::INTERNAL, text));
        let Ok(Message::Response { outcome, .. }) = acp_wire::parse(&failed) else { return false };
        let nothing = Outcome::Result(RawValue::NULL);
        self.on_service_answer(client, id, &failed, &outcome, out)
            || self.on_server_answer(client, id, &failed, out)
            || self.on_question_answer(client, id, &nothing, &failed, out)
    }

    fn on_client_oversized(&mut self, client: ClientId, head: &Bytes, len: u64, out: &mut Batch) {
        if !self.admit(client, None, out) {
            return;
        }
        let limit = self.config.line_limit;
        let is_over = len > limit;
        let text = if is_over {
            format!("a line of {len} bytes is over the limit of {limit}")
        } else {
            format!(
                "a line of {len} bytes was dropped: the first line of a connection has a limit of 64 KiB, and all \
                 connections share one for lines that are not complete"
            )
        };
        self.clients.count_line(client);
        let head = Head::of(head);
        if self.answer_unreadable(client, &head, &text, out) {
            return;
        }
        let fault = Fault::new(Reason::LineTooLong, text).with_code(code::INVALID_REQUEST).hint(
            if is_over {
                "raise `line_limit` under `[daemon]` in the configuration"
            } else {
                "begin with a short line, such as `initialize`, and send this one again"
            },
        );
        let id = head.id.unwrap_or_else(Id::null);
        let line = build::error(&id, &fault.object());
        out.urgent.push(Effect::Client(client, ToClient::Line(line)));
    }

    fn accept(&mut self, to: &Requester, method: &str, out: &mut Batch) -> Result<(), Fault> {
        // The daemon may end as if it had been killed.
        let ends = matches!(method, DAEMON_STOP | DAEMON_RESTART);
        if let Some(fault) = self.store_health.fault().filter(|_| needs_store(method) && !ends) {
            return Err(fault);
        }
        let Some(client) = self.clients.get(&to.client) else { return Ok(()) };
        if client.open.len() >= OPEN_REQUESTS {
            let text = format!("{OPEN_REQUESTS} requests of this connection are open already");
            return Err(Fault::new(Reason::TooMany, text));
        }
        if client.open.contains_key(&to.id) {
            let text = format!("a request with the id {} is open already", to.id);
            return Err(Fault::invalid(text).with_code(code::INVALID_REQUEST));
        }
        self.clients.room_for_reply(to, method, out)?;
        if let Some(client) = self.clients.get_mut(to.client) {
            let open = Open { kept: is_kept(method), given_up: false };
            client.open.insert(to.id.clone(), open);
        }
        Ok(())
    }

    fn client_asked(&mut self, asked: Asked<'_>, out: &mut Batch) -> Served {
        let Asked { to, method, params, line } = asked;
        self.may_send(to.client, method, params)?;
        if method == "initialize" {
            return self.initialize(asked, out);
        }
        if is_own(method) {
            return self.manage(asked, out);
        }
        let profile = self.clients[&to.client].profile.clone().ok_or_else(|| {
            Fault::invalid(format!("`{method}` came before `initialize`"))
                .with_code(code::INVALID_REQUEST)
        })?;
        // The request names others by ids, which differ at the agent: it would concern the wrong
        // ones.
        if method.starts_with("$/") || method == MESSAGE {
            return Err(Fault::invalid(format!("`{method}` is not a request"))
                .with_code(code::METHOD_NOT_FOUND));
        }
        if method == "session/new" {
            return self.new_session(to.clone(), &profile, params, out);
        }
        if method == "session/fork" {
            return self.fork_session(asked, &profile, out);
        }
        if method == "session/list" {
            return self.list_sessions(asked, &profile, out);
        }
        let session = str_at(line, &["params", "sessionId"]);
        let Some(session) = session else {
            if let Some(method) = ["load", "resume", "close", "delete", "prompt"]
                .iter()
                .find(|name| method.strip_prefix("session/") == Some(**name))
            {
                return Err(Fault::invalid(format!("`session/{method}` needs a `sessionId`")));
            }
            let slot = self.processes.shared(&profile, self.now);
            let what = WaitFor::Relay { method: method.to_owned(), line: line.clone() };
            return self.with_agent(slot, Waiting { to: to.clone(), what }, out);
        };
        let Some(key) = self.sessions.by_public_id(&profile, &session) else {
            self.sessions.refuse_for_child(&profile, method, &session)?;
            return self.ask_about_foreign(asked, &profile, &session, out);
        };
        if !matches!(method, "session/load" | "session/resume" | "session/status") {
            self.sessions.may_control(to.client, key)?;
        }
        match method {
            "session/load" => self.open_session(asked, key, ReadStyle::History, out)?,
            "session/resume" => self.open_session(asked, key, ReadStyle::Resume, out)?,
            "session/close" => {
                self.close_for(to.client, key, out);
                self.answer(to, &json!({}), out);
            }
            "session/delete" => {
                self.delete_for(to.client, key, out)?;
                self.answer(to, &json!({}), out);
            }
            "_session/steering" | "session/inject" => {
                self.ensure_attached(to.client, key, out);
                self.steer(asked, key, out)?;
            }
            "session/status" => self.send_session_status(to, key, out),
            "session/set_title" => self.set_title(asked, key, out)?,
            "session/archive" | "session/unarchive" => {
                self.archive_for(to.client, key, method == "session/archive", out)?;
                self.answer(to, &json!({}), out);
            }
            "session/prompt" => {
                let params = params.ok_or_else(|| Fault::invalid("`params` is missing"))?;
                PromptParams::from_raw(params).map_err(|e| Fault::invalid(e.to_string()))?;
                self.ensure_attached(to.client, key, out);
                self.prompt(to.clone(), key, line.clone(), out)?;
            }
            _ => {
                if self.session(key).row.rest == Dormant::Lost {
                    return Err(self.sessions.lost_fault(key));
                }
                self.ensure_attached(to.client, key, out);
                let relayed =
                    Relayed { to: to.clone(), method: method.to_owned(), line: line.clone() };
                self.session_mut(key).waiting.push(relayed);
                self.need_session(key, Asker::Person, out);
            }
        }
        Ok(())
    }

    fn ensure_attached(&mut self, client: ClientId, key: SessionKey, out: &mut Batch) {
        if !self.sessions.is_attached(client, key) {
            self.attach(client, key, Role::Controller, None, ReadStyle::Resume, out);
        }
    }

    fn client_notified(
        &mut self,
        client: ClientId,
        method: &str,
        params: Option<&RawValue>,
        line: &Bytes,
        out: &mut Batch,
    ) {
        if self.may_send(client, method, params).is_err() {
            return;
        }
        if matches!(method, "$/cancel_request" | "$/cancelRequest") {
            if let Some(id) = params.and_then(cancelled_request) {
                self.cancel_request(&Requester { client, id }, out);
            }
            return;
        }
        if method == method::CLIENT_ANSWERED {
            return self.replies_taken(client, params, out);
        }
        if method == CLIENT_LEAVE {
            return self.client_leaves(client, out);
        }
        if method == MESSAGE {
            return self.on_server_notification(client, line, out);
        }
        // Of a newer client; no agent's business.
        if is_own(method) {
            return;
        }
        let Some(profile) = self.clients[&client].profile.clone() else { return };
        let Some(session) = str_at(line, &["params", "sessionId"]) else {
            // About no session: for the agent, if it runs.
            let slot = self.processes.shared(&profile, self.now);
            if self.processes[&slot].is_up()
                && !self.processes.is_clogged(slot)
                && !self.store_health.is_failing()
            {
                self.processes.write(slot, line.clone(), out);
            }
            return;
        };
        let Some(key) = self.sessions.by_public_id(&profile, &session) else {
            if method == "session/cancel" {
                self.cancel_child(client, &profile, &session, line, out);
            }
            return;
        };
        if self.sessions.may_control(client, key).is_err() {
            return;
        }
        if method == "session/cancel" {
            let by = self.clients.name_of(client, None);
            self.cancel(key, by, Some(line.clone()), out);
        } else if matches!(self.session(key).state, State::Live) {
            let slot = self.session(key).slot;
            if self.processes.is_clogged(slot) || self.store_health.is_failing() {
                return;
            }
            let line = self.sessions.to_agent_id(key, line.clone());
            self.processes.write(slot, line, out);
        }
    }

    /// `$/cancel_request` names a request of this connection; it is never forwarded verbatim.
    fn cancel_request(&mut self, to: &Requester, out: &mut Batch) {
        let prompt = self.sessions.iter().find_map(|(key, session)| {
            session.senders().any(|sender| sender == to).then_some(*key)
        });
        if let Some(key) = prompt {
            return self.cancel_prompt(to, key, out);
        }
        if self.forget_waiting(to) {
            let fault = Fault::new(Reason::Interrupted, "cancelled while it waited for the agent")
                .with_code(code::CANCELLED);
            return self.refuse(to, &fault, out);
        }
        if !self.end_server_calls(&CallEnd::ToolCancel(to), out) && !self.cancel_opener(to, out) {
            self.cancel_relayed(to, out);
        }
    }

    /// Takes a request out of what waits for an agent or for a session; whether it was there.
    pub(crate) fn forget_waiting(&mut self, to: &Requester) -> bool {
        if self.processes.forget_waiting(to) || self.clients.forget_naming(to) {
            return true;
        }
        let sessions = self.sessions.values_mut();
        sessions.flat_map(|session| session.waiting.extract_if(.., |w| w.to == *to)).count() > 0
    }

    fn initialize(&mut self, asked: Asked<'_>, out: &mut Batch) -> Served {
        let Asked { to, params, .. } = asked;
        if self.is_initialized(to.client) {
            return Err(Fault::invalid("this connection is initialized already")
                .with_code(code::INVALID_REQUEST)
                .hint("open another connection"));
        }
        let params = params.ok_or_else(|| Fault::invalid("`params` is missing"))?;
        let asked =
            ClientInitialize::from_raw(params).map_err(|e| Fault::invalid(e.to_string()))?;
        if asked.protocol_version == 0 {
            return Err(Fault::version(asked.protocol_version));
        }
        let meta = asked.meta.map(|meta| own_meta::<ClientMeta>(meta.get())).transpose()?;
        let meta = meta.flatten().unwrap_or_default();
        let profile =
            meta.agent.unwrap_or_else(|| self.config.agent_for(meta.cwd.as_deref()).to_owned());
        if !self.config.agents.contains_key(&profile) {
            return Err(self.unknown_agent(&profile));
        }
        let Profile { fingerprint, client_meta, .. } = &self.config.agents[&profile];
        let (fingerprint, offer) =
            (fingerprint.clone(), offer(client_meta, asked.raw_capabilities));
        let client = to.client;
        if let Some(client) = self.clients.get_mut(to.client) {
            client.view = View {
                seq: meta.seq,
                notices: meta.notices,
                boolean_options: asked.capabilities.boolean_options,
                notice_updates: asked.capabilities.notices,
                compaction: asked.capabilities.compaction,
                plan: asked.capabilities.plan,
                subagents: asked.capabilities.subagents,
                max_line: meta.max_line.unwrap_or(0),
                editor: 0,
            };
            client.capabilities = asked.capabilities;
            client.offer.clone_from(&offer);
            client.profile = Some(profile.clone());
            client.role = meta.role.unwrap_or_default();
            client.name = name_in(asked.client_info.as_ref(), meta.place);
            client.under_agent |= meta.tool;
        }
        if let Some(named) = meta.client {
            self.name_client(client, named, out)?;
        }
        self.number_client(client);
        let comes_back = self.clients.get(&client).is_some_and(|client| client.resume.is_some());
        let known = self.processes.known(&profile);
        // Members that exist because of an offer are hidden from clients without it.
        let is_for_it = offer.is_none() || known.row.client_meta == offer;
        let is_current = comes_back || (known.row.fingerprint == fingerprint && is_for_it);
        if known.row.initialize.is_some() && is_current {
            self.send_initialized(to, &profile, out);
            return Ok(());
        }
        let slot = self.slot_for_offer(&profile, offer.as_deref(), out);
        let what = WaitFor::Initialize;
        let asked = self.with_agent(slot, Waiting { to: to.clone(), what }, out);
        self.remove_unused_slot(slot);
        if asked.is_err() && self.initialize_from_memory(to, &profile, out) {
            return Ok(());
        }
        asked
    }

    /// The agent does not run and will not for this client, whose offer it has not heard: what it said to
    /// another one is better than no connection. Whether it is told that.
    pub(crate) fn initialize_from_memory(
        &mut self,
        to: &Requester,
        profile: &str,
        out: &mut Batch,
    ) -> bool {
        let Some(config) = self.config.agents.get(profile) else { return false };
        let fingerprint = config.fingerprint.clone();
        let row = &self.processes.known(profile).row;
        let is_known = row.initialize.is_some() && row.fingerprint == fingerprint;
        if !is_known || !self.clients.contains_key(&to.client) {
            return false;
        }
        self.send_initialized(to, profile, out);
        true
    }

    /// Returns whether its `initialize` was answered, or waits for the agent. A failed one may be
    /// repeated.
    fn is_initialized(&self, client: ClientId) -> bool {
        self.clients.get(&client).is_some_and(|client| client.initialized)
            || self.processes.is_initializing(client)
    }

    /// The agent's own result, with what acpd adds to every agent.
    fn send_initialized(&mut self, to: &Requester, profile: &str, out: &mut Batch) {
        let Some(mut result) = self.processes.known(profile).row.initialize.clone() else { return };
        let session = ["agentCapabilities", "sessionCapabilities"];
        result = set_member(&result, &["agentCapabilities", "loadSession"], b"true");
        for name in ["list", "resume", "close", "delete", "archive", "status", "title"] {
            result = set_member(&result, &[session[0], session[1], name], b"{}");
        }
        if self.processes.known(profile).capabilities.steering.is_some() {
            result = set_member(&result, &["_meta", "steering", "supported"], b"true");
        }
        if self.can_fork(profile).is_err() {
            result = remove_member(&result, &[session[0], session[1], "fork"]);
        }
        result = set_member(&result, &["protocolVersion"], b"1");
        let mut own = json!({
            "version": self.config.daemon.version, "api": acpd_api::API_VERSION, "agent": profile,
            "generation": self.clients.generation(),
        });
        if self.config.daemon.hides_plans {
            own["showPlan"] = false.into();
        }
        if let Some((received, again)) = self.clients.resumed(to.client) {
            own["received"] = received.into();
            own["again"] = json!(again);
        }
        result = set_member(
            &result,
            &["agentCapabilities", "_meta", NAMESPACE],
            own.to_string().as_bytes(),
        );
        result = self.with_own_logins(to.client, profile, &result);
        let mut line = build::response(&to.id, &json!(null));
        line = set_member(&line, &["result"], &result);
        self.respond(to, None, line, out);
        if let Some(client) = self.clients.get_mut(to.client) {
            client.initialized = true;
        }
        self.catch_client_up(to.client, out);
    }

    /// Serves a request now if the agent is usable, or when it is.
    pub(crate) fn with_agent(
        &mut self,
        slot: SlotId,
        waiting: Waiting,
        out: &mut Batch,
    ) -> Result<(), Fault> {
        self.need_agent(slot, Asker::Person, out)?;
        if self.processes[&slot].is_up() {
            self.serve_waiting(slot, waiting, out);
        } else {
            self.processes.wait(slot, waiting);
        }
        Ok(())
    }

    pub(crate) fn serve_waiting(&mut self, slot: SlotId, waiting: Waiting, out: &mut Batch) {
        let Waiting { to, what } = waiting;
        if !self.clients.contains_key(&to.client) {
            return;
        }
        let Some(host) = self.processes[&slot].usable_host() else {
            return self.refuse(&to, &self.agent_fault(slot, Reason::AgentExited), out);
        };
        if self.processes.is_clogged(slot) {
            let fault = self.processes.clogged_fault(slot);
            return self.refuse(&to, &fault, out);
        }
        match what {
            WaitFor::Initialize => {
                let profile = self.processes[&slot].profile().to_owned();
                self.send_initialized(&to, &profile, out);
            }
            WaitFor::New(ref new) if new.directory != Directory::There => {
                self.find_directory_for(slot, Waiting { to, what }, out);
            }
            WaitFor::New(new) if new.fork.is_some() => self.ask_for_fork(slot, new, out),
            WaitFor::New(mut new) => {
                let (params, notices) = (&mut new.params, &mut new.notices);
                let (servers, params) =
                    self.gather_servers(slot, to.client, &new.cwd, params, notices);
                let ask = self.ask(host, Purpose::NewSession(new), out);
                let line = build::request(&Id::issued(ask), "session/new", &raw(&params));
                self.processes.write_named(slot, put_names(&line, &servers), out);
            }
            WaitFor::Adopt(adoption) => self.begin_adoption(slot, adoption, out),
            WaitFor::Relay { ref method, .. }
                if changes_login(method) && self.is_logging_in(slot) =>
            {
                self.processes.wait(slot, Waiting { to, what });
            }
            WaitFor::Relay { method, line } => {
                let params = locate(&line, &["params"]).filter(|_| method == "authenticate");
                let params = params.map(|range| line.slice(range));
                let why = Purpose::Relay { to, session: None, method, params };
                let ask = self.ask(host, why, out);
                self.processes.write(slot, set_id(&line, &Id::issued(ask)), out);
            }
        }
    }

    /// Gives a client's request about a live session to the agent.
    pub(crate) fn relay(&mut self, key: SessionKey, relayed: Relayed, out: &mut Batch) {
        let Relayed { to, method, line } = relayed;
        if method == "session/fork" {
            return self.begin_fork(key, to, &line, out);
        }
        let slot = self.session(key).slot;
        if self.processes.is_clogged(slot) {
            let fault = self.processes.clogged_fault(slot);
            return self.refuse(&to, &fault, out);
        }
        let Some(host) = self.processes[&slot].usable_host() else {
            return self.refuse(&to, &self.agent_fault(slot, Reason::AgentExited), out);
        };
        let params = locate(&line, &["params"]).map(|range| line.slice(range));
        let why = Purpose::Relay { to, session: Some(key), method, params };
        let ask = self.ask(host, why, out);
        let line = self.sessions.to_agent_id(key, set_id(&line, &Id::issued(ask)));
        self.processes.write(slot, line, out);
    }

    fn new_session(
        &mut self,
        to: Requester,
        profile: &str,
        params: Option<&RawValue>,
        out: &mut Batch,
    ) -> Result<(), Fault> {
        let raw = params.ok_or_else(|| Fault::invalid("`params` is missing"))?;
        let params = SessionParams::from_raw(raw);
        let cwd = session_cwd(raw, &params)?;
        let meta = params.meta.map(|meta| own_meta::<NewSessionMeta>(meta.get())).transpose()?;
        let meta = meta.flatten().unwrap_or_default();
        if let Some(name) = &meta.name {
            valid_name(name)?;
            match self.name_clash(profile, &cwd, name, None) {
                Some(NameClash::Session(key)) => {
                    return self.name_is_taken(&to, key, meta.reuse, raw, out);
                }
                Some(NameClash::BeingMade) => {
                    let params = raw.to_owned();
                    let (profile, name) = (profile.to_owned(), name.clone());
                    self.clients.wait_for_name(Naming { to, profile, cwd, name, params });
                    return Ok(());
                }
                None | Some(NameClash::OtherAgent(_)) => {}
            }
        }
        let mut params = unrelated(&Bytes::copy_from_slice(raw.get().as_bytes()));
        if let Some(number) = meta.parent {
            let what = "begin sessions for a session of another agent";
            let parent = self.sessions.by_number(number)?;
            self.must_be_its_own(to.client, parent, what)?;
            params = with_parent(&params, &self.parent_for(parent)?);
        }
        let (notices, directory) = (Vec::new(), Directory::Unknown);
        let new = NewSession {
            to: to.clone(),
            name: meta.name,
            cwd,
            params,
            notices,
            directory,
            fork: None,
        };
        let offer = self.clients.get(&to.client).and_then(|client| client.offer.clone());
        let slot = self.slot_for_new(profile, offer.as_deref(), out);
        let asked = self.with_agent(slot, Waiting { to, what: WaitFor::New(new) }, out);
        self.remove_unused_slot(slot);
        asked
    }

    /// Requests for a name whose session was being made go on when it is clear what became of it.
    pub(crate) fn settle_names(&mut self, out: &mut Batch) {
        let mut from = 0;
        while let Some(wait) = self.clients.naming().get(from) {
            if self.is_being_named(&wait.profile, &wait.cwd, &wait.name) {
                from += 1;
                continue;
            }
            let Naming { to, profile, params, .. } = self.clients.take_naming(from);
            if let Err(fault) = self.new_session(to.clone(), &profile, Some(&params), out) {
                self.refuse(&to, &fault, out);
            }
        }
    }

    /// Returns whether a session that is being made will have this name.
    pub(crate) fn is_being_named(&self, agent: &str, cwd: &str, name: &str) -> bool {
        let takes = |new: &NewSession| new.name.as_deref() == Some(name) && new.cwd == cwd;
        let slots = self.processes.values().filter(|slot| slot.profile() == agent);
        let waits = slots.flat_map(Slot::waiting).any(|waiting| match &waiting.what {
            WaitFor::New(new) => takes(new),
            WaitFor::Initialize | WaitFor::Adopt(_) | WaitFor::Relay { .. } => false,
        });
        waits
            || self.requests.new_sessions().any(|(host, new)| {
                let slot = self.processes.slot_of(host).filter(|_| takes(new));
                slot.is_some_and(|id| self.processes[&id].profile() == agent)
            })
    }
}
