//! A connection from its `initialize` to its end: what the other machines have of the client, also of one that
//! comes back.

use std::collections::BTreeSet;

use acp_wire::acp::ClientInitialize;
use acp_wire::{Id, build, code, remove_member, set_member};
use acpd_api::{ClientMeta, ClientToken, NAMESPACE, Resume, SessionGone, method};
use serde_json::json;

use crate::clients::resumable::{Reply, ids};
use crate::clients::{Asked, Served};
use crate::fault::Fault;
use crate::hash::number_of;
use crate::hub::Hub;
use crate::ids::{ClientId, InteractionId, Requester, SessionKey};
use crate::input::{Effect, ReadStyle, ToClient};
use crate::mcp::client_servers::CallEnd;
use crate::offer::offer;
use crate::params::own_meta;
use crate::process::slot::{WaitFor, Waiting};
use crate::profile::Profile;
use crate::record::Record;
use crate::session::Session;

impl Hub {
    pub(crate) fn initialize(&mut self, asked: Asked<'_>) -> Served {
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
        let mut meta = meta.flatten().unwrap_or_default();
        let profile = meta
            .agent
            .take()
            .unwrap_or_else(|| self.cx.config.agent_for(meta.cwd.as_deref()).to_owned());
        self.is_configured(&profile)?;
        let Profile { fingerprint, client_meta, .. } = &self.cx.config.agents[&profile];
        let (fingerprint, offer) =
            (fingerprint.clone(), offer(client_meta, asked.raw_capabilities));
        let (client, named) = (to.client, meta.client.take());
        self.clients.introduce(client, &asked, meta, (&profile, offer.as_deref()));
        if let Some(named) = named {
            self.name_client(client, named)?;
        }
        self.clients.number(&mut self.cx, client);
        let comes_back = self.clients.get(&client).is_some_and(|client| !client.is_back());
        let known = self.processes.known(&profile);
        // Members that exist because of an offer are hidden from clients without it.
        let is_for_it = offer.is_none() || known.row.client_meta == offer;
        let is_current = comes_back || (known.row.fingerprint == fingerprint && is_for_it);
        if known.row.initialize.is_some() && is_current {
            self.send_initialized(to, &profile);
            return Ok(());
        }
        let slot = self.slot_for_offer(&profile, offer.as_deref());
        let what = WaitFor::Initialize;
        let asked = self.with_agent(slot, Waiting { to: to.clone(), what });
        self.remove_unused_slot(slot);
        if asked.is_err() && self.initialize_from_memory(to, &profile) {
            return Ok(());
        }
        asked
    }

    /// The agent does not run and will not for this client, whose offer it has not heard: what it said to
    /// another one is better than no connection. Returns whether the client is answered with that.
    pub(crate) fn initialize_from_memory(&mut self, to: &Requester, profile: &str) -> bool {
        let Some(config) = self.cx.config.agents.get(profile) else { return false };
        let fingerprint = config.fingerprint.clone();
        let row = &self.processes.known(profile).row;
        let is_known = row.initialize.is_some() && row.fingerprint == fingerprint;
        if !is_known || !self.clients.contains_key(&to.client) {
            return false;
        }
        self.send_initialized(to, profile);
        true
    }

    /// Returns whether its `initialize` was answered, or waits for the agent. A failed one may be
    /// repeated.
    fn is_initialized(&self, client: ClientId) -> bool {
        self.clients.get(&client).is_some_and(|client| client.initialized)
            || self.processes.is_initializing(client)
    }

    /// The agent's own result, with what acpd adds to every agent.
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
        if self.cx.config.daemon.hides_plans {
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
        self.respond(to, None, line);
        self.clients.set_initialized(to.client, true);
        self.catch_client_up(to.client);
    }

    /// A client gives its token: it is new, or it comes back.
    pub(crate) fn name_client(
        &mut self,
        client: ClientId,
        named: ClientToken,
    ) -> Result<(), Fault> {
        let ClientToken { token, resume } = named;
        let is_store_failing = self.store_health.is_failing();
        if !self.clients.claim_token(&mut self.cx, client, &token, is_store_failing)? {
            return Ok(());
        }
        let resume = resume.filter(|resume| self.clients.is_of_journal(resume));
        let back = self.clients.by_token(&token).zip(resume);
        if back.is_none() {
            self.forget_resumable(&token);
            self.make_room();
            self.cx.record(Record::Client { token: token.clone(), received: 0 });
        }
        self.clients.name(client, &token);
        if let Some((old, resume)) = back {
            let waits_for = self.rename(old, client);
            self.clients.come_back(client, resume, waits_for);
        }
        Ok(())
    }

    /// Gives a client that came back what it has missed. Its `initialize` is answered.
    pub(crate) fn catch_client_up(&mut self, client: ClientId) {
        let Some(resume) = self.clients.take_resume(client) else { return };
        let Resume { sessions, leaving, open, asked, .. } = resume;
        let here = &self.clients[&client];
        let Some(profile) = here.profile.clone() else { return };
        let (role, number) = (here.role, here.number);
        let (asked, waits_for) = (ids(&asked), ids(&open));
        for id in &asked {
            self.offer_stands(client, id);
        }
        // A session that it could not leave is followed further: the error may have arrived, or may
        // follow.
        let followed = leaving
            .into_iter()
            .filter(|(_, leaving)| !self.clients.has_succeeded(client, &leaving.requests))
            .map(|(session, leaving)| (session, leaving.seq))
            .collect::<Vec<_>>();
        for (id, seq) in sessions.into_iter().chain(followed) {
            match self
                .sessions
                .by_public_id(&profile, &id)
                .or_else(|| self.sessions.of_any_agent(&id))
            {
                Some(key) => {
                    let after = Some(seq);
                    self.attach(client, key, role, after, ReadStyle::Resume);
                }
                None => {
                    let gone = SessionGone { session_id: id.into() };
                    let line = build::notification(method::SESSION_REMOVED, &gone);
                    self.clients.tell(&mut self.cx, client, &line);
                }
            }
        }
        // Sessions that it does not know yet are not among those that it named: it has nothing of
        // them, neither of what it asked to make nor of what it was about to follow.
        let replies = self.clients.replies_after_return(&mut self.cx, client, &open);
        for Reply { line, session } in replies {
            self.send_behind(client, session, Effect::Client(client, ToClient::Line(line)));
            self.attach_anew(client, session);
        }
        // A prompt that got an error of unknown outcome may still wait here, and the client not for it.
        let is_awaited = |to: &Requester| to.client == client && waits_for.contains(&to.id);
        let waits = |session: &Session| session.senders().any(is_awaited);
        let prompted = self.sessions.iter().filter(|(_, session)| waits(session));
        for key in prompted.map(|(key, _)| *key).collect::<Vec<_>>() {
            self.attach_anew(client, Some(key));
        }
        self.client_servers.on_client_back(&mut self.cx, number, &asked);
        let clients = &self.clients;
        let is_lost = |key| !clients.is_controller(client, key);
        self.questions.take_back(&mut self.cx, client, is_lost);
        self.offer_about_requests();
    }

    /// Attaches a client to a session of which it has nothing.
    fn attach_anew(&mut self, client: ClientId, key: Option<SessionKey>) {
        let key = key.filter(|key| self.sessions.contains_key(key));
        if let Some(key) = key.filter(|key| !self.clients.is_attached(client, *key)) {
            let role = self.clients[&client].role;
            self.attach(client, key, role, Some(0), ReadStyle::Resume);
        }
    }

    /// A question that a client had before it lost its connection: it still stands, or is withdrawn.
    fn offer_stands(&mut self, client: ClientId, id: &Id) {
        let number = id.as_issued().map(InteractionId);
        let mut stands =
            |id| self.client_servers.is_open(id) || self.questions.was_offered(client, id);
        if number.is_some_and(&mut stands) {
            return;
        }
        let line = build::cancel_request(id);
        self.cx.send(Effect::Client(client, ToClient::Line(line)));
    }

    /// Moves the waits of a client's old connection to its new one. Returns the ids of the
    /// requests.
    fn rename(&mut self, old: ClientId, new: ClientId) -> Vec<Id> {
        let prompts = self.sessions.values_mut().flat_map(Session::senders_mut);
        let mut ids = Vec::new();
        for requester in prompts.chain(self.requests.requesters_mut()) {
            if requester.client == old {
                requester.client = new;
                ids.push(requester.id.clone());
            }
        }
        ids
    }

    pub(crate) fn on_resumable_timer(&mut self) {
        for token in self.clients.late(self.cx.now) {
            self.forget_resumable(&token);
        }
        self.clients.wait_for_late(&mut self.cx.timers);
    }

    fn make_room(&mut self) {
        let waited = || {
            let prompts = self.sessions.values().flat_map(Session::senders);
            prompts.chain(self.requests.requesters()).map(|to| to.client).collect()
        };
        if let Some(token) = self.clients.one_too_many(waited) {
            self.forget_resumable(&token);
        }
    }

    pub(crate) fn client_leaves(&mut self, client: ClientId) {
        if let Some(token) = self.clients.take_token(client) {
            self.forget_resumable(&token);
        }
    }

    /// A client does not come back, or does not want what it left.
    fn forget_resumable(&mut self, token: &str) {
        let Some(gone) = self.clients.forget(token) else { return };
        // On disk, too: the next client with this token must not get answers that are not for it.
        for key in self.sessions.keys().copied().collect::<Vec<_>>() {
            self.forget_sender(key, gone);
        }
        for ask in self.requests.disown_all(gone) {
            self.save_asked(ask);
        }
        self.end_server_calls(&CallEnd::ClientGone(number_of(token)));
        self.cx.record(Record::ClientGone { token: token.to_owned() });
    }

    /// A connection has ended, which was at these sessions. `returns`: the client may come back.
    pub(crate) fn on_client_left(
        &mut self,
        client: ClientId,
        number: u64,
        returns: bool,
        sessions: Vec<SessionKey>,
    ) {
        self.services.on_client_gone(&mut self.cx, client);
        self.end_server_calls(&CallEnd::ToolGone(client));
        self.questions.on_client_gone(client);
        self.watch.end(client);
        if returns {
            // Requests that no agent got are asked again.
            for session in self.sessions.values_mut() {
                session.waiting.retain(|relayed| relayed.to.client != client);
            }
            self.processes.forget_client(client);
        } else {
            self.end_server_calls(&CallEnd::ClientGone(number));
        }
        let mut slots = BTreeSet::new();
        for key in sessions {
            let session = self.session_mut(key);
            slots.insert(session.slot);
            if returns {
                continue;
            }
            // The turn continues without a receiver of its response.
            let queued = session.queue.iter_mut().map(|prompt| &mut prompt.senders);
            for senders in queued.chain(session.running.iter_mut().map(|turn| &mut turn.senders)) {
                senders.retain(|to| to.client != client);
            }
        }
        for slot in slots {
            self.check_idle(slot);
        }
    }
}
