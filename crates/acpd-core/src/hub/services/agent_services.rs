//! Inputs of the services machine ([`crate::services`]), with facts from other machines.

use acp_wire::acp::Services;
use acp_wire::{ErrorObject, Id, str_at};
use bytes::Bytes;

use crate::clients::Clients;
use crate::hub::Hub;
use crate::ids::{HostId, InteractionId, Process, SessionKey};
use crate::record::{EventKind, InteractionRow};
use crate::services::{RequestKind, Workplace};
use crate::session::Session;

fn workplace<'s>(session: &'s Session, clients: &'s Clients, offers: Services) -> Workplace<'s> {
    let mut senders =
        session.running.iter().flat_map(|turn| &turn.prompt.senders).map(|to| to.client);
    Workplace {
        row: &session.row,
        offers,
        sender: senders.find(|client| clients.contains_key(client)),
        editors: clients.responders(session.row.key).collect(),
    }
}

impl Hub {
    fn services_at(&self, key: SessionKey) -> Services {
        self.profile_of(self.session(key).slot).services
    }

    /// Returns whether an editor or acpd serves the request.
    pub(crate) fn on_agent_request(
        &mut self,
        process: Process,
        id: &Id,
        method: &str,
        line: &Bytes,
    ) -> bool {
        let Some(kind) = RequestKind::of(method) else { return false };
        let session = str_at(line, &["params", "sessionId"]);
        let key = session.and_then(|id| self.sessions.routed(process.slot, &id));
        let Some(key) = key else { return false };
        let (line, offers) = (self.sessions.to_public_id(key, line.clone()), self.services_at(key));
        let place = workplace(&self.sessions[&key], &self.clients, offers);
        let request = (process.host, id);
        self.services.on_request(&mut self.cx, &place, request, kind, line)
    }

    /// Continues a request of the last daemon.
    pub(crate) fn recover_agent_request(
        &mut self,
        row: InteractionRow,
        request: (Id, RequestKind),
    ) {
        let session = row.session.and_then(|key| self.sessions.get(&key));
        let session = session.filter(|session| session.row.host == Some(row.host));
        let place = session.map(|session| {
            let agent = self.processes[&session.slot].profile();
            workplace(session, &self.clients, self.cx.config.profile(agent).services)
        });
        self.services.recover(&mut self.cx, place.as_ref(), row, request);
    }

    pub(crate) fn on_served(&mut self, id: InteractionId, result: Result<Bytes, ErrorObject>) {
        if self.on_file_seen(id, &result) {
            return;
        }
        let sessions = &self.sessions;
        let is_held = |key, host: HostId| {
            sessions.get(&key).is_some_and(|session| session.row.host == Some(host))
        };
        self.services.on_served(&mut self.cx, id, result, is_held);
    }

    pub(crate) fn drop_terminals(&mut self, key: SessionKey) {
        let offers = self.services_at(key);
        let place = workplace(&self.sessions[&key], &self.clients, offers);
        let updates = self.services.on_process_left(&mut self.cx, &place);
        for line in updates {
            self.append(key, EventKind::Update, line, None);
        }
    }

    pub(crate) fn mirror_terminals(&mut self, key: SessionKey, line: &Bytes) {
        if self.services.may_show_terminals(self.services_at(key)) {
            let row = &self.sessions[&key].row;
            self.services.on_tool_call(&mut self.cx, row, line);
        }
    }
}
