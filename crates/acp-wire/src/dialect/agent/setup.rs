//! `initialize`, the answers that open a session, and the lists in them.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::dialect::objects::{
    convert_items, is_null, items_at, members, object_at, object_of, quoted, rename, value_at,
    with_default,
};
use crate::scan::json::is_key;
use crate::version::Version;
use crate::{count_at, remove_member, set_member, str_at};

/// Adds what an agent of version 2 reads to the `initialize` params of version 1. An agent that knows
/// only version 1 reads its own members.
pub fn ask_version_2(params: &mut Value) {
    params["protocolVersion"] = json!(2);
    params["info"] = params["clientInfo"].clone();
    params["capabilities"] = json!({"elicitation": {"form": {}, "url": {}}});
}

/// The version that an agent's `initialize` result (JSON object) is of, and the result as version 1
/// has it.
///
/// Some agents of version 1 answer with any number that they were asked for: the members decide.
pub fn initialized_from_agent(result: &Bytes) -> (Version, Bytes) {
    let session = object_at(result, &["capabilities", "session"]);
    let info = object_at(result, &["info"]);
    let (Some(session), Some(info), Some(2)) =
        (session, info, count_at(result, &["protocolVersion"]))
    else {
        let is_echo = count_at(result, &["protocolVersion"]) == Some(2)
            && object_at(result, &["agentCapabilities"]).is_some();
        let result = if is_echo { with_version_1(result) } else { result.clone() };
        return (Version::V1, result);
    };
    let login = items_at(result, &["authMethods"]).is_some_and(|methods| !methods.is_empty());
    let capabilities = value_at(result, &["capabilities"]).unwrap_or_default();
    let capabilities = capabilities_from_v2(&capabilities, &session, login);
    let without = ["info", "capabilities"];
    let result = without.iter().fold(result.clone(), |line, name| remove_member(&line, &[name]));
    let result = set_member(&with_version_1(&result), &["agentInfo"], &info);
    let result = set_member(&result, &["agentCapabilities"], &capabilities);
    (Version::V2, convert_items(&result, &["authMethods"], method_from_v2))
}

fn with_version_1(result: &Bytes) -> Bytes {
    set_member(result, &["protocolVersion"], b"1")
}

fn capabilities_from_v2(capabilities: &Bytes, session: &Bytes, login: bool) -> Bytes {
    let part = |name| flags(object_at(session, &[name]));
    let own =
        ["prompt", "mcp"].iter().fold(session.clone(), |all, name| remove_member(&all, &[name]));
    // Each agent of version 2 has these.
    let own =
        ["list", "resume", "close"].iter().fold(own, |all, name| with_default(&all, &[name], "{}"));
    let mcp = remove_member(&part("mcp"), &["stdio"]);
    let all = remove_member(capabilities, &["session"]);
    let all = set_member(&all, &["loadSession"], b"true");
    let all = set_member(&all, &["promptCapabilities"], &part("prompt"));
    let all = set_member(&all, &["mcpCapabilities"], &mcp);
    let all = set_member(&all, &["sessionCapabilities"], &own);
    if login { with_default(&all, &["auth", "logout"], "{}") } else { all }
}

/// An object is `true` in version 1.
fn flags(objects: Option<Bytes>) -> Bytes {
    let objects = objects.unwrap_or_else(|| Bytes::from_static(b"{}"));
    object_of(members(&objects).filter(|(_, value)| !is_null(value)).map(|(name, value)| {
        let is_flag = value.starts_with(b"{") && !is_key(&name, "_meta");
        (name, if is_flag { Bytes::from_static(b"true") } else { value })
    }))
}

/// A way to log in. `None`: version 1 has no such type.
fn method_from_v2(method: &Bytes) -> Option<Bytes> {
    let kind = str_at(method, &["type"]);
    if !matches!(kind.as_deref(), None | Some("agent" | "terminal")) {
        return None;
    }
    let method = rename(method, "methodId", "id");
    let Some(env) = items_at(&method, &["env"]) else { return Some(method) };
    let text = |json, name| value_at(json, &[name]).filter(|value| value.starts_with(b"\""));
    let variables =
        env.iter().filter_map(|variable| Some((text(variable, "name")?, text(variable, "value")?)));
    Some(set_member(&method, &["env"], &object_of(variables)))
}

/// The answer line that opened a session, without its commands, and these.
pub(super) fn opened_from_v2(line: &Bytes) -> (Bytes, Option<Bytes>) {
    const COMMANDS: [&str; 2] = ["result", "availableCommands"];
    let commands = items_at(line, &COMMANDS).map(|_| commands_in(line, &COMMANDS));
    let commands = commands.and_then(|line| value_at(&line, &COMMANDS));
    (remove_member(line, &COMMANDS), commands)
}

/// Converts the commands at a path; version 1 has no skills.
pub(super) fn commands_in(json: &Bytes, path: &[&str]) -> Bytes {
    convert_items(json, path, |command| {
        let is_command = str_at(command, &["type"]).is_none_or(|kind| kind == "command");
        let command = remove_member(&remove_member(command, &["type"]), &["input", "type"]);
        is_command.then_some(command)
    })
}

/// A plan: version 1 has no cancelled entries.
pub(super) fn plan_from_v2(update: &Bytes) -> Bytes {
    convert_items(update, &["plan", "entries"], |entry| {
        let is_cancelled = str_at(entry, &["status"]).is_some_and(|status| status == "cancelled");
        let done = quoted("completed");
        Some(if is_cancelled {
            set_member(entry, &["status"], done.as_bytes())
        } else {
            entry.clone()
        })
    })
}
