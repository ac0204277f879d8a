//! Inputs of [`crate::services`] and [`crate::mcp::client_servers`], with facts from other machines,
//! and the servers in requests to agents.

use acp_wire::acp::Services;
use acp_wire::{ErrorObject, Id, str_at};
use acpd_api::{McpServerList, SessionRef};
use bytes::Bytes;
use serde_json::value::RawValue;

use crate::clients::{Asked, Client, Clients, Served};
use crate::fault::Fault;
use crate::hash::number_of;
use crate::hub::Hub;
use crate::ids::{ClientId, HostId, InteractionId, Process, Requester, SessionKey, SlotId};
use crate::input::{Effect, LeftOut, ToClient};
use crate::mcp::client_servers::{OpenedSession, tool_call};
use crate::mcp::{
    Brought, Lender, McpAgent, as_declared, declare, left_out, lent, list, params_for_agent,
    params_for_restore, with_list,
};
use crate::record::{EventKind, InteractionRow, Purpose};
use crate::services::{RequestKind, Workplace};
use crate::session::Session;
use crate::session::kin::with_number;

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

    pub(crate) fn mcp_agent<'a>(&'a self, name: &'a str) -> McpAgent<'a> {
        let capabilities = self.processes.known(name).capabilities;
        McpAgent { name, capabilities, configured: &self.cx.config.profile(name).mcp }
    }

    /// Gathers the servers of a session for a request to its agent: those in the client are
    /// declared in `params`, those of the configuration are returned by name, and `left_out` gets
    /// sentences about the others. Also returns the params for the agent.
    pub(crate) fn gather_servers(
        &mut self,
        slot: SlotId,
        client: ClientId,
        cwd: &str,
        params: &mut Bytes,
        left_out: &mut Vec<String>,
    ) -> (Brought, Bytes) {
        let agent = self.processes[&slot].profile();
        let takes = self.processes.known(agent).capabilities.mcp_acp;
        left_out.clear();
        if let Some(given) = list(params) {
            let client = self.clients.number_of(client);
            let (declared, refused) = declare(&mut self.cx.ids, (agent, takes), client, &given);
            *params = with_list(params, &declared);
            left_out.extend(refused);
        }
        let chosen = self.mcp_agent(agent).choose(cwd, params);
        left_out.extend(chosen.left_out);
        let session = chosen.has_builtin.then(|| self.cx.ids.issue());
        if let Some(number) = session {
            *params = with_number(params, number);
        }
        (Brought { names: chosen.names, session }, params_for_agent(params, |_| takes))
    }

    pub(crate) fn servers_as_declared(&self, key: SessionKey, client: ClientId) -> Bytes {
        as_declared(&self.session(key).servers(), self.clients.number_of(client))
    }

    /// Returns the params of a restore, and sentences about servers that are left out.
    pub(crate) fn params_again(&self, key: SessionKey) -> (Bytes, Vec<String>) {
        let session = self.session(key);
        let takes = self.mcp_agent(&session.row.agent).capabilities.mcp_acp;
        params_for_restore(&session.restore_params(), takes, &lenders(&self.clients))
    }

    /// Takes the servers of a client that opens a session. Returns the names of ignored ones.
    pub(crate) fn bring_servers(
        &mut self,
        client: ClientId,
        key: SessionKey,
        params: Option<&RawValue>,
    ) -> Vec<String> {
        let params = params.map(|params| Bytes::copy_from_slice(params.get().as_bytes()));
        let Some(given) = params.and_then(|params| list(&params)) else { return Vec::new() };
        let session = &self.sessions[&key];
        let agent = self.processes[&session.slot].profile();
        let opened = OpenedSession {
            key,
            agent: (agent, self.processes.known(agent).capabilities.mcp_acp),
            is_held: !session.is_dormant(),
            servers: session.servers(),
            client: self.clients.number_of(client),
            is_trusted: self.clients.may_decide(client),
            may_control: self.clients.may_control(client, key).is_ok(),
        };
        let lenders = lenders(&self.clients);
        self.client_servers.on_session_opened(&mut self.cx, &lenders, &opened, &given)
    }

    /// `is_new` is `false` for a call of the last daemon.
    pub(crate) fn on_server_call(&mut self, row: InteractionRow, is_new: bool) {
        // Of the sessions that the process holds, creates or loads.
        let slot = self.processes.slot_of(row.host);
        let sessions = self.sessions.awake().map(|(_, session)| session);
        let held = sessions.filter(|session| Some(session.slot) == slot && !session.is_dormant());
        let openings = self.requests.params_of_openings(row.host).filter_map(list);
        let lists = held.filter_map(|session| session.mcp_servers.clone()).chain(openings);
        let lenders = lenders(&self.clients);
        self.client_servers.on_agent_call(&mut self.cx, &lenders, lists, row, is_new);
    }

    fn lent_to(&self, client: ClientId, session: &SessionRef) -> Result<SessionKey, Fault> {
        let key = self.resolve(session)?;
        let what = "use what is lent to a session of another agent";
        self.must_be_its_own(client, key, what)?;
        Ok(key)
    }

    pub(crate) fn list_lent_servers(&mut self, to: &Requester, session: &SessionRef) -> Served {
        let key = self.lent_to(to.client, session)?;
        let mut lent = lent(&self.session(key).servers());
        lent.retain(|server| server.is_connected(&lenders(&self.clients)));
        let servers = lent.into_iter().map(|server| server.label.into()).collect();
        self.answer(to, &McpServerList { servers });
        Ok(())
    }

    pub(crate) fn call_lent_server(&mut self, asked: Asked<'_>) -> Served {
        let params = tool_call(asked.params)?;
        let key = self.lent_to(asked.to.client, &params.session)?;
        let session = (key, &self.session(key).servers());
        let lenders = lenders(&self.clients);
        self.client_servers.on_tool_call(&mut self.cx, &lenders, asked.to, &params, session)
    }

    /// Sends a call, or its cancellation, to the lending client if it is connected.
    pub(crate) fn ask_lender(&mut self, client: u64, line: Bytes) {
        if let Some(Lender::Here(client)) = lenders(&self.clients)(client) {
            self.cx.send(Effect::Client(client, ToClient::Line(line)));
        }
    }

    pub(crate) fn on_servers_left_out(
        &mut self,
        host: HostId,
        request: &Id,
        servers: Vec<LeftOut>,
    ) {
        let texts = servers.iter().map(|left| left_out(&left.server, &left.reason));
        let Some(ask) = request.as_issued() else { return };
        let asked = self.requests.asked.get_mut(&ask).filter(|asked| asked.host == host);
        match asked.map(|asked| &mut asked.purpose) {
            // Kept until there is a session to show the notices in.
            Some(Purpose::NewSession(new)) => new.notices.extend(texts),
            Some(Purpose::Adopt(adoption)) => adoption.notices.extend(texts),
            Some(Purpose::Restore { session, .. }) => {
                let key = *session;
                for text in texts {
                    self.notice(key, "warning", &text);
                }
                return;
            }
            // Answered or given up by now.
            _ => return,
        }
        self.save_asked(ask);
    }
}

fn lenders(clients: &Clients) -> impl Fn(u64) -> Option<Lender> {
    |number| {
        let is_it = |(_, here): &(&ClientId, &Client)| number != 0 && here.number == number;
        match clients.iter().find(is_it) {
            Some((client, here)) if here.resume.is_none() => Some(Lender::Here(*client)),
            Some(_) => Some(Lender::Returning),
            None => clients.with_token(|token| number_of(token) == number).map(|_| Lender::Away),
        }
    }
}
