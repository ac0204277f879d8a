//! Adds MCP servers of the configuration to the line that takes them to an agent.
//!
//! This happens right before a line goes to its host, and nowhere else: the value of a reference is
//! in that line, and is stored nowhere (`acpd_core::mcp` has the whole way). Files are read on the
//! relay's thread: they are small and regular, or refused.

use std::io::Read as _;
use std::path::Path;

use acp_wire::dialect::with_server_types;
use acp_wire::{Id, locate, set_member, splice};
use acpd_api::{McpKind, Tools};
use acpd_core::LeftOut;
use acpd_core::mcp::{Named, take_names};
use acpd_sys::files::{DirError, close_command, secret_file};
use acpd_sys::paths::{Paths, beside};
use bytes::Bytes;
use serde_json::{Value as Json, json};

use crate::config::{Config, McpServer, SecretSource, Value, Values, expand_home};
use crate::environment;

/// Longest secret in a file, in bytes.
const LONGEST: u64 = 64 << 10;

/// A line with its servers. Without `Debug`: it may contain secrets.
pub struct Completed {
    pub line: Bytes,
    pub request: Id,
    /// Servers that are missing in it.
    pub left_out: Vec<LeftOut>,
}

/// Adds servers to a line that is to bring some; `None` for all other lines.
pub fn complete(config: &Config, paths: &Paths, line: &Bytes) -> Option<Completed> {
    let Named { names, session, typed, request, line } = take_names(line)?;
    let (mut found, mut left_out) = (Vec::new(), Vec::new());
    for name in names {
        let server = config.mcp.get(&name).filter(|server| server.enabled);
        let described = server.ok_or_else(|| "it is not configured any more".to_owned());
        let described = described.and_then(|server| {
            if server.builtin.is_empty() {
                return describe(server);
            }
            Ok(own_server(server, config, paths, session, &line))
        });
        match described {
            Ok(described) => found.push(described.to_string()),
            Err(reason) => left_out.push(LeftOut { server: name, reason }),
        }
    }
    let line = add(&line, &found);
    let line = if typed { with_server_types(&line) } else { line };
    Some(Completed { line, request, left_out })
}

/// Adds servers (JSON texts) after those in the line.
fn add(line: &Bytes, servers: &[String]) -> Bytes {
    let servers = servers.join(",");
    let list = locate(line, &["params", "mcpServers"]);
    let present = list.clone().map_or(&b"null"[..], |range| &line[range]);
    match (list, present) {
        _ if servers.is_empty() => line.clone(),
        (Some(range), [b'[', inside @ .., b']']) => {
            let comma = if inside.trim_ascii().is_empty() { "" } else { "," };
            let end = range.end - 1;
            splice(line, &[(end..end, format!("{comma}{servers}").as_bytes())])
        }
        (_, b"null") => {
            set_member(line, &["params", "mcpServers"], format!("[{servers}]").as_bytes())
        }
        // The agent may refuse a member of another type.
        _ => line.clone(),
    }
}

/// Returns the server as agents take it.
fn describe(server: &McpServer) -> Result<Json, String> {
    let name = &server.name;
    Ok(match (server.kind(), &server.url) {
        (kind @ (McpKind::Http | McpKind::Sse), Some(url)) => json!({
            "type": kind, "name": name, "url": url, "headers": resolve(&server.headers, is_header_value)?,
        }),
        _ => {
            let (program, args) = server.command.split_first().ok_or("it has no command")?;
            let env = resolve(&server.env, |text| !text.contains('\0'))?;
            json!({ "name": name, "command": expand_home(program), "args": args, "env": env })
        }
    })
}

/// Returns acpd's own server: the program next to this one, else the one that the agent finds. It
/// uses this daemon, and never starts one from an agent's environment. `line` belongs to its
/// session.
fn own_server(
    server: &McpServer,
    config: &Config,
    paths: &Paths,
    session: Option<u64>,
    line: &[u8],
) -> Json {
    let program = beside("acpctl-mcp");
    let mut args = vec!["--no-spawn".to_owned(), "--tools".to_owned(), server.tools()];
    // The server names its session by this number.
    args.extend(
        session.into_iter().flat_map(|number| ["--session".to_owned(), number.to_string()]),
    );
    args.extend(server.answer.then(|| "--answer".to_owned()));
    if server.builtin.contains(&Tools::Workspace) {
        let folders = folders(line);
        let lines = folders.first().map_or(&[][..], |cwd| config.diagnostics(Path::new(cwd)));
        // In one word, so that a folder that begins with `-` is no argument of the server.
        args.extend(folders.iter().map(|folder| format!("--folder={folder}")));
        args.extend(lines.iter().map(|line| format!("--diagnostics={line}")));
    }
    let places = [("ACPD_RUNTIME_DIR", &paths.runtime), ("ACPD_STATE_DIR", &paths.state)];
    let env = places.map(|(name, place)| json!({ "name": name, "value": place }));
    json!({ "name": server.name, "command": program, "args": args, "env": env })
}

/// Returns the folders of a session, its working directory first.
fn folders(line: &[u8]) -> Vec<String> {
    let member = |name| locate(line, &["params", name]).map(|at| &line[at]);
    let cwd = member("cwd").and_then(|cwd| serde_json::from_slice::<String>(cwd).ok());
    let more = member("additionalDirectories");
    let more = more.and_then(|more| serde_json::from_slice::<Vec<String>>(more).ok());
    cwd.into_iter().chain(more.unwrap_or_default()).collect()
}

fn is_header_value(text: &str) -> bool {
    !text.contains(|c: char| c.is_control() && c != '\t')
}

fn resolve(values: &Values, is_usable: fn(&str) -> bool) -> Result<Vec<Json>, String> {
    let one = |(name, value): (&String, &Value)| {
        let text = look_up(value)?;
        if !is_usable(&text) {
            return Err(format!("the value of `{name}` holds a character that is not allowed"));
        }
        Ok(json!({ "name": name, "value": text }))
    };
    values.iter().map(one).collect()
}

/// Returns the text of a value. The error names the reference.
fn look_up(value: &Value) -> Result<String, String> {
    let (source, prefix) = match value {
        Value::Text(text) => return Ok(text.clone()),
        Value::Reference { source, prefix } => (source, prefix),
    };
    let text = match source {
        SecretSource::Env(name) => read_variable(name)?,
        SecretSource::File(path) => read_secret(path)?,
    };
    Ok(format!("{prefix}{text}"))
}

pub(crate) fn read_variable(name: &str) -> Result<String, String> {
    let value = environment::variable(name)
        .ok_or_else(|| format!("the variable `{name}` is not set in the daemon's environment"))?;
    value.into_string().map_err(|_| format!("the variable `{name}` is not text"))
}

/// Returns the text of a file, without the end of its last line.
pub(crate) fn read_secret(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let file = secret_file(path).map_err(|error| match error {
        DirError::Open { source, .. } => format!("cannot open `{shown}`: {source}"),
        DirError::OpenToOthers { .. } => format!("{error}; run `{}`", close_command(path)),
        error => error.to_string(),
    })?;
    let mut bytes = Vec::new();
    let count = file.take(LONGEST + 1).read_to_end(&mut bytes);
    let count = count.map_err(|error| format!("cannot read `{shown}`: {error}"))?;
    if count as u64 > LONGEST {
        return Err(format!("`{shown}` is longer than {LONGEST} bytes"));
    }
    let text = String::from_utf8(bytes).map_err(|_| format!("`{shown}` is not text"))?;
    let text = text.strip_suffix('\n').map_or(text.as_str(), |t| t.strip_suffix('\r').unwrap_or(t));
    if text.is_empty() {
        return Err(format!("`{shown}` is empty"));
    }
    Ok(text.to_owned())
}
