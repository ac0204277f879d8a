//! Lines for an agent: numbered, cut into pieces within the credit, and kept until they are
//! written.

use std::collections::VecDeque;

use acpd_shim::frame::{PIECE, ToShim};
use bytes::Bytes;

#[derive(Debug)]
pub(super) struct Stdin {
    /// Numbered in order, without gaps.
    kept: VecDeque<(u64, Bytes)>,
    /// The last number that was in `kept`.
    last: u64,
    /// The line that continues next,
    chunk: u64,
    /// from this byte on; its newline counts.
    at: usize,
    credit: usize,
}

impl Stdin {
    /// Empty, without credit.
    pub(super) fn new() -> Stdin {
        Stdin { kept: VecDeque::new(), last: 0, chunk: 1, at: 0, credit: 0 }
    }

    /// Adds a line; a known number is ignored.
    pub(super) fn push(&mut self, chunk: u64, line: Bytes) {
        if chunk > self.last {
            self.last = chunk;
            self.kept.push_back((chunk, line));
        }
    }

    /// Drops the lines that the agent has, up to this one.
    pub(super) fn written(&mut self, chunk: u64) {
        while self.kept.pop_front_if(|(number, _)| *number <= chunk).is_some() {}
    }

    pub(super) fn allow(&mut self, bytes: u32) {
        self.credit += bytes as usize;
    }

    /// Continues at the position that the shim expects.
    pub(super) fn resume(&mut self, chunk: u64, at: u32, credit: u32) {
        (self.chunk, self.at, self.credit) = (chunk, at as usize, credit as usize);
    }

    pub(super) fn is_sent(&self) -> bool {
        self.kept.back().is_none_or(|(number, _)| *number < self.chunk)
    }

    /// Adds frames within the credit.
    pub(super) fn encode(&mut self, to: &mut Vec<u8>) {
        let first = self.kept.partition_point(|(number, _)| *number < self.chunk);
        for (number, line) in self.kept.range(first..) {
            if *number > self.chunk {
                (self.chunk, self.at) = (*number, 0);
            }
            let length = line.len() + 1;
            while self.at < length {
                let count = (length - self.at).min(self.credit).min(PIECE);
                if count == 0 {
                    return;
                }
                let (start, end) = (self.at, self.at + count);
                let last = end == length;
                let with_newline;
                let bytes = if last {
                    with_newline = [&line[start..], b"\n"].concat();
                    &with_newline
                } else {
                    &line[start..end]
                };
                ToShim::In { chunk: *number, at: start as u32, last, bytes }.encode(to);
                self.at = end;
                self.credit -= count;
            }
            (self.chunk, self.at) = (number + 1, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use acpd_shim::frame::Inbox;

    use super::*;

    /// Returns the pieces that arrive, each with its place.
    fn sent(stdin: &mut Stdin) -> Vec<(u64, u32, bool, Vec<u8>)> {
        let mut frames = Vec::new();
        stdin.encode(&mut frames);
        let mut inbox = Inbox::default();
        inbox.push(&frames);
        let mut found = Vec::new();
        while let Some(frame) = inbox.next_frame().expect("frames") {
            let ToShim::In { chunk, at, last, bytes } = frame else { panic!("{frame:?}") };
            found.push((chunk, at, last, bytes.to_vec()));
        }
        found
    }

    #[test]
    fn lines_are_cut_by_the_credit() {
        let mut stdin = Stdin::new();
        stdin.push(1, Bytes::from_static(b"abcd"));
        stdin.push(2, Bytes::from_static(b"ef"));
        stdin.push(2, Bytes::from_static(b"never"));
        assert_eq!(sent(&mut stdin), []);
        stdin.allow(3);
        assert_eq!(sent(&mut stdin), [(1, 0, false, b"abc".to_vec())]);
        stdin.allow(1);
        assert_eq!(sent(&mut stdin), [(1, 3, false, b"d".to_vec())]);
        assert!(!stdin.is_sent());
        stdin.allow(100);
        let rest = [(1, 4, true, b"\n".to_vec()), (2, 0, true, b"ef\n".to_vec())];
        assert_eq!(sent(&mut stdin), rest);
        assert!(stdin.is_sent());
    }

    #[test]
    fn a_long_line_goes_in_pieces() {
        let mut stdin = Stdin::new();
        stdin.push(1, vec![b'x'; 2 * PIECE].into());
        stdin.allow(1 << 20);
        let pieces = sent(&mut stdin);
        let lengths: Vec<_> = pieces.iter().map(|(_, _, _, bytes)| bytes.len()).collect();
        assert_eq!(lengths, [PIECE, PIECE, 1]);
    }

    #[test]
    fn a_new_connection_goes_on_where_the_other_side_is() {
        let mut stdin = Stdin::new();
        for (chunk, line) in [(4, "four"), (5, "five"), (6, "six")] {
            stdin.push(chunk, Bytes::from_static(line.as_bytes()));
        }
        stdin.resume(5, 2, 100);
        stdin.written(4);
        let rest = [(5, 2, true, b"ve\n".to_vec()), (6, 0, true, b"six\n".to_vec())];
        assert_eq!(sent(&mut stdin), rest);
        // The shim has everything, and lost nothing of it.
        stdin.resume(7, 0, 100);
        assert_eq!(sent(&mut stdin), []);
        assert!(stdin.is_sent());
    }
}
