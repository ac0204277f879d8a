//! A connection to the daemon, from one thread.

use std::time::Duration;

use acp_wire::{ErrorObject, Id, Message, Outcome, parse, read_legible};
use acpd_api::{
    AttachParams, AttachResult, ClientMeta, LogParams, LogResult, NAMESPACE, Role, SessionInfo,
    SessionRef, method,
};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::connect::Options;
use crate::error::{CallError, ConnectError, LinkError};
use crate::link::{LinkEvent, LinkReader, LinkWriter, open};

/// Connects to the user's daemon, and starts one first if none runs and `spawn` is set. The
/// connection ends with the daemon's process.
///
/// Nothing is sent before the socket's directory and the user id of the server are checked. Clients
/// that find no daemon at the same time start one daemon. If the daemon cannot start, its own
/// reason is the error.
pub fn connect(options: &Options) -> Result<Connection, ConnectError> {
    Connection::open(options, options.clone(), Duration::ZERO)
}

/// Connects in the same way, and outlives the daemon's process.
///
/// A lost connection is made again: for up to `patience` while the user waits for something,
/// otherwise for any time. From `initialize` on, each line comes once; before it, unanswered
/// requests are sent again.
pub fn connect_lasting(options: &Options, patience: Duration) -> Result<Connection, ConnectError> {
    Connection::open(options, options.clone(), patience)
}

/// Connects like [`connect_lasting`] to a running daemon. A daemon that died is replaced; one that
/// was stopped is not.
pub fn rejoin(options: &Options, patience: Duration) -> Result<Connection, ConnectError> {
    let spawn = options.spawn && options.place.has_socket();
    Connection::open(&Options { spawn, ..options.clone() }, options.clone(), patience)
}

#[derive(Debug)]
pub struct Connection {
    pub reader: LinkReader,
    pub writer: LinkWriter,
    /// How to repeat the first request. `None` after that request, or if the link reconnects by
    /// itself.
    again: Option<Options>,
}

impl Connection {
    fn open(
        first: &Options,
        options: Options,
        patience: Duration,
    ) -> Result<Connection, ConnectError> {
        let again = patience.is_zero().then(|| options.clone());
        let (reader, writer) = open(first, options, patience)?;
        Ok(Connection { reader, writer, again })
    }

    /// Sends a request and waits for its answer for as long as the daemon itself is there. Drops
    /// other lines that come meanwhile: the answer is newer.
    ///
    /// The daemon may be killed just after it accepted the connection, or close it because it has
    /// too many. If it never answered, the first request is repeated on another connection.
    pub fn call<P: Serialize, R: DeserializeOwned>(
        &mut self,
        method: &str,
        params: &P,
    ) -> Result<R, CallError> {
        let again = self.again.take();
        let answer = self.call_once(method, params);
        let Err(CallError::Ended(
            LinkError::Closed | LinkError::Io(_) | LinkError::Dismissed(_) | LinkError::Stopped,
        )) = &answer
        else {
            return answer;
        };
        let Some(options) = again else { return answer };
        *self = connect(&options).map_err(|error| match error {
            ConnectError::NotAnswering(silent) => LinkError::NotAnswering(silent),
            error @ (ConnectError::Spawn(_)
            | ConnectError::StartFailed { .. }
            | ConnectError::StartDied { .. }
            | ConnectError::StartTimedOut { .. }) => LinkError::NotStarted(error),
            _ => LinkError::Closed,
        })?;
        self.again = None;
        self.call_once(method, params)
    }

    fn call_once<P: Serialize, R: DeserializeOwned>(
        &mut self,
        method: &str,
        params: &P,
    ) -> Result<R, CallError> {
        let asked = self.writer.request(method, params)?;
        loop {
            self.reader.expect_line();
            let LinkEvent::Line(line) = self.reader.recv()? else { continue };
            // One pass over the usual answer: otherwise parsing takes most of the time of `acpctl
            // ps`.
            if let Ok(Answer { id, result, error: None }) = serde_json::from_slice(&line)
                && id == asked
            {
                return Ok(result);
            }
            if let Ok(Message::Response { id, outcome }) = parse(&line)
                && id == asked
            {
                return read_answer(method, outcome);
            }
        }
    }

    /// Sends `initialize` (protocol version 1) for a client that gives agents no services of its
    /// own, and returns the raw result. Required before the first ACP method.
    pub fn initialize(
        &mut self,
        meta: &ClientMeta,
        client_name: &str,
    ) -> Result<Box<RawValue>, CallError> {
        self.call("initialize", &initialize_params(meta, client_name))
    }

    /// Attaches to a session, from its last line on.
    pub fn attach(&mut self, session: SessionRef, role: Role) -> Result<SessionInfo, CallError> {
        let params = AttachParams { session, after: None, role };
        let attached: AttachResult = self.call(method::SESSION_ATTACH, &params)?;
        Ok(attached.session)
    }

    /// Reads a journal page by page until `take` returns an error.
    pub fn read_log<E: From<CallError>>(
        &mut self,
        mut params: LogParams,
        mut take: impl FnMut(LogResult) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            let page: LogResult = self.call(method::SESSION_LOG, &params)?;
            let next = page.next;
            take(page)?;
            match next {
                Some(next) => params.after = next,
                None => return Ok(()),
            }
        }
    }

    pub fn split(self) -> Result<(LinkReader, LinkWriter), ConnectError> {
        // A connection may live for hours; a long line must not cost its memory for as long.
        acpd_sys::limits::return_buffers(acpd_sys::limits::LARGE_BUFFER);
        self.writer.start_thread()?;
        Ok((self.reader, self.writer))
    }
}

#[derive(Deserialize)]
struct Answer<R> {
    id: Id,
    result: R,
    error: Option<IgnoredAny>,
}

pub fn read_answer<R: DeserializeOwned>(
    method: &str,
    outcome: Outcome<'_>,
) -> Result<R, CallError> {
    match outcome {
        Outcome::Error(error) => Err(CallError::Rpc(ErrorObject::from_raw(error))),
        Outcome::Result(result) => read_result(method, result),
    }
}

/// Reads the result of a request, or the parameters of a notification.
pub fn read_result<R: DeserializeOwned>(method: &str, result: &RawValue) -> Result<R, CallError> {
    read_legible(result.get())
        .map_err(|source| CallError::Unreadable { method: method.to_owned(), source })
}

pub fn initialize_params(meta: &ClientMeta, client_name: &str) -> Value {
    json!({
        "protocolVersion": 1,
        "clientCapabilities": {},
        "clientInfo": {"name": client_name, "version": env!("CARGO_PKG_VERSION")},
        "_meta": {NAMESPACE: meta},
    })
}
