//! Clients that come back: who named itself with a token loses nothing with its connection, nor with
//! the daemon.
//!
//! ```text
//!              initialize with a token
//!  (unknown) ──────────────────────────▶ here ── connection or daemon lost ─▶ away ── too long ─▶ (unknown)
//!                                         ▲                                    │
//!                                         └── initialize with what it has ─────┘
//! ```
//!
//! Upwards its lines are counted, and the count is part of the transaction that deals with them: it
//! sends again what is not counted. Downwards it says what it has: of each session the last position,
//! and which of its requests are open. The answers to requests that changed something are kept until
//! it says that it has them; the others can be asked again.
//!
//! Architecture invariant: a request that is kept, open or answered is never carried out again.

use std::collections::BTreeSet;

use acp_wire::acp::ClientInitialize;
use acp_wire::{Id, build, code, remove_member, set_member};
use acpd_api::{Answered, ClientMeta, ClientToken, NAMESPACE, Reason, Resume, SessionGone, method};
use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;

use crate::clients::name::name_in;
use crate::clients::resumable::{Reply, ids};
use crate::clients::{Asked, Served};
use crate::cx::Cx;
use crate::fault::Fault;
use crate::hash::number_of;
use crate::hub::Hub;
use crate::ids::{ClientId, InteractionId, Requester, SessionKey};
use crate::input::{Batch, Effect, ReadStyle, ToClient, View};
use crate::mcp::client_servers::CallEnd;
use crate::offer::offer;
use crate::params::own_meta;
use crate::process::slot::{WaitFor, Waiting};
use crate::profile::Profile;
use crate::record::Record;
use crate::session::Session;
use crate::timers::Timer;
use crate::views::without_boolean_options;

impl Hub {
    pub(crate) fn initialize(&mut self, asked: Asked<'_>, out: &mut Batch) -> Served {
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
    pub(crate) fn send_initialized(&mut self, to: &Requester, profile: &str, out: &mut Batch) {
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

    /// A client gives its token: it is new, or it comes back.
    pub(crate) fn name_client(
        &mut self,
        client: ClientId,
        named: ClientToken,
        out: &mut Batch,
    ) -> Result<(), Fault> {
        let ClientToken { token, resume } = named;
        let fits = |c: u8| c.is_ascii_alphanumeric() || c == b'-' || c == b'_';
        if !(16..=64).contains(&token.len()) || !token.bytes().all(fits) {
            return Err(Fault::invalid("a client's token is 16 to 64 letters, digits, `-` or `_`"));
        }
        let old = self.clients.by_token(&token);
        let mine = self.clients.get(&client).and_then(|client| client.token.as_deref());
        if mine == Some(token.as_str()) {
            // The client tries again, because the agent did not start.
            return Ok(());
        } else if mine.is_some() {
            return Err(Fault::invalid("this connection has another token already"));
        }
        // The end of its last connection may be unseen; or another client uses the same token, and
        // one of the two must learn that.
        if let Some(old) = old.filter(|old| self.clients.contains_key(old)) {
            let text = "another connection came with this client's token";
            let fault = Fault::new(Reason::Replaced, text)
                .hint("do not come back with this token; each client needs one of its own");
            self.let_go(old, &Id::null(), &fault, out);
        }
        let resume = resume.filter(|resume| self.clients.is_of_journal(resume));
        let back = old.zip(resume);
        if back.is_none() {
            self.forget_resumable(&token, out);
            self.make_room(out);
            out.records.push(Record::Client { token: token.clone(), received: 0 });
        }
        self.clients.name(client, &token);
        if let Some((old, resume)) = back {
            let waits_for = self.rename(old, client);
            self.clients.come_back(client, resume, waits_for);
        }
        Ok(())
    }

    /// Numbers a client, so that its terminals and servers are told from others'. One that comes back
    /// keeps its number.
    pub(crate) fn number_client(&mut self, client: ClientId) {
        let Some(here) = self.clients.get_mut(client) else { return };
        here.number = match &here.token {
            Some(token) => number_of(token),
            None => self.ids.issue(),
        };
        here.view.editor = if here.capabilities.terminal { here.number } else { 0 };
    }

    /// Gives a client that came back what it has missed. Its `initialize` is answered.
    pub(crate) fn catch_client_up(&mut self, client: ClientId, out: &mut Batch) {
        let Some(here) = self.clients.get_mut(client) else { return };
        let Some(profile) = here.profile.clone() else { return };
        let Some(resume) = here.resume.take() else { return };
        let Resume { sessions, leaving, open, asked, .. } = resume;
        let (role, number) = (here.role, here.number);
        let (asked, waits_for) = (ids(&asked), ids(&open));
        for id in &asked {
            self.offer_stands(client, id, out);
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
                    self.attach(client, key, role, after, ReadStyle::Resume, out);
                }
                None => {
                    let gone = SessionGone { session_id: id.into() };
                    let line = build::notification(method::SESSION_REMOVED, &gone);
                    self.tell_client(client, &line, out);
                }
            }
        }
        // Sessions that it does not know yet are not among those that it named: it has nothing of
        // them, neither of what it asked to make nor of what it was about to follow.
        for Reply { line, session } in self.clients.replies_after_return(client, &open, out) {
            let line = self.as_shown_to(client, line);
            self.sessions.send_behind(
                client,
                session,
                Effect::Client(client, ToClient::Line(line)),
                out,
            );
            self.attach_anew(client, session, out);
        }
        // A prompt that got an error of unknown outcome may still wait here, and the client not for it.
        let is_awaited = |to: &Requester| to.client == client && waits_for.contains(&to.id);
        let waits = |session: &Session| session.senders().any(is_awaited);
        let prompted = self.sessions.iter().filter(|(_, session)| waits(session));
        for key in prompted.map(|(key, _)| *key).collect::<Vec<_>>() {
            self.attach_anew(client, Some(key), out);
        }
        step!(self.client_servers.on_client_back(number, &asked), out);
        let sessions = &self.sessions;
        let is_lost = |key| !sessions.is_controller(client, key);
        step!(self.questions.take_back(client, is_lost), out);
        self.offer_about_requests(out);
    }

    /// Attaches a client to a session of which it has nothing.
    fn attach_anew(&mut self, client: ClientId, key: Option<SessionKey>, out: &mut Batch) {
        let key = key.filter(|key| self.sessions.contains_key(key));
        if let Some(key) = key.filter(|key| !self.sessions.is_attached(client, *key)) {
            let role = self.clients[&client].role;
            self.attach(client, key, role, Some(0), ReadStyle::Resume, out);
        }
    }

    /// An answer that came while the client's abilities were unknown.
    fn as_shown_to(&self, client: ClientId, line: Bytes) -> Bytes {
        if self.clients[&client].view.boolean_options {
            return line;
        }
        without_boolean_options(&line, &["result", "configOptions"])
    }

    /// A question that a client had before it lost its connection: it still stands, or is withdrawn.
    fn offer_stands(&mut self, client: ClientId, id: &Id, out: &mut Batch) {
        let number = id.as_issued().map(InteractionId);
        let mut stands =
            |id| self.client_servers.is_open(id) || self.questions.was_offered(client, id);
        if number.is_some_and(&mut stands) {
            return;
        }
        if let Ok(id) = RawValue::from_string(id.raw().to_owned()) {
            let line = build::notification("$/cancel_request", &json!({ "requestId": id }));
            out.effects.push(Effect::Client(client, ToClient::Line(line)));
        }
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

    /// A connection of a client with a token has ended: it is waited for.
    pub(crate) fn went_away(&mut self, client: ClientId) {
        // Requests that no agent got are asked again.
        for session in self.sessions.values_mut() {
            session.waiting.retain(|relayed| relayed.to.client != client);
        }
        self.processes.forget_client(client);
        if !self.timers.is_set(Timer::Resumable) {
            self.wait_for_clients();
        }
    }

    pub(crate) fn on_resumable_timer(&mut self, out: &mut Batch) {
        for token in self.clients.late(self.now) {
            self.forget_resumable(&token, out);
        }
        self.wait_for_clients();
    }

    /// Sets the time at which the first client that is away is forgotten.
    pub(crate) fn wait_for_clients(&mut self) {
        if let Some(late) = self.clients.next_late() {
            self.timers.set(Timer::Resumable, late);
        }
    }

    fn make_room(&mut self, out: &mut Batch) {
        let waited = || {
            let prompts = self.sessions.values().flat_map(Session::senders);
            prompts.chain(self.requests.requesters()).map(|to| to.client).collect()
        };
        if let Some(token) = self.clients.one_too_many(waited) {
            self.forget_resumable(&token, out);
        }
    }

    pub(crate) fn client_leaves(&mut self, client: ClientId, out: &mut Batch) {
        let token = self.clients.get_mut(client).and_then(|client| client.token.take());
        if let Some(token) = token {
            self.forget_resumable(&token, out);
        }
    }

    /// A client does not come back, or does not want what it left.
    fn forget_resumable(&mut self, token: &str, out: &mut Batch) {
        let Some(gone) = self.clients.forget(token) else { return };
        // On disk, too: the next client with this token must not get answers that are not for it.
        for key in self.sessions.keys().copied().collect::<Vec<_>>() {
            self.forget_sender(key, gone, out);
        }
        for ask in self.requests.disown_all(gone) {
            self.save_asked(ask, out);
        }
        self.end_server_calls(&CallEnd::ClientGone(number_of(token)), out);
        out.records.push(Record::ClientGone { token: token.to_owned() });
    }

    pub(crate) fn replies_taken(
        &mut self,
        client: ClientId,
        params: Option<&RawValue>,
        out: &mut Batch,
    ) {
        let answered = params.and_then(|params| serde_json::from_str(params.get()).ok());
        let Answered { ids } = answered.unwrap_or_default();
        self.clients.confirm(client, &ids, out);
    }

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
}
