//! Connections: their admission, requests, rights, places in sessions, and how they come back.
//!
//! ```text
//!  first line ─▶ manager ── `initialize` ─▶ client ── the connection ends ─▶ gone, or away if it has a token
//!                                             │   ▲
//!                                      attach ▼   │ detach
//!                                           at a session
//! ```
//!
//! [`admission`] has the places for connections, [`resumable`] the clients with a token, [`attachments`] their
//! cursors in journals.
//!
//! | Input | Handler |
//! | --- | --- |
//! | a connection, its line, its end | `connect`, `admit`, `count_line`, `on_closed` |
//! | `initialize`, its token, its answer | `introduce`, `claim_token`, `name`, `come_back`, `set_initialized` |
//! | a request, its answer, a notice | `accept`, `respond`, `tell` |
//! | the journal cannot be written | `give_up`, `take_answer` |
//! | answers are confirmed, the client leaves | `on_replies_taken`, `forget` |
//! | a session is opened, left, or has another line | `attach`, `detach`, `show` |
//! | a piece of journal was sent; the client lags, keeps up | `on_read_done`, `on_lagged`, `on_drained` |
//! | the end of a batch | `commit_received` |
//!
//! Arguments from other machines are the heads of journals and single facts. Reports `ClientLeft`
//! and `ClientCaughtUp`.
//!
//! Architecture invariant: each request is answered once. An answer that a reconnected client can
//! get is kept in the transaction that makes it true.

mod admission;
mod attachments;
pub(crate) mod resumable;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use acp_wire::acp::ClientInitialize;
use acp_wire::bound::NAME;
use acp_wire::{Id, Message, clipped, code, parse};
use acpd_api::method::{CLIENT_ANSWERED, MethodEffect};
use acpd_api::{ClientMeta, ClientName, Reason, Resume, Role, Untrusted};
use bytes::Bytes;
use serde_json::value::RawValue;

use crate::clients::attachments::Attachment;
use crate::clients::resumable::Resumable;
use crate::cx::Cx;
use crate::event::EngineEvent;
use crate::fault::Fault;
use crate::hash::number_of;
use crate::ids::{ClientId, Requester, Seq, SessionKey, Time};
use crate::input::{
    ClientOrigin, Effect, LogPage, Numbers, SessionValues, ToClient, ValuesForm, View,
};
use crate::timers::Timer;
use crate::views::Responder;

/// Unconfirmed answers of a client before its requests are refused.
const REPLIES: usize = 256;
/// Bytes of unconfirmed answers, in addition to one answer of any length.
const REPLY_BYTES: usize = 8 << 20;
const OPEN_REQUESTS: usize = 128;

#[derive(Debug, Default)]
pub(crate) struct Clients {
    connected: BTreeMap<ClientId, Client>,
    attached: BTreeMap<(SessionKey, ClientId), Attachment>,
    touched: BTreeSet<SessionKey>,
    /// By their connections, or by placeholders.
    resumable: BTreeMap<ClientId, Resumable>,
    /// Clients whose lines this batch commits.
    counted: BTreeSet<ClientId>,
    /// Identity of the journal. Positions in other journals do not count.
    generation: String,
}

impl Clients {
    pub(crate) fn connect(&mut self, client: ClientId, origin: ClientOrigin) {
        let under_agent = origin != ClientOrigin::User;
        self.connected.insert(client, Client { under_agent, origin, ..Client::default() });
    }

    pub(crate) fn on_closed(&mut self, cx: &mut Cx, client: ClientId) {
        let Some(gone) = self.connected.remove(&client) else { return };
        let sessions: Vec<SessionKey> = self.sessions_of(client).collect();
        let places = sessions.iter().filter_map(|key| {
            let attachment = self.take_attachment(client, *key)?;
            Some((*key, attachment.since))
        });
        let was_at = places.collect();
        let known = self.resumable.get_mut(&client);
        let returns =
            known.map(|known| (known.away, known.was_at) = (Some(cx.now), was_at)).is_some();
        if returns && !cx.timers.is_set(Timer::Resumable) {
            self.wait_for_late(&mut cx.timers);
        }
        cx.report(EngineEvent::ClientLeft { client, number: gone.number, returns, sessions });
    }

    pub(crate) fn introduce(
        &mut self,
        client: ClientId,
        said: &ClientInitialize<'_>,
        meta: ClientMeta,
        (profile, offer): (&str, Option<&str>),
    ) {
        let Some(here) = self.connected.get_mut(&client) else { return };
        here.view = View {
            version: said.version,
            numbers: if meta.seq { Numbers::InMeta } else { Numbers::None },
            notices: meta.notices,
            originals: meta.originals,
            capabilities: said.capabilities,
            max_line: meta.max_line.unwrap_or(0),
            editor: 0,
        };
        here.offer = offer.map(str::to_owned);
        here.profile = Some(profile.to_owned());
        here.role = meta.role.unwrap_or_default();
        let info = said.client_info.as_ref();
        here.name = bounded(ClientName {
            name: info.map_or("", |info| &info.name).into(),
            title: info.and_then(|info| info.title.clone()).map(Into::into),
            place: meta.place.map(Into::into),
        });
        here.under_agent |= meta.tool;
    }

    /// Distinguishes the client's terminals and servers from others'. A client with a token keeps
    /// its number.
    pub(crate) fn number(&mut self, cx: &mut Cx, client: ClientId) {
        let kept = self.token_of(client).map(number_of);
        let Some(here) = self.connected.get_mut(&client) else { return };
        here.number = kept.unwrap_or_else(|| cx.ids.issue());
        here.view.editor = if here.view.capabilities.terminal { here.number } else { 0 };
    }

    /// Returns the client's number; 0 before its `initialize`.
    pub(crate) fn number_of(&self, client: ClientId) -> u64 {
        self.connected.get(&client).map_or(0, |here| here.number)
    }

    pub(crate) fn set_initialized(&mut self, client: ClientId, is_initialized: bool) {
        if let Some(here) = self.connected.get_mut(&client) {
            here.initialized = is_initialized;
        }
    }

    pub(crate) fn note_made(&mut self, client: ClientId, key: SessionKey) {
        if let Some(here) = self.connected.get_mut(&client) {
            here.made.insert(key);
        }
    }

    /// Returns `false` for a client that runs under an agent.
    pub(crate) fn may_decide(&self, client: ClientId) -> bool {
        self.connected.get(&client).is_some_and(|here| !here.under_agent)
    }

    /// Returns the client if it may decide for a person.
    pub(crate) fn responder(&self, client: ClientId) -> Option<Responder<'_>> {
        let here = self.get(&client).filter(|here| !here.under_agent)?;
        Some(Responder { client, name: &here.name, view: &here.view })
    }

    /// `said`: the name in this request.
    pub(crate) fn name_of(&self, client: ClientId, said: Option<ClientName>) -> Option<ClientName> {
        let known = || self.get(&client).map(|here| here.name.clone());
        let name = said.map(bounded).or_else(known)?;
        (name != ClientName::default()).then_some(name)
    }

    pub(crate) fn responders(&self, key: SessionKey) -> impl Iterator<Item = Responder<'_>> {
        self.controllers(key).filter_map(|client| self.responder(client))
    }

    /// # Errors
    /// When the id is open already, or too many requests or kept answers are open.
    pub(crate) fn accept(&mut self, cx: &mut Cx, to: &Requester, method: &str) -> Served {
        let Some(client) = self.connected.get_mut(&to.client) else { return Ok(()) };
        if client.open.len() >= OPEN_REQUESTS {
            let text = format!("{OPEN_REQUESTS} requests of this connection are open already");
            return Err(Fault::new(Reason::TooMany, text));
        }
        if client.open.contains_key(&to.id) {
            let text = format!("a request with the id {} is open already", to.id);
            return Err(Fault::invalid(text).with_code(code::INVALID_REQUEST));
        }
        let kept = MethodEffect::of_method(method) == MethodEffect::Once;
        if let Some(known) = self.resumable.get_mut(&to.client) {
            // A client may use the id of a kept answer again, which confirms that answer.
            cx.pressing = true;
            known.confirm(cx, &to.id);
            let bytes: usize = known.replies.values().map(|reply| reply.line.len()).sum();
            let count = known.replies.len();
            if kept && (count >= REPLIES || bytes >= REPLY_BYTES) {
                let text =
                    format!("{count} answers of {bytes} bytes are not confirmed by this client");
                return Err(Fault::new(Reason::TooMany, text)
                    .hint(format!("confirm them with `{CLIENT_ANSWERED}`")));
            }
        }
        client.open.insert(to.id.clone(), Open { kept, given_up: false });
        Ok(())
    }

    /// Returns whether the answer is wanted: `false` if the request got an error while the journal
    /// could not be written.
    pub(crate) fn close_request(&mut self, to: &Requester) -> bool {
        let Some(client) = self.connected.get_mut(&to.client) else { return true };
        client.open.remove(&to.id).is_none_or(|open| !open.given_up)
    }

    /// Gives up an open request because the journal cannot be written: its answer will be dropped.
    /// Returns whether it is open.
    pub(crate) fn give_up(&mut self, to: &Requester) -> bool {
        let client = self.connected.get_mut(&to.client);
        let open = client.and_then(|client| client.open.get_mut(&to.id));
        open.map(|open| open.given_up = true).is_some()
    }

    /// Takes back an answer that was not sent. `batches`: uncommitted effects.
    pub(crate) fn take_answer(
        &mut self,
        to: &Requester,
        batches: &mut [&mut Vec<Effect>],
    ) -> Option<Effect> {
        self.connected.get(&to.client)?;
        for effects in batches {
            if let Some(at) = effects.iter().position(|effect| answers(effect, to)) {
                return Some(effects.remove(at));
            }
        }
        for (_, at) in self.attached.iter_mut().filter(|((_, of), _)| *of == to.client) {
            let mut deferred = at.deferred.iter();
            if let Some(place) = deferred.position(|(_, effect)| answers(effect, to)) {
                return at.deferred.remove(place).map(|(_, effect)| effect);
            }
        }
        None
    }

    /// Answers after the lines of a session up to a position.
    pub(crate) fn respond(
        &mut self,
        cx: &mut Cx,
        to: &Requester,
        behind: Option<(SessionKey, Seq)>,
        line: Bytes,
    ) {
        self.keep_reply(cx, to, behind.map(|(key, _)| key), &line);
        self.respond_with(cx, to, behind, ToClient::Line(line));
    }

    /// Like [`Clients::respond`], with an answer that the relay completes.
    pub(crate) fn respond_with(
        &mut self,
        cx: &mut Cx,
        to: &Requester,
        behind: Option<(SessionKey, Seq)>,
        answer: ToClient,
    ) {
        if self.close_request(to) && self.connected.contains_key(&to.client) {
            self.send_behind(cx, to.client, behind, Effect::Client(to.client, answer));
        }
    }

    pub(crate) fn tell(&self, cx: &mut Cx, client: ClientId, line: &Bytes) {
        self.tell_those(cx, line, |id, here| id == client && here.takes_notices());
    }

    /// `is_notice`: the line is for clients that take notices.
    pub(crate) fn tell_profile(&self, cx: &mut Cx, profile: &str, line: &Bytes, is_notice: bool) {
        self.tell_those(cx, line, |_, here| {
            let takes = if is_notice { here.takes_notices() } else { !here.lagged };
            takes && here.profile.as_deref() == Some(profile)
        });
    }

    pub(crate) fn tell_all(&self, cx: &mut Cx, line: &Bytes) {
        self.tell_those(cx, line, |_, here| here.takes_notices() && !here.under_agent);
    }

    fn tell_those(&self, cx: &mut Cx, line: &Bytes, is_meant: impl Fn(ClientId, &Client) -> bool) {
        for (id, _) in self.connected.iter().filter(|(id, here)| is_meant(**id, here)) {
            cx.send(Effect::Client(*id, ToClient::Line(line.clone())));
        }
    }
}

/// Clips all parts of a name, because journals repeat it.
fn bounded(name: ClientName) -> ClientName {
    let short = |text: Untrusted| Untrusted::from(clipped(text.raw(), NAME));
    ClientName {
        name: short(name.name),
        title: name.title.map(short),
        place: name.place.map(short),
    }
}

impl Deref for Clients {
    type Target = BTreeMap<ClientId, Client>;

    fn deref(&self) -> &BTreeMap<ClientId, Client> {
        &self.connected
    }
}

#[derive(Debug, Default)]
pub(crate) struct Client {
    pub(crate) profile: Option<String>,
    pub(crate) initialized: bool,
    pub(crate) view: View,
    /// Identifies the client in lines to agents; 0 = no `initialize` yet.
    pub(crate) number: u64,
    pub(crate) name: ClientName,
    pub(crate) offer: Option<String>,
    pub(crate) made: BTreeSet<SessionKey>,
    /// Pieces of journal that are being sent.
    reads: BTreeMap<SessionKey, u32>,
    lagged: bool,
    open: BTreeMap<Id, Open>,
    /// Role in resumed sessions.
    pub(crate) role: Role,
    /// State of a client that returns, until the missed lines are sent.
    pub(crate) resume: Option<Resume>,
    pub(crate) under_agent: bool,
    pub(crate) origin: ClientOrigin,
    again: Vec<Id>,
    /// Time of the last line; `None` before the first one ([`admission`]).
    last_heard: Option<Time>,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    /// The answer is kept until the client confirms it.
    kept: bool,
    /// The request got an error already, because the journal could not be written.
    given_up: bool,
}

impl Client {
    fn takes_notices(&self) -> bool {
        self.view.notices && !self.lagged
    }
}

fn answers(effect: &Effect, to: &Requester) -> bool {
    match effect {
        Effect::Client(client, what) if *client == to.client => match what {
            ToClient::Line(line) | ToClient::Rows(line) => {
                matches!(parse(line), Ok(Message::Response { id, .. }) if id == to.id)
            }
            ToClient::Status { id, .. }
            | ToClient::Log(LogPage { id, .. })
            | ToClient::Search { id, .. }
            | ToClient::Usage { id, .. }
            | ToClient::LogLevel { id, .. }
            | ToClient::Values(SessionValues { form: ValuesForm::Answer { id, .. }, .. }) => {
                *id == to.id
            }
            ToClient::Values(_) | ToClient::Read(_) => false,
        },
        Effect::Leave { client, id, .. } => *client == to.client && *id == to.id,
        _ => false,
    }
}

/// A request is served, or refused with a reason.
pub(crate) type Served = Result<(), Fault>;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) to: &'a Requester,
    pub(crate) method: &'a str,
    pub(crate) params: Option<&'a RawValue>,
    pub(crate) line: &'a Bytes,
}

/// A `session/new` with a name that an earlier, unanswered one may take.
#[derive(Debug)]
pub(crate) struct Naming {
    pub(crate) to: Requester,
    pub(crate) profile: String,
    pub(crate) cwd: String,
    pub(crate) name: String,
    pub(crate) params: Box<RawValue>,
}
