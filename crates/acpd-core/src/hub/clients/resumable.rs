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

use std::collections::{BTreeMap, BTreeSet};

use acp_wire::{Id, build};
use acpd_api::{
    Answered, ClientToken, Empty, RawId, Reason, Received, Resume, Resumed, SessionGone, method,
};
use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;

use crate::clients::Client;
use crate::clients::resumable::{Reply, Resumable, is_kept};
use crate::fault::Fault;
use crate::hash::number_of;
use crate::hub::Hub;
use crate::ids::{ClientId, InteractionId, Requester, SessionKey};
use crate::input::{Batch, Effect, ReadStyle};
use crate::record::snapshot::ClientState;
use crate::record::{Record, ReplyRow, Sender};
use crate::session::Session;
use crate::timers::Timer;
use crate::views::without_boolean_options;

/// How long a client is waited for that has lost its connection (ms).
const AWAY: u64 = 60 * 60_000;

/// Clients with a token that are known at once; beyond it one that is away is forgotten: if possible
/// one that waits for nothing, and of these the one that is away longest.
const KNOWN: usize = 1_024;

/// Answers that one client may leave unconfirmed before it is refused more requests.
const REPLIES: usize = 256;

/// Bytes of answers that one client may leave unconfirmed, beside one answer of any length.
const REPLY_BYTES: usize = 8 << 20;

impl Hub {
    /// Clients that the last daemon knew. None of them is connected.
    pub(crate) fn recover_clients(&mut self, clients: BTreeMap<String, ClientState>) {
        let now = self.now;
        for (number, (token, state)) in (1..).zip(clients) {
            let replies = state.replies.into_iter().map(|(id, row)| {
                let ReplyRow { line, session, .. } = row;
                (id, Reply { line, session })
            });
            let returning = Resumable {
                // No connection ever has such a number.
                client: ClientId(u64::MAX - number),
                away: Some(now),
                was_at: BTreeMap::new(),
                received: state.received,
                replies: replies.collect(),
            };
            self.resumable.insert(token, returning);
        }
        if !self.resumable.is_empty() {
            self.timers.set(Timer::Resumable, now.after(AWAY));
        }
    }

    /// How the disk names who gets an answer; `None` for a client that does not come back.
    pub(crate) fn sender(&self, to: &Requester) -> Option<Sender> {
        let token = self.token_of(to.client)?;
        Some(Sender { token: token.to_owned(), id: to.id.clone() })
    }

    pub(crate) fn token_of(&self, client: ClientId) -> Option<&str> {
        if let Some(client) = self.clients.get(&client) {
            return client.token.as_deref();
        }
        let away = self.resumable.iter().find(|(_, known)| known.client == client);
        away.map(|(token, _)| token.as_str())
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
        let old = self.resumable.get(&token).map(|known| known.client);
        let mine = self.clients.get(&client).and_then(|client| client.token.as_deref());
        if mine == Some(token.as_str()) {
            // It tries again, because the agent did not start.
            return Ok(());
        } else if mine.is_some() {
            return Err(Fault::invalid("this connection has another token already"));
        }
        // Its last connection may not have been seen to end. Or somebody else has the same token: one of
        // the two must know, and not come back.
        if let Some(old) = old.filter(|old| self.clients.contains_key(old)) {
            let text = "another connection came with this client's token";
            let fault = Fault::new(Reason::Replaced, text)
                .hint("do not come back with this token; each client needs one of its own");
            self.let_go(old, &Id::null(), &fault, out);
        }
        let resume = resume.filter(|resume| resume.generation == self.generation && old.is_some());
        if resume.is_none() {
            self.forget_resumable(&token, out);
            self.make_room(out);
            out.records.push(Record::Client { token: token.clone(), received: 0 });
            let (was_at, replies) = (BTreeMap::new(), BTreeMap::new());
            let new = Resumable { client, away: None, was_at, received: 0, replies };
            self.resumable.insert(token.clone(), new);
        }
        if let Some(known) = self.resumable.get_mut(&token) {
            known.client = client;
            known.away = None;
        }
        if let Some(client) = self.clients.get_mut(&client) {
            client.token = Some(token.clone());
            client.view.seq = true;
        }
        let (Some(resume), Some(old)) = (resume, old) else { return Ok(()) };
        let known = self.rename(old, client);
        let replies = &self.resumable[&token].replies;
        let open = ids(&resume.open);
        let again = open.iter().filter(|id| !known.contains(id) && !replies.contains_key(id));
        let again = again.cloned().collect();
        if let Some(client) = self.clients.get_mut(&client) {
            // What it no longer waits for was answered while the journal could not be written.
            client.given_up = known.iter().filter(|id| !open.contains(id)).cloned().collect();
            client.open.extend(known.into_iter().map(|id| (id, true)));
            client.again = again;
            client.resume = Some(resume);
        }
        Ok(())
    }

    /// Numbers a client, so that its terminals and servers are told from others'. One that comes back
    /// keeps its number.
    pub(crate) fn number_client(&mut self, client: ClientId) {
        let Some(here) = self.clients.get_mut(&client) else { return };
        here.number = match &here.token {
            Some(token) => number_of(token),
            None => self.ids.issue(),
        };
        here.view.editor = if here.capabilities.terminal { here.number } else { 0 };
    }

    /// What the answer to `initialize` says to a client with a token.
    pub(crate) fn resumed(&self, client: ClientId) -> Option<Resumed> {
        let client = self.clients.get(&client)?;
        let received = self.resumable.get(client.token.as_ref()?)?.received;
        let raw = |id: &Id| RawValue::from_string(id.raw().to_owned()).ok().map(RawId);
        let again = client.again.iter().filter_map(raw).collect();
        Some(Resumed { generation: self.generation.clone(), received, again })
    }

    /// Gives a client that came back what it has missed. Its `initialize` is answered.
    pub(crate) fn catch_client_up(&mut self, client: ClientId, out: &mut Batch) {
        let Some(here) = self.clients.get_mut(&client) else { return };
        let (Some(token), Some(profile)) = (here.token.clone(), here.profile.clone()) else {
            return;
        };
        let Some(Resume { sessions, open, asked, .. }) = here.resume.take() else { return };
        let role = here.role;
        let asked = ids(&asked);
        for id in &asked {
            self.offer_stands(client, id, out);
        }
        for (id, seq) in sessions {
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
        let open: BTreeSet<Id> = ids(&open).into_iter().collect();
        let Some(known) = self.resumable.get_mut(&token) else { return };
        let replies = std::mem::take(&mut known.replies);
        let (missed, had): (BTreeMap<_, _>, BTreeMap<_, _>) =
            replies.into_iter().partition(|(id, _)| open.contains(id));
        known.replies = missed.clone();
        for id in had.into_keys() {
            out.records.push(Record::ReplyGone { token: token.clone(), id });
        }
        // Sessions that it does not know yet are not among those that it named: it has nothing of
        // them, neither of what it asked to make nor of what it was about to follow.
        for Reply { line, session } in missed.into_values() {
            let line = self.as_shown_to(client, line);
            self.send_behind(client, session, Effect::Send { client, line }, out);
            self.attach_anew(client, session, out);
        }
        let waits = |session: &Session| session.senders().any(|sender| sender.client == client);
        let prompted = self.sessions.iter().filter(|(_, session)| waits(session));
        for key in prompted.map(|(key, _)| *key).collect::<Vec<_>>() {
            self.attach_anew(client, Some(key), out);
        }
        self.calls.give_missing(client, &asked, out);
        self.take_back_others(client, &asked, out);
        self.offer_about_requests(out);
    }

    /// Attaches a client to a session of which it has nothing.
    fn attach_anew(&mut self, client: ClientId, key: Option<SessionKey>, out: &mut Batch) {
        let key = key.filter(|key| self.sessions.contains_key(*key));
        if let Some(key) = key.filter(|key| !self.is_attached(client, *key)) {
            let role = self.clients[&client].role;
            self.attach(client, key, role, Some(0), ReadStyle::Resume, out);
        }
    }

    /// An answer that came while nobody knew what the client can show.
    fn as_shown_to(&self, client: ClientId, line: Bytes) -> Bytes {
        if self.clients[&client].view.boolean_options {
            return line;
        }
        without_boolean_options(&line, &["result", "configOptions"])
    }

    /// Questions that a client had before it came back, of sessions that it does not control now.
    fn take_back_others(&mut self, client: ClientId, asked: &[Id], out: &mut Batch) {
        for id in asked.iter().filter_map(Id::as_u64) {
            let Some(open) = self.questions.get(InteractionId(id)) else { continue };
            let Some(key) = open.session else { continue };
            if !self.is_controller(client, key) {
                self.take_back_offers(client, key, out);
            }
        }
    }

    /// A question that a client had before it lost its connection: it still stands, or is withdrawn.
    fn offer_stands(&mut self, client: ClientId, id: &Id, out: &mut Batch) {
        let number = id.as_u64().map(InteractionId);
        if number.is_some_and(|id| self.calls.is_open(id)) {
            return;
        }
        if number.is_some_and(|id| self.questions.was_offered(client, id)) {
            return;
        }
        if let Ok(id) = RawValue::from_string(id.raw().to_owned()) {
            let line = build::notification("$/cancel_request", &json!({ "requestId": id }));
            out.effects.push(Effect::Send { client, line });
        }
    }

    /// What an old connection of a client waits for, its new one waits for. Gives the ids of the
    /// requests.
    fn rename(&mut self, old: ClientId, new: ClientId) -> Vec<Id> {
        self.calls.rename(old, new);
        let prompts = self.sessions.values_mut().flat_map(Session::senders_mut).flatten();
        let mut ids = Vec::new();
        for requester in prompts.chain(self.requests.requesters_mut()) {
            if requester.client == old {
                requester.client = new;
                ids.push(requester.id.clone());
            }
        }
        ids
    }

    /// A connection of a client with a token has ended: it is waited for. Whether it has a token.
    pub(crate) fn went_away(&mut self, client: ClientId, token: &str) {
        let now = self.now;
        // What was not given to an agent yet is asked again.
        for session in self.sessions.values_mut() {
            session.waiting.retain(|relayed| relayed.to.client != client);
        }
        for agent in self.processes.values_mut() {
            agent.waiting.retain(|waiting| waiting.to.client != client);
        }
        let at = |(key, session): (&SessionKey, &Session)| {
            session.attached.get(&client).map(|at| (*key, at.since))
        };
        if let Some(known) = self.resumable.get_mut(token) {
            known.away = Some(now);
            known.was_at = self.sessions.iter().filter_map(at).collect();
        }
        if !self.timers.is_set(Timer::Resumable) {
            self.timers.set(Timer::Resumable, now.after(AWAY));
        }
    }

    /// Time in which nobody can come back (ms) does not count.
    pub(crate) fn wait_longer(&mut self, ms: u64) {
        for since in self.resumable.values_mut().filter_map(|known| known.away.as_mut()) {
            *since = since.after(ms);
        }
    }

    /// Since when a client that comes back has been at a session, if its last connection was.
    pub(crate) fn was_there_since(&mut self, client: ClientId, key: SessionKey) -> Option<u64> {
        let token = self.clients.get(&client)?.token.as_ref()?;
        self.resumable.get_mut(token)?.was_at.remove(&key)
    }

    /// Whether clients are away and may come back.
    pub(crate) fn is_waiting_for_clients(&self) -> bool {
        self.resumable.values().any(|known| known.away.is_some())
    }

    pub(crate) fn on_resumable_timer(&mut self, out: &mut Batch) {
        let now = self.now;
        let late = |known: &Resumable| known.away.is_some_and(|since| now.since(since) >= AWAY);
        let gone: Vec<String> = self
            .resumable
            .iter()
            .filter(|(_, known)| late(known))
            .map(|(token, _)| token.clone())
            .collect();
        for token in gone {
            self.forget_resumable(&token, out);
        }
        if let Some(first) = self.resumable.values().filter_map(|known| known.away).min() {
            self.timers.set(Timer::Resumable, first.after(AWAY));
        }
    }

    fn make_room(&mut self, out: &mut Batch) {
        if self.resumable.len() < KNOWN {
            return;
        }
        let prompts = self.sessions.values().flat_map(Session::senders);
        let waited: BTreeSet<ClientId> =
            prompts.chain(self.requests.requesters()).map(|to| to.client).collect();
        let away = self.resumable.iter().filter(|(_, known)| known.away.is_some());
        let longest = away.min_by_key(|(_, known)| {
            (waited.contains(&known.client) || !known.replies.is_empty(), known.away)
        });
        if let Some(token) = longest.map(|(token, _)| token.clone()) {
            self.forget_resumable(&token, out);
        }
    }

    /// A client says that it does not come back.
    pub(crate) fn client_leaves(&mut self, client: ClientId, out: &mut Batch) {
        let token = self.clients.get_mut(&client).and_then(|client| client.token.take());
        if let Some(token) = token {
            self.forget_resumable(&token, out);
        }
    }

    /// A client does not come back, or does not want what it left.
    fn forget_resumable(&mut self, token: &str, out: &mut Batch) {
        let Some(gone) = self.resumable.remove(token) else { return };
        self.counted.remove(token);
        // On disk, too: the next client with this token must not get answers that are not for it.
        for key in self.sessions.iter().map(|(key, _)| *key).collect::<Vec<_>>() {
            self.forget_sender(key, gone.client, out);
        }
        self.forget_requester(gone.client, out);
        self.calls_of_gone(gone.client, out);
        out.records.push(Record::ClientGone { token: token.to_owned() });
    }

    /// Makes sure that the answer to a request can be kept. Who gives the id of an answer that is
    /// kept to a new request has that answer.
    pub(crate) fn room_for_reply(
        &mut self,
        to: &Requester,
        method: &str,
        out: &mut Batch,
    ) -> Result<(), Fault> {
        let Some(token) = self.token_of(to.client).map(str::to_owned) else { return Ok(()) };
        let Some(known) = self.resumable.get_mut(&token) else { return Ok(()) };
        if known.replies.remove(&to.id).is_some() {
            out.records.push(Record::ReplyGone { token, id: to.id.clone() });
        }
        let bytes: usize = known.replies.values().map(|reply| reply.line.len()).sum();
        let count = known.replies.len();
        if is_kept(method) && (count >= REPLIES || bytes >= REPLY_BYTES) {
            let text = format!("{count} answers of {bytes} bytes are not confirmed by this client");
            return Err(Fault::new(Reason::TooMany, text)
                .hint(format!("confirm them with `{}`", method::CLIENT_ANSWERED)));
        }
        Ok(())
    }

    /// A line of a client is dealt with in this batch.
    pub(crate) fn count_line(&mut self, client: ClientId) {
        let token = self.clients.get(&client).and_then(|client| client.token.as_ref());
        let Some(token) = token else { return };
        if let Some(known) = self.resumable.get_mut(token) {
            known.received += 1;
            self.counted.insert(token.clone());
        }
    }

    /// Completes a batch: how many lines of each client it deals with. While the store fails, lines
    /// that change nothing are not safe, and are not piled up either.
    pub(crate) fn tell_received(&mut self, out: &mut Batch) {
        let changes_nothing = self.store_health.is_failing() && out.records.is_empty();
        if self.counted.is_empty() || changes_nothing {
            return;
        }
        for token in std::mem::take(&mut self.counted) {
            let Some(known) = self.resumable.get(&token) else { continue };
            let received = known.received;
            if known.away.is_none() {
                let line =
                    build::notification(method::CLIENT_RECEIVED, &Received { lines: received });
                out.effects.push(Effect::Send { client: known.client, line });
            }
            out.records.push(Record::Client { token, received });
        }
    }

    /// The daemon is about to end because somebody wants that: nobody has to come back.
    pub(crate) fn say_goodbye(&self, effects: &mut Vec<Effect>) {
        let line = build::notification(method::DAEMON_STOPPED, &Empty {});
        for known in self.resumable.values().filter(|known| known.away.is_none()) {
            effects.push(Effect::Send { client: known.client, line: line.clone() });
        }
    }

    /// Keeps the answer to a request until the client has it, if it can come back for it.
    pub(crate) fn keep_reply(
        &mut self,
        to: &Requester,
        session: Option<SessionKey>,
        line: &Bytes,
        out: &mut Batch,
    ) {
        let here = self.clients.get(&to.client);
        let is_wanted = |client: &Client| {
            client.open.get(&to.id) == Some(&true) && !client.given_up.contains(&to.id)
        };
        if here.is_some_and(|client| !is_wanted(client)) {
            return;
        }
        let Some(token) = self.token_of(to.client).map(str::to_owned) else { return };
        let Some(known) = self.resumable.get_mut(&token) else { return };
        known.replies.insert(to.id.clone(), Reply { line: line.clone(), session });
        let (id, line) = (to.id.clone(), line.clone());
        out.records.push(Record::Reply(ReplyRow { token, id, line, session }));
    }

    /// A client says which answers it has.
    pub(crate) fn replies_taken(
        &mut self,
        client: ClientId,
        params: Option<&RawValue>,
        out: &mut Batch,
    ) {
        let answered = params.and_then(|params| serde_json::from_str(params.get()).ok());
        let Answered { ids: taken } = answered.unwrap_or_default();
        let Some(token) = self.token_of(client).map(str::to_owned) else { return };
        let Some(known) = self.resumable.get_mut(&token) else { return };
        for id in ids(&taken) {
            if known.replies.remove(&id).is_some() {
                out.records.push(Record::ReplyGone { token: token.clone(), id });
            }
        }
    }
}

/// What can be an id of a request.
fn ids(raw: &[RawId]) -> Vec<Id> {
    raw.iter().filter_map(|id| Id::from_raw(&id.0)).collect()
}
