//! Connections: what each has said of itself, what it waits for, and how it comes back.

pub(crate) mod admission;
pub(crate) mod offer;
pub(crate) mod resumable;

use std::collections::{BTreeMap, BTreeSet};

use acp_wire::Id;
use acp_wire::acp::ClientCapabilities;
use acpd_api::{Resume, Role};
use serde_json::value::RawValue;

use crate::ids::{Requester, SessionKey, Time};
use crate::input::View;

/// A connection.
#[derive(Debug, Default)]
pub(crate) struct Client {
    /// The agent profile it is bound to, once it has sent `initialize`.
    pub(crate) profile: Option<String>,
    /// That was answered.
    pub(crate) initialized: bool,
    pub(crate) view: View,
    /// Tells it from all other clients, in what agents are told; 0 = it has not sent `initialize`.
    pub(crate) number: u64,
    pub(crate) capabilities: ClientCapabilities,
    /// What agents may hear of it, see [`crate::hub::process::client_meta`].
    pub(crate) offer: Option<String>,
    pub(crate) sessions: BTreeSet<SessionKey>,
    /// Sessions that it has made.
    pub(crate) made: BTreeSet<SessionKey>,
    /// Pieces of journal that are on their way to it.
    pub(crate) reads: BTreeMap<SessionKey, u32>,
    /// It does not keep up: nothing is sent to it that is not an answer.
    pub(crate) lagged: bool,
    /// Requests that are not answered, and whether their answers are kept.
    pub(crate) open: BTreeMap<Id, bool>,
    /// Of these, those that have an error already because the journal could not be written.
    pub(crate) given_up: BTreeSet<Id>,
    /// The name under which it comes back.
    pub(crate) token: Option<String>,
    /// What it is in the sessions that it comes back to.
    pub(crate) role: Role,
    /// What it has from its last connection, until it has got the rest.
    pub(crate) resume: Option<Resume>,
    /// Its process runs under an agent, as far as that can be seen ([`crate::hub::clients::under_agent`]).
    pub(crate) under_agent: bool,
    /// Requests that it has to send again.
    pub(crate) again: Vec<Id>,
    /// When it said something last; nothing before its first line ([`crate::hub::clients::admission`]).
    pub(crate) heard: Option<Time>,
}

impl Client {
    /// It was told what it has missed.
    pub(crate) fn is_back(&self) -> bool {
        self.resume.is_none()
    }
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
