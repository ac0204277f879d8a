//! Open calls of MCP servers that live in a client. Only [`Calls`] knows which are open; the hub knows
//! which clients are connected, and gives the answers that it gets back to the agents and tools.
//!
//! A call of an agent is on disk from its start to its end: each end here is a record.

use std::collections::BTreeMap;

use acp_wire::{ErrorObject, Id, build, code, set_id, str_at};
use bytes::Bytes;
use serde_json::json;

use crate::event::Answer;
use crate::ids::{ClientId, HostId, InteractionId, Requester};
use crate::input::{Batch, Effect, ToClient};
use crate::mcp::server_list::{Server, with_id};
use crate::record::Record;

/// Calls of one process to one client that may be open at once, and of all tools of acpd.
const OPEN: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Caller {
    /// An agent, with its own id of the request.
    Agent { host: HostId, request: Id },
    /// A tool of acpd, as a client.
    Client(Requester),
}

impl Caller {
    pub(crate) fn of_host(&self) -> Option<HostId> {
        match self {
            Caller::Agent { host, .. } => Some(*host),
            Caller::Client(_) => None,
        }
    }

    pub(crate) fn of_client(&self) -> Option<ClientId> {
        match self {
            Caller::Agent { .. } => None,
            Caller::Client(to) => Some(to.client),
        }
    }

    pub(crate) fn is_agent(&self, of: HostId, asked: &Id) -> bool {
        matches!(self, Caller::Agent { host, request } if *host == of && request == asked)
    }

    pub(crate) fn is_client(&self, of: &Requester) -> bool {
        matches!(self, Caller::Client(to) if to == of)
    }
}

/// The answer to a call, for who has made it.
#[derive(Debug)]
pub(crate) enum Ended {
    Agent(Answer),
    Client(Requester, Bytes),
}

/// A call that a client has not answered.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) caller: Caller,
    /// As the agent sent it.
    pub(crate) line: Bytes,
    /// The answering client, or a placeholder while it has no connection.
    pub(crate) client: ClientId,
    pub(crate) server: Server,
    pub(crate) label: String,
}

impl Call {
    fn give(&self, id: InteractionId, out: &mut Batch) {
        let line = with_id(&self.line, &["params", "serverId"], &self.server.id);
        let line = set_id(&line, &Id::issued(id.0));
        out.effects.push(Effect::Client(self.client, ToClient::Line(line)));
    }

    /// Notifies its client that the answer is no longer needed.
    fn stop(&self, id: InteractionId, out: &mut Batch) {
        let line =
            build::notification("$/cancel_request", &json!({ "requestId": Id::issued(id.0) }));
        out.effects.push(Effect::Client(self.client, ToClient::Line(line)));
    }

    /// Returns the answer for the caller, under the caller's id.
    fn ended(self, line: &Bytes) -> Ended {
        match self.caller {
            Caller::Agent { host, request } => {
                Ended::Agent(Answer { host, line: set_id(line, &request) })
            }
            Caller::Client(to) => {
                let line = set_id(line, &to.id);
                Ended::Client(to, line)
            }
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Calls {
    open: BTreeMap<InteractionId, Call>,
}

impl Calls {
    /// # Errors
    /// When the process has too many calls open at this client.
    pub(crate) fn check_room(&self, call: &Call) -> Result<(), ErrorObject> {
        let of = call.caller.of_host();
        let same = |open: &&Call| open.client == call.client && open.caller.of_host() == of;
        if self.open.values().filter(same).count() >= OPEN {
            let text = format!("{OPEN} calls of MCP servers of this client are open already");
            return Err(ErrorObject::new(code::INTERNAL, text));
        }
        Ok(())
    }

    /// A new call, or one of the last daemon. Its client gets it if it is there, else when it comes back.
    pub(crate) fn open(&mut self, id: InteractionId, call: Call, is_there: bool, out: &mut Batch) {
        if is_there {
            call.give(id, out);
        }
        self.open.insert(id, call);
    }

    pub(crate) fn is_open(&self, id: InteractionId) -> bool {
        self.open.contains_key(&id)
    }

    /// Moves the calls of one connection to another one of the same client.
    pub(crate) fn rename(&mut self, old: ClientId, new: ClientId) {
        for call in self.open.values_mut().filter(|call| call.client == old) {
            call.client = new;
        }
    }

    /// A client has come back: it is given the calls that it does not have.
    pub(crate) fn give_missing(&self, client: ClientId, has: &[Id], out: &mut Batch) {
        let is_missing = |id: &InteractionId| !has.iter().any(|had| had.as_issued() == Some(id.0));
        for (id, call) in &self.open {
            if call.client == client && is_missing(id) {
                call.give(*id, out);
            }
        }
    }

    /// A client's answer; nothing if it is none to a call of its own.
    pub(crate) fn answered(
        &mut self,
        client: ClientId,
        id: &Id,
        line: &Bytes,
        out: &mut Batch,
    ) -> Option<Ended> {
        let id = id.as_issued().map(InteractionId)?;
        self.open.get(&id).filter(|call| call.client == client)?;
        Some(self.end(id, out)?.ended(line))
    }

    /// News of a client about a call that it works on, for each process that has made such a call: two
    /// sessions may have the same server, and agents count as they like. Tools hear none.
    pub(crate) fn news(&self, client: ClientId, line: &Bytes) -> Vec<Answer> {
        let (server, request) = (["params", "serverId"], ["params", "requestId"]);
        let (Some(id), Some(of)) = (str_at(line, &server), str_at(line, &request)) else {
            return Vec::new();
        };
        let is_about = |call: &&Call| {
            let is_it = str_at(&call.line, &request).is_some_and(|request| request == of);
            call.client == client && call.server.id == id && is_it
        };
        let about = self.open.values().filter(is_about);
        let line = |call: &Call| with_id(line, &server, &call.server.name());
        let told = |call: &Call| Some(Answer { host: call.caller.of_host()?, line: line(call) });
        about.filter_map(told).collect()
    }

    pub(crate) fn which(&self, is_meant: impl Fn(&Call) -> bool) -> Vec<InteractionId> {
        self.open.iter().filter(|(_, call)| is_meant(call)).map(|(id, _)| *id).collect()
    }

    /// Answers a call with an error, whether or not its client works on it. A client that is away learns
    /// of it when it comes back with the call.
    pub(crate) fn withdraw(
        &mut self,
        id: InteractionId,
        error: impl Fn(&Call) -> ErrorObject,
        is_there: impl Fn(ClientId) -> bool,
        out: &mut Batch,
    ) -> Option<Ended> {
        let call = self.open.get(&id)?;
        if is_there(call.client) {
            call.stop(id, out);
        }
        let call = self.end(id, out)?;
        let line = build::error(&Id::null(), &error(&call));
        Some(call.ended(&line))
    }

    /// The caller is gone.
    pub(crate) fn drop_caller(
        &mut self,
        is_gone: impl Fn(&Caller) -> bool,
        is_there: impl Fn(ClientId) -> bool,
        out: &mut Batch,
    ) {
        let gone = self.which(|call| is_gone(&call.caller));
        for id in gone {
            let call = self.end(id, out).filter(|call| is_there(call.client));
            if let Some(call) = call {
                call.stop(id, out);
            }
        }
    }

    fn end(&mut self, id: InteractionId, out: &mut Batch) -> Option<Call> {
        let done = self.open.remove(&id)?;
        if done.caller.of_host().is_some() {
            out.records.push(Record::InteractionGone { id });
        }
        Some(done)
    }
}
