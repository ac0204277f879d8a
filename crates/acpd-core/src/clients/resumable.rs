//! A client that comes back: its token, the lines of it that are dealt with, and answers that it may not
//! have. The diagram is in `hub/clients/resumable.rs`.

use std::collections::BTreeMap;

use acp_wire::Id;
use acpd_api::method;
use bytes::Bytes;

use crate::ids::{ClientId, SessionKey, Time};

/// A client with a token.
#[derive(Debug)]
pub(crate) struct Resumable {
    /// Its connection, or what stands for it while it has none.
    pub(crate) client: ClientId,
    /// Since when it has none.
    pub(crate) away: Option<Time>,
    /// The sessions that its last connection was at, and since when ([`crate::views::attachment::Attachment`]).
    pub(crate) was_at: BTreeMap<SessionKey, u64>,
    /// Lines of it that are dealt with.
    pub(crate) received: u64,
    /// Answers that it may not have.
    pub(crate) replies: BTreeMap<Id, Reply>,
}

/// An answer that is kept.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) line: Bytes,
    pub(crate) session: Option<SessionKey>,
}

/// Whether the answer to a request is kept. The others change nothing, or nothing that a second
/// time would make worse: a client that misses the answer asks again.
pub(crate) fn is_kept(name: &str) -> bool {
    let asks_again = [
        "initialize",
        "session/load",
        "session/resume",
        method::SESSION_ATTACH,
        method::SESSION_DETACH,
        method::AGENT_START,
        method::AGENT_STOP,
        method::AGENT_RESTART,
        method::DAEMON_STOP,
        method::DAEMON_RESTART,
    ];
    crate::params::needs_store(name) && !asks_again.contains(&name)
}
