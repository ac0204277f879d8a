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
//! cursors in journals, [`replies`] requests and answers, [`rights`] the limits of clients under an agent.
//!
//! | Input | Handler |
//! | --- | --- |
//! | a connection, its line, its end | `connect`, `admit`, `count_line`, `on_closed` |
//! | `initialize`, its token, its answer | `introduce`, `claim_token`, `name`, `come_back`, `set_initialized` |
//! | a request, its answer, a notice | `may_send`, `accept`, `respond`, `tell` |
//! | the journal cannot be written | `take_answer` |
//! | answers are confirmed, the client leaves | `on_replies_taken`, `take_token` |
//! | a session is opened, left, or has another line | `attach`, `detach`, `show` |
//! | a piece of journal was sent; the client lags, keeps up | `on_read_done`, `on_lagged`, `on_drained` |
//! | the end of a batch | `commit_received` |
//!
//! Of sessions it gets the heads of journals, of other machines single facts. It reports `ClientLeft` and
//! `ClientCaughtUp`.

mod admission;
mod attachments;
pub(crate) mod name;
mod notices;
mod replies;
pub(crate) mod resumable;
mod rights;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use acp_wire::Id;
use acp_wire::acp::{ClientCapabilities, ClientInitialize};
use acpd_api::{ClientMeta, ClientName, Resume, Role};
use bytes::Bytes;
use serde_json::value::RawValue;

use crate::clients::attachments::Attachment;
use crate::clients::name::name_in;
use crate::clients::resumable::Resumable;
use crate::cx::Cx;
use crate::event::EngineEvent;
use crate::fault::Fault;
use crate::hash::number_of;
use crate::ids::{ClientId, Requester, SessionKey, Time};
use crate::input::{ClientOrigin, View};
use crate::views::responder::Responder;

pub(crate) use crate::clients::admission::PlaceFacts;
pub(crate) use crate::clients::replies::UnwrittenAnswer;
pub(crate) use crate::clients::rights::not_under_agent;

/// All connections, and the clients with a token, whether they are connected or not.
#[derive(Debug)]
pub(crate) struct Clients {
    connected: BTreeMap<ClientId, Client>,
    /// The clients at each session that has some.
    attached: BTreeMap<SessionKey, BTreeMap<ClientId, Attachment>>,
    /// Sessions at which an attachment may have changed.
    touched: BTreeSet<SessionKey>,
    resumable: BTreeMap<String, Resumable>,
    /// Those of them whose lines this batch commits.
    counted: BTreeSet<String>,
    /// Identity of the journal: what a client has of another one does not count.
    generation: String,
    naming: Vec<Naming>,
}

impl Clients {
    pub(crate) fn connect(&mut self, client: ClientId, origin: ClientOrigin) {
        let under_agent = origin != ClientOrigin::User;
        self.connected.insert(client, Client { under_agent, origin, ..Client::default() });
    }

    /// A connection has ended. A client with a token is waited for.
    pub(crate) fn on_closed(&mut self, cx: &mut Cx, client: ClientId) {
        let Some(gone) = self.connected.remove(&client) else { return };
        self.naming.retain(|wait| wait.to.client != client);
        let sessions: Vec<SessionKey> = self.sessions_of(client).collect();
        let places = sessions.iter().filter_map(|key| {
            let attachment = self.take_attachment(client, *key)?;
            Some((*key, attachment.since))
        });
        let was_at = places.collect();
        if let Some(token) = &gone.token {
            self.on_away(cx, token, was_at);
        }
        let (number, returns) = (gone.number, gone.token.is_some());
        cx.report(EngineEvent::ClientLeft { client, number, returns, sessions });
    }

    /// A client has sent `initialize`, for an agent profile.
    pub(crate) fn introduce(
        &mut self,
        client: ClientId,
        said: &ClientInitialize<'_>,
        meta: ClientMeta,
        (profile, offer): (&str, Option<&str>),
    ) {
        let Some(here) = self.connected.get_mut(&client) else { return };
        let capabilities = said.capabilities;
        here.view = View {
            seq: meta.seq,
            notices: meta.notices,
            boolean_options: capabilities.boolean_options,
            notice_updates: capabilities.notices,
            compaction: capabilities.compaction,
            plan: capabilities.plan,
            subagents: capabilities.subagents,
            max_line: meta.max_line.unwrap_or(0),
            editor: 0,
        };
        here.capabilities = capabilities;
        here.offer = offer.map(str::to_owned);
        here.profile = Some(profile.to_owned());
        here.role = meta.role.unwrap_or_default();
        here.name = name_in(said.client_info.as_ref(), meta.place);
        here.under_agent |= meta.tool;
    }

    /// Numbers a client, so that its terminals and servers are told from others'. One that comes back
    /// keeps its number.
    pub(crate) fn number(&mut self, cx: &mut Cx, client: ClientId) {
        let Some(here) = self.connected.get_mut(&client) else { return };
        here.number = match &here.token {
            Some(token) => number_of(token),
            None => cx.ids.issue(),
        };
        here.view.editor = if here.capabilities.terminal { here.number } else { 0 };
    }

    /// The `initialize` of a client is answered, or its answer was taken back.
    pub(crate) fn set_initialized(&mut self, client: ClientId, is_initialized: bool) {
        if let Some(here) = self.connected.get_mut(&client) {
            here.initialized = is_initialized;
        }
    }

    /// A client has made a session.
    pub(crate) fn note_made(&mut self, client: ClientId, key: SessionKey) {
        if let Some(here) = self.connected.get_mut(&client) {
            here.made.insert(key);
        }
    }

    /// Returns the client if it is connected and may decide for a person.
    pub(crate) fn responder(&self, client: ClientId) -> Option<Responder<'_>> {
        let here = self.get(&client).filter(|here| !here.under_agent)?;
        let Client { name, capabilities, view, .. } = here;
        Some(Responder { client, name, capabilities, view })
    }

    /// Returns the controllers of a session that may be asked, in the order in which they came.
    pub(crate) fn responders(&self, key: SessionKey) -> impl Iterator<Item = Responder<'_>> {
        self.controllers(key).filter_map(|client| self.responder(client))
    }

    /// Requests that wait for a name.
    pub(crate) fn naming(&self) -> &[Naming] {
        &self.naming
    }

    pub(crate) fn wait_for_name(&mut self, wait: Naming) {
        self.naming.push(wait);
    }

    pub(crate) fn take_naming(&mut self, at: usize) -> Naming {
        self.naming.remove(at)
    }

    /// A request does not wait for a name any more. Returns whether it did.
    pub(crate) fn forget_naming(&mut self, to: &Requester) -> bool {
        self.naming.extract_if(.., |wait| wait.to == *to).count() > 0
    }
}

/// The connections are read as a map, and change through methods alone.
impl Deref for Clients {
    type Target = BTreeMap<ClientId, Client>;

    fn deref(&self) -> &BTreeMap<ClientId, Client> {
        &self.connected
    }
}

#[derive(Debug, Default)]
pub(crate) struct Client {
    /// The agent profile it is bound to, once it has sent `initialize`.
    pub(crate) profile: Option<String>,
    pub(crate) initialized: bool,
    pub(crate) view: View,
    /// Tells it from all other clients, in what agents are told; 0 = it has not sent `initialize`.
    pub(crate) number: u64,
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) name: ClientName,
    /// Extensions for agents, see [`crate::offer`].
    pub(crate) offer: Option<String>,
    /// Sessions that it has made.
    pub(crate) made: BTreeSet<SessionKey>,
    /// Pieces of journal that are on their way to it.
    reads: BTreeMap<SessionKey, u32>,
    /// The client reads too slowly: it gets only answers.
    lagged: bool,
    open: BTreeMap<Id, Open>,
    /// The name under which it comes back.
    pub(crate) token: Option<String>,
    /// Role of the client in the sessions that it resumes.
    pub(crate) role: Role,
    /// State of its last connection, until it has the rest.
    resume: Option<Resume>,
    /// The client runs under an agent, or says so ([`rights`]).
    pub(crate) under_agent: bool,
    pub(crate) origin: ClientOrigin,
    /// Requests that it has to send again.
    again: Vec<Id>,
    /// When it said something last; nothing before its first line ([`admission`]).
    last_heard: Option<Time>,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    /// The answer is kept until the client has it.
    kept: bool,
    /// The request got an error already, because the journal could not be written.
    given_up: bool,
}

impl Client {
    /// The client got the missed lines.
    pub(crate) fn is_back(&self) -> bool {
        self.resume.is_none()
    }
}

/// Decision about a request: it is served, or refused with a reason.
pub(crate) type Served = Result<(), Fault>;

/// A request of a client that is being served.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) to: &'a Requester,
    pub(crate) method: &'a str,
    pub(crate) params: Option<&'a RawValue>,
    /// The complete line as it came.
    pub(crate) line: &'a Bytes,
}

/// A `session/new` with a name that another one, not answered yet, is about to take.
#[derive(Debug)]
pub(crate) struct Naming {
    pub(crate) to: Requester,
    pub(crate) profile: String,
    pub(crate) cwd: String,
    pub(crate) name: String,
    pub(crate) params: Box<RawValue>,
}
