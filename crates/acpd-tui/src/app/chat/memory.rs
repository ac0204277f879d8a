//! How much of a conversation is kept: above a limit, blocks far from the screen lose their bodies, and those that
//! come close again are read again from the journal.

use std::collections::HashSet;

use acpd_api::LogResult;
use acpd_view::{Block, Id, State};

/// Bytes of bodies that are kept.
const MOST: usize = 64 << 20;
/// Blocks around the screen that keep theirs.
const CLOSE: usize = 200;

/// What is known of the bodies of a conversation.
#[derive(Debug)]
pub(super) struct Memory {
    /// Bytes that bodies may have together.
    most: usize,
    /// Bytes of lines that were taken since the bodies were counted.
    taken: usize,
    /// A row on the screen, by its first block.
    pub(super) seen: Option<Id>,
    /// The body that is being read again.
    asked: Option<Asked>,
    /// Bodies that the journal does not give back.
    lost: HashSet<Id>,
}

/// A body that is being read again.
#[derive(Debug)]
struct Asked {
    of: Id,
    last: u64,
    again: State,
    /// Bytes of that.
    bytes: usize,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory { most: MOST, taken: 0, seen: None, asked: None, lost: HashSet::new() }
    }
}

impl Memory {
    /// Takes that lines of so many bytes were folded. Bodies are counted now and then, which is cheap beside parsing.
    pub(super) fn took(&mut self, bytes: usize, folded: &mut State) {
        self.taken += bytes;
        if self.taken < self.most / 16 {
            return;
        }
        self.taken = 0;
        let turns = folded.turns().iter().flat_map(|turn| &turn.blocks);
        let all: Vec<(Id, usize)> = turns.map(|block| (block.id, block.bytes())).collect();
        let mut total: usize = all.iter().map(|(_, bytes)| bytes).sum();
        if total <= self.most {
            return;
        }
        let seen = self.seen.map_or(u64::MAX, Id::seq);
        let here = all.partition_point(|(id, _)| id.seq() <= seen);
        let mut far: Vec<usize> = (0..all.len()).filter(|at| at.abs_diff(here) > CLOSE).collect();
        far.sort_by_key(|at| std::cmp::Reverse(at.abs_diff(here)));
        // Some room, so that this does not happen again with the next lines.
        let enough = self.most / 4 * 3;
        let far = far.into_iter().map(|at| all[at]).take_while(|(_, bytes)| {
            let is_needed = total > enough;
            total = total.saturating_sub(*bytes);
            is_needed
        });
        folded.shed(far.map(|(id, _)| id));
    }

    /// Takes that the body of this block is read again. Returns whether it can be: one is, at a time.
    pub(super) fn asks(&mut self, block: &Block, folded: &State) -> bool {
        let is_free = self.asked.is_none() && !self.lost.contains(&block.id);
        if is_free {
            let (of, last) = (block.id, block.last);
            self.asked = Some(Asked { of, last, again: folded.anew(), bytes: 0 });
        }
        is_free
    }

    /// Whether a body is being read again.
    pub(super) fn is_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// Whether the journal does not give the body of a block back.
    pub(super) fn is_lost(&self, id: Id) -> bool {
        self.lost.contains(&id)
    }

    /// Takes a part of the lines. Returns from where on the rest is wanted.
    pub(super) fn body(&mut self, page: LogResult, folded: &mut State) -> Option<u64> {
        let asked = self.asked.as_mut()?;
        for entry in &page.entries {
            asked.again.fold_entry(entry.seq, entry.line.get());
            asked.bytes += entry.line.get().len();
        }
        let has = page.entries.last().map_or(0, |entry| entry.seq);
        if let Some(next) = page.next.filter(|_| has < asked.last) {
            return Some(next);
        }
        let Asked { of, again, bytes, .. } = self.asked.take()?;
        folded.fill(again);
        if folded.get(of).is_some_and(Block::is_shed) {
            self.lost.insert(of);
        }
        self.took(bytes, folded);
        None
    }

    /// Takes that the lines do not come.
    pub(super) fn gives_up(&mut self) {
        self.asked = None;
    }

    #[cfg(test)]
    pub(super) fn limit(&mut self, most: usize) {
        self.most = most;
    }
}
