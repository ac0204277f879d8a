use std::collections::BTreeSet;

use acp_wire::set_member;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::ids::{Seq, SessionKey, Time};
use crate::record::{Child, EventKind, EventRow, LineForm};

/// A session at the moment when acpd asked its agent for a fork.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkPoint {
    pub session: SessionKey,
    pub head: Seq,
    pub prompts: u64,
    /// Hash of the last prompt's text.
    pub last_prompt: u64,
    /// There was a conversation to lose.
    pub heard: bool,
    /// Start of the running turn.
    pub turn: Option<Time>,
    /// Open tool calls of the running turn.
    pub open_tools: BTreeSet<String>,
    /// Subagents that worked or could be cancelled.
    #[serde(default)]
    pub children: Vec<Child>,
}

/// A fork's journal begins with a copy of the other journal, with the same positions. If that
/// journal is too long, only its end is copied, after a line that says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forked {
    /// The fork, which has no journal yet.
    pub session: SessionKey,
    pub public_id: String,
    pub from: SessionKey,
    /// Last position that is copied.
    pub upto: Seq,
    /// Maximum number of copied bytes.
    pub most: u64,
    /// Replaces the lines that are left out.
    pub left_out: Bytes,
}

impl Forked {
    /// Returns a line for the fork: without its sender; a subagent's line keeps its id.
    pub fn line(&self, row: EventRow) -> EventRow {
        let line = if row.kind == EventKind::Child {
            row.line
        } else {
            let id = json!(self.public_id).to_string();
            set_member(&row.line, &["params", "sessionId"], id.as_bytes())
        };
        EventRow { session: self.session, line, origin: None, ..row }
    }

    pub fn instead(&self, seq: Seq, at: Time) -> EventRow {
        EventRow {
            session: self.session,
            seq,
            form: LineForm::default(),
            kind: EventKind::Notice,
            at,
            line: self.left_out.clone(),
            origin: None,
            entity: None,
        }
    }

    /// Returns the beginning of the fork's journal. The store does the same in SQL.
    pub fn lines(&self, journal: &[EventRow]) -> Vec<EventRow> {
        let journal = &journal[..journal.partition_point(|row| row.seq <= self.upto)];
        let mut bytes = 0;
        let kept = journal.iter().rev().take_while(|row| {
            bytes += row.line.len() as u64;
            bytes <= self.most
        });
        let (left_out, kept) = journal.split_at(journal.len() - kept.count());
        let instead = left_out.last().map(|row| self.instead(row.seq, row.at));
        instead.into_iter().chain(kept.iter().map(|row| self.line(row.clone()))).collect()
    }
}
