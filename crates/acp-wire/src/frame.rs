//! Newline framing: from a byte stream to lines with their stream offsets.
//!
//! Lines are slices of the read buffer, so a line costs no allocation and no copy. A line that is
//! kept for long keeps its whole block (64 KiB) alive and should be copied.

use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr;

use crate::scan::junk;

/// Bytes of a read block, to which the buffer shrinks again after a big line.
const BLOCK: usize = 64 * 1024;
/// Least room for a read in bytes.
const MIN_READ: usize = 4 * 1024;
/// Kept bytes of an oversized line.
const HEAD: usize = 4 * 1024;

/// One line of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The stream offset just after the line's newline (at the end of the stream: after its last
    /// byte).
    pub end: u64,
    /// Content of the line.
    pub body: Body,
}

/// The content of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// The line without its line ending and without the junk around it.
    Line(Bytes),
    /// The line exceeds the limit and is dropped. Returned as soon as the limit is reached.
    Oversized {
        /// A copy of its first bytes, at most 4 KiB.
        head: Bytes,
        /// The bytes of the line so far, without the newline.
        len: u64,
        /// The line has not ended yet: its rest is dropped without another frame.
        inside: bool,
    },
}

/// Cuts a byte stream into lines.
///
/// Feed it by [`push`](Self::push) or through [`read_buf`](Self::read_buf), then call
/// [`next_frame`](Self::next_frame) until it returns `None`.
#[derive(Debug)]
pub struct Framer {
    buf: BytesMut,
    limit: usize,
    /// Bytes of `buf` without a newline.
    scanned: usize,
    /// The stream offset of the first byte of `buf`.
    offset: u64,
    /// The largest capacity of the current allocation.
    allocated: usize,
    /// The next bytes belong to an oversized line that was returned.
    dropping: bool,
}

impl Framer {
    /// A framer at the start of a stream. A line of more than `limit` bytes before its newline is
    /// oversized.
    pub fn new(limit: usize) -> Self {
        Self::with_offset(limit, 0)
    }

    /// A framer for a stream whose next byte has this stream offset.
    pub fn with_offset(limit: usize, offset: u64) -> Self {
        Self { buf: BytesMut::new(), limit, scanned: 0, offset, allocated: 0, dropping: false }
    }

    /// Like [`with_offset`](Self::with_offset), inside an oversized line whose rest must be dropped.
    pub fn inside_oversized(limit: usize, offset: u64) -> Self {
        Self { dropping: true, ..Self::with_offset(limit, offset) }
    }

    /// Sets another limit for lines that are not complete yet.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// The number of kept bytes of an incomplete line, after [`next_frame`](Self::next_frame) has
    /// returned `None`.
    pub fn half_line(&self) -> usize {
        self.buf.len()
    }

    /// Drops an incomplete line, as if it were oversized.
    pub fn drop_half_line(&mut self) -> Frame {
        self.dropping = true;
        self.oversized(self.buf.len(), 0)
    }

    /// Appends a copy of `bytes`.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buf.extend_from_slice(bytes);
    }

    /// The buffer with spare capacity, for a reader that only appends.
    pub fn read_buf(&mut self) -> &mut BytesMut {
        if self.buf.capacity() - self.buf.len() < MIN_READ {
            self.buf.reserve(BLOCK);
        }
        &mut self.buf
    }

    /// The next complete line, or `None` until more bytes come.
    pub fn next_frame(&mut self) -> Option<Frame> {
        self.allocated = self.allocated.max(self.buf.capacity());
        while let Some(found) = memchr(b'\n', &self.buf[self.scanned..]) {
            let frame = self.cut(self.scanned + found, 1);
            if frame.is_some() {
                return frame;
            }
        }
        self.scanned = self.buf.len();
        if self.dropping {
            self.forget(self.scanned);
            self.shrink();
        } else if self.buf.len() > self.limit {
            self.dropping = true;
            return Some(self.oversized(self.scanned, 0));
        }
        None
    }

    /// Returns the frames that are left at the end of the stream; the last one may have no newline.
    /// Call this method until it returns `None`.
    pub fn finish(&mut self) -> Option<Frame> {
        if let Some(frame) = self.next_frame() {
            return Some(frame);
        }
        if self.buf.is_empty() { None } else { self.cut(self.buf.len(), 0) }
    }

    /// The stream offset up to which bytes were returned, skipped as blank, or dropped as part of
    /// an oversized line (then it lies inside that line).
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns whether [`offset`](Self::offset) lies inside an oversized line.
    pub fn is_inside_oversized(&self) -> bool {
        self.dropping
    }

    /// The memory of the buffer in bytes.
    pub fn capacity(&self) -> usize {
        self.buf.capacity()
    }

    /// Takes the line of `len` bytes and its `newline` bytes off the front. `None` for a blank
    /// line, and for the end of a line that was already returned as oversized.
    fn cut(&mut self, len: usize, newline: usize) -> Option<Frame> {
        if self.dropping {
            self.dropping = false;
            self.forget(len + newline);
            self.shrink();
            return None;
        }
        if len > self.limit {
            return Some(self.oversized(len, newline));
        }
        let mut line = self.buf.split_to(len + newline).freeze();
        line.truncate(len);
        self.scanned = 0;
        self.offset += (len + newline) as u64;
        self.shrink();
        let mut text = junk::trim(&line);
        if text.is_empty() && junk::is_noise(&line) {
            // The line is no message; its sender gets an error.
            text = 0..line.len();
        }
        let body = Body::Line(line.slice(text.clone()));
        (!text.is_empty()).then_some(Frame { end: self.offset, body })
    }

    /// Drops the bytes so far of an oversized line and returns its frame.
    fn oversized(&mut self, len: usize, newline: usize) -> Frame {
        let head = Bytes::copy_from_slice(&self.buf[..len.min(HEAD)]);
        self.forget(len + newline);
        self.shrink();
        let body = Body::Oversized { head, len: len as u64, inside: self.dropping };
        Frame { end: self.offset, body }
    }

    fn forget(&mut self, len: usize) {
        self.buf.advance(len);
        self.scanned = 0;
        self.offset += len as u64;
    }

    /// Frees a large allocation once its content is small.
    fn shrink(&mut self) {
        if self.allocated > 2 * BLOCK && self.buf.len() <= BLOCK {
            let mut small = BytesMut::with_capacity(BLOCK);
            small.extend_from_slice(&self.buf);
            self.buf = small;
            self.allocated = BLOCK;
        }
    }
}
