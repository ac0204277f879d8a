//! A line on its way into a turn.

use std::collections::BTreeSet;

use acpd_api::Untrusted;

use crate::block::{Block, Folding, Id, Kind, Progress};

/// What open questions are about: tool calls, and the sessions of subagents.
pub(super) type Asked = BTreeSet<Untrusted>;

/// A line on its way into a turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step<'a> {
    pub(super) seq: u64,
    /// Whose line it is: the session's, or a subagent's.
    pub(super) session: &'a Untrusted,
    pub(super) is_own: bool,
    pub(super) asked: &'a Asked,
}

impl Block {
    /// A block that begins with this line.
    pub(super) fn new(seq: u64, kind: Kind, progress: Progress) -> Block {
        let (id, folding) = (Id::Line(seq), Folding::Open);
        Block { id, last: seq, kind, progress, folding, partial: false, source: None }
    }
}
