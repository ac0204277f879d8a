//! Requests of agents that a program answers: `fs/*`, `terminal/*` and extensions; the diagram is in
//! `hub/services/client_methods.rs`.

pub(crate) mod terminal;
pub(crate) mod terminal_mirror;

use acp_wire::Id;
use bytes::Bytes;

use crate::ids::{ClientId, HostId, SessionKey};

/// A request of an agent that a program answers.
#[derive(Debug)]
pub(crate) struct ClientMethod {
    pub(crate) session: SessionKey,
    pub(crate) host: HostId,
    /// The agent's own id of the request.
    pub(crate) agent_request: Id,
    /// The request with the session's public id.
    pub(crate) line: Bytes,
    pub(crate) by: By,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Client(ClientId),
    Acpd,
}

/// What can be done with a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Output,
    Wait,
    Kill,
    Release,
}
