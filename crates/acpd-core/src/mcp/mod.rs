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

use acp_wire::{Id, Message, locate, remove_member, splice};
use bytes::Bytes;
use serde_json::json;

use crate::profile::McpServer;

/// How a line with names begins. No client can have this written for it: the lines of the methods that
/// bring servers are always made here.
const MARK: &[u8] = b"{\"_acpd\":{\"mcp\":";

/// The methods that bring servers to an agent.
const METHODS: [&str; 4] = ["session/new", "session/load", "session/resume", "session/fork"];

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

/// Puts the names of servers before the other members of a line that acpd has made.
pub(crate) fn put_names(line: &Bytes, brought: &Brought) -> Bytes {
    let Brought { names, session } = brought;
    if names.is_empty() {
        return line.clone();
    }
    let mut own = json!({ "mcp": names });
    if let Some(session) = session {
        own["session"] = json!(session);
    }
    let member = format!("\"_acpd\":{own},");
    splice(line, &[(1..1, member.as_bytes())])
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

impl McpServer {
    pub(crate) fn applies_to(&self, cwd: &str) -> bool {
        self.workspace.as_ref().is_none_or(|workspaces| workspaces.contain(cwd))
    }

    /// Why an agent that does not take it does not get it.
    pub(crate) fn refusal(&self, agent: &str) -> String {
        format!("agent `{agent}` does not take servers of type `{}`", self.kind)
    }
}
