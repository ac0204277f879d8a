//! Connections: what each has said of itself, what it waits for, and how it comes back.

pub(crate) mod admission;
pub(crate) mod name;
pub(crate) mod resumable;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use acp_wire::Id;
use acp_wire::acp::ClientCapabilities;
use acpd_api::{ClientName, Resume, Role};
use bytes::Bytes;
use serde_json::value::RawValue;

use crate::clients::resumable::Resumable;
use crate::fault::Fault;
use crate::ids::{ClientId, Requester, SessionKey, Time};
use crate::input::{ClientOrigin, View};
use crate::views::attachment::Responder;

/// All connections, and the clients with a token, whether they are connected or not
/// ([`resumable`] has what becomes of these).
#[derive(Debug)]
pub(crate) struct Clients {
    connected: BTreeMap<ClientId, Client>,
    resumable: BTreeMap<String, Resumable>,
    /// Those of them whose lines this batch commits.
    counted: BTreeSet<String>,
    /// Identity of the journal: what a client has of another one does not count.
    generation: String,
    naming: Vec<Naming>,
}

impl Clients {
    pub(crate) fn get_mut(&mut self, client: ClientId) -> Option<&mut Client> {
        self.connected.get_mut(&client)
    }

    pub(crate) fn connect(&mut self, client: ClientId, origin: ClientOrigin) {
        let under_agent = origin != ClientOrigin::User;
        self.connected.insert(client, Client { under_agent, origin, ..Client::default() });
    }

    /// A connection has ended, which was at these sessions. A client with a token is waited for.
    pub(crate) fn disconnect(
        &mut self,
        client: ClientId,
        was_at: impl FnOnce() -> BTreeMap<SessionKey, u64>,
        now: Time,
    ) -> Option<Client> {
        let gone = self.connected.remove(&client)?;
        self.naming.retain(|wait| wait.to.client != client);
        let known = gone.token.as_ref().and_then(|token| self.resumable.get_mut(token));
        if let Some(known) = known {
            (known.away, known.was_at) = (Some(now), was_at());
        }
        Some(gone)
    }

    /// Returns the client if it is connected and may decide for a person.
    pub(crate) fn responder(&self, client: ClientId) -> Option<Responder<'_>> {
        let here = self.get(&client).filter(|here| !here.under_agent)?;
        let Client { name, capabilities, view, .. } = here;
        Some(Responder { client, name, capabilities, view })
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
    pub(crate) sessions: BTreeSet<SessionKey>,
    /// Sessions that it has made.
    pub(crate) made: BTreeSet<SessionKey>,
    /// Pieces of journal that are on their way to it.
    pub(crate) reads: BTreeMap<SessionKey, u32>,
    /// The client reads too slowly: it gets only answers.
    pub(crate) lagged: bool,
    pub(crate) open: BTreeMap<Id, Open>,
    /// The name under which it comes back.
    pub(crate) token: Option<String>,
    /// Role of the client in the sessions that it resumes.
    pub(crate) role: Role,
    /// State of its last connection, until it has the rest.
    pub(crate) resume: Option<Resume>,
    /// The client runs under an agent, or says so ([`crate::hub::clients::under_agent`]).
    pub(crate) under_agent: bool,
    pub(crate) origin: ClientOrigin,
    /// Requests that it has to send again.
    pub(crate) again: Vec<Id>,
    /// When it said something last; nothing before its first line ([`crate::hub::clients::admission`]).
    pub(crate) last_heard: Option<Time>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Open {
    /// The answer is kept until the client has it.
    pub(crate) kept: bool,
    /// The request got an error already, because the journal could not be written.
    pub(crate) given_up: bool,
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
