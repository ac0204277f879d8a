//! The result of `initialize`.

use bytes::Bytes;

use super::objects::{convert_items, list_of, members, object_at, object_of, rename, with_default};
use crate::{remove_member, set_member, str_at};

/// Converts an agent's `initialize` result (JSON object, version 1, as acpd completes it for clients
/// of version 1) for a client of version 2.
pub fn initialized_to_v2(result: &Bytes) -> Bytes {
    let mut info = object(result, "agentInfo");
    for (name, value) in [("name", "\"agent\""), ("version", "\"\"")] {
        info = with_default(&info, &[name], value);
    }
    let capabilities = capabilities_to_v2(&object(result, "agentCapabilities"));
    let without = without(result, &["agentInfo", "agentCapabilities"]);
    let result = set_member(&without, &["protocolVersion"], b"2");
    let result = set_member(&result, &["info"], &info);
    let result = set_member(&result, &["capabilities"], &capabilities);
    convert_items(&result, &["authMethods"], method_to_v2)
}

fn capabilities_to_v2(capabilities: &Bytes) -> Bytes {
    let part = |name| objects_of_flags(&object(capabilities, name));
    let mcp = set_member(&remove_member(&part("mcpCapabilities"), &["sse"]), &["stdio"], b"{}");
    // Each agent of version 2 has these; acpd provides them.
    let session = without(&part("sessionCapabilities"), &["list", "resume", "close"]);
    let session = set_member(&session, &["prompt"], &part("promptCapabilities"));
    let session = set_member(&session, &["mcp"], &mcp);
    let session = merged(&object(capabilities, "session"), &session);
    let moved = ["loadSession", "promptCapabilities", "mcpCapabilities", "sessionCapabilities"];
    let capabilities = remove_member(&without(capabilities, &moved), &["auth", "logout"]);
    set_member(&capabilities, &["session"], &session)
}

/// A way to log in. `None`: version 2 has no such type.
fn method_to_v2(method: &Bytes) -> Option<Bytes> {
    let method = with_default(&rename(method, "id", "methodId"), &["type"], "\"agent\"");
    str_at(&method, &["methodId"])?;
    let is_terminal = match &*str_at(&method, &["type"])? {
        "agent" => false,
        "terminal" => true,
        _ => return None,
    };
    let env = object_at(&method, &["env"]).filter(|_| is_terminal);
    let Some(env) = env else { return Some(method) };
    let variables = members(&env)
        .map(|(name, value)| object_of([("\"name\"".into(), name), ("\"value\"".into(), value)]));
    Some(set_member(&method, &["env"], &list_of(variables)))
}

/// Flags as version 2 writes them: `{}` for true, and nothing for false.
fn objects_of_flags(flags: &Bytes) -> Bytes {
    let members = members(flags).filter(|(_, value)| &value[..] != b"false");
    let is_set = |value: &Bytes| &value[..] == b"true";
    object_of(members.map(|(name, value)| (name, if is_set(&value) { "{}".into() } else { value })))
}

/// The object under a name, `{}` if there is none.
fn object(json: &Bytes, name: &str) -> Bytes {
    object_at(json, &[name]).unwrap_or_else(|| Bytes::from_static(b"{}"))
}

fn without(object: &Bytes, names: &[&str]) -> Bytes {
    names.iter().fold(object.clone(), |object, name| remove_member(&object, &[name]))
}

/// The object with the members of another one, which count first.
fn merged(object: &Bytes, more: &Bytes) -> Bytes {
    let is_new = |name: &[u8]| !members(more).any(|(other, _)| other == name);
    let kept = members(object).filter(|(name, _)| is_new(name));
    object_of(kept.chain(members(more)))
}
