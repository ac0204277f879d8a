//! Output of an agent: pieces with offsets become lines, each byte once.

use std::mem;

use acp_wire::{Body, Frame, Framer};

/// Unacknowledged bytes from which on no more is read.
const UNACKED: u64 = 4 << 20;

#[derive(Debug)]
pub(super) struct Output {
    framer: Framer,
    line_limit: usize,
    received: u64,
    /// End of the last line that was passed on.
    handed: u64,
    /// Everything before this is committed, or a part of a line that is known to be dropped.
    acked: u64,
}

/// Bytes in between are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gap;

impl Output {
    /// Continues at an offset, which may lie inside a line over the limit.
    pub(super) fn from(offset: u64, inside: bool, line_limit: usize) -> Output {
        let framer = if inside {
            Framer::inside_oversized(line_limit, offset)
        } else {
            Framer::with_offset(line_limit, offset)
        };
        Output { framer, line_limit, received: offset, handed: offset, acked: offset }
    }

    pub(super) fn ack(&mut self, offset: u64) {
        self.acked = self.acked.max(offset);
    }

    /// Returns the offset up to which the shim may forget the output.
    pub(super) fn acked(&self) -> u64 {
        self.acked
    }

    pub(super) fn received(&self) -> u64 {
        self.received
    }

    pub(super) fn has_room(&self) -> bool {
        self.handed < self.acked + UNACKED
    }

    /// Sets the offset of the oldest available output.
    pub(super) fn start_at(&mut self, base: u64) -> Result<(), Gap> {
        if base <= self.received {
            return Ok(());
        }
        if !self.framer.is_inside_oversized() {
            return Err(Gap);
        }
        // The missing bytes are a part of the dropped line.
        *self = Output::from(base, true, self.line_limit);
        Ok(())
    }

    /// Adds a piece, without bytes that were received before.
    pub(super) fn push(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Gap> {
        self.start_at(offset)?;
        let known = (self.received - offset).min(bytes.len() as u64) as usize;
        self.framer.push(&bytes[known..]);
        self.received += (bytes.len() - known) as u64;
        Ok(())
    }

    pub(super) fn skip(&mut self, offset: u64) {
        *self = Output::from(offset, false, self.line_limit);
    }

    pub(super) fn frames(&mut self) -> Vec<Frame> {
        let frames: Vec<Frame> = std::iter::from_fn(|| self.framer.next_frame()).collect();
        self.handed = frames.last().map_or(self.handed, |frame| frame.end);
        // The bytes of a dropped line need not be kept.
        if self.framer.is_inside_oversized() && self.acked >= self.handed {
            self.acked = self.acked.max(self.framer.offset());
        }
        frames
    }

    /// Returns the remaining lines at the end of the stream.
    pub(super) fn finish(&mut self) -> Vec<Frame> {
        let ended = Framer::with_offset(self.line_limit, self.received);
        let mut framer = mem::replace(&mut self.framer, ended);
        std::iter::from_fn(|| framer.finish()).collect()
    }
}

pub(super) fn dropped(frames: &[Frame]) -> bool {
    frames.iter().any(|frame| !matches!(frame.body, Body::Line(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(frames: &[Frame]) -> Vec<u64> {
        frames.iter().map(|frame| frame.end).collect()
    }

    #[test]
    fn what_is_told_again_is_skipped() {
        let mut output = Output::from(10, false, 100);
        output.push(10, b"{}\n{").unwrap();
        assert_eq!(ends(&output.frames()), [13]);
        output.push(13, b"{}\n").unwrap();
        assert_eq!(ends(&output.frames()), [16]);
        assert_eq!(output.push(20, b"{}\n"), Err(Gap));
    }

    #[test]
    fn a_dropped_line_is_acknowledged_as_it_streams_by_once_it_is_known() {
        let mut output = Output::from(0, false, 4);
        output.push(0, b"too long").unwrap();
        assert_eq!(ends(&output.frames()), [8]);
        output.push(8, b" by far").unwrap();
        assert!(output.frames().is_empty());
        assert_eq!(output.acked(), 0, "nobody else knows yet that the line is dropped");
        output.ack(8);
        output.push(15, b"!").unwrap();
        assert!(output.frames().is_empty());
        assert_eq!(output.acked(), 16);
        output.push(16, b"\n{}\n").unwrap();
        assert_eq!(ends(&output.frames()), [20]);
        assert_eq!(output.acked(), 16, "the end of the line is no part of it");
    }

    #[test]
    fn only_a_part_of_a_dropped_line_may_be_missing() {
        let mut output = Output::from(8, true, 4);
        assert_eq!(output.start_at(16), Ok(()));
        output.push(16, b"rest\n{}\n").unwrap();
        assert_eq!(ends(&output.frames()), [24]);
        assert_eq!(output.start_at(30), Err(Gap));
    }
}
