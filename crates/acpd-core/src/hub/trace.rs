//! `_acpd/trace`. The relay has the lines; the hub knows which of them concern a session or agent.

use acpd_api::{Empty, TraceParams};

use crate::clients::{Asked, Served};
use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{ClientId, HostId, SessionKey};
use crate::input::{Effect, Trace, TraceOf};
use crate::params::read;

const MAX_PATTERN_BYTES: usize = 200;

impl Hub {
    pub(crate) fn begin_trace(&mut self, Asked { to, params, .. }: Asked<'_>) -> Served {
        let TraceParams { session, agent, clients, full, method } = read(params)?;
        let of = match (session, agent) {
            (Some(session), None) => TraceOf::Session(self.resolve(&session)?),
            (None, Some(agent)) if self.is_agent(&agent) => TraceOf::Agent(agent),
            (None, Some(agent)) => return Err(self.unknown_agent(&agent)),
            _ => return Err(Fault::invalid("name either a session or an agent")),
        };
        if method.as_ref().is_some_and(|pattern| pattern.len() > MAX_PATTERN_BYTES) {
            return Err(Fault::invalid(format!("a pattern has at most {MAX_PATTERN_BYTES} bytes")));
        }
        self.answer(to, &Empty {});
        let trace = Trace { client: to.client, of, clients, full, method };
        self.cx.send(Effect::Trace(Box::new(trace)));
        Ok(())
    }

    pub fn agent_of(&self, host: HostId) -> Option<&str> {
        Some(self.processes[&self.processes.slot_of(host)?].profile())
    }

    /// Returns whether a line of a process concerns a session; `id` is the agent's session id.
    pub fn is_about(&self, key: SessionKey, host: HostId, id: Option<&str>) -> bool {
        let Some(slot) = self.processes.slot_of(host) else { return false };
        let Some(session) = self.sessions.get(&key).filter(|session| session.slot == slot) else {
            return false;
        };
        self.processes[&slot].dedicated == Some(key)
            || id.is_some_and(|id| {
                id == session.row.agent_id || self.sessions.routed(slot, id) == Some(key)
            })
    }

    /// Returns whether a client's line concerns a session; `id` is the public session id.
    pub fn is_named(&self, key: SessionKey, id: &str) -> bool {
        self.sessions.get(&key).is_some_and(|session| {
            let row = &session.row;
            row.public_id == id || row.children.values().any(|child| child.public_id == id)
        })
    }

    /// Returns whether a client is bound to this agent, or its line names a session of the agent.
    pub fn talks_with(&self, client: ClientId, agent: &str, id: Option<&str>) -> bool {
        if let Some(id) = id {
            return self.sessions.is_taken(agent, id);
        }
        let here = self.clients.get(&client);
        here.and_then(|here| here.profile.as_deref()) == Some(agent)
    }
}
