//! Requests of clients.

use std::borrow::Cow;

use bytes::Bytes;
use serde_json::json;

use super::objects::{convert_items, items_at, quoted, value_at, with_default};
use crate::build::{ErrorObject, code};
use crate::{remove_member, set_member, str_at};

/// A request of a version-2 client in acpd's own form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request<'a> {
    /// The method of version 1.
    pub method: Cow<'a, str>,
    /// The whole request.
    pub line: Bytes,
}

/// Converts a request of a version-2 client. Unknown methods pass unchanged.
///
/// # Errors
/// If version 2 forbids the request, or acpd has no such thing for an agent of version 1; the error
/// is ready to be sent.
pub fn request_from_v2<'a>(method: &'a str, line: &Bytes) -> Result<Request<'a>, ErrorObject> {
    let (name, line) = match method {
        "auth/login" => ("authenticate", line.clone()),
        "auth/logout" => ("logout", line.clone()),
        "session/new" => (method, convert_setup(line)),
        "session/resume" => convert_resume(line)?,
        "session/fork" if value_at(line, &["params", "cursorId"]).is_some() => {
            return Err(invalid("`cursorId` is not supported: a fork has the whole conversation"));
        }
        "session/fork" => (method, convert_setup(line)),
        "session/set_config_option" => (method, convert_option(line, &["params"])?),
        "session/prompt" => (method, convert_prompt(line)?),
        "session/load" | "session/set_mode" | "session/set_model" | "authenticate" | "logout" => {
            let text = format!("`{method}` is not a method of protocol version 2");
            let error = ErrorObject::new(code::METHOD_NOT_FOUND, text);
            return Err(error.with_data(&json!({ "method": method })));
        }
        _ => (method, line.clone()),
    };
    let is_renamed = name != method;
    let line =
        if is_renamed { set_member(&line, &["method"], quoted(name).as_bytes()) } else { line };
    Ok(Request { method: name.into(), line })
}

fn convert_resume(line: &Bytes) -> Result<(&'static str, Bytes), ErrorObject> {
    const FROM: [&str; 2] = ["params", "replayFrom"];
    let method = match value_at(line, &FROM) {
        None => "session/resume",
        Some(from) if str_at(&from, &["type"]).is_some_and(|kind| kind == "start") => {
            "session/load"
        }
        Some(_) => return Err(invalid("`replayFrom` must have the type `start`")),
    };
    Ok((method, convert_setup(&remove_member(line, &FROM))))
}

fn convert_setup(line: &Bytes) -> Bytes {
    const SERVERS: [&str; 2] = ["params", "mcpServers"];
    let line = with_default(line, &SERVERS, "[]");
    let line = convert_items(&line, &SERVERS, |server| Some(convert_server(server)));
    convert_items(&line, &["params", "configOptions"], |option| {
        Some(convert_option(option, &[]).unwrap_or_else(|_| option.clone()))
    })
}

/// An MCP server: version 1 has no type for stdio, and no optional lists.
fn convert_server(server: &Bytes) -> Bytes {
    let (server, lists): (_, &[&str]) = match str_at(server, &["type"]).as_deref() {
        Some("stdio") | None => (remove_member(server, &["type"]), &["args", "env"]),
        Some("http") => (server.clone(), &["headers"]),
        Some(_) => (server.clone(), &[]),
    };
    lists.iter().fold(server, |server, name| with_default(&server, &[name], "[]"))
}

/// A value of an option, in the object at a path: version 1 has no type for ids.
fn convert_option(json: &Bytes, path: &[&str]) -> Result<Bytes, ErrorObject> {
    let kind = [path, &["type"]].concat();
    match str_at(json, &kind).as_deref() {
        Some("id") => Ok(remove_member(json, &kind)),
        Some("boolean") => Ok(json.clone()),
        _ => Err(invalid("`type` must be `id` or `boolean`")),
    }
}

fn convert_prompt(line: &Bytes) -> Result<Bytes, ErrorObject> {
    const KEY: [&str; 2] = ["params", "idempotencyKey"];
    const OWN_KEY: [&str; 4] = ["params", "_meta", "_acpd", "idempotencyKey"];
    if items_at(line, &["params", "prompt"]).is_none_or(|blocks| blocks.is_empty()) {
        return Err(invalid("`prompt` must have a content block"));
    }
    Ok(match value_at(line, &KEY) {
        Some(key) => set_member(&remove_member(line, &KEY), &OWN_KEY, &key),
        None => remove_member(line, &KEY),
    })
}

fn invalid(text: &str) -> ErrorObject {
    ErrorObject::new(code::INVALID_PARAMS, text)
}
