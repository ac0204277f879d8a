//! Lines on their way to an agent.
//!
//! ```text
//!  line ─▶ row on disk ── commit ─▶ written to the process ─▶ row gone
//!            └── while too much waits here, the agent is clogged: nothing is added
//! ```
//!
//! Architecture invariant: nothing is written to an agent that was not on disk before, and all of it is written here.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::record::snapshot::HostState;

/// Lines to a process that it may not have got.
#[derive(Debug)]
pub(crate) struct Outbox {
    next: u64,
    /// Number and length of each line.
    unwritten: VecDeque<(u64, usize)>,
    pub(crate) bytes: usize,
}

impl Outbox {
    pub(crate) fn new() -> Outbox {
        Outbox { next: 1, unwritten: VecDeque::new(), bytes: 0 }
    }

    /// Lines of the last daemon.
    pub(crate) fn recovered(state: &HostState) -> Outbox {
        let last = state.outbox.last_key_value().map_or(0, |(chunk, _)| *chunk);
        Outbox {
            next: last.max(state.written) + 1,
            unwritten: state.outbox.iter().map(|(chunk, line)| (*chunk, line.len())).collect(),
            bytes: state.outbox.values().map(Bytes::len).sum(),
        }
    }

    /// Returns whether this line may not have been written.
    pub(crate) fn has(&self, chunk: u64) -> bool {
        self.unwritten.iter().any(|(unwritten, _)| *unwritten == chunk)
    }

    /// How many lines are not known to be written.
    pub(crate) fn len(&self) -> usize {
        self.unwritten.len()
    }

    /// Takes a line of this length and returns its number.
    pub(crate) fn push(&mut self, len: usize) -> u64 {
        let chunk = self.next;
        self.next += 1;
        self.unwritten.push_back((chunk, len));
        self.bytes += len;
        chunk
    }

    /// All lines up to this one are written.
    pub(crate) fn written(&mut self, chunk: u64) {
        while self.unwritten.front().is_some_and(|(written, _)| *written <= chunk) {
            self.bytes -= self.unwritten.pop_front().map_or(0, |(_, len)| len);
        }
    }
}
