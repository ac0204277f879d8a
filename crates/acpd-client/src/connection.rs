//! A connection to the daemon.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use acp_wire::{Body, ErrorObject, Framer, Id, Message, Outcome, build, parse};
use acpd_api::{ClientMeta, NAMESPACE};
use acpd_sys::socket::Stream;
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::connect::{Options, PATIENCE, open_or_start};
use crate::error::{CallError, ConnectError, NotAnswering};
use crate::silence::{Doubt, QUIET};
use crate::stream::{is_timeout, read_block, write_line};

/// Bytes asked for in one read.
const BLOCK: usize = 64 * 1024;

/// Connects to the user's daemon, and starts it first if none runs and `spawn` is set.
///
/// Nothing is sent before the socket's directory and the user id of the server are checked. Clients
/// that find no daemon at the same time start one daemon. If it cannot start, its own reason is the
/// error.
pub fn connect(options: &Options) -> Result<Connection, ConnectError> {
    let opened = open_or_start(options)?;
    let mut connection = Connection::new(opened.stream, options.clone());
    connection.is_bound = opened.is_bound;
    Ok(connection)
}

/// A connection to the daemon.
#[derive(Debug)]
pub struct Connection {
    reader: Reader,
    writer: Writer,
    /// Lines that came while an answer was waited for.
    held: VecDeque<Bytes>,
    /// How to connect again.
    options: Options,
    /// Nothing was asked yet.
    is_fresh: bool,
    /// The daemon was started for this, and ends together with others that we belong to.
    is_bound: bool,
}

impl Connection {
    fn new(stream: Stream, options: Options) -> Connection {
        // Some systems refuse it for a connection that has ended: then the first write tells.
        stream.set_write_timeout(Some(PATIENCE)).ok();
        let stream = Arc::new(stream);
        let reader = Reader {
            stream: Arc::clone(&stream),
            // The daemon is trusted and has a limit of its own.
            framer: Framer::new(usize::MAX),
            block: vec![0; BLOCK].into(),
            held: VecDeque::new(),
        };
        let writer = Writer { stream, last_id: 0 };
        let held = VecDeque::new();
        Connection { reader, writer, held, options, is_fresh: true, is_bound: false }
    }

    /// Returns whether the daemon was started for this connection and ends together with the process that has
    /// started us, because the system lets no process out of what we are in (a Job of Windows).
    pub fn is_bound(&self) -> bool {
        self.is_bound
    }

    /// Sends a request and waits for its answer. Other lines that come meanwhile are kept for the [`Reader`]
    /// of [`split`](Connection::split).
    ///
    /// A daemon that was killed at this moment may still have been connected to, and one that has many
    /// connections may have closed this one: if it never answered, the first request is made once more,
    /// on another connection.
    ///
    /// The answer may take any time, as long as the daemon itself is there.
    pub fn call<P: Serialize, R: DeserializeOwned>(
        &mut self,
        method: &str,
        params: &P,
    ) -> Result<R, CallError> {
        let is_fresh = std::mem::take(&mut self.is_fresh);
        match self.call_once(method, params) {
            Err(CallError::Closed | CallError::Io(_) | CallError::LetGo(_)) if is_fresh => {
                *self = connect(&self.options).map_err(|error| match error {
                    ConnectError::NotAnswering(silent) => silent.into(),
                    error @ (ConnectError::Spawn(_)
                    | ConnectError::StartFailed { .. }
                    | ConnectError::StartDied { .. }
                    | ConnectError::StartTimedOut { .. }) => CallError::NotStarted(error),
                    _ => CallError::Closed,
                })?;
                self.is_fresh = false;
                self.call_once(method, params)
            }
            answer => answer,
        }
    }

    fn call_once<P: Serialize, R: DeserializeOwned>(
        &mut self,
        method: &str,
        params: &P,
    ) -> Result<R, CallError> {
        let id = match self.writer.request(method, params) {
            Ok(id) => Id::from(id),
            Err(error) if is_timeout(&error) => {
                return Err(NotAnswering::now(&self.options.paths).into());
            }
            Err(error) => return Err(self.last_word().unwrap_or(CallError::Io(error))),
        };
        loop {
            let line = self.next_line()?.ok_or(CallError::Closed)?;
            match parse(&line) {
                // An error about no request is about the connection.
                Ok(Message::Response { id, outcome: Outcome::Error(error) }) if id.is_null() => {
                    return Err(CallError::LetGo(ErrorObject::from_raw(error)));
                }
                Ok(Message::Response { id: answered, outcome }) if answered == id => {
                    return match outcome {
                        Outcome::Error(error) => Err(CallError::Rpc(ErrorObject::from_raw(error))),
                        Outcome::Result(result) => {
                            serde_json::from_str(result.get()).map_err(|source| {
                                CallError::Unreadable { method: method.to_owned(), source }
                            })
                        }
                    };
                }
                _ => self.held.push_back(line),
            }
        }
    }

    /// Why the daemon has closed the connection, if it has said so: it may have done that before it was
    /// asked anything.
    fn last_word(&mut self) -> Option<CallError> {
        while let Ok(Some(line)) = self.reader.next_line() {
            if let Some(why) = let_go(&line) {
                return Some(why);
            }
        }
        None
    }

    /// The next line, as long as the daemon is there.
    fn next_line(&mut self) -> Result<Option<Bytes>, CallError> {
        let (since, mut doubt) = (Instant::now(), Doubt::new(QUIET));
        loop {
            // There is no limit of zero.
            let left = doubt.after().saturating_sub(since.elapsed()).max(Duration::from_millis(1));
            // As above.
            self.reader.stream.set_read_timeout(Some(left)).ok();
            match self.reader.next_line() {
                Err(error) if is_timeout(&error) => doubt.check(&self.options)?,
                line => return Ok(line?),
            }
        }
    }

    /// Returns whether the daemon ends this connection within that time; lines until then are dropped.
    pub fn ends_within(&mut self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            // As above.
            self.reader.stream.set_read_timeout(Some(left)).ok();
            match self.reader.next_line() {
                Ok(Some(_)) => {}
                Err(error) if is_timeout(&error) => return false,
                Ok(None) | Err(_) => return true,
            }
        }
    }

    /// Sends `initialize` (protocol version 1) for a client that gives agents no services of its
    /// own, and returns the raw result. Needed once before the first ACP method.
    pub fn initialize(
        &mut self,
        meta: &ClientMeta,
        client_name: &str,
    ) -> Result<Box<RawValue>, CallError> {
        self.call("initialize", &initialize_params(meta, client_name))
    }

    /// The bare stream of a connection on which nothing was said yet.
    pub(crate) fn into_stream(self) -> Arc<Stream> {
        self.split().1.stream
    }

    /// The two directions, for two threads. Both wait for as long as it takes.
    pub fn split(self) -> (Reader, Writer) {
        let Connection { mut reader, writer, held, .. } = self;
        // As above.
        reader.stream.set_read_timeout(None).ok();
        writer.stream.set_write_timeout(None).ok();
        reader.held = held;
        (reader, writer)
    }
}

/// An error about no request is about the connection.
fn let_go(line: &[u8]) -> Option<CallError> {
    match parse(line) {
        Ok(Message::Response { id, outcome: Outcome::Error(error) }) if id.is_null() => {
            Some(CallError::LetGo(ErrorObject::from_raw(error)))
        }
        _ => None,
    }
}

/// The parameters of `initialize` (protocol version 1) of a client that gives agents no services of
/// its own.
pub fn initialize_params(meta: &ClientMeta, client_name: &str) -> Value {
    json!({
        "protocolVersion": 1,
        "clientCapabilities": {},
        "clientInfo": {"name": client_name, "version": env!("CARGO_PKG_VERSION")},
        "_meta": {NAMESPACE: meta},
    })
}

/// The receiving half of a connection.
#[derive(Debug)]
pub struct Reader {
    stream: Arc<Stream>,
    framer: Framer,
    block: Box<[u8]>,
    held: VecDeque<Bytes>,
}

impl Reader {
    /// The next line without its newline, however long; `None` at the end.
    pub fn next_line(&mut self) -> io::Result<Option<Bytes>> {
        if let Some(line) = self.held.pop_front() {
            return Ok(Some(line));
        }
        loop {
            while let Some(frame) = self.framer.next_frame() {
                if let Body::Line(line) = frame.body {
                    return Ok(Some(line));
                }
            }
            match read_block(&self.stream, &mut self.block)? {
                // A line that was cut off is of no use.
                0 => return Ok(None),
                count => self.framer.push(&self.block[..count]),
            }
        }
    }
}

/// The sending half of a connection.
#[derive(Debug)]
pub struct Writer {
    stream: Arc<Stream>,
    last_id: u64,
}

impl Writer {
    /// Sends a line; the newline is added.
    pub fn send(&mut self, line: &[u8]) -> io::Result<()> {
        write_line(&self.stream, line)
    }

    /// Sends a request and returns its id: 1, 2, 3 and so on in each connection.
    pub fn request<P: Serialize>(&mut self, method: &str, params: &P) -> io::Result<u64> {
        self.last_id += 1;
        self.send(&build::request(&self.last_id.into(), method, params))?;
        Ok(self.last_id)
    }

    pub fn notify<P: Serialize>(&mut self, method: &str, params: &P) -> io::Result<()> {
        self.send(&build::notification(method, params))
    }
}
