//! Every open request, with its id on each hop.
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

/// A request that was sent to an agent.
#[derive(Debug)]
struct Asked {
    host: HostId,
    why: Purpose,
    /// When it was asked, or found by this daemon.
    since: Time,
    /// Who asked has taken it back.
    cancelled: bool,
}

/// All open requests that acpd has sent.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    asked: BTreeMap<u64, Asked>,
}

impl Requests {
    pub(crate) fn ask(&mut self, id: u64, host: HostId, why: Purpose, since: Time) {
        self.asked.insert(id, Asked { host, why, since, cancelled: false });
    }

    /// Who was asked for what since when, and whether it was taken back.
    pub(crate) fn waits_since(&self, ask: u64) -> Option<(HostId, Purpose, Time, bool)> {
        let asked = self.asked.get(&ask)?;
        Some((asked.host, asked.why.clone(), asked.since, asked.cancelled))
    }

    /// Who asked takes it back; whether that is news, and has no time of its own.
    pub(crate) fn cancel(&mut self, ask: u64) -> bool {
        let Some(asked) = self.asked.get_mut(&ask) else { return false };
        let counts = match &mut asked.why {
            Purpose::Steer(steer) => {
                steer.take_back();
                true
            }
            why => matches!(why, Purpose::NewSession(_) | Purpose::Relay { .. }),
        };
        counts && !std::mem::replace(&mut asked.cancelled, true)
    }

    /// The answer is nobody's any more; whose it was.
    pub(crate) fn disown(&mut self, ask: u64) -> Option<Requester> {
        let asked = self.asked.get_mut(&ask)?;
        asked.cancelled = false;
        let to = asked.why.requester_mut()?;
        let nobody = Requester { client: NOBODY, id: Id::null() };
        Some(std::mem::replace(to, nobody)).filter(|to| to.client != NOBODY)
    }

    /// The same for everything that a client has asked for; the requests that this changes.
    pub(crate) fn disown_all(&mut self, client: ClientId) -> Vec<u64> {
        let mut changed = Vec::new();
        for (id, asked) in &mut self.asked {
            if let Some(to) = asked.why.requester_mut().filter(|to| to.client == client) {
                to.client = NOBODY;
                changed.push(*id);
            }
        }
        changed
    }

    /// Who was asked, and for what.
    pub(crate) fn get(&self, ask: u64) -> Option<(HostId, &Purpose)> {
        self.asked.get(&ask).map(|asked| (asked.host, &asked.why))
    }

    /// Nobody waits for the answer any more, after which `session` may still be replayed; what it was for.
    pub(crate) fn give_up(
        &mut self,
        ask: u64,
        session: Option<String>,
    ) -> Option<(HostId, Purpose)> {
        let asked = self.asked.get_mut(&ask)?;
        let was = std::mem::replace(&mut asked.why, Purpose::GivenUp { session });
        Some((asked.host, was))
    }

    /// The request that a host's response belongs to, with its id.
    pub(crate) fn answer(&mut self, host: HostId, id: &Id) -> Option<(u64, Purpose)> {
        let id = id.as_u64()?;
        if self.asked.get(&id)?.host != host {
            return None;
        }
        self.asked.remove(&id).map(|asked| (id, asked.why))
    }

    /// Why something was asked of a host that has not answered it.
    pub(crate) fn open_mut(&mut self, host: HostId, id: &Id) -> Option<&mut Purpose> {
        let asked = self.asked.get_mut(&id.as_u64()?)?;
        (asked.host == host).then_some(&mut asked.why)
    }

    /// Everything that a host will not answer any more, oldest first.
    pub(crate) fn drop_host(&mut self, host: HostId) -> Vec<(u64, Purpose)> {
        let gone = self.asked.extract_if(.., |_, asked| asked.host == host);
        gone.map(|(id, asked)| (id, asked.why)).collect()
    }

    /// The client's request behind one of ours.
    pub(crate) fn requester(&self, ask: u64) -> Option<&Requester> {
        self.asked.get(&ask)?.why.requester()
    }

    /// Requests of clients that wait for an agent's answer.
    pub(crate) fn requesters(&self) -> impl Iterator<Item = &Requester> {
        self.asked.values().filter_map(|asked| asked.why.requester())
    }

    /// The same, to change whose they are.
    pub(crate) fn requesters_mut(&mut self) -> impl Iterator<Item = &mut Requester> {
        self.asked.values_mut().filter_map(|asked| asked.why.requester_mut())
    }

    /// The id of the open restore step of a session.
    pub(crate) fn restore_of(&self, key: SessionKey) -> Option<u64> {
        let is_it =
            |asked: &Asked| matches!(asked.why, Purpose::Restore { session, .. } if session == key);
        self.asked.iter().find(|(_, asked)| is_it(asked)).map(|(id, _)| *id)
    }

    /// Whether a host may still replay a session that nobody waits for any more.
    pub(crate) fn may_replay(&self, host: HostId, id: &str) -> bool {
        self.asked.values().any(|asked| {
            let of =
                matches!(&asked.why, Purpose::GivenUp { session: Some(session) } if session == id);
            asked.host == host && of
        })
    }

    /// All adoptions, with their hosts and the ids of the requests.
    pub(crate) fn adoptions(&mut self) -> impl Iterator<Item = (u64, HostId, &mut Adoption)> {
        self.asked.iter_mut().filter_map(|(id, asked)| match &mut asked.why {
            Purpose::Adopt(adoption) => Some((*id, asked.host, &mut **adoption)),
            _ => None,
        })
    }

    /// The request for the adoption of a session from this host.
    pub(crate) fn adoption_ask(&self, host: HostId, id: &str) -> Option<u64> {
        let is_it = |asked: &Asked| {
            asked.host == host && matches!(&asked.why, Purpose::Adopt(of) if of.id == id)
        };
        self.asked.iter().find(|(_, asked)| is_it(asked)).map(|(id, _)| *id)
    }

    /// The id under which a client's request was relayed.
    pub(crate) fn relayed(&self, requester: &Requester) -> Option<(u64, HostId)> {
        let found = self.asked.iter().find(|(_, asked)| asked.why.requester() == Some(requester));
        found.map(|(id, asked)| (*id, asked.host))
    }

    /// The answer to a session's prompt matters only as the end of its turn; the id of the request.
    pub(crate) fn abandon_prompt(&mut self, key: SessionKey, session: String) -> Option<u64> {
        let is_it =
            |asked: &Asked| matches!(asked.why, Purpose::Prompt { session } if session == key);
        let (id, asked) = self.asked.iter_mut().find(|(_, asked)| is_it(asked))?;
        asked.why = Purpose::Abandoned { session };
        Some(*id)
    }

    /// The host that was asked and has not answered.
    pub(crate) fn host_of(&self, ask: u64) -> Option<HostId> {
        self.asked.get(&ask).map(|asked| asked.host)
    }

    /// Sessions in which a host works on a turn that was given up, by the agent's ids.
    pub(crate) fn abandoned(&self, host: HostId) -> impl Iterator<Item = &str> {
        self.asked.values().filter_map(move |asked| match &asked.why {
            Purpose::Abandoned { session } if asked.host == host => Some(session.as_str()),
            _ => None,
        })
    }

    /// Everything that a host was asked and has not answered.
    pub(crate) fn of_host(&self, host: HostId) -> impl Iterator<Item = &Purpose> {
        let asked = self.asked.values().filter(move |asked| asked.host == host);
        asked.map(|asked| &asked.why)
    }

    pub(crate) fn new_pending(&self, host: HostId) -> bool {
        self.asked.values().any(|asked| {
            let makes = matches!(
                asked.why,
                Purpose::NewSession(_) | Purpose::Adopt(_) | Purpose::Restore { renews: true, .. }
            );
            asked.host == host && makes
        })
    }

    /// Sessions that are being made for clients.
    pub(crate) fn new_sessions(&self) -> impl Iterator<Item = (HostId, &NewSession)> {
        self.asked.values().filter_map(|asked| match &asked.why {
            Purpose::NewSession(new) => Some((asked.host, new)),
            _ => None,
        })
    }

    /// Messages on their way into the turn of a session.
    pub(crate) fn steers(&self, session: SessionKey) -> impl Iterator<Item = &Steer> {
        self.asked.values().filter_map(move |asked| match &asked.why {
            Purpose::Steer(steer) if steer.session == session => Some(&**steer),
            _ => None,
        })
    }

    /// Nobody wants the messages into the turn of a session any more; the requests that this changes.
    pub(crate) fn take_back_steers(&mut self, session: SessionKey) -> Vec<u64> {
        let changed = self.asked.iter_mut().filter_map(|(id, asked)| match &mut asked.why {
            Purpose::Steer(steer) if steer.session == session => steer.take_back().then_some(*id),
            _ => None,
        });
        changed.collect()
    }

    /// The params of sessions that a host is to make or to load for clients.
    pub(crate) fn made(&self, host: HostId) -> impl Iterator<Item = &Bytes> {
        let asked = self.asked.values().filter(move |asked| asked.host == host);
        asked.filter_map(|asked| match &asked.why {
            Purpose::NewSession(new) => Some(&new.params),
            Purpose::Adopt(adoption) => Some(&adoption.params),
            _ => None,
        })
    }

    /// Whether a host works on something whose answer matters.
    pub(crate) fn open_of_host(&self, host: HostId) -> bool {
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
