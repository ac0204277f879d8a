//! Every open request, with its id on each hop.
//!
//! Ids that acpd issues, to an agent or to a client, come from [`IdSource`] and are unique across
//! daemon incarnations: an answer that comes too late can never be taken for the answer to something
//! else. An agent's own requests are kept as interactions, keyed by the process that asked.

use std::collections::BTreeMap;

use acp_wire::Id;
use bytes::Bytes;

use crate::ids::{ClientId, HostId, InteractionId, SessionKey};

/// Issues ids: incarnation in the upper bits, so that numbers stay below 2⁵³ for JavaScript.
#[derive(Debug)]
pub(crate) struct IdSource {
    boot: u64,
    next: u64,
}

impl IdSource {
    pub(crate) fn new(boot: u64) -> IdSource {
        IdSource { boot, next: 1 }
    }

    pub(crate) fn issue(&mut self) -> u64 {
        let id = (self.boot << 32) | self.next;
        self.next += 1;
        id
    }
}

/// A client's request, to be answered once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Requester {
    pub(crate) client: ClientId,
    pub(crate) id: Id,
}

/// Why something was asked of an agent.
#[derive(Debug, Clone)]
pub(crate) enum Why {
    /// acpd's own `initialize`.
    Initialize,
    /// A client's `session/new`.
    NewSession(NewSession),
    /// The prompt of the session's running turn.
    Prompt { session: SessionKey },
    /// A step of the session's restore.
    Restore {
        session: SessionKey,
        /// It is asked for with `session/new`, so the agent's id for it is not known yet.
        renews: bool,
    },
    /// A client's request, relayed.
    Relay { to: Requester, session: Option<SessionKey>, method: String, params: Option<Bytes> },
    /// A step of a restore that was given up; its answer does not matter.
    GivenUp,
    /// `session/close` or `session/delete` whose answer does not matter.
    Farewell,
}

/// A client's `session/new` until it is answered.
#[derive(Debug, Clone)]
pub(crate) struct NewSession {
    pub(crate) to: Requester,
    pub(crate) name: Option<String>,
    pub(crate) cwd: String,
    /// Params without acpd's own `_meta` member.
    pub(crate) params: Bytes,
}

/// A request that was sent to an agent.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) host: HostId,
    pub(crate) why: Why,
}

/// All open requests that acpd has sent.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    asked: BTreeMap<u64, Asked>,
    offered: BTreeMap<(ClientId, u64), InteractionId>,
}

impl Ledger {
    pub(crate) fn ask(&mut self, id: u64, host: HostId, why: Why) {
        self.asked.insert(id, Asked { host, why });
    }

    /// The request that a host's response belongs to.
    pub(crate) fn answer(&mut self, host: HostId, id: &Id) -> Option<Why> {
        let id = id.as_u64()?;
        if self.asked.get(&id)?.host != host {
            return None;
        }
        self.asked.remove(&id).map(|asked| asked.why)
    }

    /// Everything that a host will not answer any more, oldest first.
    pub(crate) fn drop_host(&mut self, host: HostId) -> Vec<Why> {
        let gone = self.asked.extract_if(.., |_, asked| asked.host == host);
        gone.map(|(_, asked)| asked.why).collect()
    }

    /// Gives up the open restore step of a session; whether there was one.
    pub(crate) fn give_up_restore(&mut self, key: SessionKey) -> bool {
        let mut any = false;
        for asked in self.asked.values_mut() {
            if matches!(asked.why, Why::Restore { session, .. } if session == key) {
                asked.why = Why::GivenUp;
                any = true;
            }
        }
        any
    }

    /// The id under which a client's request was relayed.
    pub(crate) fn relayed(&self, requester: &Requester) -> Option<(u64, HostId)> {
        self.asked.iter().find_map(|(id, asked)| match &asked.why {
            Why::Relay { to, .. } if to == requester => Some((*id, asked.host)),
            Why::NewSession(new) if new.to == *requester => Some((*id, asked.host)),
            _ => None,
        })
    }

    /// Drops the prompt of a session's running turn.
    pub(crate) fn drop_prompt(&mut self, key: SessionKey) {
        self.asked
            .retain(|_, asked| !matches!(asked.why, Why::Prompt { session } if session == key));
    }

    pub(crate) fn new_pending(&self, host: HostId) -> bool {
        self.asked.values().any(|asked| {
            let makes = matches!(asked.why, Why::NewSession(_) | Why::Restore { renews: true, .. });
            asked.host == host && makes
        })
    }

    /// Sessions that are being made for clients.
    pub(crate) fn new_sessions(&self) -> impl Iterator<Item = (HostId, &NewSession)> {
        self.asked.values().filter_map(|asked| match &asked.why {
            Why::NewSession(new) => Some((asked.host, new)),
            _ => None,
        })
    }

    pub(crate) fn open_of_host(&self, host: HostId) -> bool {
        self.asked
            .values()
            .any(|asked| asked.host == host && !matches!(asked.why, Why::Farewell | Why::GivenUp))
    }

    pub(crate) fn offer(&mut self, client: ClientId, id: u64, interaction: InteractionId) {
        self.offered.insert((client, id), interaction);
    }

    /// The interaction that a client's response belongs to.
    pub(crate) fn offered(&mut self, client: ClientId, id: &Id) -> Option<InteractionId> {
        self.offered.remove(&(client, id.as_u64()?))
    }

    /// Takes back all offers of an interaction.
    pub(crate) fn withdraw(&mut self, interaction: InteractionId) -> Vec<(ClientId, u64)> {
        self.offered.extract_if(.., |_, of| *of == interaction).map(|(place, _)| place).collect()
    }

    pub(crate) fn drop_client(&mut self, client: ClientId) {
        self.offered.retain(|(of, _), _| *of != client);
    }

    /// Takes back the offer of an interaction to one client.
    pub(crate) fn take_back(
        &mut self,
        client: ClientId,
        interaction: InteractionId,
    ) -> Option<u64> {
        let mine =
            self.offered.iter().find(|((of, _), what)| *of == client && **what == interaction);
        let place = *mine?.0;
        self.offered.remove(&place);
        Some(place.1)
    }

    /// Whether this client is being asked already.
    pub(crate) fn is_offered(&self, client: ClientId, interaction: InteractionId) -> bool {
        self.offered.iter().any(|((of, _), what)| *of == client && *what == interaction)
    }
}
