//! One client at one session, its abilities, and how far it has been sent the journal. The hub's `session/fanout.rs` moves
//! it on.

use std::collections::VecDeque;

use acp_wire::acp::ClientCapabilities;
use acpd_api::{ClientName, Role};

use crate::ids::{ClientId, Seq};
use crate::input::{Effect, View};

/// One client at one session.
#[derive(Debug)]
pub(crate) struct Attachment {
    pub(crate) role: Role,
    /// Grows from one client that comes to the session to the next.
    pub(crate) since: u64,
    pub(crate) view: View,
    pub(crate) cursor: Cursor,
    /// The client knows where it stands: it was told since it attached.
    pub(crate) told: bool,
    /// Lines that may be sent when the cursor has passed a position.
    pub(crate) deferred: VecDeque<(Seq, Effect)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cursor {
    /// Has everything up to the head.
    Live,
    /// A piece of journal is on its way: up to `history` as a newcomer, from there on complete.
    Reading { history: Option<Seq> },
    /// Does not read; has everything up to here.
    Paused { after: Seq },
}

/// A connected client that may decide for a person, so agents may ask it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Responder<'a> {
    pub(crate) client: ClientId,
    pub(crate) name: &'a ClientName,
    pub(crate) capabilities: &'a ClientCapabilities,
    pub(crate) view: &'a View,
}
