//! A connection to the daemon on which requests are answered one after the other, before it is read for what comes.

use acp_wire::{ErrorObject, Id, Message, Outcome, build, parse};
use acpd_api::{AttachParams, AttachResult, ClientMeta, Role, SessionInfo, SessionRef, method};
use acpd_client::{Incoming, LinkReader, LinkWriter, Options, PATIENCE, initialize_params, link};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::failure::Failure;

/// The client name that the server gives to the daemon.
const NAME: &str = "acpctl mcp";

/// A connection that outlives the daemon's process.
pub(crate) struct Line {
    pub(crate) reader: LinkReader,
    pub(crate) writer: LinkWriter,
    pub(crate) last_id: u64,
}

impl Line {
    pub(crate) fn open(options: &Options) -> Result<Line, Failure> {
        let (reader, writer) = link(options.clone(), PATIENCE)?;
        Ok(Line { reader, writer, last_id: 0 })
    }

    /// Says who we are, to an agent or to that of a directory.
    pub(crate) fn greet(
        &mut self,
        agent: Option<String>,
        cwd: Option<String>,
    ) -> Result<(), Failure> {
        let meta = ClientMeta {
            cwd,
            agent,
            notices: true,
            seq: true,
            tool: true,
            ..ClientMeta::default()
        };
        let _: Value = self.call("initialize", &initialize_params(&meta, NAME))?;
        Ok(())
    }

    pub(crate) fn attach(
        &mut self,
        session: SessionRef,
        role: Role,
    ) -> Result<SessionInfo, Failure> {
        let params = AttachParams { session, after: None, role };
        let attached: AttachResult = self.call(method::SESSION_ATTACH, &params)?;
        Ok(attached.session)
    }

    /// Sends a request and waits for its answer; what else comes is of no turn of ours.
    pub(crate) fn call<R: DeserializeOwned>(
        &mut self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<R, Failure> {
        let id = self.send(method, params)?;
        loop {
            let line = match self.reader.recv()? {
                Incoming::Line(line) => line,
                Incoming::Lost | Incoming::Stopped | Incoming::Back => continue,
                Incoming::Closed => return Err(closed()),
            };
            let Ok(Message::Response { id: answered, outcome }) = parse(&line) else { continue };
            if answered != id {
                continue;
            }
            let result = read(outcome)?;
            return serde_json::from_str(result.get())
                .map_err(|error| Failure::new(format!("cannot read what acpd answered: {error}")));
        }
    }

    pub(crate) fn send(&mut self, method: &str, params: &impl Serialize) -> Result<Id, Failure> {
        self.last_id += 1;
        let id = Id::from(self.last_id);
        let is_sent = self.writer.send(build::request(&id, method, params));
        if is_sent { Ok(id) } else { Err(closed()) }
    }
}

/// Returns the result of a request, or its error.
pub(crate) fn read(outcome: Outcome<'_>) -> Result<Box<RawValue>, Failure> {
    match outcome {
        Outcome::Result(result) => Ok(result.to_owned()),
        Outcome::Error(error) => Err(Failure::rpc(&ErrorObject::from_raw(error))),
    }
}

pub(crate) fn closed() -> Failure {
    Failure::new("acpd closed the connection")
}
