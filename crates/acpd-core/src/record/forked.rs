//! The origin of a fork: its position in the other session, and the copied lines.

use std::collections::BTreeSet;

use acp_wire::set_member;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::ids::{Seq, SessionKey, Time};
use crate::record::{Child, EventKind, EventRow};

/// A session at the moment in which its agent was asked for a fork of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkPoint {
    pub session: SessionKey,
    pub head: Seq,
    /// Prompts that were dispatched in it.
    pub prompts: u64,
    /// Hash of the text of the last of them.
    pub last_prompt: u64,
    /// The session had a conversation to lose.
    pub heard: bool,
    /// When the turn began that ran in it, if one did …
    pub turn: Option<Time>,
    /// … and the tool calls that it had open.
    pub open_tools: BTreeSet<String>,
    /// Subagents that worked or could be cancelled.
    #[serde(default)]
    pub children: Vec<Child>,
}

/// The journal of a fork begins with that of another session.
///
/// Positions stay the same. Of a journal that is longer than a fork may take over, the last lines
/// are taken, and a line that says so comes before them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forked {
    /// The fork. It has no journal yet.
    pub session: SessionKey,
    /// The id that clients know it by.
    pub public_id: String,
    /// The session that it was made of.
    pub from: SessionKey,
    /// Last position that is taken over.
    pub upto: Seq,
    /// Maximum number of copied bytes.
    pub most: u64,
    /// The line that stands for those that are left out.
    pub left_out: Bytes,
}

impl Forked {
    /// A line of the other journal, as the fork has it: without a sender. A subagent's line keeps
    /// its id.
    pub fn line(&self, row: EventRow) -> EventRow {
        let line = if row.kind == EventKind::Child {
            row.line
        } else {
            let id = json!(self.public_id).to_string();
            set_member(&row.line, &["params", "sessionId"], id.as_bytes())
        };
        EventRow { session: self.session, line, origin: None, ..row }
    }

    /// Replacement for the last line that is left out.
    pub fn instead(&self, seq: Seq, at: Time) -> EventRow {
        EventRow {
            session: self.session,
            seq,
            pv: 1,
            kind: EventKind::Notice,
            at,
            line: self.left_out.clone(),
            origin: None,
        }
    }

    /// Returns the beginning of the fork's journal from the other journal; the store does the same.
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
