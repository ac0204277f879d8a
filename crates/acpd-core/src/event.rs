//! Events: what a machine reports. The hub decides who reacts, in the order of the events.

use bytes::Bytes;

use crate::ids::{ClientId, HostId, Requester, SessionKey};

/// A line for a process, such as the one that has asked.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) host: HostId,
    pub(crate) line: Bytes,
}

#[derive(Debug)]
pub(crate) enum EngineEvent {
    /// A request of an agent is answered; its process may be gone.
    AgentAnswered(Answer),
    /// A notification for a process, which may be gone.
    ProcessNotified(Answer),
    /// A request of a client is answered; the client may be gone.
    ClientAnswered { to: Requester, line: Bytes },
    /// A client is asked for something whose answer does not matter.
    ClientAsked { client: ClientId, line: Bytes },
    /// The client with this number is asked if it is here, or no longer asked.
    LenderAsked { client: u64, line: Bytes },
    /// A session has other MCP servers of its clients.
    ServersChanged { session: SessionKey, servers: Bytes },
    /// A notice is to be journalled and shown.
    SessionNoticed { session: SessionKey, severity: &'static str, text: String },
    /// An update of a session is to be journalled and shown.
    SessionUpdated { session: SessionKey, line: Bytes },
}
