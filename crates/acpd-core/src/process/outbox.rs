//! Lines to an agent.
//!
//! ```text
//!  line ─▶ row on disk ── commit ─▶ written to the process ─▶ row removed
//!            └── too many unwritten bytes: the agent is clogged, and gets no new lines
//! ```
//!
//! Architecture invariant: all lines to agents are written here, and are on disk before.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::record::snapshot::HostState;

#[derive(Debug, Default)]
pub(crate) struct Outbox {
    last: u64,
    /// Number and length of each line.
    unwritten: VecDeque<(u64, usize)>,
    pub(crate) bytes: usize,
}

impl Outbox {
    pub(crate) fn recovered(state: &HostState) -> Outbox {
        let last = state.outbox.last_key_value().map_or(0, |(chunk, _)| *chunk);
        Outbox {
            last: last.max(state.written),
            unwritten: state.outbox.iter().map(|(chunk, line)| (*chunk, line.len())).collect(),
            bytes: state.outbox.values().map(Bytes::len).sum(),
        }
    }

    pub(crate) fn has(&self, chunk: u64) -> bool {
        self.unwritten.iter().any(|(unwritten, _)| *unwritten == chunk)
    }

    pub(crate) fn len(&self) -> usize {
        self.unwritten.len()
    }

    pub(crate) fn push(&mut self, len: usize) -> u64 {
        self.last += 1;
        self.unwritten.push_back((self.last, len));
        self.bytes += len;
        self.last
    }

    pub(crate) fn written(&mut self, chunk: u64) {
        while self.unwritten.front().is_some_and(|(written, _)| *written <= chunk) {
            self.bytes -= self.unwritten.pop_front().map_or(0, |(_, len)| len);
        }
    }
}
