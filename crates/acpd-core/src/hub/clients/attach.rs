//! Attached clients, the answer to `initialize`, and what a returning client has missed.

use acp_wire::{build, remove_member, set_member};
use acpd_api::{NAMESPACE, Resume, Role, SessionGone, method};
use serde_json::json;

use crate::hub::Hub;
use crate::ids::{ClientId, InteractionId, Requester, Seq, SessionKey};
use crate::input::{Effect, ReadStyle, ToClient, ValuesForm};
use crate::record::ReplyRow;
use crate::session::Session;
use crate::timers::Timer;
use crate::views::version2;

/// Returns the member of an answer that lists MCP servers which the session did not get.
pub(crate) fn ignored_servers(names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    format!("\"_meta\":{}", json!({ NAMESPACE: { "ignoredMcpServers": names } }))
}

impl Hub {
    /// `after`: the client has all lines up to this one; `None` if the answer tells it where it is.
    pub(crate) fn attach(
        &mut self,
        client: ClientId,
        key: SessionKey,
        role: Role,
        after: Option<Seq>,
        style: ReadStyle,
    ) {
        // Before attaching: a withdrawal must stay behind its question.
        if self.clients.is_attached(client, key) {
            self.questions.take_back(&mut self.cx, client, |of| of == key);
        }
        let journal = self.sessions[&key].journal();
        if self.clients.attach(&mut self.cx, client, journal, (role, after, style)) {
            self.sessions.touch([key]);
            let slot = self.session(key).slot;
            self.watch_sleep(slot);
            self.cx.timers.clear(Timer::Idle(slot));
        }
    }

    pub(crate) fn detach(&mut self, client: ClientId, key: SessionKey) {
        if self.clients.detach(&mut self.cx, client, key) {
            self.questions.take_back(&mut self.cx, client, |of| of == key);
        }
    }

    pub(crate) fn show_session(
        &mut self,
        to: &Requester,
        key: SessionKey,
        after: u64,
        style: ReadStyle,
        extra: String,
    ) {
        let journal = self.sessions[&key].journal();
        let mut now = Vec::new();
        if self.clients.version_of(to.client).tells_states() {
            let ends = style == ReadStyle::History;
            now.extend(ends.then(|| (to.client, version2::replay_complete(journal.public_id))));
            now.push((to.client, version2::state_now(journal)));
        }
        if style == ReadStyle::History {
            self.attach(to.client, key, Role::Controller, Some(after), style);
            self.send_lines(Some(key), now);
            self.send_values(to, key, extra);
        } else {
            // A client that comes back must know its place in the journal before it has the answer.
            self.clients.tell_cursor(&mut self.cx, to.client, self.sessions[&key].journal());
            self.send_lines(Some(key), now);
            self.send_values(to, key, extra);
            self.attach(to.client, key, Role::Controller, None, style);
            let journal = self.sessions[&key].journal();
            self.clients.remind_of_commands(&mut self.cx, to.client, journal);
        }
    }

    pub(crate) fn send_values(&mut self, to: &Requester, key: SessionKey, extra: String) {
        let Some(client) = self.clients.get(&to.client) else { return };
        let form = ValuesForm::Answer { id: to.id.clone(), extra };
        let values = ToClient::Values(self.sessions[&key].journal().values(form, &client.view));
        let behind = Some(self.end_of(key));
        self.clients.respond_with(&mut self.cx, to, behind, values);
    }

    pub(crate) fn send_initialized(&mut self, to: &Requester, profile: &str) {
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
            "version": self.cx.config.daemon.version, "api": acpd_api::API_VERSION, "agent": profile,
            "generation": self.clients.generation(),
        });
        if self.cx.config.hides_plans {
            own["showPlan"] = false.into();
        }
        if let Some((received, again)) = self.clients.resumed(to.client) {
            own["received"] = received.into();
            own["again"] = json!(again);
        }
        let own = own.to_string();
        result = set_member(&result, &[session[0], "_meta", NAMESPACE], own.as_bytes());
        result = self.with_own_logins(to.client, profile, &result);
        result = self.clients.version_of(to.client).initialized(result);
        let mut line = build::response(&to.id, &json!(null));
        line = set_member(&line, &["result"], &result);
        self.respond(to, None, line);
        self.clients.set_initialized(to.client, true);
        self.catch_client_up(to.client);
    }

    /// When the agent cannot start, its result for another offer is better than no connection.
    pub(crate) fn initialize_from_memory(&mut self, to: &Requester, profile: &str) -> bool {
        let Some(config) = self.cx.config.agents.get(profile) else { return false };
        let row = &self.processes.known(profile).row;
        let is_known = row.initialize.is_some() && row.fingerprint == config.fingerprint;
        if !is_known || !self.clients.contains_key(&to.client) {
            return false;
        }
        self.send_initialized(to, profile);
        true
    }

    /// Sends a returning client what it has missed, after the answer to its `initialize`.
    fn catch_client_up(&mut self, client: ClientId) {
        let Some(resume) = self.clients.take_resume(client) else { return };
        let Resume { sessions, leaving, open, asked, .. } = resume;
        let here = &self.clients[&client];
        let Some(profile) = here.profile.clone() else { return };
        let (role, number) = (here.role, here.number);
        for id in &asked {
            let number = id.as_issued().map(InteractionId);
            let mut stands =
                |id| self.client_servers.is_open(id) || self.questions.was_offered(client, id);
            if !number.is_some_and(&mut stands) {
                let line = ToClient::Line(build::cancel_request(id));
                self.cx.send(Effect::Client(client, line));
            }
        }
        // Follow sessions that the client failed to leave: the error may still be on its way.
        let followed = leaving
            .into_iter()
            .filter(|(_, leaving)| !self.clients.has_succeeded(client, &leaving.requests))
            .map(|(session, leaving)| (session, leaving.seq))
            .collect::<Vec<_>>();
        for (id, seq) in sessions.into_iter().chain(followed) {
            let known = self.sessions.by_public_id(&profile, &id);
            let Some(key) = known.or_else(|| self.sessions.of_any_agent(&id)) else {
                let gone = SessionGone { session_id: id.into() };
                let line = build::notification(method::SESSION_REMOVED, &gone);
                self.clients.tell(&mut self.cx, client, &line);
                continue;
            };
            self.attach(client, key, role, Some(seq), ReadStyle::Resume);
        }
        // Replies may be about sessions that the client does not know yet: it has no line of them.
        let replies = self.clients.replies_after_return(&mut self.cx, client, &open);
        for ReplyRow { line, session, .. } in replies {
            self.send_lines(session, [(client, line)]);
            self.attach_from_start(client, session);
        }
        // A prompt may still be queued here whose client got an error of unknown outcome.
        let is_awaited = |to: &Requester| to.client == client && open.contains(&to.id);
        let waits = |session: &Session| session.senders().any(is_awaited);
        let prompted = self.sessions.awake().filter(|(_, session)| waits(session));
        for key in prompted.map(|(key, _)| key).collect::<Vec<_>>() {
            self.attach_from_start(client, Some(key));
        }
        self.client_servers.on_client_back(&mut self.cx, number, &asked);
        let clients = &self.clients;
        let is_lost = |key| !clients.is_controller(client, key);
        self.questions.take_back(&mut self.cx, client, is_lost);
        self.offer_about_requests();
    }

    fn attach_from_start(&mut self, client: ClientId, key: Option<SessionKey>) {
        let key = key.filter(|key| self.sessions.contains_key(key));
        if let Some(key) = key.filter(|key| !self.clients.is_attached(client, *key)) {
            let role = self.clients[&client].role;
            self.attach(client, key, role, Some(0), ReadStyle::Resume);
        }
    }
}
