//! Open calls of MCP servers that live in a client. Only [`Calls`] knows which are open; the hub says who
//! is connected, and writes the answers that it gets back to the agents.
//!
//! A call is on disk from its start to its end: each end here is a record.

use std::collections::BTreeMap;

use acp_wire::{ErrorObject, Id, build, code, set_id, str_at};
use bytes::Bytes;
use serde_json::json;

use crate::answer::Answer;
use crate::ids::{ClientId, HostId, InteractionId};
use crate::input::{Batch, Effect, ToClient};
use crate::mcp::client_mcp::{Server, with_id};
use crate::record::Record;

/// Calls of one process to one client that may be open at once.
const OPEN: usize = 64;

/// A call of an agent that a client has not answered.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) host: HostId,
    /// The agent's own id of the request.
    pub(crate) agent_request: Id,
    /// As the agent sent it.
    pub(crate) line: Bytes,
    /// Who answers it, or what stands for it while it has no connection.
    pub(crate) client: ClientId,
    pub(crate) server: Server,
    /// What people call the server.
    pub(crate) label: String,
}

impl Call {
    fn give(&self, id: InteractionId, out: &mut Batch) {
        let line = with_id(&self.line, &["params", "serverId"], &self.server.id);
        let line = set_id(&line, &Id::from(id.0));
        out.effects.push(Effect::Client(self.client, ToClient::Line(line)));
    }

    /// Tells its client that nobody waits for the answer any more.
    fn stop(&self, id: InteractionId, out: &mut Batch) {
        let line = build::notification("$/cancel_request", &json!({ "requestId": id.0 }));
        out.effects.push(Effect::Client(self.client, ToClient::Line(line)));
    }
}

/// The calls that are open.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    open: BTreeMap<InteractionId, Call>,
}

impl Calls {
    /// # Errors
    /// When the process has too many calls open at this client.
    pub(crate) fn check_room(&self, call: &Call) -> Result<(), ErrorObject> {
        let same = |open: &&Call| open.client == call.client && open.host == call.host;
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

    /// What one connection was to answer, another one of the same client is.
    pub(crate) fn rename(&mut self, old: ClientId, new: ClientId) {
        for call in self.open.values_mut().filter(|call| call.client == old) {
            call.client = new;
        }
    }

    /// A client has come back: it is given the calls that it does not have.
    pub(crate) fn give_missing(&self, client: ClientId, has: &[Id], out: &mut Batch) {
        let is_missing = |id: &InteractionId| !has.iter().any(|had| had.as_u64() == Some(id.0));
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
    ) -> Option<Answer> {
        let id = id.as_u64().map(InteractionId)?;
        self.open.get(&id).filter(|call| call.client == client)?;
        let Call { host, agent_request, .. } = self.end(id, out)?;
        Some(Answer { host, line: set_id(line, &agent_request) })
    }

    /// News of a client about a call that it works on, for each process that has made such a call: two
    /// sessions may have the same server, and agents count as they like.
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
        about.map(|call| Answer { host: call.host, line: line(call) }).collect()
    }

    /// The calls that are meant.
    pub(crate) fn which(&self, is_meant: impl Fn(&Call) -> bool) -> Vec<InteractionId> {
        self.open.iter().filter(|(_, call)| is_meant(call)).map(|(id, _)| *id).collect()
    }

    /// Answers a call with an error, whether or not its client works on it. One that is away is told
    /// when it comes back with the call.
    pub(crate) fn withdraw(
        &mut self,
        id: InteractionId,
        error: impl Fn(&Call) -> ErrorObject,
        is_there: impl Fn(ClientId) -> bool,
        out: &mut Batch,
    ) -> Option<Answer> {
        let call = self.open.get(&id)?;
        if is_there(call.client) {
            call.stop(id, out);
        }
        let call = self.end(id, out)?;
        Some(Answer::error(call.host, &call.agent_request, &error(&call)))
    }

    /// The process that called is gone.
    pub(crate) fn drop_host(
        &mut self,
        host: HostId,
        is_there: impl Fn(ClientId) -> bool,
        out: &mut Batch,
    ) {
        for (id, call) in self.open.extract_if(.., |_, call| call.host == host) {
            out.records.push(Record::InteractionGone { id });
            if is_there(call.client) {
                call.stop(id, out);
            }
        }
    }

    fn end(&mut self, id: InteractionId, out: &mut Batch) -> Option<Call> {
        let done = self.open.remove(&id)?;
        out.records.push(Record::InteractionGone { id });
        Some(done)
    }
}
