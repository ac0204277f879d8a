//! Lists of MCP servers: of the params of a session, and as a session keeps them.
//!
//! Servers of two clients with the same id must stay two servers for an agent, so it gets ids of acpd's
//! (`acpd-1-7`). In the session's list of servers that number, the number of the client and the client's id
//! ([`LentServer`]) replace the client's `serverId`. So the owner of a server is on disk without a table
//! of its own, and another client can take over from one that is gone. Servers that the agent does not take
//! are kept as well: tools of acpd ask them (`_acpd/mcp/call`).

use acp_wire::{locate, set_member, splice, str_at};
use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;

use crate::ids::{ClientId, InteractionId};

/// A client that has servers, as its connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lender {
    /// Without a connection; it may come back.
    Away,
    /// Connected, without the lines that it missed.
    Returning,
    Here(ClientId),
}

/// Finds the client with a number, if it is connected or may come back.
pub(crate) type Lenders<'a> = &'a dyn Fn(u64) -> Option<Lender>;

/// A server in a client, as it is declared to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LentServer {
    /// Id of the server for the agent; never reused.
    pub(crate) number: u64,
    /// The client that has it.
    pub(crate) client: u64,
    /// As that client calls it.
    pub(crate) id: String,
    /// As people call it.
    pub(crate) label: String,
}

impl LentServer {
    /// Reads a member of a session's list; `None` for a server that is in no client.
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

    /// Replacement for the client's id in a session's list.
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

/// Joins servers to a list.
pub(crate) fn array(items: &[Bytes]) -> Bytes {
    [b"[", &items.join(&b","[..])[..], b"]"].concat().into()
}

/// Returns a list of servers in which each that lives in a client is replaced by what `with` returns, or
/// left out.
pub(crate) fn each(list: &Bytes, mut with: impl FnMut(&Bytes) -> Option<Bytes>) -> Bytes {
    let items = items(list);
    if !items.iter().any(is_in_client) {
        return list.clone();
    }
    let start = |item: &Bytes| item.as_ptr() as usize - list.as_ptr() as usize;
    let mut out = list[..start(&items[0])].to_vec();
    // The end of the item before, if one stays: the text between two items stays as well.
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

/// Returns the servers in a session's list that live in clients.
pub(crate) fn lent(list: &Bytes) -> Vec<LentServer> {
    items(list).iter().filter_map(LentServer::of).collect()
}

/// Finds the server that an agent knows by this name.
pub(crate) fn find(lists: impl Iterator<Item = Bytes>, name: &str) -> Option<LentServer> {
    let mark = format!("\"{}:", name.strip_prefix("acpd-")?);
    // Most sessions have no such list, and it may be long.
    let mut lists = lists.filter(|list| String::from_utf8_lossy(list).contains(&mark));
    lists.find_map(|list| lent(&list).into_iter().find(|server| server.name() == name))
}

/// The params of a session as the agent gets them, with those servers that `has` has.
pub(crate) fn told(params: &Bytes, mut has: impl FnMut(&LentServer) -> bool) -> Bytes {
    let Some(kept) = list(params) else { return params.clone() };
    let told = each(&kept, |item| match server_id(item) {
        // No server, so not our business.
        None => Some(item.clone()),
        Some(_) => {
            let server = LentServer::of(item).filter(&mut has)?;
            Some(with_id(item, &["serverId"], &server.name()))
        }
    });
    with_list(params, &told)
}

/// Returns the params to restore a session with, without servers whose client is not connected, and sentences
/// about these. No server is in them if the agent takes none.
pub(crate) fn told_again(
    params: &Bytes,
    takes: bool,
    lenders: Lenders<'_>,
) -> (Bytes, Vec<String>) {
    let mut left_out = Vec::new();
    let params = told(params, |server| {
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

/// The params of a session as its client had sent them.
pub(crate) fn undeclared(params: &Bytes) -> Bytes {
    let Some(kept) = list(params) else { return params.clone() };
    let own = each(&kept, |item| match LentServer::of(item) {
        None => Some(item.clone()),
        Some(server) => Some(with_id(item, &["serverId"], &server.id)),
    });
    with_list(params, &own)
}

/// A session's servers as the client with this number would declare them for another session: without those
/// that live in other clients.
pub(crate) fn as_declared(kept: &Bytes, client: u64) -> Bytes {
    each(kept, |item| {
        let own = LentServer::of(item).filter(|server| server.client == client)?;
        Some(with_id(item, &["serverId"], &own.id))
    })
}

/// Gives the client with this number the servers of a session that it knows by names of its own, if the client
/// that had them is not connected. Returns the new list and the numbers of those servers, unless there are none.
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
