//! MCP servers that live in a client, as they are in the list of servers of a session; the diagram is in
//! `hub/services/client_mcp.rs`.

use acp_wire::{locate, set_member, splice, str_at};
use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;

use crate::ids::InteractionId;

/// The method by which agents and servers speak.
pub(crate) const MESSAGE: &str = "mcp/message";

/// A server, as it is declared to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Server {
    /// Id of the server for the agent; never reused.
    pub(crate) number: u64,
    /// The client that has it.
    pub(crate) client: u64,
    /// As that client calls it.
    pub(crate) id: String,
}

impl Server {
    pub(crate) fn name(&self) -> String {
        format!("acpd-{}", InteractionId(self.number).text())
    }

    pub(crate) fn number_in(name: &str) -> Option<u64> {
        InteractionId::parse(name.strip_prefix("acpd-")?).map(|number| number.0)
    }

    /// Replacement for the client's id in a session's list.
    pub(crate) fn kept(&self) -> String {
        format!("{}:{}:{}", InteractionId(self.number).text(), self.client, self.id)
    }

    pub(crate) fn read(kept: &str) -> Option<Server> {
        let mut parts = kept.splitn(3, ':');
        let number = InteractionId::parse(parts.next()?)?.0;
        Some(Server { number, client: parts.next()?.parse().ok()?, id: parts.next()?.to_owned() })
    }
}

/// The params of a session, with the servers of its client declared.
pub(crate) struct Declared {
    pub(crate) params: Bytes,
    /// Servers that the agent cannot use, in sentences for people.
    pub(crate) left_out: Vec<String>,
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

/// Returns a list of servers in which each that lives in a client is replaced by what `with` returns, or
/// left out.
pub(crate) fn each(list: &Bytes, mut with: impl FnMut(&Bytes) -> Option<Bytes>) -> Bytes {
    let items = items(list);
    if !items.iter().any(is_in_client) {
        return list.clone();
    }
    let start = |item: &Bytes| item.as_ptr() as usize - list.as_ptr() as usize;
    let mut out = list[..start(&items[0])].to_vec();
    // Where the item before ends, if there is one that stays: what is between two stays as well.
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

/// The params of a session as the agent gets them, with those servers that `has` has.
pub(crate) fn told(params: &Bytes, mut has: impl FnMut(&Server, &Bytes) -> bool) -> Bytes {
    let Some(kept) = list(params) else { return params.clone() };
    let told = each(&kept, |item| match server_id(item) {
        // No server, so not our business.
        None => Some(item.clone()),
        Some(kept) => {
            let server = Server::read(&kept).filter(|server| has(server, item))?;
            Some(with_id(item, &["serverId"], &server.name()))
        }
    });
    with_list(params, &told)
}

/// The params of a session as its client had sent them.
pub(crate) fn undeclared(params: &Bytes) -> Bytes {
    let Some(kept) = list(params) else { return params.clone() };
    let own = each(&kept, |item| match server_id(item).and_then(|kept| Server::read(&kept)) {
        None => Some(item.clone()),
        Some(server) => Some(with_id(item, &["serverId"], &server.id)),
    });
    with_list(params, &own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_a_server_is_read_as_it_was_written_and_a_clients_own_id_is_not() {
        let server = Server { number: (3 << 32) | 7, client: u64::MAX, id: "a:b-\"ü".to_owned() };
        assert_eq!(Server::read(&server.kept()), Some(server.clone()));
        assert_eq!(Server::number_in(&server.name()), Some(server.number));
        for other in ["", "tools", "1-2:x:y", "1-2:3", "acpd-1-2:3:y"] {
            assert_eq!(Server::read(other), None, "{other}");
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
