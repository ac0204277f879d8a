use std::collections::BTreeSet;

use acpd_api::Untrusted;

use crate::block::{Block, Folding, Id, Kind, Progress};

/// Tool calls and subagent sessions with open questions.
pub(super) type OpenQuestions = BTreeSet<Untrusted>;

/// A line on its way into a turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step<'a> {
    pub(super) seq: u64,
    /// The session of the line, or a subagent in it.
    pub(super) session: &'a Untrusted,
    pub(super) is_own: bool,
    pub(super) asked: &'a OpenQuestions,
}

impl Block {
    pub(super) fn new(seq: u64, kind: Kind, progress: Progress) -> Block {
        let (id, folding) = (Id::Line(seq), Folding::Open);
        Block {
            id,
            last: seq,
            kind,
            progress,
            folding,
            partial: false,
            is_asked: false,
            is_refused: false,
            source: None,
        }
    }
}
