//! The agent's stderr: the end of what the daemon has not fetched yet, and the last lines, which go with
//! the exit.

use std::collections::VecDeque;

use crate::frame::TAIL;

/// What is kept for a daemon, in bytes.
const RING: usize = 64 << 10;

/// The ring and the tail.
#[derive(Debug, Default)]
pub(crate) struct Errors {
    ring: VecDeque<u8>,
    tail: VecDeque<u8>,
}

impl Errors {
    /// Adds what was read; the oldest is dropped.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        push(&mut self.ring, bytes, RING);
        push(&mut self.tail, bytes, TAIL);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Takes all that nobody has fetched.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.ring).into()
    }

    /// The last words.
    pub(crate) fn tail(&mut self) -> &[u8] {
        self.tail.make_contiguous()
    }
}

fn push(ring: &mut VecDeque<u8>, bytes: &[u8], most: usize) {
    let bytes = &bytes[bytes.len().saturating_sub(most)..];
    ring.drain(..(ring.len() + bytes.len()).saturating_sub(most));
    ring.extend(bytes);
}
