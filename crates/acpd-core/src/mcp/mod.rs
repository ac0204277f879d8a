//! MCP servers of the configuration: which of them a session gets, and how they get to the agent.
//!
//! ```text
//!  session/new, fork, load, resume ─▶ chosen here ─▶ line with names ─▶ outbox row ─▶ commit
//!                                                                                 │
//!  agent ◀── the same chunk, whole ◀── the daemon puts the servers in ◀── Write, Adopt
//! ```
//!
//! The hub knows the name, the kind and the place of a server, and nothing else of it: commands,
//! addresses and secrets stay with the daemon. A line that should bring servers has their names before its
//! other members: `{"_acpd":{"mcp":["github"]},"jsonrpc":…}`. So it is committed, and so it waits in the
//! outbox. When the line goes to its host, the daemon takes the names off ([`take_names`]), resolves the
//! references of the servers, and adds them to `params.mcpServers`. Servers that it cannot resolve come
//! back as [`crate::HostEvent::ServersLeftOut`]. A line never becomes two, and keeps its number: whether
//! it was written is known as for every other line.
//!
//! The next daemon does the same with lines that wait, and may come to other bytes (a secret was changed).
//! That shows only if a host has a part of the line from the last daemon; such a host is given up, as if
//! it had crashed, because no process can complete that line.
//!
//! The built-in server gets the session that it is lent to as a number (`session/kin.rs`), because at
//! `session/new` there is no id yet: `{"_acpd":{"mcp":["acpd"],"session":4294967299},…`.
//!
//! A client's own servers stay as they are, and one of the same name wins over that of the
//! configuration.
//!
//! Architecture invariant: what a server of the configuration refers to never comes into the hub, so it
//! can be in no record, no journal and no error.

pub(crate) mod client_servers;
pub(crate) mod server_list;

use std::collections::BTreeSet;

use acp_wire::acp::AgentCapabilities;
use acp_wire::{Id, Message, locate, remove_member, splice};
use acpd_api::{McpInfo, McpKind};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::ids::IdSource;
use crate::mcp::server_list::{LentServer, each, label, server_id, with_id};
use crate::own::without_own;
use crate::profile::{McpServer, Workspaces};

/// How a line with names begins. No client can have this written for it: the lines of the methods that
/// bring servers are always made here.
const MARK: &[u8] = b"{\"_acpd\":{\"mcp\":";

/// The methods that bring servers to an agent.
const METHODS: [&str; 4] = ["session/new", "session/load", "session/resume", "session/fork"];

/// The agent of a session with MCP servers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct McpAgent<'a> {
    /// Name of its profile.
    pub(crate) name: &'a str,
    pub(crate) capabilities: AgentCapabilities,
    /// Servers of the configuration for it.
    pub(crate) configured: &'a [McpServer],
}

impl McpAgent<'_> {
    fn takes(&self, kind: McpKind) -> bool {
        match kind {
            McpKind::Stdio => true,
            McpKind::Http => self.capabilities.mcp_http,
            McpKind::Sse => self.capabilities.mcp_sse,
        }
    }

    /// Why it does not get a server that it does not take.
    fn refusal(&self, server: &McpServer) -> String {
        format!("agent `{}` does not take servers of type `{}`", self.name, server.kind)
    }

    /// Chooses servers of the configuration for a session in `cwd`, whose client gave `params`.
    pub(crate) fn choose(&self, cwd: &str, params: &[u8]) -> Chosen {
        let own = own_names(params);
        let mut chosen = Chosen::default();
        for server in self.configured {
            let applies = server.workspace.as_ref().is_none_or(|globs| globs.contain(cwd));
            if !applies || own.contains(&server.name) {
                continue;
            }
            if self.takes(server.kind) {
                chosen.has_builtin |= server.builtin;
                chosen.names.push(server.name.clone());
            } else {
                chosen.left_out.push(left_out(&server.name, &self.refusal(server)));
            }
        }
        chosen
    }

    /// Gives the servers in a list that live in the client with this number ids of acpd's. Returns sentences
    /// about those that the agent does not get.
    pub(crate) fn declare(
        &self,
        ids: &mut IdSource,
        client: u64,
        given: &Bytes,
    ) -> (Bytes, Vec<String>) {
        let mut left_out = Vec::new();
        let takes = self.capabilities.mcp_acp;
        let declared = each(given, |item| {
            let (agent, label) = (self.name, label(item));
            if !takes {
                left_out.push(format!(
                    "the MCP server `{label}` of the client was left out: agent `{agent}` does not take servers of type `acp`"
                ));
            }
            let Some(id) = server_id(item) else { return takes.then(|| item.clone()) };
            let server = LentServer { number: ids.issue(), client, id, label };
            Some(with_id(item, &["serverId"], &server.kept()))
        });
        (declared, left_out)
    }

    /// Facts about the servers of the configuration, for an agent whose capabilities may be unknown.
    pub(crate) fn infos(&self, is_known: bool) -> Vec<McpInfo> {
        let globs = |server: &McpServer| {
            let globs = server.workspace.iter().flat_map(Workspaces::texts);
            globs.map(Into::into).collect()
        };
        let info = |server: &McpServer| McpInfo {
            name: server.name.clone().into(),
            kind: server.kind,
            workspace: globs(server),
            left_out: (is_known && !self.takes(server.kind)).then(|| self.refusal(server).into()),
        };
        self.configured.iter().map(info).collect()
    }
}

/// Returns the names of the servers that a client gave.
fn own_names(params: &[u8]) -> BTreeSet<String> {
    let servers = locate(params, &["mcpServers"]).map(|range| &params[range]);
    let servers: Vec<Value> =
        servers.and_then(|list| serde_json::from_slice(list).ok()).unwrap_or_default();
    servers.iter().filter_map(|server| server["name"].as_str().map(str::to_owned)).collect()
}

/// A sentence about a server of the configuration that an agent does not get.
pub(crate) fn left_out(server: &str, reason: &str) -> String {
    format!("the MCP server `{server}` of the configuration was left out: {reason}")
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) names: Vec<String>,
    /// One of them is the built-in one.
    pub(crate) has_builtin: bool,
    /// Servers that the agent cannot use, in sentences for people.
    pub(crate) left_out: Vec<String>,
}

/// The servers that a line is to bring.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Brought {
    pub(crate) names: Vec<String>,
    /// The number by which the built-in server is to name its session.
    pub(crate) session: Option<u64>,
}

/// Puts the names of servers before the other members of a line, which keeps none of a client's own.
pub(crate) fn put_names(line: &Bytes, brought: &Brought) -> Bytes {
    let Brought { names, session } = brought;
    let line = without_own(line);
    if names.is_empty() {
        return line;
    }
    let mut own = json!({ "mcp": names });
    if let Some(session) = session {
        own["session"] = json!(session);
    }
    let member = format!("\"_acpd\":{own},");
    splice(&line, &[(1..1, member.as_bytes())])
}

/// A line that is to bring servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub names: Vec<String>,
    /// The number by which the built-in server is to name its session.
    pub session: Option<u64>,
    /// The id of the request in the line.
    pub request: Id,
    /// The line without the names.
    pub line: Bytes,
}

/// Takes the names of servers off a line that is to bring some; nothing for all other lines.
pub fn take_names(line: &Bytes) -> Option<Named> {
    if !line.starts_with(MARK) {
        return None;
    }
    match acp_wire::parse(line) {
        Ok(Message::Request { id, method, .. }) if METHODS.contains(&method.as_ref()) => {
            let names = serde_json::from_slice(&line[locate(line, &["_acpd", "mcp"])?]).ok()?;
            let session = locate(line, &["_acpd", "session"]);
            let session = session.and_then(|at| serde_json::from_slice(&line[at]).ok());
            Some(Named { names, session, request: id, line: remove_member(line, &["_acpd"]) })
        }
        _ => None,
    }
}
