//! The agent's stderr: the end of the text that the daemon has not fetched, and the last words,
//! which go with the exit.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::frame::TAIL;

const RING: usize = 64 << 10;
/// Age after which a text does not explain an exit.
const STALE: Duration = Duration::from_mins(1);

#[derive(Debug, Default)]
pub(crate) struct Errors {
    ring: VecDeque<u8>,
    /// The last bytes, up to [`TAIL`], without a pause of [`STALE`] in them.
    last: VecDeque<u8>,
    at: Option<Instant>,
}

impl Errors {
    pub(crate) fn push(&mut self, bytes: &[u8], now: Instant) {
        self.end(now);
        self.at = Some(now);
        push(&mut self.ring, bytes, RING);
        push(&mut self.last, bytes, TAIL);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.ring).into()
    }

    /// Drops a last text that is too old to explain the agent's end.
    pub(crate) fn end(&mut self, now: Instant) {
        if self.at.is_some_and(|at| now.saturating_duration_since(at) > STALE) {
            self.last.clear();
        }
    }

    pub(crate) fn last_words(&mut self) -> &[u8] {
        self.last.make_contiguous()
    }
}

fn push(ring: &mut VecDeque<u8>, bytes: &[u8], most: usize) {
    let bytes = &bytes[bytes.len().saturating_sub(most)..];
    ring.drain(..(ring.len() + bytes.len()).saturating_sub(most));
    ring.extend(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_long_before_the_end_is_not_its_reason() {
        let start = Instant::now();
        let mut errors = Errors::default();
        errors.push(b"too many requests\n", start);
        errors.push(b"out of ", start + 2 * STALE);
        errors.push(b"memory\n", start + 3 * STALE);
        errors.end(start + 4 * STALE);
        assert_eq!(errors.last_words(), b"out of memory\n");
        errors.end(start + 5 * STALE);
        assert_eq!(errors.last_words(), b"");
    }

    #[test]
    fn only_the_last_words_are_kept() {
        let mut errors = Errors::default();
        errors.push(&[b'a'; TAIL], Instant::now());
        errors.push(b"bc", Instant::now());
        assert_eq!(errors.last_words().len(), TAIL);
        assert!(errors.last_words().ends_with(b"abc"));
    }
}
