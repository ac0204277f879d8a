//! Requests to the agent.

use bytes::Bytes;

use super::options::Options;
use crate::dialect::objects::{convert_items, quoted, rename, value_at, with_default};
use crate::{remove_member, set_member, str_at};

/// Converts a request of the engine. `options`: those of its session.
pub(super) fn to_v2(method: &str, line: &Bytes, options: Option<&Options>) -> Bytes {
    let named = |name: &str, line: &Bytes| set_member(line, &["method"], quoted(name).as_bytes());
    match method {
        "authenticate" => named("auth/login", line),
        "logout" => named("auth/logout", line),
        "session/new" | "session/fork" | "session/resume" => setup_to_v2(line),
        "session/load" => {
            let line = set_member(line, &["params", "replayFrom"], b"{\"type\":\"start\"}");
            named("session/resume", &setup_to_v2(&line))
        }
        "session/set_mode" => {
            let id = options.map_or("mode", Options::mode_id);
            named("session/set_config_option", &selection(line, "modeId", id))
        }
        "session/set_model" => {
            let id = options.map_or("model", Options::model_id);
            named("session/set_config_option", &selection(line, "modelId", id))
        }
        "session/set_config_option" => with_default(line, &["params", "type"], "\"id\""),
        _ => line.clone(),
    }
}

fn selection(line: &Bytes, member: &str, option: &str) -> Bytes {
    let Some(params) = value_at(line, &["params"]) else { return line.clone() };
    let params = rename(&params, member, "value");
    let params = set_member(&params, &["configId"], quoted(option).as_bytes());
    set_member(line, &["params"], &set_member(&params, &["type"], b"\"id\""))
}

/// Gives each MCP server in a request its type. Version 2 has no SSE.
pub fn with_server_types(line: &Bytes) -> Bytes {
    convert_items(line, &["params", "mcpServers"], |server| {
        let server = with_default(server, &["type"], "\"stdio\"");
        (str_at(&server, &["type"])? != "sse").then_some(server)
    })
}

fn setup_to_v2(line: &Bytes) -> Bytes {
    let line = with_server_types(line);
    // They are set when the session is open.
    remove_member(&line, &["params", "configOptions"])
}
