//! MCP servers in a client (`"type":"acp"`), which the agent reaches through acpd.
//!
//! ```text
//!  session/new, load ─▶ declared: a number for the agent, and the client that has it ─▶ kept with the session
//!
//!  mcp/message of the agent ─▶ its client is here, or comes back ─▶ asked ─▶ answered
//!     │                                                               │ gone for good, cancelled
//!     └── no client has the server ───────────────────────────────────┴────────────▶ refused
//! ```
//!
//! A call names its client by the number in the session's list ([`LentServer`]). The number
//! survives reconnects, so calls wait for an absent client.
//!
//! | Input | Handler |
//! | --- | --- |
//! | a client opens a session with servers | `on_session_opened` |
//! | call of an agent, of a tool of acpd | `on_agent_call`, `on_tool_call` |
//! | answer, notification of a client | `on_client_answer`, `on_client_notification` |
//! | a client is back | `on_client_back` |
//! | a call is cancelled or late; its caller, client or session is gone | `on_call_end` |
//!
//! Architecture invariant: an agent's call is on disk until its answer, and goes to one client
//! once; again only after a reconnect without it. A tool's call ends with the connection that made
//! it.

use std::collections::BTreeMap;

use acp_wire::bound::NAME;
use acp_wire::{ErrorObject, Id, Message, build, clipped, code, set_id, str_at};
use acpd_api::{McpCallParams, Reason, method};
use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;

use crate::cx::Cx;
use crate::event::EngineEvent;
use crate::fault::Fault;
use crate::ids::{ClientId, HostId, InteractionId, Requester, SessionKey};
use crate::mcp::{
    Lenders, LentServer, array, declare, find, is_in_client, items, label, lent, taken_over,
    with_id,
};
use crate::params::read;
use crate::record::{InteractionRow, Row, RowId};
use crate::timers::Timer;

pub(crate) const MESSAGE: &str = "mcp/message";

/// Open calls of one process to one client, and of all tools of acpd.
const OPEN: usize = 64;

/// Time for a client to answer a tool (ms).
const TOOL_TIMEOUT: u64 = 20_000;

#[derive(Debug)]
enum Caller {
    /// An agent, with its own id of the request.
    Agent(HostId, Id),
    Tool(Requester),
}

impl Caller {
    fn host(&self) -> Option<HostId> {
        match self {
            Caller::Agent(host, _) => Some(*host),
            Caller::Tool(_) => None,
        }
    }
}

#[derive(Debug)]
pub(crate) enum CallEnd<'a> {
    AgentCancel(HostId, &'a Id),
    ToolCancel(&'a Requester),
    Deadline(InteractionId),
    ClientGone(u64),
    TakenOver(u64, &'a [u64]),
    SessionDeleted(&'a [LentServer]),
    ProcessGone(HostId),
    ToolGone(ClientId),
}

impl CallEnd<'_> {
    fn is_of(&self, id: InteractionId, call: &Call) -> bool {
        match (self, &call.caller) {
            (CallEnd::AgentCancel(host, id), Caller::Agent(of, request)) => {
                host == of && *id == request
            }
            (CallEnd::ToolCancel(to), Caller::Tool(of)) => *to == of,
            (CallEnd::ProcessGone(host), Caller::Agent(of, _)) => host == of,
            (CallEnd::ToolGone(client), Caller::Tool(of)) => *client == of.client,
            (CallEnd::Deadline(late), _) => *late == id,
            (CallEnd::ClientGone(client), _) => *client == call.server.client,
            (CallEnd::TakenOver(client, servers), _) => {
                *client != call.server.client && servers.contains(&call.server.number)
            }
            (CallEnd::SessionDeleted(servers), _) => {
                servers.iter().any(|server| server.number == call.server.number)
            }
            _ => false,
        }
    }

    /// Returns the error for the caller, unless the caller is gone.
    fn error(&self, label: &str) -> Option<ErrorObject> {
        Some(match self {
            CallEnd::AgentCancel(..) => ErrorObject::new(code::CANCELLED, "cancelled by the agent"),
            CallEnd::ToolCancel(_) => ErrorObject::new(code::CANCELLED, "cancelled by the client"),
            CallEnd::Deadline(_) => {
                let text =
                    format!("the client did not answer for its MCP server `{label}` in time");
                ErrorObject::new(code::INTERNAL, text)
            }
            CallEnd::ClientGone(_) | CallEnd::TakenOver(..) => client_gone(label),
            CallEnd::SessionDeleted(_) => {
                ErrorObject::new(code::INTERNAL, "the session was deleted")
            }
            CallEnd::ProcessGone(_) | CallEnd::ToolGone(_) => return None,
        })
    }
}

#[derive(Debug)]
struct Call {
    caller: Caller,
    line: Bytes,
    server: LentServer,
}

impl Call {
    fn of_agent(
        lenders: Lenders<'_>,
        lists: impl Iterator<Item = Bytes>,
        (host, id): (HostId, Id),
        line: &Bytes,
    ) -> Result<Call, ErrorObject> {
        let name = str_at(line, &["params", "serverId"]).ok_or_else(|| {
            ErrorObject::new(code::INVALID_PARAMS, "`serverId` is missing or no text")
        })?;
        let server = find(lists, &name).ok_or_else(|| {
            let text = format!("no session of this agent has an MCP server `{name}` in a client");
            ErrorObject::new(code::NOT_FOUND, text)
        })?;
        lenders(server.client).ok_or_else(|| client_gone(&server.label))?;
        Ok(Call { caller: Caller::Agent(host, id), line: line.clone(), server })
    }

    fn ask(&self, id: InteractionId) -> EngineEvent {
        let line = with_id(&self.line, &["params", "serverId"], &self.server.id);
        EngineEvent::LenderAsked {
            client: self.server.client,
            line: set_id(&line, &Id::issued(id.0)),
        }
    }

    fn answered(self, line: &Bytes) -> EngineEvent {
        match self.caller {
            Caller::Agent(host, id) => EngineEvent::AgentAnswered { host, line: set_id(line, &id) },
            Caller::Tool(to) => {
                let line = set_id(line, &to.id);
                EngineEvent::ClientAnswered { to, line }
            }
        }
    }
}

fn client_gone(label: &str) -> ErrorObject {
    let text = format!("the client that has the MCP server `{label}` is gone");
    ErrorObject::new(code::NOT_FOUND, text)
}

#[derive(Debug)]
pub(crate) struct OpenedSession<'a> {
    pub(crate) key: SessionKey,
    /// Name of the agent, and whether it takes servers of clients.
    pub(crate) agent: (&'a str, bool),
    /// A process has the session, or is getting it.
    pub(crate) is_held: bool,
    pub(crate) servers: Bytes,
    pub(crate) client: u64,
    /// The client does not run under an agent.
    pub(crate) is_trusted: bool,
    pub(crate) may_control: bool,
}

/// # Errors
/// When the params are invalid, or the method is not for tools.
pub(crate) fn tool_call(params: Option<&RawValue>) -> Result<McpCallParams, Fault> {
    let params: McpCallParams = read(params)?;
    if ["tools/list", "tools/call"].contains(&params.method.as_str()) {
        return Ok(params);
    }
    let text = format!("`{}` calls only `tools/list` and `tools/call`", method::MCP_CALL);
    Err(Fault::invalid(text))
}

#[derive(Debug, Default)]
pub(crate) struct ClientServers {
    open: BTreeMap<InteractionId, Call>,
}

impl ClientServers {
    /// A server replaces its namesake. A process gets no servers after its session. Returns the
    /// names of ignored servers.
    pub(crate) fn on_session_opened(
        &mut self,
        cx: &mut Cx,
        lenders: Lenders<'_>,
        session: &OpenedSession<'_>,
        given: &Bytes,
    ) -> Vec<String> {
        let OpenedSession { key, client, is_held, is_trusted, .. } = *session;
        let mut kept = session.servers.clone();
        let taken = taken_over(&kept, given, client, lenders).filter(|_| is_trusted);
        if let Some((list, taken)) = taken {
            kept = list;
            cx.report(EngineEvent::ServersChanged { session: key, servers: kept.clone() });
            self.on_call_end(cx, &CallEnd::TakenOver(client, &taken));
        }
        let mut known = items(&kept);
        let namesake = |item: &Bytes| known.iter().position(|other| label(other) == label(item));
        let json = |item: &Bytes| serde_json::from_slice::<serde_json::Value>(item).ok();
        let is_known = |item: &Bytes| {
            namesake(item).is_some_and(|at| match LentServer::of(&known[at]) {
                _ if !is_in_client(item) => json(&known[at]) == json(item),
                server => is_trusted || server.is_some_and(|server| server.client == client),
            })
        };
        let mut brought = items(given);
        brought.retain(|item| !label(item).is_empty() && !is_known(item));
        let names: Vec<String> = brought.iter().map(|item| label(item)).collect();
        if brought.is_empty() || !is_trusted || !session.may_control {
            return names;
        }
        if is_held {
            // The process does not get these servers, but acpd's tools can call them.
            brought.retain(|item| is_in_client(item) && namesake(item).is_none());
        }
        let (declared, left_out) = declare(&mut cx.ids, session.agent, client, &array(&brought));
        for server in items(&declared) {
            match known.iter().position(|other| label(other) == label(&server)) {
                Some(at) => known[at] = server,
                None => known.push(server),
            }
        }
        if !brought.is_empty() {
            let warning =
                |text| EngineEvent::SessionNoticed { session: key, severity: "warning", text };
            cx.report_all(left_out.into_iter().filter(|_| !is_held).map(warning));
            cx.report(EngineEvent::ServersChanged { session: key, servers: array(&known) });
        }
        if is_held { names } else { Vec::new() }
    }

    /// Handles `mcp/message`, for a server in one of the lists. `is_new`: `false` for a call of the
    /// last daemon.
    pub(crate) fn on_agent_call(
        &mut self,
        cx: &mut Cx,
        lenders: Lenders<'_>,
        lists: impl Iterator<Item = Bytes>,
        row: InteractionRow,
        is_new: bool,
    ) {
        let Ok(Message::Request { id: request, .. }) = acp_wire::parse(&row.line) else { return };
        let (id, host) = (row.id, row.host);
        let call = Call::of_agent(lenders, lists, (host, request.clone()), &row.line);
        match call.and_then(|call| self.check_room(&call).map(|()| call)) {
            Ok(call) => {
                if is_new {
                    cx.out.durable = true;
                    cx.put(Row::Interaction(row));
                }
                self.open(cx, id, call);
            }
            Err(error) => {
                if !is_new {
                    cx.delete(RowId::Interaction(id));
                }
                let line = build::error(&request, &error);
                cx.answer(host, line);
            }
        }
    }

    /// Handles `_acpd/mcp/call`.
    pub(crate) fn on_tool_call(
        &mut self,
        cx: &mut Cx,
        lenders: Lenders<'_>,
        to: &Requester,
        params: &McpCallParams,
        (session, servers): (SessionKey, &Bytes),
    ) -> Result<(), Fault> {
        let McpCallParams { server: wanted, method, params, .. } = params;
        let mut lent = lent(servers).into_iter();
        let server = lent.find(|it| it.label == *wanted && it.is_connected(lenders));
        let server = server.ok_or_else(|| {
            let text = format!("no client that is connected lends the session a server `{wanted}`");
            Fault::new(Reason::Invalid, text).with_code(code::NOT_FOUND)
        })?;
        let id = InteractionId(cx.ids.issue());
        let message = json!({
            "serverId": server.id,
            "requestId": format!("acpd-{}", id.text()),
            "method": method,
            "params": params,
        });
        let line = build::request(&Id::issued(id.0), MESSAGE, &message);
        let call = Call { caller: Caller::Tool(to.clone()), line, server };
        self.check_room(&call).map_err(|error| Fault::new(Reason::TooMany, error.message))?;
        if method == "tools/call" {
            let given = params.as_ref().map_or("", |params| params.get());
            let tool = str_at(given.as_bytes(), &["name"]).unwrap_or_default();
            let (tool, label) = (clipped(&tool, NAME), clipped(&call.server.label, NAME));
            let text = format!("a tool of the agent called `{tool}` of the MCP server `{label}`");
            cx.report(EngineEvent::SessionNoticed { session, severity: "info", text });
        }
        self.open(cx, id, call);
        cx.timers.set(Timer::Lent(id), cx.now.after(TOOL_TIMEOUT));
        Ok(())
    }

    fn check_room(&self, call: &Call) -> Result<(), ErrorObject> {
        let same = |open: &&Call| {
            open.server.client == call.server.client && open.caller.host() == call.caller.host()
        };
        if self.open.values().filter(same).count() >= OPEN {
            let text = format!("{OPEN} calls of MCP servers of this client are open already");
            return Err(ErrorObject::new(code::INTERNAL, text));
        }
        Ok(())
    }

    /// Sends a new call to its client now or after the reconnect.
    fn open(&mut self, cx: &mut Cx, id: InteractionId, call: Call) {
        cx.report(call.ask(id));
        self.open.insert(id, call);
    }

    pub(crate) fn is_open(&self, id: InteractionId) -> bool {
        self.open.contains_key(&id)
    }

    pub(crate) fn on_client_back(&self, cx: &mut Cx, client: u64, has: &[Id]) {
        let has: Vec<u64> = has.iter().filter_map(Id::as_issued).collect();
        let missing = self.open.iter().filter(|(id, _)| !has.contains(&id.0));
        let its = missing.filter(|(_, call)| call.server.client == client);
        cx.report_all(its.map(|(id, call)| call.ask(*id)));
    }

    /// Returns whether the line answers a call.
    pub(crate) fn on_client_answer(
        &mut self,
        cx: &mut Cx,
        client: u64,
        id: &Id,
        line: &Bytes,
    ) -> bool {
        let Some(id) = id.as_issued().map(InteractionId) else { return false };
        let is_its = self.open.get(&id).is_some_and(|call| call.server.client == client);
        let call = if is_its { self.end(cx, id) } else { None };
        cx.report_all(call.map(|call| call.answered(line)));
        is_its
    }

    /// Handles `mcp/message` about an open call. Each process with such a call gets the line,
    /// because two sessions may share a server and agents choose any ids.
    pub(crate) fn on_client_notification(&self, cx: &mut Cx, client: u64, line: &Bytes) {
        let (server, request) = (["params", "serverId"], ["params", "requestId"]);
        let (Some(id), Some(of)) = (str_at(line, &server), str_at(line, &request)) else {
            return;
        };
        let is_about = |call: &&Call| {
            let is_it = str_at(&call.line, &request).is_some_and(|request| request == of);
            call.server.client == client && call.server.id == id && is_it
        };
        let about = self.open.values().filter(is_about);
        let news = |call: &Call| {
            let line = with_id(line, &server, &call.server.name());
            Some(EngineEvent::ProcessNotified { host: call.caller.host()?, line })
        };
        cx.report_all(about.filter_map(news));
    }

    /// Returns whether there were any calls to end.
    pub(crate) fn on_call_end(&mut self, cx: &mut Cx, why: &CallEnd<'_>) -> bool {
        let meant = self.open.iter().filter(|(id, call)| why.is_of(**id, call));
        let meant: Vec<InteractionId> = meant.map(|(id, _)| *id).collect();
        let has_any = !meant.is_empty();
        for id in meant {
            let Some(call) = self.end(cx, id) else { continue };
            // An absent client learns of the end when it reconnects with the call.
            let line = build::cancel_request(&Id::issued(id.0));
            cx.report(EngineEvent::LenderAsked { client: call.server.client, line });
            let error = why.error(&call.server.label);
            let line = error.map(|error| build::error(&Id::null(), &error));
            cx.report_all(line.map(|line| call.answered(&line)));
        }
        has_any
    }

    fn end(&mut self, cx: &mut Cx, id: InteractionId) -> Option<Call> {
        let done = self.open.remove(&id)?;
        match done.caller {
            Caller::Agent(..) => cx.delete(RowId::Interaction(id)),
            Caller::Tool(_) => cx.timers.clear(Timer::Lent(id)),
        }
        Some(done)
    }
}
