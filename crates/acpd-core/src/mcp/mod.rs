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
//!
//! Lists of MCP servers are in a session's params, and kept with the session. Two clients may have
//! servers with the same id, so the agent gets acpd's ids (`acpd-1-7`). In a session's list,
//! `serverId` holds acpd's number, the client's number and the client's id (`LentServer`). So the
//! owner is on disk, and another client can replace an absent one. The list also keeps servers that
//! the agent does not take, because acpd's tools call them (`_acpd/mcp/call`).

pub(crate) mod client_servers;

use acp_wire::acp::AgentCapabilities;
use acp_wire::{Id, Message, locate, remove_member, set_member, splice, str_at};
use acpd_api::{McpInfo, McpKind};
use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::ids::{ClientId, IdSource, InteractionId};
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
pub(crate) fn put_names(line: &Bytes, brought: &Brought, typed: bool) -> Bytes {
    let Brought { names, session } = brought;
    let line = without_own(line);
    if names.is_empty() {
        return line;
    }
    let mut own = json!({ "mcp": names });
    if let Some(session) = session {
        own["session"] = json!(session);
    }
    if typed {
        own["typed"] = json!(true);
    }
    let member = format!("\"_acpd\":{own},");
    splice(&line, &[(1..1, member.as_bytes())])
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub names: Vec<String>,
    pub session: Option<u64>,
    /// Each server has to say its type.
    pub typed: bool,
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
            let typed = locate(line, &["_acpd", "typed"]).is_some();
            Some(Named {
                names,
                session,
                typed,
                request: id,
                line: remove_member(line, &["_acpd"]),
            })
        }
        _ => None,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lender {
    /// Without a connection; may reconnect.
    Away,
    /// Connected, but the missed lines are not sent yet.
    Returning,
    Here(ClientId),
}

/// Finds the client with a number, if it is connected or may reconnect.
pub(crate) type Lenders<'a> = &'a dyn Fn(u64) -> Option<Lender>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LentServer {
    /// Id for the agent; never reused.
    pub(crate) number: u64,
    pub(crate) client: u64,
    pub(crate) id: String,
    /// The client's name for people.
    pub(crate) label: String,
}

impl LentServer {
    /// Returns `None` if no client has the server.
    pub(crate) fn of(item: &Bytes) -> Option<LentServer> {
        let kept = server_id(item).filter(|_| is_in_client(item))?;
        let mut parts = kept.splitn(3, ':');
        Some(LentServer {
            number: InteractionId::parse(parts.next()?)?.0,
            client: parts.next()?.parse().ok()?,
            id: parts.next()?.to_owned(),
            label: label(item),
        })
    }

    pub(crate) fn name(&self) -> String {
        format!("acpd-{}", InteractionId(self.number).text())
    }

    /// Returns the `serverId` in a session's list.
    pub(crate) fn kept(&self) -> String {
        format!("{}:{}:{}", InteractionId(self.number).text(), self.client, self.id)
    }

    pub(crate) fn is_connected(&self, lenders: Lenders<'_>) -> bool {
        !matches!(lenders(self.client), None | Some(Lender::Away))
    }
}

pub(crate) fn label(item: &[u8]) -> String {
    str_at(item, &["name"]).unwrap_or_default().into_owned()
}

pub(crate) fn list(params: &Bytes) -> Option<Bytes> {
    locate(params, &["mcpServers"]).map(|range| params.slice(range))
}

pub(crate) fn with_list(params: &Bytes, list: &[u8]) -> Bytes {
    match locate(params, &["mcpServers"]) {
        Some(range) if params[range.clone()] != *list => splice(params, &[(range, list)]),
        _ => params.clone(),
    }
}

pub(crate) fn server_id(item: &[u8]) -> Option<String> {
    str_at(item, &["serverId"]).map(std::borrow::Cow::into_owned)
}

pub(crate) fn with_id(item: &Bytes, path: &[&str], id: &str) -> Bytes {
    set_member(item, path, json!(id).to_string().as_bytes())
}

pub(crate) fn is_in_client(item: &Bytes) -> bool {
    str_at(item, &["type"]).as_deref() == Some("acp")
}

pub(crate) fn items(list: &Bytes) -> Vec<Bytes> {
    let items = serde_json::from_slice::<Vec<&RawValue>>(list).unwrap_or_default();
    items.iter().map(|item| list.slice_ref(item.get().as_bytes())).collect()
}

pub(crate) fn array(items: &[Bytes]) -> Bytes {
    [b"[", &items.join(&b","[..])[..], b"]"].concat().into()
}

/// Replaces or removes the servers that clients have.
pub(crate) fn each(list: &Bytes, mut with: impl FnMut(&Bytes) -> Option<Bytes>) -> Bytes {
    let items = items(list);
    if !items.iter().any(is_in_client) {
        return list.clone();
    }
    let start = |item: &Bytes| item.as_ptr() as usize - list.as_ptr() as usize;
    let mut out = list[..start(&items[0])].to_vec();
    // The end of the previous item, and whether that item stays: then the text between them stays.
    let (mut before, mut stays) = (start(&items[0]), false);
    for item in &items {
        let new = if is_in_client(item) { with(item) } else { Some(item.clone()) };
        if let Some(new) = new {
            out.extend_from_slice(if stays { &list[before..start(item)] } else { b"" });
            out.extend_from_slice(&new);
            stays = true;
        }
        before = start(item) + item.len();
    }
    out.extend_from_slice(&list[before..]);
    out.into()
}

pub(crate) fn lent(list: &Bytes) -> Vec<LentServer> {
    items(list).iter().filter_map(LentServer::of).collect()
}

pub(crate) fn find(lists: impl Iterator<Item = Bytes>, name: &str) -> Option<LentServer> {
    let mark = format!("\"{}:", name.strip_prefix("acpd-")?);
    // Most sessions have no such list, and a list may be long.
    let mut lists = lists.filter(|list| String::from_utf8_lossy(list).contains(&mark));
    lists.find_map(|list| lent(&list).into_iter().find(|server| server.name() == name))
}

/// Returns the params for the agent, with the clients' servers that `has` accepts.
pub(crate) fn params_for_agent(params: &Bytes, mut has: impl FnMut(&LentServer) -> bool) -> Bytes {
    let Some(kept) = list(params) else { return params.clone() };
    let given = each(&kept, |item| match server_id(item) {
        None => Some(item.clone()),
        Some(_) => {
            let server = LentServer::of(item).filter(&mut has)?;
            Some(with_id(item, &["serverId"], &server.name()))
        }
    });
    with_list(params, &given)
}

/// Removes servers of absent clients, or of all clients if the agent takes none. Returns also
/// sentences about the removed ones.
pub(crate) fn params_for_restore(
    params: &Bytes,
    takes: bool,
    lenders: Lenders<'_>,
) -> (Bytes, Vec<String>) {
    let mut left_out = Vec::new();
    let params = params_for_agent(params, |server| {
        let is_connected = server.is_connected(lenders);
        if takes && !is_connected {
            left_out.push(format!(
                "the MCP server `{}` was left out: the client that has it is not connected",
                server.label
            ));
        }
        takes && is_connected
    });
    (params, left_out)
}

pub(crate) fn undeclared(params: &Bytes) -> Bytes {
    let Some(kept) = list(params) else { return params.clone() };
    let own = each(&kept, |item| match LentServer::of(item) {
        None => Some(item.clone()),
        Some(server) => Some(with_id(item, &["serverId"], &server.id)),
    });
    with_list(params, &own)
}

/// Returns servers as this client would declare them, without servers of other clients.
pub(crate) fn as_declared(kept: &Bytes, client: u64) -> Bytes {
    each(kept, |item| {
        let own = LentServer::of(item).filter(|server| server.client == client)?;
        Some(with_id(item, &["serverId"], &own.id))
    })
}

/// Moves the servers of an absent client to a client with servers of the same names. Returns the
/// new list and the numbers of the moved servers.
pub(crate) fn taken_over(
    kept: &Bytes,
    given: &Bytes,
    client: u64,
    lenders: Lenders<'_>,
) -> Option<(Bytes, Vec<u64>)> {
    let brought = items(given);
    let mut taken = Vec::new();
    let list = each(kept, |item| {
        let server = LentServer::of(item);
        let is_it = |other: &&Bytes| is_in_client(other) && label(other) == label(item);
        let id = brought.iter().filter(is_it).find_map(|other| server_id(other));
        let (Some(server), Some(id)) = (server, id) else { return Some(item.clone()) };
        let is_own = server.client == client;
        if (is_own && server.id == id) || (!is_own && server.is_connected(lenders)) {
            return Some(item.clone());
        }
        taken.push(server.number);
        Some(with_id(item, &["serverId"], &LentServer { client, id, ..server }.kept()))
    });
    (!taken.is_empty()).then_some((list, taken))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_a_server_is_read_as_it_was_written_and_a_clients_own_id_is_not() {
        let (id, label) = ("a:b-\"ü".to_owned(), "tools".to_owned());
        let server = LentServer { number: (3 << 32) | 7, client: u64::MAX, id, label };
        let item = |id: &str| {
            Bytes::from(json!({"type": "acp", "name": "tools", "serverId": id}).to_string())
        };
        let list = array(&[item(&server.kept())]);
        assert_eq!(lent(&list).first(), Some(&server));
        assert_eq!(find([list].into_iter(), &server.name()), Some(server));
        for other in ["", "tools", "1-2:x:y", "1-2:3", "acpd-1-2:3:y"] {
            assert_eq!(LentServer::of(&item(other)), None, "{other}");
        }
    }

    #[test]
    fn other_servers_and_what_is_between_them_stay_as_they_are() {
        let list = r#"[ {"name":"a"} ,{"type":"acp","name":"b"},  {"type":"acp"}, 7 ] "#;
        let list = Bytes::from_static(list.as_bytes());
        let changed = |keep: &str| each(&list, |item| (label(item) == keep).then(|| "x".into()));
        assert_eq!(changed("b"), r#"[ {"name":"a"} ,x, 7 ] "#);
        assert_eq!(changed(""), r#"[ {"name":"a"},  x, 7 ] "#);
        assert_eq!(changed("none"), r#"[ {"name":"a"}, 7 ] "#);
        let only = Bytes::from_static(br#"[{"type":"acp"}]"#);
        assert_eq!(each(&only, |_| None), "[]");
    }
}
