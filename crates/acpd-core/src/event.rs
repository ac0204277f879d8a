//! Events: what a machine reports. The hub decides who reacts, in the order of the events.

use bytes::Bytes;

use crate::ids::{ClientId, HostId, SessionKey};

/// A line for the process that has asked.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) host: HostId,
    pub(crate) line: Bytes,
}

#[derive(Debug)]
pub(crate) enum EngineEvent {
    /// A request of an agent is answered; its process may be gone.
    AgentAnswered(Answer),
    /// A client is asked for something whose answer does not matter.
    ClientAsked { client: ClientId, line: Bytes },
    /// An update of a session is to be journalled and shown.
    SessionUpdated { session: SessionKey, line: Bytes },
}
