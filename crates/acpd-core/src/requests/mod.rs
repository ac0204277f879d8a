//! Open requests from acpd to agents: which process acpd asked, for what, and which client waits for the answer.
//!
//! Ids that acpd issues, to an agent or to a client, come from [`IdSource`](crate::ids::IdSource) and are unique across
//! daemon incarnations: an answer that comes too late can never be taken for the answer to something
//! else. An agent's own requests are kept as interactions, keyed by the process that asked.

pub(crate) mod purpose;

use std::collections::BTreeMap;

use acp_wire::Id;
use bytes::Bytes;

use crate::ids::{ClientId, HostId, NOBODY, Requester, SessionKey, Time};
use crate::requests::purpose::{Adoption, NewSession, Purpose, Steer};

#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) host: HostId,
    pub(crate) purpose: Purpose,
    /// When it was asked, or found by this daemon.
    pub(crate) since: Time,
    /// The client has cancelled it.
    pub(crate) cancelled: bool,
}

/// Open requests to agents, by the id that acpd gave them.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    asked: BTreeMap<u64, Asked>,
}

impl Requests {
    pub(crate) fn ask(&mut self, id: u64, host: HostId, purpose: Purpose, since: Time) {
        self.asked.insert(id, Asked { host, purpose, since, cancelled: false });
    }

    pub(crate) fn get(&self, ask: u64) -> Option<&Asked> {
        self.asked.get(&ask)
    }

    /// Marks a request as cancelled by its client, unless it has a timer of its own. Returns whether that
    /// is new: then the caller has to time the answer.
    pub(crate) fn cancel(&mut self, ask: u64) -> bool {
        let Some(asked) = self.asked.get_mut(&ask) else { return false };
        let counts = match &mut asked.purpose {
            Purpose::Steer(steer) => {
                steer.take_back();
                true
            }
            why => matches!(why, Purpose::NewSession(_) | Purpose::Relay { .. }),
        };
        counts && !std::mem::replace(&mut asked.cancelled, true)
    }

    /// Removes the receiver of the answer and the cancellation. Returns the receiver.
    pub(crate) fn disown(&mut self, ask: u64) -> Option<Requester> {
        let asked = self.asked.get_mut(&ask)?;
        asked.cancelled = false;
        let to = asked.purpose.requester_mut()?;
        let nobody = Requester { client: NOBODY, id: Id::null() };
        Some(std::mem::replace(to, nobody)).filter(|to| to.client != NOBODY)
    }

    /// Removes a client as the receiver of all answers; cancellations stay. Returns the changed
    /// requests.
    pub(crate) fn disown_all(&mut self, client: ClientId) -> Vec<u64> {
        let mut changed = Vec::new();
        for (id, asked) in &mut self.asked {
            if let Some(to) = asked.purpose.requester_mut().filter(|to| to.client == client) {
                to.client = NOBODY;
                changed.push(*id);
            }
        }
        changed
    }

    /// Drops the answer to a request, after which `session` may still be replayed. Returns its
    /// purpose.
    pub(crate) fn give_up(
        &mut self,
        ask: u64,
        session: Option<String>,
    ) -> Option<(HostId, Purpose)> {
        let asked = self.asked.get_mut(&ask)?;
        let was = std::mem::replace(&mut asked.purpose, Purpose::GivenUp { session });
        Some((asked.host, was))
    }

    /// The request that a host's response belongs to, with its id.
    pub(crate) fn answer(&mut self, host: HostId, id: &Id) -> Option<(u64, Purpose)> {
        let id = id.as_issued()?;
        if self.asked.get(&id)?.host != host {
            return None;
        }
        self.asked.remove(&id).map(|asked| (id, asked.purpose))
    }

    /// Why something was asked of a host that has not answered it.
    pub(crate) fn open_mut(&mut self, host: HostId, id: &Id) -> Option<&mut Purpose> {
        let asked = self.asked.get_mut(&id.as_issued()?)?;
        (asked.host == host).then_some(&mut asked.purpose)
    }

    /// Everything that a host will not answer any more, oldest first.
    pub(crate) fn drop_host(&mut self, host: HostId) -> Vec<(u64, Purpose)> {
        let gone = self.asked.extract_if(.., |_, asked| asked.host == host);
        gone.map(|(id, asked)| (id, asked.purpose)).collect()
    }

    /// Requests of clients that wait for an agent's answer.
    pub(crate) fn requesters(&self) -> impl Iterator<Item = &Requester> {
        self.asked.values().filter_map(|asked| asked.purpose.requester())
    }

    /// Requests of clients that wait for an agent's answer, to change their owners.
    pub(crate) fn requesters_mut(&mut self) -> impl Iterator<Item = &mut Requester> {
        self.asked.values_mut().filter_map(|asked| asked.purpose.requester_mut())
    }

    /// Returns whether an agent has not answered all initial settings of a session.
    pub(crate) fn preset_is_open(&self, key: SessionKey) -> bool {
        let is_it = |asked: &Asked| matches!(asked.purpose, Purpose::Preset { session, .. } if session == key);
        self.asked.values().any(is_it)
    }

    /// The id of the open restore step of a session.
    pub(crate) fn restore_ask(&self, key: SessionKey) -> Option<u64> {
        let is_it = |asked: &Asked| matches!(asked.purpose, Purpose::Restore { session, .. } if session == key);
        self.asked.iter().find(|(_, asked)| is_it(asked)).map(|(id, _)| *id)
    }

    /// Returns whether a host may still replay a session without a waiting client.
    pub(crate) fn may_replay(&self, host: HostId, id: &str) -> bool {
        let may = |purpose: &Purpose| matches!(purpose, Purpose::GivenUp { session: Some(session) } if session == id);
        self.of_host(host).any(may)
    }

    /// All adoptions, with their hosts and the ids of the requests.
    pub(crate) fn adoptions(&mut self) -> impl Iterator<Item = (u64, HostId, &mut Adoption)> {
        self.asked.iter_mut().filter_map(|(id, asked)| match &mut asked.purpose {
            Purpose::Adopt(adoption) => Some((*id, asked.host, &mut **adoption)),
            _ => None,
        })
    }

    /// The request for the adoption of a session from this host.
    pub(crate) fn adoption_ask(&self, host: HostId, id: &str) -> Option<u64> {
        let is_it = |asked: &Asked| {
            asked.host == host && matches!(&asked.purpose, Purpose::Adopt(of) if of.id == id)
        };
        self.asked.iter().find(|(_, asked)| is_it(asked)).map(|(id, _)| *id)
    }

    /// The request to an agent that serves this client's request, and its process.
    pub(crate) fn ask_for(&self, requester: &Requester) -> Option<(u64, HostId)> {
        let found =
            self.asked.iter().find(|(_, asked)| asked.purpose.requester() == Some(requester));
        found.map(|(id, asked)| (*id, asked.host))
    }

    /// The answer to a session's prompt matters only as the end of its turn; the id of the request.
    pub(crate) fn abandon_prompt(&mut self, key: SessionKey, session: String) -> Option<u64> {
        let is_it =
            |asked: &Asked| matches!(asked.purpose, Purpose::Prompt { session } if session == key);
        let (id, asked) = self.asked.iter_mut().find(|(_, asked)| is_it(asked))?;
        asked.purpose = Purpose::Abandoned { session };
        Some(*id)
    }

    /// Sessions in which a host works on a turn that was given up, by the agent's ids.
    pub(crate) fn abandoned(&self, host: HostId) -> impl Iterator<Item = &str> {
        self.of_host(host).filter_map(|purpose| match purpose {
            Purpose::Abandoned { session } => Some(session.as_str()),
            _ => None,
        })
    }

    /// Everything that a host was asked and has not answered.
    pub(crate) fn of_host(&self, host: HostId) -> impl Iterator<Item = &Purpose> {
        let asked = self.asked.values().filter(move |asked| asked.host == host);
        asked.map(|asked| &asked.purpose)
    }

    /// Returns whether a request is open whose answer may name or take over a session.
    pub(crate) fn may_name_session(&self, host: HostId) -> bool {
        self.of_host(host).any(|purpose| {
            matches!(
                purpose,
                Purpose::NewSession(_) | Purpose::Adopt(_) | Purpose::Restore { renews: true, .. }
            )
        })
    }

    /// Sessions that are being made for clients.
    pub(crate) fn new_sessions(&self) -> impl Iterator<Item = (HostId, &NewSession)> {
        self.asked.values().filter_map(|asked| match &asked.purpose {
            Purpose::NewSession(new) => Some((asked.host, new)),
            _ => None,
        })
    }

    /// Messages on their way into the turn of a session.
    pub(crate) fn steers(&self, session: SessionKey) -> impl Iterator<Item = &Steer> {
        self.asked.values().filter_map(move |asked| match &asked.purpose {
            Purpose::Steer(steer) if steer.session == session => Some(&**steer),
            _ => None,
        })
    }

    /// Drops the messages to the turn of a session; returns the changed requests.
    pub(crate) fn take_back_steers(&mut self, session: SessionKey) -> Vec<u64> {
        let changed = self.asked.iter_mut().filter_map(|(id, asked)| match &mut asked.purpose {
            Purpose::Steer(steer) if steer.session == session => steer.take_back().then_some(*id),
            _ => None,
        });
        changed.collect()
    }

    /// The params with which a host was asked to make or load sessions for clients.
    pub(crate) fn params_of_openings(&self, host: HostId) -> impl Iterator<Item = &Bytes> {
        self.of_host(host).filter_map(|purpose| match purpose {
            Purpose::NewSession(new) => Some(&new.params),
            Purpose::Adopt(adoption) => Some(&adoption.params),
            _ => None,
        })
    }

    /// Returns whether a host works on a request whose answer matters.
    pub(crate) fn is_working(&self, host: HostId) -> bool {
        self.of_host(host).any(|why| {
            !matches!(
                why,
                Purpose::AuthStatus
                    | Purpose::Title { .. }
                    | Purpose::Farewell
                    | Purpose::GivenUp { .. }
            )
        })
    }
}
