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

use acp_wire::{Id, build};
use acpd_api::{Answered, ClientToken, Reason, Resume, SessionGone, method};
use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;

use crate::clients::resumable::{Reply, ids};
use crate::cx::Cx;
use crate::fault::Fault;
use crate::hash::number_of;
use crate::hub::Hub;
use crate::ids::{ClientId, InteractionId, Requester, SessionKey};
use crate::input::{Batch, Effect, ReadStyle, ToClient};
use crate::mcp::client_servers::CallEnd;
use crate::record::Record;
use crate::session::Session;
use crate::timers::Timer;
use crate::views::without_boolean_options;

impl Hub {
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
}
