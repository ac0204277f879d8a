//! Mistakes that an editor knows, from an MCP server that the editor lends to the session (MCP in
//! the client).
//!
//! ```text
//!  _acpd/mcp/list ─▶ for each server: tools/list ─▶ a tool of a known name ─▶ tools/call ─▶ Said
//!        │ no editor lends one    │ none has such a tool             │ an error, or it took too long
//!        ▼                        ▼                                  ▼
//!      Absent                   Absent                             Failed
//! ```
//!
//! The daemon relays only to servers of this session, and waits 20 seconds for an editor.

use std::path::Path;
use std::time::{Duration, Instant};

use acp_wire::acp::file_uri;
use acpd_api::{McpCallParams, McpServerList, SessionRef, Untrusted, method};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::daemon::Daemon;
use crate::failure::Failure;
use crate::report::{line, row};

/// Tools of editors that report mistakes, in order of preference. [`Tool`] names another one.
const KNOWN: [&str; 5] =
    ["getDiagnostics", "get_diagnostics", "diagnostics", "get_file_problems", "problems"];
/// Most servers to ask for their tools.
const SERVERS: usize = 8;
/// Time for all requests together.
const TIME: Duration = Duration::from_secs(30);
/// The version of MCP with stateless requests. Older servers ignore it.
const VERSION: &str = "2026-07-28";

/// A configured tool that reports mistakes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tool {
    server: Option<String>,
    name: String,
}

impl Tool {
    pub(crate) fn named(text: &str) -> Tool {
        let (server, name) = match text.split_once('/') {
            Some((server, name)) => (Some(server.to_owned()), name),
            None => (None, text),
        };
        Tool { server, name: name.to_owned() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) server: String,
    pub(crate) tool: Option<String>,
}

#[derive(Debug)]
pub(crate) enum Lent {
    /// No editor lends such a tool.
    Absent,
    /// The `result` of `tools/call`.
    Said(Source, Value),
    Failed(Source, String),
}

/// A tool in a server's list.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    name: String,
    #[serde(default)]
    input_schema: Schema,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Schema {
    properties: Map<String, Value>,
    required: Vec<String>,
}

impl Listed {
    /// Arguments for the call: the file, in the member that the tool has for one.
    fn arguments(&self, file: Option<&Path>) -> Result<Map<String, Value>, String> {
        let mut arguments = Map::new();
        if let Some(file) = file {
            let of = |name: &&str| self.input_schema.properties.contains_key(*name);
            if of(&"uri") {
                arguments.insert("uri".to_owned(), json!(file_uri(&file.to_string_lossy())));
            } else if let Some(name) =
                ["path", "filePath", "file_path", "file"].iter().find(|n| of(n))
            {
                arguments.insert((*name).to_owned(), json!(file));
            }
        }
        let missing = self.input_schema.required.iter().find(|name| !arguments.contains_key(*name));
        match missing {
            Some(name) => Err(format!("it wants `{name}`, and `path` of a file gives none")),
            None => Ok(arguments),
        }
    }
}

/// Asks the editors of this session for mistakes with these `tools`, or with the known ones if
/// empty.
pub(crate) async fn ask(
    daemon: &Daemon,
    session: u64,
    tools: &[Tool],
    file: Option<&Path>,
) -> Lent {
    let session = SessionRef { number: Some(session), ..SessionRef::default() };
    let known = KNOWN.map(Tool::named);
    let tools = if tools.is_empty() { &known[..] } else { tools };
    let until = Instant::now() + TIME;
    // Without a daemon there are no servers.
    let list: McpServerList =
        daemon.ask(method::MCP_LIST, session.clone()).await.unwrap_or_default();
    let mut failed = None;
    for server in list.servers.iter().map(Untrusted::raw).take(SERVERS) {
        let is_of = |tool: &&Tool| tool.server.as_deref().is_none_or(|of| of == server);
        let tools: Vec<&Tool> = tools.iter().filter(is_of).collect();
        if tools.is_empty() || Instant::now() >= until {
            continue;
        }
        let source = |tool: Option<String>| Source { server: server.to_owned(), tool };
        let listed = match call(daemon, &session, server, "tools/list", Map::new()).await {
            Ok(mut listed) => serde_json::from_value(listed["tools"].take()).unwrap_or_default(),
            Err(why) => {
                failed.get_or_insert(Lent::Failed(source(None), why));
                continue;
            }
        };
        let listed: Vec<Listed> = listed;
        let named = |tool: &&Tool| listed.iter().find(|listed| listed.name == tool.name);
        let Some(tool) = tools.iter().find_map(named) else { continue };
        let source = source(Some(tool.name.clone()));
        let params = match tool.arguments(file) {
            Ok(arguments) => json!({"name": tool.name, "arguments": arguments}),
            Err(why) => return Lent::Failed(source, why),
        };
        let params = params.as_object().cloned().unwrap_or_default();
        return match call(daemon, &session, server, "tools/call", params).await {
            Ok(said) if said["isError"] == true => Lent::Failed(source, text_of(&said)),
            Ok(said) => Lent::Said(source, said),
            Err(why) => Lent::Failed(source, why),
        };
    }
    failed.unwrap_or(Lent::Absent)
}

/// Sends a request to a server. Returns its result, or the reason of a failure.
async fn call(
    daemon: &Daemon,
    session: &SessionRef,
    server: &str,
    method: &str,
    mut params: Map<String, Value>,
) -> Result<Value, String> {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientInfo": {"name": "acpd", "version": env!("CARGO_PKG_VERSION")},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    params.insert("_meta".to_owned(), meta);
    let params = RawValue::from_string(json!(params).to_string()).map_err(|e| e.to_string())?;
    let params = McpCallParams {
        session: session.clone(),
        server: server.to_owned(),
        method: method.to_owned(),
        params: Some(params),
    };
    let answer: Result<Value, Failure> = daemon.ask(method::MCP_CALL, params).await;
    let mut answer = answer.map_err(|failure| failure.message)?;
    match answer.get("error") {
        Some(error) => Err(error["message"].as_str().unwrap_or("it says no").to_owned()),
        None => Ok(answer["result"].take()),
    }
}

pub(crate) fn text_of(said: &Value) -> String {
    let content = said["content"].as_array().into_iter().flatten();
    content.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}

impl Source {
    pub(crate) fn shown(&self) -> Value {
        let safe = |text: &String| line(&text.as_str().into());
        row(json!({"server": safe(&self.server), "tool": self.tool.as_ref().map(safe)}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(schema: Value) -> Listed {
        serde_json::from_value(json!({"name": "t", "inputSchema": schema})).unwrap()
    }

    #[test]
    fn a_tool_is_called_with_the_file_as_it_wants_it() {
        let file = Some(Path::new("/w/a b/ü.rs"));
        let of = |name: &str| json!({"properties": {name: {}}, "required": [name]});
        let asked = |schema: Value, file| listed(schema).arguments(file).map(Value::Object);
        assert_eq!(asked(of("uri"), file), Ok(json!({"uri": "file:///w/a%20b/%C3%BC.rs"})));
        assert_eq!(asked(of("filePath"), file), Ok(json!({"filePath": "/w/a b/ü.rs"})));
        assert_eq!(asked(json!({}), file), Ok(json!({})));
        assert_eq!(asked(json!({"properties": {"uri": {}}}), None), Ok(json!({})));
        for (schema, file) in [(of("uri"), None), (of("project"), file)] {
            assert!(asked(schema, file).unwrap_err().starts_with("it wants `"));
        }
    }
}
