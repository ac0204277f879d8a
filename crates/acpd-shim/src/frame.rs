//! Protocol of a daemon and a shim, over a Unix socket.
//!
//! A frame is `u8 type, u32 payload length, payload`; all integers are little endian. Both sides
//! skip unknown types, and ignore bytes after the fields that they know, so releases can differ.
//! [`VERSION`], in both hellos, counts changes that the other side cannot skip. `tests/releases/`
//! has the frames of each release, and a test speaks them.
//!
//! | type | frame | payload |
//! | --- | --- | --- |
//! | | daemon → shim | |
//! | 0x01 | hello | version u16, from u64 |
//! | 0x02 | in | chunk u64, at u32, last u8, bytes |
//! | 0x03 | ack | offset u64 |
//! | 0x04 | lease | milliseconds u64 |
//! | 0x05 | signal | step u8 |
//! | 0x06 | exit | |
//! | | shim → daemon | |
//! | 0x81 | hello | version u16, shim u32, agent u32, start u64, base u64, end u64, chunk u64, at u32, written u64, credit u32, since 0.2.0 release 3 × u16 |
//! | 0x82 | out | offset u64, bytes |
//! | 0x83 | err | bytes |
//! | 0x84 | credit | bytes u32 |
//! | 0x85 | written | chunk u64 |
//! | 0x86 | exit | stage u8, kind u8, code i32, bytes |
//!
//! `written` is not a part of `credit`: credit comes back with every byte that the agent takes, a
//! chunk counts when it is whole.

use std::fmt;

use acpd_sys::process::ExitKind;
use thiserror::Error;

pub use acpd_sys::ladder::Step;

pub const VERSION: u16 = 1;
pub const RELEASE: Release = Release(
    number(env!("CARGO_PKG_VERSION_MAJOR")),
    number(env!("CARGO_PKG_VERSION_MINOR")),
    number(env!("CARGO_PKG_VERSION_PATCH")),
);
/// Maximum bytes of input or output in one frame.
pub const PIECE: usize = 64 << 10;
/// Maximum bytes of `in` that a shim keeps for its agent.
pub const WINDOW: u32 = 1 << 20;
/// Maximum bytes of stderr in an exit.
pub const TAIL: usize = 2 << 10;

/// Maximum payload in bytes, of unknown types too.
const LONGEST: usize = PIECE + 1024;
const HEAD: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToShim<'a> {
    /// The first frame of a connection, which replaces an earlier connection. A second hello
    /// restarts the conversation on the same connection.
    Hello {
        version: u16,
        /// Output before this offset is committed; the shim sends the output from here on.
        from: u64,
    },
    /// A piece of a chunk of stdin, up to [`PIECE`] bytes. Chunks come in order, from 1 on. The
    /// shim skips bytes that it has already. A gap, or more bytes than were credited, ends the
    /// connection.
    In {
        chunk: u64,
        /// Start of the piece in the chunk, in bytes.
        at: u32,
        last: bool,
        bytes: &'a [u8],
    },
    /// Output before this offset is committed; it may lie inside a line.
    Ack { offset: u64 },
    /// Time for which the agent may continue without a daemon, from the loss of the connection. 0:
    /// no limit.
    Lease { ms: u64 },
    /// Orders a step of the stop ladder.
    Signal(Step),
    /// The exit is recorded: the shim removes its directory and its socket, and exits. Ignored
    /// before [`Stage::Gone`].
    Exit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToDaemon<'a> {
    /// The answer to [`ToShim::Hello`], before anything else.
    Hello(Hello),
    /// Output without gaps, from `from` of the hello on, or from `base` if that is later.
    Out {
        offset: u64,
        /// Up to [`PIECE`] bytes.
        bytes: &'a [u8],
    },
    /// Stderr; without a daemon the oldest is dropped.
    Err {
        /// Up to [`PIECE`] bytes.
        bytes: &'a [u8],
    },
    /// The daemon may send more bytes of [`ToShim::In`].
    Credit { bytes: u32 },
    /// Every chunk up to this one is fully written to the agent.
    Written { chunk: u64 },
    /// The agent has ended. Sent after all its output, once per stage, and again after every hello.
    Exit {
        stage: Stage,
        status: Status,
        /// The last of stderr, up to [`TAIL`] bytes.
        stderr: &'a [u8],
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    pub version: u16,
    pub shim: u32,
    /// The agent's pid; 0 if there is only a connection.
    pub agent: u32,
    /// The agent's start, as in [`ProcessId::start`](acpd_sys::process::ProcessId::start).
    pub start: u64,
    /// Offset of the first byte of output that the shim still has.
    pub base: u64,
    /// Number of bytes of output read so far.
    pub end: u64,
    /// The chunk of stdin that is expected next or continued,
    pub chunk: u64,
    /// and the first expected byte of it.
    pub at: u32,
    /// The last chunk that is fully written to the agent.
    pub written: u64,
    /// Number of bytes of [`ToShim::In`] that may be sent.
    pub credit: u32,
    /// Not sent by 0.1.0.
    pub release: Option<Release>,
}

/// A release of acpd: major, minor, patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release(pub u16, pub u16, pub u16);

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

const fn number(text: &str) -> u16 {
    match u16::from_str_radix(text, 10) {
        Ok(number) => number,
        Err(_) => panic!("a version is made of numbers"),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The leader or the connection has ended; all output was read and sent.
    Ended = 1,
    Gone = 2,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Code(i32),
    Signal(i32),
    Closed,
    Unknown,
}

impl From<ExitKind> for Status {
    fn from(exit: ExitKind) -> Status {
        match exit {
            ExitKind::Code(code) => Status::Code(code),
            ExitKind::Signal(number) => Status::Signal(number),
        }
    }
}

impl Status {
    pub fn predicate(self) -> String {
        match self {
            Status::Code(code) => ExitKind::Code(code).predicate(),
            Status::Signal(number) => ExitKind::Signal(number).predicate(),
            Status::Closed => "ended with a closed connection".to_owned(),
            Status::Unknown => "ended with an unknown status".to_owned(),
        }
    }

    pub(crate) fn numbers(self) -> (u8, i32) {
        match self {
            Status::Code(code) => (0, code),
            Status::Signal(number) => (1, number),
            Status::Closed => (2, 0),
            Status::Unknown => (3, 0),
        }
    }

    /// A newer shim may send an unknown kind.
    pub(crate) fn from_numbers(kind: u8, code: i32) -> Status {
        match kind {
            0 => Status::Code(code),
            1 => Status::Signal(code),
            2 => Status::Closed,
            _ => Status::Unknown,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The bytes are not of this protocol.
    #[error("a frame of {0} bytes is too long")]
    TooLong(usize),
    #[error("a frame of type {0:#04x} is cut off")]
    CutOff(u8),
    #[error("a frame of type {0:#04x} has the unknown value {1}")]
    Value(u8, u8),
}

pub trait Incoming<'a>: Sized {
    /// Reads the payload of a frame; `None` for an unknown type.
    fn decode(kind: u8, payload: &'a [u8]) -> Result<Option<Self>, FrameError>;
}

impl ToShim<'_> {
    pub fn encode(&self, to: &mut Vec<u8>) {
        match *self {
            ToShim::Hello { version, from } => {
                put(to, 0x01, &[&version.to_le_bytes(), &from.to_le_bytes()]);
            }
            ToShim::In { chunk, at, last, bytes } => {
                let last = [u8::from(last)];
                put(to, 0x02, &[&chunk.to_le_bytes(), &at.to_le_bytes(), &last, bytes]);
            }
            ToShim::Ack { offset } => put(to, 0x03, &[&offset.to_le_bytes()]),
            ToShim::Lease { ms } => put(to, 0x04, &[&ms.to_le_bytes()]),
            ToShim::Signal(step) => put(to, 0x05, &[&[step as u8 + 1]]),
            ToShim::Exit => put(to, 0x06, &[]),
        }
    }
}

impl<'a> Incoming<'a> for ToShim<'a> {
    fn decode(kind: u8, payload: &'a [u8]) -> Result<Option<ToShim<'a>>, FrameError> {
        let mut from = Reader { kind, bytes: payload };
        Ok(Some(match kind {
            0x01 => ToShim::Hello { version: from.u16()?, from: from.u64()? },
            0x02 => ToShim::In {
                chunk: from.u64()?,
                at: from.u32()?,
                last: from.u8()? != 0,
                bytes: from.bytes,
            },
            0x03 => ToShim::Ack { offset: from.u64()? },
            0x04 => ToShim::Lease { ms: from.u64()? },
            0x05 => match from.u8()? {
                1 => ToShim::Signal(Step::CloseStdin),
                2 => ToShim::Signal(Step::Term),
                3 => ToShim::Signal(Step::Kill),
                other => return Err(FrameError::Value(kind, other)),
            },
            0x06 => ToShim::Exit,
            _ => return Ok(None),
        }))
    }
}

impl ToDaemon<'_> {
    pub fn encode(&self, to: &mut Vec<u8>) {
        match *self {
            ToDaemon::Hello(hello) => {
                let release = hello.release.map(|Release(major, minor, patch)| {
                    [major, minor, patch].map(u16::to_le_bytes).concat()
                });
                put(
                    to,
                    0x81,
                    &[
                        &hello.version.to_le_bytes(),
                        &hello.shim.to_le_bytes(),
                        &hello.agent.to_le_bytes(),
                        &hello.start.to_le_bytes(),
                        &hello.base.to_le_bytes(),
                        &hello.end.to_le_bytes(),
                        &hello.chunk.to_le_bytes(),
                        &hello.at.to_le_bytes(),
                        &hello.written.to_le_bytes(),
                        &hello.credit.to_le_bytes(),
                        &release.unwrap_or_default(),
                    ],
                );
            }
            ToDaemon::Out { offset, bytes } => put(to, 0x82, &[&offset.to_le_bytes(), bytes]),
            ToDaemon::Err { bytes } => put(to, 0x83, &[bytes]),
            ToDaemon::Credit { bytes } => put(to, 0x84, &[&bytes.to_le_bytes()]),
            ToDaemon::Written { chunk } => put(to, 0x85, &[&chunk.to_le_bytes()]),
            ToDaemon::Exit { stage, status, stderr } => {
                let (kind, code) = status.numbers();
                put(to, 0x86, &[&[stage as u8, kind], &code.to_le_bytes(), stderr]);
            }
        }
    }
}

impl<'a> Incoming<'a> for ToDaemon<'a> {
    fn decode(kind: u8, payload: &'a [u8]) -> Result<Option<ToDaemon<'a>>, FrameError> {
        let mut from = Reader { kind, bytes: payload };
        Ok(Some(match kind {
            0x81 => ToDaemon::Hello(Hello {
                version: from.u16()?,
                shim: from.u32()?,
                agent: from.u32()?,
                start: from.u64()?,
                base: from.u64()?,
                end: from.u64()?,
                chunk: from.u64()?,
                at: from.u32()?,
                written: from.u64()?,
                credit: from.u32()?,
                release: release(&mut from),
            }),
            0x82 => ToDaemon::Out { offset: from.u64()?, bytes: from.bytes },
            0x83 => ToDaemon::Err { bytes: from.bytes },
            0x84 => ToDaemon::Credit { bytes: from.u32()? },
            0x85 => ToDaemon::Written { chunk: from.u64()? },
            0x86 => {
                let stage = match from.u8()? {
                    1 => Stage::Ended,
                    2 => Stage::Gone,
                    other => return Err(FrameError::Value(kind, other)),
                };
                let status = Status::from_numbers(from.u8()?, from.i32()?);
                ToDaemon::Exit { stage, status, stderr: from.bytes }
            }
            _ => return Ok(None),
        }))
    }
}

fn release(from: &mut Reader<'_>) -> Option<Release> {
    Some(Release(from.u16().ok()?, from.u16().ok()?, from.u16().ok()?))
}

#[derive(Debug)]
struct Reader<'a> {
    kind: u8,
    bytes: &'a [u8],
}

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], FrameError> {
        let cut_off = FrameError::CutOff(self.kind);
        let (taken, rest) = self.bytes.split_first_chunk().ok_or(cut_off)?;
        self.bytes = rest;
        Ok(*taken)
    }

    fn u8(&mut self) -> Result<u8, FrameError> {
        self.array().map(u8::from_le_bytes)
    }

    fn u16(&mut self) -> Result<u16, FrameError> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, FrameError> {
        self.array().map(u32::from_le_bytes)
    }

    fn i32(&mut self) -> Result<i32, FrameError> {
        self.array().map(i32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, FrameError> {
        self.array().map(u64::from_le_bytes)
    }
}

fn put(to: &mut Vec<u8>, kind: u8, fields: &[&[u8]]) {
    let length: usize = fields.iter().map(|field| field.len()).sum();
    to.reserve(HEAD + length);
    to.push(kind);
    to.extend((length as u32).to_le_bytes());
    for field in fields {
        to.extend_from_slice(field);
    }
}

/// Adds the start of an `out` frame; the caller adds the bytes.
pub(crate) fn put_out_head(to: &mut Vec<u8>, offset: u64, length: usize) {
    to.push(0x82);
    to.extend((8 + length as u32).to_le_bytes());
    to.extend(offset.to_le_bytes());
}

/// Splits received bytes into frames.
#[derive(Debug, Default)]
pub struct Inbox {
    bytes: Vec<u8>,
    at: usize,
}

impl Inbox {
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.at);
        self.at = 0;
        self.bytes.extend_from_slice(bytes);
    }

    pub fn give_back(&mut self) {
        self.bytes.drain(..self.at);
        self.at = 0;
        self.bytes.shrink_to_fit();
    }

    /// Returns the next whole frame; unknown types are skipped. After an error the connection is of
    /// no use.
    pub fn next_frame<'a, F: Incoming<'a>>(&'a mut self) -> Result<Option<F>, FrameError> {
        let Inbox { bytes, at } = self;
        loop {
            let Some((head, rest)) = bytes[*at..].split_first_chunk() else { return Ok(None) };
            let [kind, length @ ..]: [u8; HEAD] = *head;
            let length = u32::from_le_bytes(length) as usize;
            if length > LONGEST {
                return Err(FrameError::TooLong(length));
            }
            let Some(payload) = rest.get(..length) else { return Ok(None) };
            *at += HEAD + length;
            let frame = F::decode(kind, payload)?;
            if frame.is_some() {
                return Ok(frame);
            }
        }
    }
}
