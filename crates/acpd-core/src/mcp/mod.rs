//! MCP servers of the configuration: which of them a session gets, and how they get to the agent.
//!
//! ```text
//!  session/new, fork, load, resume ─▶ chosen here ─▶ line with names ─▶ outbox row ─▶ commit
//!                                                                                 │
//!  agent ◀── the same chunk, whole ◀── the daemon puts the servers in ◀── HostWrite, Adopt
//! ```
//!
//! The hub knows the name, the kind and the place of a server, and nothing else of it: commands,
//! addresses and secrets stay with the daemon. A line that is to bring servers says their names before
//! its other members: `{"_acpd":{"mcp":["github"]},"jsonrpc":…}`. So it is committed, and so it waits
//! in the outbox. At the last moment, when the line goes to its host, the daemon takes the names off
//! ([`take_names`]), finds out what the servers refer to, and adds them to `params.mcpServers`. What it
//! cannot find out comes back as [`crate::Input::ServersLeftOut`]. A line never becomes two, and keeps
//! its number: whether it was written is known as for every other line.
//!
//! The next daemon does the same again with lines that wait, and may come to other bytes (a secret was
//! changed). That shows only if a host has a part of the line from the last daemon; such a host is given
//! up, as if it had crashed, because nobody can complete that line.
//!
//! A client's own servers stay as they are, and one of the same name wins over that of the
//! configuration.
//!
//! Architecture invariant: what a server of the configuration refers to never comes into the hub, so it
//! can be in no record, no journal and no error.

use std::collections::BTreeSet;

use acp_wire::acp::AgentCapabilities;
use acp_wire::{Id, Message, locate, remove_member, splice};
use acpd_api::{McpInfo, McpKind, Untrusted};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::hub::Hub;
use crate::hub::process::slots::SlotId;
use crate::ids::{ClientId, HostId};
use crate::input::{Batch, LeftOut};
use crate::profile::{McpServer, Workspaces};
use crate::requests::Purpose;

/// How a line with names begins. No client can have this written for it: the lines of the methods that
/// bring servers are always made here.
const MARK: &[u8] = b"{\"_acpd\":{\"mcp\":";
/// The methods that bring servers to an agent.
const METHODS: [&str; 4] = ["session/new", "session/load", "session/resume", "session/fork"];

/// The servers of a session.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) names: Vec<String>,
    /// What the agent cannot use, in sentences for people.
    pub(crate) left_out: Vec<String>,
}

/// Puts the names of servers before the other members of a line that acpd has made.
pub(crate) fn put_names(line: &Bytes, names: &[String]) -> Bytes {
    if names.is_empty() {
        return line.clone();
    }
    let member = format!("\"_acpd\":{},", json!({ "mcp": names }));
    splice(line, &[(1..1, member.as_bytes())])
}

/// A line that is to bring servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The names of the servers.
    pub names: Vec<String>,
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
            Some(Named { names, request: id, line: remove_member(line, &["_acpd"]) })
        }
        _ => None,
    }
}

/// The names of the servers in the params of a client.
fn own_names(params: &[u8]) -> BTreeSet<String> {
    let servers = locate(params, &["mcpServers"]).map(|range| &params[range]);
    let servers: Vec<Value> =
        servers.and_then(|list| serde_json::from_slice(list).ok()).unwrap_or_default();
    servers.iter().filter_map(|server| server["name"].as_str().map(str::to_owned)).collect()
}

fn takes(capabilities: AgentCapabilities, kind: McpKind) -> bool {
    match kind {
        McpKind::Stdio => true,
        McpKind::Http => capabilities.mcp_http,
        McpKind::Sse => capabilities.mcp_sse,
    }
}

impl McpServer {
    fn applies_to(&self, cwd: &str) -> bool {
        self.workspace.as_ref().is_none_or(|workspaces| workspaces.contain(cwd))
    }

    /// Why an agent that does not take it does not get it.
    fn refusal(&self, agent: &str) -> String {
        format!("agent `{agent}` does not take servers of type `{}`", self.kind)
    }
}

fn sentence(server: &str, reason: &str) -> String {
    format!("the MCP server `{server}` of the configuration was left out: {reason}")
}

impl Hub {
    /// The servers of the configuration for a session in `cwd`, whose client gave `params`.
    pub(crate) fn choose_servers(&mut self, slot: SlotId, cwd: &str, params: &[u8]) -> Chosen {
        let agent = self.slots[&slot].profile.clone();
        let capabilities = self.known(&agent).capabilities;
        let own = own_names(params);
        let mut chosen = Chosen::default();
        for server in &self.profile_of(slot).mcp {
            if !server.applies_to(cwd) || own.contains(&server.name) {
                continue;
            }
            if takes(capabilities, server.kind) {
                chosen.names.push(server.name.clone());
            } else {
                chosen.left_out.push(sentence(&server.name, &server.refusal(&agent)));
            }
        }
        chosen
    }

    /// The servers of a session that an agent is asked for: those that live in the client are declared
    /// in `params`, those of the configuration are the names, and the others are left out, in
    /// sentences for people.
    pub(crate) fn gather_servers(
        &mut self,
        slot: SlotId,
        client: ClientId,
        cwd: &str,
        params: &mut Bytes,
        left_out: &mut Vec<String>,
    ) -> Vec<String> {
        let declared = self.declare_servers(slot, client, params);
        let chosen = self.choose_servers(slot, cwd, &declared.params);
        *params = declared.params;
        *left_out = [declared.left_out, chosen.left_out].concat();
        chosen.names
    }

    /// A line has gone to an agent without some of the servers that it was to bring.
    pub(crate) fn on_servers_left_out(
        &mut self,
        host: HostId,
        request: &Id,
        servers: Vec<LeftOut>,
        out: &mut Batch,
    ) {
        let texts = servers.iter().map(|left| sentence(&left.server, &left.reason));
        match self.requests.open_mut(host, request) {
            // Told when there is a session to tell it in.
            Some(Purpose::NewSession(new)) => new.notices.extend(texts),
            Some(Purpose::Adopt(adoption)) => adoption.notices.extend(texts),
            Some(Purpose::Restore { session, .. }) => {
                let key = *session;
                for text in texts {
                    self.notice(key, "warning", &text, out);
                }
                return;
            }
            // Answered or given up by now.
            _ => return,
        }
        if let Some(ask) = request.as_u64() {
            self.save_asked(ask, out);
        }
    }

    /// The servers of an agent, for people.
    pub(crate) fn mcp_infos(&self, agent: &str) -> Vec<McpInfo> {
        let profile = self.config.agents.get(agent).unwrap_or(&self.no_profile);
        let known = self.known.get(agent).filter(|known| known.row.initialize.is_some());
        let info = |server: &McpServer| McpInfo {
            name: server.name.clone().into(),
            kind: server.kind,
            workspace: texts(server.workspace.as_ref()),
            left_out: known
                .filter(|known| !takes(known.capabilities, server.kind))
                .map(|_| server.refusal(agent).into()),
        };
        profile.mcp.iter().map(info).collect()
    }
}

fn texts(globs: Option<&Workspaces>) -> Vec<Untrusted> {
    globs.into_iter().flat_map(Workspaces::texts).map(Into::into).collect()
}
