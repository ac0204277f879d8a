//! A connection on which anything may come at any time, and the keyboard beside it.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::thread;

use acp_wire::{ErrorObject, Id, Message, Outcome, build, code, parse};
use acpd_api::ExitCode;
use acpd_client::{CallError, Connection, Writer};
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::error::{CommandError, Result};
use crate::ui::{TICK, Ui};
use crate::{signal, terminal};

/// Messages that wait to be shown; beyond that, the daemon waits (it bounds what it keeps).
const QUEUE: usize = 256;

/// What happens.
#[derive(Debug)]
pub(crate) enum Event {
    /// The daemon sent a line.
    Line(Bytes),
    /// The daemon closed the connection.
    Closed,
    /// Ctrl-C.
    Interrupt,
    /// A key was pressed.
    Key(u8),
}

/// The connection, its events and what is sent.
#[derive(Debug)]
pub(crate) struct Live {
    writer: Writer,
    events: Receiver<Event>,
    sender: SyncSender<Event>,
    reads_keys: bool,
}

impl Live {
    /// Starts to listen to the daemon and to Ctrl-C.
    pub(crate) fn new(connection: Connection) -> Result<Live> {
        let (mut reader, writer) = connection.split();
        let (sender, events) = mpsc::sync_channel(QUEUE);
        let lines = sender.clone();
        let read = move || {
            while let Ok(Some(line)) = reader.next_line() {
                if lines.send(Event::Line(line)).is_err() {
                    return;
                }
            }
            // Nobody waits any more if this fails.
            let _ = lines.send(Event::Closed);
        };
        thread::Builder::new().name("reader".to_owned()).spawn(read)?;
        let interrupts = sender.clone();
        signal::on_interrupt(move || drop(interrupts.send(Event::Interrupt)))?;
        Ok(Live { writer, events, sender, reads_keys: false })
    }

    /// The next event. What was printed is sent out before a wait, and the spinner moves during it.
    pub(crate) fn next(&self, ui: &mut Ui) -> Result<Event> {
        match self.events.try_recv() {
            Ok(event) => return Ok(event),
            Err(TryRecvError::Disconnected) => return Ok(Event::Closed),
            Err(TryRecvError::Empty) => ui.flush()?,
        }
        loop {
            let event = if ui.spins() {
                self.events.recv_timeout(TICK)
            } else {
                self.events.recv().map_err(RecvTimeoutError::from)
            };
            match event {
                Ok(event) => return Ok(event),
                Err(RecvTimeoutError::Timeout) => ui.tick(),
                Err(RecvTimeoutError::Disconnected) => return Ok(Event::Closed),
            }
        }
    }

    /// From now on keys are events, too.
    pub(crate) fn listen_to_keys(&mut self) -> io::Result<()> {
        if !self.reads_keys {
            self.reads_keys = true;
            let keys = self.sender.clone();
            terminal::read_keys(move |key| keys.send(Event::Key(key)).is_ok())?;
        }
        Ok(())
    }

    /// Sends a request that may take long and waits for its result; what else comes is dropped.
    /// Ctrl-C ends the wait, not what was asked for.
    pub(crate) fn call<R: DeserializeOwned>(
        &mut self,
        ui: &mut Ui,
        method: &str,
        params: &impl Serialize,
    ) -> Result<R> {
        let id = self.request(method, params)?;
        loop {
            let line = match self.next(ui)? {
                Event::Line(line) => line,
                Event::Closed => return Err(CallError::Closed.into()),
                Event::Interrupt => {
                    return Err(CommandError::new(
                        ExitCode::Cancelled,
                        "no longer waiting; acpd goes on with it",
                    ));
                }
                Event::Key(_) => continue,
            };
            match parse(&line) {
                Ok(Message::Response { id: answered, outcome }) if answered == id => {
                    return match outcome {
                        Outcome::Error(error) => {
                            Err(CommandError::rpc(&ErrorObject::from_raw(error)))
                        }
                        Outcome::Result(result) => Ok(result_of(method, result)?),
                    };
                }
                _ => {}
            }
        }
    }

    /// Sends a request and returns its id.
    pub(crate) fn request(&mut self, method: &str, params: &impl Serialize) -> Result<Id> {
        Ok(self.writer.request(method, params).map_err(CallError::Io)?.into())
    }

    /// Sends a notification.
    pub(crate) fn notify(&mut self, method: &str, params: &impl Serialize) -> Result {
        Ok(self.writer.notify(method, params).map_err(CallError::Io)?)
    }

    /// Answers a request of the daemon.
    pub(crate) fn answer(&mut self, id: &Id, result: &impl Serialize) -> Result {
        Ok(self.writer.send(&build::response(id, result)).map_err(CallError::Io)?)
    }

    /// Answers a request for a service that acpctl does not have.
    pub(crate) fn refuse(&mut self, id: &Id, method: &str) -> Result {
        let text = format!("acpctl has no `{method}`");
        let error = ErrorObject::new(code::METHOD_NOT_FOUND, text);
        Ok(self.writer.send(&build::error(id, &error)).map_err(CallError::Io)?)
    }
}

/// Reads the result of a request.
pub(crate) fn result_of<R: DeserializeOwned>(
    method: &str,
    result: &RawValue,
) -> std::result::Result<R, CallError> {
    serde_json::from_str(result.get())
        .map_err(|source| CallError::Unreadable { method: method.to_owned(), source })
}
