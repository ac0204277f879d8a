//! Open requests from acpd to agents: the asked process, the purpose, the client that waits.
//!
//! All ids come from [`IdSource`](crate::ids::IdSource) and are unique across daemons, so a late
//! answer never counts for another request. An agent's own requests are interactions, keyed by the
//! asking process.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::ids::{HostId, NOBODY, Requester, SessionKey, Time};
use crate::record::{Adoption, NewSession, Purpose, Steer};

#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) host: HostId,
    pub(crate) purpose: Purpose,
    pub(crate) since: Time,
    pub(crate) cancelled: bool,
}

/// Open requests to agents, by acpd's id.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    pub(crate) asked: BTreeMap<u64, Asked>,
}

impl Requests {
    pub(crate) fn ask(&mut self, id: u64, host: HostId, purpose: Purpose, since: Time) {
        self.asked.insert(id, Asked { host, purpose, since, cancelled: false });
    }

    pub(crate) fn get(&self, ask: u64) -> Option<&Asked> {
        self.asked.get(&ask)
    }

    /// Cancels a request. Returns whether the caller must now set a timer for the answer.
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

    /// Removes the receiver and the cancellation. Returns the receiver.
    pub(crate) fn disown(&mut self, ask: u64) -> Option<Requester> {
        let asked = self.asked.get_mut(&ask)?;
        asked.cancelled = false;
        let to = asked.purpose.requester_mut()?;
        Some(std::mem::replace(to, Requester::nobody())).filter(|to| to.client != NOBODY)
    }

    pub(crate) fn requesters(&self) -> impl Iterator<Item = &Requester> {
        self.asked.values().filter_map(|asked| asked.purpose.requester())
    }

    pub(crate) fn requesters_mut(&mut self) -> impl Iterator<Item = &mut Requester> {
        self.asked.values_mut().filter_map(|asked| asked.purpose.requester_mut())
    }

    pub(crate) fn preset_is_open(&self, key: SessionKey) -> bool {
        let is_it = |asked: &Asked| matches!(asked.purpose, Purpose::Preset { session, .. } if session == key);
        self.asked.values().any(is_it)
    }

    pub(crate) fn restore_ask(&self, key: SessionKey) -> Option<u64> {
        let is_it = |asked: &Asked| matches!(asked.purpose, Purpose::Restore { session, .. } if session == key);
        self.asked.iter().find(|(_, asked)| is_it(asked)).map(|(id, _)| *id)
    }

    pub(crate) fn may_replay(&self, host: HostId, id: &str) -> bool {
        let may = |purpose: &Purpose| matches!(purpose, Purpose::GivenUp { session: Some(session) } if session == id);
        self.of_host(host).any(may)
    }

    pub(crate) fn adoptions(&mut self) -> impl Iterator<Item = (u64, HostId, &mut Adoption)> {
        self.asked.iter_mut().filter_map(|(id, asked)| match &mut asked.purpose {
            Purpose::Adopt(adoption) => Some((*id, asked.host, &mut **adoption)),
            _ => None,
        })
    }

    pub(crate) fn adoption_ask(&self, host: HostId, id: &str) -> Option<u64> {
        let is_it = |asked: &Asked| {
            asked.host == host && matches!(&asked.purpose, Purpose::Adopt(of) if of.id == id)
        };
        self.asked.iter().find(|(_, asked)| is_it(asked)).map(|(id, _)| *id)
    }

    pub(crate) fn ask_for(&self, requester: &Requester) -> Option<(u64, HostId)> {
        let found =
            self.asked.iter().find(|(_, asked)| asked.purpose.requester() == Some(requester));
        found.map(|(id, asked)| (*id, asked.host))
    }

    /// Returns sessions with a turn that only the agent still works on, by the agent's ids.
    pub(crate) fn abandoned(&self, host: HostId) -> impl Iterator<Item = &str> {
        self.of_host(host).filter_map(|purpose| match purpose {
            Purpose::Abandoned { session, .. } => Some(session.as_str()),
            _ => None,
        })
    }

    pub(crate) fn of_host(&self, host: HostId) -> impl Iterator<Item = &Purpose> {
        let asked = self.asked.values().filter(move |asked| asked.host == host);
        asked.map(|asked| &asked.purpose)
    }

    /// Returns whether an open request may name or adopt a session.
    pub(crate) fn may_name_session(&self, host: HostId) -> bool {
        self.of_host(host).any(|purpose| {
            matches!(
                purpose,
                Purpose::NewSession(_) | Purpose::Adopt(_) | Purpose::Restore { renews: true, .. }
            )
        })
    }

    pub(crate) fn new_sessions(&self) -> impl Iterator<Item = (HostId, &NewSession)> {
        self.asked.values().filter_map(|asked| match &asked.purpose {
            Purpose::NewSession(new) => Some((asked.host, new)),
            _ => None,
        })
    }

    pub(crate) fn steers(&self, session: SessionKey) -> impl Iterator<Item = &Steer> {
        self.asked.values().filter_map(move |asked| match &asked.purpose {
            Purpose::Steer(steer) if steer.session == session => Some(&**steer),
            _ => None,
        })
    }

    /// Drops the messages to the turn of a session. Returns the changed requests.
    pub(crate) fn take_back_steers(&mut self, session: SessionKey) -> Vec<u64> {
        let changed = self.asked.iter_mut().filter_map(|(id, asked)| match &mut asked.purpose {
            Purpose::Steer(steer) if steer.session == session => steer.take_back().then_some(*id),
            _ => None,
        });
        changed.collect()
    }

    pub(crate) fn params_of_openings(&self, host: HostId) -> impl Iterator<Item = &Bytes> {
        self.of_host(host).filter_map(|purpose| match purpose {
            Purpose::NewSession(new) => Some(&new.params),
            Purpose::Adopt(adoption) => Some(&adoption.params),
            _ => None,
        })
    }

    /// Returns whether a process works on a request whose answer matters.
    pub(crate) fn is_working(&self, host: HostId) -> bool {
        self.of_host(host).any(|why| {
            !matches!(
                why,
                Purpose::AuthStatus
                    | Purpose::Title { .. }
                    | Purpose::EndWork { .. }
                    | Purpose::Farewell
                    | Purpose::GivenUp { .. }
            )
        })
    }
}
