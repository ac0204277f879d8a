//! MCP servers that live in a client (`"type":"acp"`): the agent speaks with them through acpd.
//!
//! ```text
//!  session/new, load ─▶ declared: a number for the agent, and whose it is ─▶ kept with the session
//!
//!  mcp/message of the agent ─▶ its client is here, or comes back ─▶ asked ─▶ answered
//!     │                                                               │ gone for good, cancelled
//!     └── no client has the server ───────────────────────────────────┴────────────▶ refused
//! ```
//!
//! Servers of two clients with the same id must stay two servers for an agent, so it gets ids of acpd's
//! (`acpd-1-7`). In the session's list of servers that number, the number of the client and the client's id
//! ([`Server`]) stand instead of the client's `serverId`. So the owner of a server is on disk without a table
//! of its own, and another client can take over from one that is gone. Servers that the agent does not take
//! are kept as well: tools of acpd ask them (`_acpd/mcp/call`).
//!
//! Architecture invariant: a call of an agent is on disk until it is answered, and is given to one client once:
//! again only to one that came back without it. A call of a tool ends with the connection that made it.

use acp_wire::bound::NAME;
use acp_wire::{ErrorObject, Id, Message, build, clipped, code, str_at};
use acpd_api::{McpCallParams, McpServerList, Reason, SessionRef, method};
use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;

use crate::clients::{Asked, Client, Served};
use crate::fault::Fault;
use crate::hash::number_of;
use crate::hub::Hub;
use crate::ids::{ClientId, HostId, InteractionId, Process, Requester, SessionKey, SlotId};
use crate::input::Batch;
use crate::mcp::client_servers::{Call, Caller, Ended};
use crate::mcp::server_list::{
    Declared, MESSAGE, Server, each, is_in_client, items, label, list, server_id, told, with_id,
    with_list,
};
use crate::params::{raw, read};
use crate::record::{InteractionRow, Record};
use crate::session::State;
use crate::timers::Timer;

/// How long a client may take to answer a tool (ms).
const LENT: u64 = 20_000;

/// A list of these servers.
fn array(items: &[Bytes]) -> Bytes {
    [b"[", &items.join(&b","[..])[..], b"]"].concat().into()
}

fn same_json(one: &[u8], other: &[u8]) -> bool {
    let read = |bytes| serde_json::from_slice::<serde_json::Value>(bytes).ok();
    one == other || read(one) == read(other)
}

/// The server with this number in a session's list, and what people call it.
fn find(list: &Bytes, number: u64) -> Option<(Server, String)> {
    let mark = format!("\"{}:", InteractionId(number).text());
    // Most sessions have no such list, and it may be long.
    if !std::str::from_utf8(list).is_ok_and(|text| text.contains(&mark)) {
        return None;
    }
    let mut found = None;
    each(list, |item| {
        let server = server_id(item).and_then(|kept| Server::read(&kept));
        if let Some(server) = server.filter(|server| server.number == number) {
            found = Some((server, label(item)));
        }
        None
    });
    found
}

fn gone(label: &str) -> ErrorObject {
    let text = format!("the client that has the MCP server `{label}` is gone");
    ErrorObject::new(code::NOT_FOUND, text)
}

impl Hub {
    /// Gives the servers that live in a client ids of acpd's. For an agent that does not take such servers
    /// they are left out.
    pub(crate) fn declare_servers(
        &mut self,
        slot: SlotId,
        client: ClientId,
        params: &Bytes,
    ) -> Declared {
        let Some(given) = list(params) else {
            return Declared { params: params.clone(), left_out: Vec::new() };
        };
        let (declared, left_out) = self.declare(slot, client, &given);
        Declared { params: with_list(params, &declared), left_out }
    }

    /// Like [`Hub::declare_servers`], for a list of servers.
    fn declare(&mut self, slot: SlotId, client: ClientId, given: &Bytes) -> (Bytes, Vec<String>) {
        let mut left_out = Vec::new();
        let agent = &self.processes[&slot].profile;
        let takes = self.takes_servers(agent);
        let client = self.clients.get(&client).map_or(0, |here| here.number);
        let declared = each(given, |item| {
            if !takes {
                let label = label(item);
                left_out.push(format!(
                    "the MCP server `{label}` of the client was left out: agent `{agent}` does not take servers of type `acp`"
                ));
            }
            let Some(id) = server_id(item) else { return takes.then(|| item.clone()) };
            let server = Server { number: self.ids.issue(), client, id };
            Some(with_id(item, &["serverId"], &server.kept()))
        });
        (declared, left_out)
    }

    /// Returns whether an agent takes servers of clients.
    fn takes_servers(&self, agent: &str) -> bool {
        self.processes.known(agent).capabilities.mcp_acp
    }

    /// The params of a session as its agent gets them.
    pub(crate) fn params_for_agent(&self, slot: SlotId, params: &Bytes) -> Bytes {
        let takes = self.takes_servers(&self.processes[&slot].profile);
        told(params, |_, _| takes)
    }

    /// A session's servers as a client would declare them for another session: without those that live
    /// in other clients.
    pub(crate) fn servers_as_declared(&self, key: SessionKey, client: ClientId) -> Bytes {
        let number = self.clients.get(&client).map_or(0, |here| here.number);
        let kept = self.session(key).mcp_servers.clone().unwrap_or(Bytes::from_static(b"[]"));
        each(&kept, |item| {
            let server = server_id(item).and_then(|kept| Server::read(&kept));
            let own = server.filter(|server| server.client == number)?;
            Some(with_id(item, &["serverId"], &own.id))
        })
    }

    /// The params to restore a session with. Servers whose client is not connected are left out; which,
    /// in sentences for people.
    pub(crate) fn params_again(&mut self, key: SessionKey) -> (Box<RawValue>, Vec<String>) {
        let session = self.session(key);
        let params = Bytes::copy_from_slice(session.restore_params().get().as_bytes());
        let takes = self.takes_servers(&session.row.agent);
        let mut left_out = Vec::new();
        let params = told(&params, |server, item| {
            let there = self.is_there(server);
            if takes && !there {
                let label = label(item);
                left_out.push(format!(
                    "the MCP server `{label}` was left out: the client that has it is not connected"
                ));
            }
            there && takes
        });
        (raw(&params), left_out)
    }

    /// Takes the MCP servers that a client brings when it opens a session. If no process holds the session,
    /// each is added or replaces the one of the same name; a process gets no servers later than its session.
    /// Returns the names of those that were ignored.
    pub(crate) fn bring_servers(
        &mut self,
        client: ClientId,
        key: SessionKey,
        params: Option<&RawValue>,
        out: &mut Batch,
    ) -> Vec<String> {
        let params = params.map(|params| Bytes::copy_from_slice(params.get().as_bytes()));
        let Some(given) = params.and_then(|params| list(&params)) else { return Vec::new() };
        let may = self.may_decide(client);
        if may {
            self.take_over_servers(client, key, &given, out);
        }
        let number = self.clients.get(&client).map_or(0, |here| here.number);
        let is_mine = |item: &Bytes| {
            let server = server_id(item).and_then(|kept| Server::read(&kept));
            server.is_some_and(|server| server.client == number)
        };
        let kept = self.session(key).mcp_servers.clone().unwrap_or(Bytes::from_static(b"[]"));
        let known = items(&kept);
        let is_same = |item: &Bytes| {
            let same = known.iter().find(|other| label(other) == label(item));
            // The owner of each client's server is known here.
            let is_it = |other: &Bytes| {
                if is_in_client(item) { may || is_mine(other) } else { same_json(other, item) }
            };
            same.is_some_and(is_it)
        };
        let mut brought = items(&given);
        brought.retain(|item| !label(item).is_empty() && !is_same(item));
        if brought.is_empty() {
            return Vec::new();
        }
        let names = || brought.iter().map(|item| label(item)).collect();
        if !may || self.sessions.may_control(client, key).is_err() {
            return names();
        }
        let slot = self.session(key).slot;
        let is_held = !matches!(self.session(key).state, State::Dormant);
        if is_held {
            let ignored = names();
            // The process does not get these servers; tools of acpd can ask them.
            let is_known = |item: &Bytes| known.iter().any(|other| label(other) == label(item));
            brought.retain(|item| is_in_client(item) && !is_known(item));
            if !brought.is_empty() {
                let (declared, _) = self.declare(slot, client, &array(&brought));
                self.sessions.keep_servers(key, array(&[known, items(&declared)].concat()), out);
            }
            return ignored;
        }
        let (declared, left_out) = self.declare(slot, client, &array(&brought));
        for text in left_out {
            self.notice(key, "warning", &text, out);
        }
        let mut brought = items(&declared);
        let mut all = Vec::new();
        for item in known {
            let place = brought.iter().position(|new| label(new) == label(&item));
            all.push(place.map_or(item, |place| brought.remove(place)));
        }
        all.append(&mut brought);
        self.sessions.keep_servers(key, array(&all), out);
        Vec::new()
    }

    /// A client opens a session that knows servers by the names of its own: it has them from now on, if
    /// the one that had them is not connected.
    fn take_over_servers(
        &mut self,
        client: ClientId,
        key: SessionKey,
        given: &Bytes,
        out: &mut Batch,
    ) {
        let mut brought = Vec::new();
        each(given, |item| {
            brought.extend(server_id(item).map(|id| (label(item), id)));
            None
        });
        let Some(kept) = self.session(key).mcp_servers.clone() else { return };
        let number = self.clients.get(&client).map_or(0, |here| here.number);
        let mut taken = Vec::new();
        let mcp_servers = each(&kept, |item| {
            let of = server_id(item).and_then(|kept| Server::read(&kept));
            let label = label(item);
            let mine = brought.iter().find(|(name, _)| *name == label);
            let (Some(of), Some((_, id))) = (of, mine) else { return Some(item.clone()) };
            let other = self.client_of(&of).is_some_and(|of| self.clients.contains_key(&of));
            let is_same = of.client == number && of.id == *id;
            if is_same || (other && of.client != number) {
                return Some(item.clone());
            }
            taken.push(of.number);
            let server = Server { client: number, id: id.clone(), ..of };
            Some(with_id(item, &["serverId"], &server.kept()))
        });
        if taken.is_empty() {
            return;
        }
        self.sessions.keep_servers(key, mcp_servers, out);
        let is_meant = |call: &Call| taken.contains(&call.server.number) && call.client != client;
        self.withdraw_calls(is_meant, |call| gone(&call.label), out);
    }

    /// The client that has a server, if it is here or may come back.
    fn client_of(&self, server: &Server) -> Option<ClientId> {
        let is_it = |number: u64| number != 0 && number == server.client;
        let here = self.clients.iter().find(|(_, here)| is_it(here.number)).map(|(id, _)| *id);
        here.or_else(|| self.clients.with_token(|token| is_it(number_of(token))))
    }

    /// Returns whether the client of a server is connected.
    fn is_there(&self, server: &Server) -> bool {
        self.client_of(server).is_some_and(|of| self.clients.contains_key(&of))
    }

    /// The server that a process knows by this name: of a session that it holds, or of one that it is
    /// just to make or to load.
    fn server(&self, slot: SlotId, host: HostId, name: &str) -> Option<(Server, String)> {
        let number = Server::number_in(name)?;
        let held = |session: &&crate::session::Session| {
            session.slot == slot && !matches!(session.state, State::Dormant)
        };
        let sessions = self.sessions.values().filter(held);
        let mut lists = sessions.filter_map(|session| session.mcp_servers.as_ref());
        lists.find_map(|list| find(list, number)).or_else(|| {
            let mut made = self.requests.params_of_openings(host).filter_map(list);
            made.find_map(|list| find(&list, number))
        })
    }

    /// `mcp/message` of an agent, for a server in a client.
    pub(crate) fn server_called(
        &mut self,
        process: Process,
        id: &Id,
        line: &Bytes,
        out: &mut Batch,
    ) {
        let row = InteractionRow {
            id: InteractionId(self.ids.issue()),
            session: None,
            host: process.host,
            line: line.clone(),
            at: self.now,
            frozen: None,
        };
        let call = self.call(process.slot, &row, id);
        match call.and_then(|call| self.calls.check_room(&call).map(|()| call)) {
            Ok(call) => {
                out.durable = true;
                self.open_call(row.id, call, out);
                out.records.push(Record::Interaction(row));
            }
            Err(error) => {
                self.host_write(process.slot, build::error(id, &error), out);
            }
        }
    }

    fn open_call(&mut self, id: InteractionId, call: Call, out: &mut Batch) {
        let is_there = self.clients.get(&call.client).is_some_and(Client::is_back);
        self.calls.open(id, call, is_there, out);
    }

    fn call(&self, slot: SlotId, row: &InteractionRow, id: &Id) -> Result<Call, ErrorObject> {
        let name = str_at(&row.line, &["params", "serverId"]).ok_or_else(|| {
            ErrorObject::new(code::INVALID_PARAMS, "`serverId` is missing or no text")
        })?;
        let (server, label) = self.server(slot, row.host, &name).ok_or_else(|| {
            let text = format!("no session of this agent has an MCP server `{name}` in a client");
            ErrorObject::new(code::NOT_FOUND, text)
        })?;
        let client = self.client_of(&server).ok_or_else(|| gone(&label))?;
        let caller = Caller::Agent { host: row.host, request: id.clone() };
        Ok(Call { caller, line: row.line.clone(), client, server, label })
    }

    /// The servers of a session that live in clients which are connected, with what people call them.
    ///
    /// # Errors
    /// When the client runs under an agent, and this is not a session of that agent.
    fn lent_servers(
        &self,
        client: ClientId,
        key: SessionKey,
    ) -> Result<Vec<(String, Server)>, Fault> {
        let what = "use what is lent to a session of another agent";
        self.must_be_its_own(client, key, what)?;
        let Some(list) = &self.session(key).mcp_servers else { return Ok(Vec::new()) };
        let mut lent = Vec::new();
        each(list, |item| {
            let server = server_id(item).and_then(|kept| Server::read(&kept));
            lent.extend(server.map(|server| (label(item), server)));
            None
        });
        lent.retain(|(_, server)| self.is_there(server));
        Ok(lent)
    }

    /// `_acpd/mcp/list` of a tool.
    pub(crate) fn list_lent_servers(
        &mut self,
        to: &Requester,
        session: &SessionRef,
        out: &mut Batch,
    ) -> Served {
        let lent = self.lent_servers(to.client, self.resolve(session)?)?;
        let servers = lent.into_iter().map(|(label, _)| label.into()).collect();
        self.answer(to, &McpServerList { servers }, out);
        Ok(())
    }

    /// `_acpd/mcp/call` of a tool, for a server in a client that is connected.
    pub(crate) fn call_lent_server(&mut self, asked: Asked<'_>, out: &mut Batch) -> Served {
        let params: McpCallParams = read(asked.params)?;
        if !["tools/list", "tools/call"].contains(&params.method.as_str()) {
            let text = format!("`{}` calls only `tools/list` and `tools/call`", method::MCP_CALL);
            return Err(Fault::invalid(text));
        }
        let key = self.resolve(&params.session)?;
        let none = || {
            let text = format!(
                "no client that is connected lends the session a server `{}`",
                params.server
            );
            Fault::new(Reason::Invalid, text).with_code(code::NOT_FOUND)
        };
        let mut lent = self.lent_servers(asked.to.client, key)?.into_iter();
        let (label, server) = lent.find(|(label, _)| *label == params.server).ok_or_else(none)?;
        let client = self.client_of(&server).ok_or_else(none)?;
        let id = InteractionId(self.ids.issue());
        let message = json!({
            "serverId": server.id,
            "requestId": format!("acpd-{}", id.text()),
            "method": params.method,
            "params": params.params,
        });
        let line = build::request(&Id::issued(id.0), MESSAGE, &message);
        let caller = Caller::Client(asked.to.clone());
        let call = Call { caller, line, client, server, label };
        self.calls.check_room(&call).map_err(|error| Fault::new(Reason::TooMany, error.message))?;
        if params.method == "tools/call" {
            let given = params.params.as_ref().map_or("", |params| params.get());
            let tool = str_at(given.as_bytes(), &["name"]).unwrap_or_default();
            let (tool, label) = (clipped(&tool, NAME), clipped(&call.label, NAME));
            let text = format!("a tool of the agent called `{tool}` of the MCP server `{label}`");
            self.notice(key, "info", &text, out);
        }
        self.open_call(id, call, out);
        self.timers.set(Timer::Lent(id), self.now.after(LENT));
        Ok(())
    }

    /// A client has not answered a tool in time.
    pub(crate) fn lent_call_late(&mut self, id: InteractionId, out: &mut Batch) {
        let error = |call: &Call| {
            let text =
                format!("the client did not answer for its MCP server `{}` in time", call.label);
            ErrorObject::new(code::INTERNAL, text)
        };
        self.withdraw_call(id, error, out);
    }

    /// `$/cancel_request` of a client for a call of its own; whether it was one.
    pub(crate) fn cancel_lent_call(&mut self, to: &Requester, out: &mut Batch) -> bool {
        let error = ErrorObject::new(code::CANCELLED, "cancelled by the client");
        self.withdraw_calls(|call| call.caller.is_client(to), |_| error.clone(), out)
    }

    /// Drops all calls of this connection.
    pub(crate) fn calls_of_caller(&mut self, client: ClientId, out: &mut Batch) {
        let clients = &self.clients;
        let is_there = |client| clients.get(&client).is_some_and(Client::is_back);
        self.calls.drop_caller(|caller| caller.of_client() == Some(client), is_there, out);
    }

    /// Gives the answer to a call to its caller.
    fn end_call(&mut self, ended: Option<Ended>, out: &mut Batch) {
        match ended {
            Some(Ended::Agent(answer)) => self.write_answer(Some(answer), out),
            Some(Ended::Client(to, line)) => self.respond(&to, None, line, out),
            None => {}
        }
    }

    /// Goes on with a call of the last daemon; whether the row is one.
    pub(crate) fn call_again(&mut self, row: &InteractionRow, out: &mut Batch) -> bool {
        let Ok(Message::Request { id, method, .. }) = acp_wire::parse(&row.line) else {
            return false;
        };
        if method != MESSAGE {
            return false;
        }
        let slot = self.processes.slot_of(row.host);
        match slot.map(|slot| (slot, self.call(slot, row, &id))) {
            Some((_, Ok(call))) => self.open_call(row.id, call, out),
            Some((slot, Err(error))) => {
                out.records.push(Record::InteractionGone { id: row.id });
                self.host_write(slot, build::error(&id, &error), out);
            }
            None => out.records.push(Record::InteractionGone { id: row.id }),
        }
        true
    }

    /// A client's answer to a call; whether it was one.
    pub(crate) fn call_answered(
        &mut self,
        client: ClientId,
        id: &Id,
        line: &Bytes,
        out: &mut Batch,
    ) -> bool {
        let ended = self.calls.answered(client, id, line, out);
        let was_one = ended.is_some();
        if let Some(id) = id.as_issued().filter(|_| was_one) {
            self.timers.clear(Timer::Lent(InteractionId(id)));
        }
        self.end_call(ended, out);
        was_one
    }

    /// `mcp/message` of a client: news about a call that it is working on.
    pub(crate) fn server_notified(&mut self, client: ClientId, line: &Bytes, out: &mut Batch) {
        for news in self.calls.news(client, line) {
            let Some(slot) = self.processes.slot_of(news.host) else { continue };
            if !self.is_clogged(slot) && !self.store_health.is_failing() {
                self.host_write(slot, news.line, out);
            }
        }
    }

    /// `$/cancel_request` of an agent for a call; whether it was one.
    pub(crate) fn cancel_call(&mut self, host: HostId, request: &Id, out: &mut Batch) -> bool {
        let is_meant = |call: &Call| call.caller.is_agent(host, request);
        let error = ErrorObject::new(code::CANCELLED, "cancelled by the agent");
        self.withdraw_calls(is_meant, |_| error.clone(), out)
    }

    /// Fails the calls to a client that does not return.
    pub(crate) fn calls_of_gone(&mut self, client: ClientId, out: &mut Batch) {
        self.withdraw_calls(|call| call.client == client, |call| gone(&call.label), out);
    }

    /// A session is deleted, and its servers with it.
    pub(crate) fn calls_of_deleted(&mut self, key: SessionKey, out: &mut Batch) {
        let Some(list) = self.session(key).mcp_servers.clone() else { return };
        let error = ErrorObject::new(code::INTERNAL, "the session was deleted");
        let is_meant = |call: &Call| find(&list, call.server.number).is_some();
        self.withdraw_calls(is_meant, |_| error.clone(), out);
    }

    /// The process that called is gone.
    pub(crate) fn drop_calls(&mut self, host: HostId, out: &mut Batch) {
        let clients = &self.clients;
        let is_there = |client| clients.get(&client).is_some_and(Client::is_back);
        self.calls.drop_caller(|caller| caller.of_host() == Some(host), is_there, out);
    }

    /// Answers calls with an error; whether there was one.
    fn withdraw_calls(
        &mut self,
        is_meant: impl Fn(&Call) -> bool,
        error: impl Fn(&Call) -> ErrorObject,
        out: &mut Batch,
    ) -> bool {
        let meant = self.calls.which(is_meant);
        for id in &meant {
            self.withdraw_call(*id, &error, out);
        }
        !meant.is_empty()
    }

    fn withdraw_call(
        &mut self,
        id: InteractionId,
        error: impl Fn(&Call) -> ErrorObject,
        out: &mut Batch,
    ) {
        let clients = &self.clients;
        let is_there = |client| clients.get(&client).is_some_and(Client::is_back);
        let ended = self.calls.withdraw(id, error, is_there, out);
        self.end_call(ended, out);
    }
}
