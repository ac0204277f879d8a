//! MCP servers of the configuration: their selection for a session, and their way to the agent.
//!
//! ```text
//!  session/new, fork, load, resume ─▶ chosen here ─▶ line with names ─▶ outbox row ─▶ commit
//!                                                                                 │
//!  agent ◀── the same chunk, whole ◀── the daemon puts the servers in ◀── Write, Adopt
//! ```
//!
//! The hub knows only the name, kind and workspace of a server; commands, addresses and secrets
//! stay in the daemon. A line for a session's servers begins with their names:
//! `{"_acpd":{"mcp":["github"]},"jsonrpc":…}`. The line is committed and waits in the outbox in
//! this form. When the line goes to its process, the daemon removes the names ([`take_names`]),
//! resolves the servers' references, and adds the servers to `params.mcpServers`. Servers that the
//! daemon cannot resolve are reported with [`crate::HostEvent::ServersLeftOut`]. The line keeps its
//! number, so its outbox works as for every other line.
//!
//! The next daemon does the same with waiting lines, and may get other bytes (a secret was
//! changed). If a process has received a part of the old line, it is given up as if it had crashed,
//! because nothing can complete that line.
//!
//! At `session/new` the session has no id yet, so the built-in server gets a number for it
//! (`session/kin.rs`): `{"_acpd":{"mcp":["acpd"],"session":4294967299},…`.
//!
//! A client's own servers stay, and win over configured servers of the same name.
//!
//! Architecture invariant: the values that configured servers refer to never enter the hub, so no
//! record, journal or error holds them.

pub(crate) mod client_servers;
pub(crate) mod server_list;

use acp_wire::acp::AgentCapabilities;
use acp_wire::{Id, Message, locate, remove_member, splice};
use acpd_api::{McpInfo, McpKind};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::ids::IdSource;
use crate::mcp::server_list::{LentServer, each, label, server_id, with_id};
use crate::own::without_own;
use crate::profile::{McpServer, Workspaces};

/// Beginning of a line with names. Clients cannot forge it, because acpd makes the lines of these
/// methods.
const MARK: &[u8] = b"{\"_acpd\":{\"mcp\":";

const METHODS: [&str; 4] = ["session/new", "session/load", "session/resume", "session/fork"];

#[derive(Debug, Clone, Copy)]
pub(crate) struct McpAgent<'a> {
    pub(crate) name: &'a str,
    pub(crate) capabilities: AgentCapabilities,
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

    fn refusal(&self, server: &McpServer) -> String {
        format!("agent `{}` does not take servers of type `{}`", self.name, server.kind)
    }

    /// Chooses configured servers for a session in `cwd`. `params`: from the client.
    pub(crate) fn choose(&self, cwd: &str, params: &[u8]) -> Chosen {
        let own = locate(params, &["mcpServers"]).map(|range| &params[range]);
        let own = own.and_then(|list| serde_json::from_slice::<Vec<Value>>(list).ok());
        let own = own.unwrap_or_default();
        let mut chosen = Chosen::default();
        for server in self.configured {
            let applies = server.workspace.as_ref().is_none_or(|globs| globs.contain(cwd));
            if !applies || own.iter().any(|own| own["name"] == *server.name) {
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

    /// `is_known`: the agent's capabilities are known.
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

/// Replaces ids of a client's servers with acpd's. Returns also sentences about servers that the
/// agent does not get. `takes`: the agent takes servers of clients.
pub(crate) fn declare(
    ids: &mut IdSource,
    (agent, takes): (&str, bool),
    client: u64,
    given: &Bytes,
) -> (Bytes, Vec<String>) {
    let mut left_out = Vec::new();
    let declared = each(given, |item| {
        let label = label(item);
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

pub(crate) fn left_out(server: &str, reason: &str) -> String {
    format!("the MCP server `{server}` of the configuration was left out: {reason}")
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) names: Vec<String>,
    pub(crate) has_builtin: bool,
    /// Sentences about servers that the agent cannot use.
    pub(crate) left_out: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Brought {
    pub(crate) names: Vec<String>,
    /// Number of the session for the built-in server.
    pub(crate) session: Option<u64>,
}

/// Puts the names before the other members, and removes the client's `_acpd`.
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub names: Vec<String>,
    pub session: Option<u64>,
    pub request: Id,
    pub line: Bytes,
}

/// Removes the names of servers from a line. Returns `None` for lines without them.
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
