//! Servers of the configuration that an agent gets in a line, and notices about those left out. Called where
//! lines that bring servers are made.

use std::collections::BTreeSet;

use acp_wire::acp::AgentCapabilities;
use acp_wire::{Id, locate};
use acpd_api::{McpInfo, McpKind, Untrusted};
use bytes::Bytes;
use serde_json::Value;

use crate::hub::Hub;
use crate::ids::{ClientId, HostId, SlotId};
use crate::input::{Batch, LeftOut};
use crate::mcp::{Brought, Chosen};
use crate::profile::{McpServer, Workspaces};
use crate::requests::purpose::Purpose;
use crate::session::kin::with_number;

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

fn sentence(server: &str, reason: &str) -> String {
    format!("the MCP server `{server}` of the configuration was left out: {reason}")
}

impl Hub {
    /// The servers of the configuration for a session in `cwd`, whose client gave `params`.
    pub(crate) fn choose_servers(&self, slot: SlotId, cwd: &str, params: &[u8]) -> Chosen {
        let agent = &self.processes[&slot].profile;
        let capabilities = self.processes.known(agent).capabilities;
        let own = own_names(params);
        let mut chosen = Chosen::default();
        for server in &self.profile_of(slot).mcp {
            if !server.applies_to(cwd) || own.contains(&server.name) {
                continue;
            }
            if takes(capabilities, server.kind) {
                chosen.has_builtin |= server.builtin;
                chosen.names.push(server.name.clone());
            } else {
                chosen.left_out.push(sentence(&server.name, &server.refusal(agent)));
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
    ) -> Brought {
        let declared = self.declare_servers(slot, client, params);
        let chosen = self.choose_servers(slot, cwd, &declared.params);
        *params = declared.params;
        *left_out = [declared.left_out, chosen.left_out].concat();
        let session = chosen.has_builtin.then(|| self.ids.issue());
        if let Some(number) = session {
            *params = with_number(params, number);
        }
        Brought { names: chosen.names, session }
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
            // Kept until there is a session to show the notices in.
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
        if let Some(ask) = request.as_issued() {
            self.save_asked(ask, out);
        }
    }

    pub(crate) fn mcp_infos(&self, agent: &str) -> Vec<McpInfo> {
        let profile = self.config.profile(agent);
        let known = self.processes.known(agent);
        let lacks = |kind| known.row.initialize.is_some() && !takes(known.capabilities, kind);
        let info = |server: &McpServer| McpInfo {
            name: server.name.clone().into(),
            kind: server.kind,
            workspace: texts(server.workspace.as_ref()),
            left_out: lacks(server.kind).then(|| server.refusal(agent).into()),
        };
        profile.mcp.iter().map(info).collect()
    }
}

fn texts(globs: Option<&Workspaces>) -> Vec<Untrusted> {
    globs.into_iter().flat_map(Workspaces::texts).map(Into::into).collect()
}
