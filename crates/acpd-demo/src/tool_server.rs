//! MCP servers that the agent starts itself, and their tools: as much of a host as a test needs.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;

use serde_json::{Value, json};

/// A running server. It ends with its session.
pub(crate) struct ToolServer {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<Value>,
    last_id: u64,
}

/// The servers in a request that a command starts, by name.
pub(crate) fn commands(params: &Value) -> HashMap<String, Value> {
    let servers = params["mcpServers"].as_array().into_iter().flatten();
    let named = servers.filter(|server| server["command"].is_string());
    named.map(|one| (one["name"].as_str().unwrap_or_default().to_owned(), one.clone())).collect()
}

impl ToolServer {
    pub(crate) fn start(server: &Value) -> std::io::Result<ToolServer> {
        let texts = |list: &Value| -> Vec<String> {
            let list = list.as_array().into_iter().flatten();
            list.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let variables = server["env"].as_array().into_iter().flatten();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut child = Command::new(text(&server["command"]))
            .args(texts(&server["args"]))
            .envs(variables.map(|one| (text(&one["name"]), text(&one["value"]))))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()?;
        let gone = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        let stdin = child.stdin.take().ok_or_else(gone)?;
        let stdout = BufReader::new(child.stdout.take().ok_or_else(gone)?);
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            let lines = stdout.lines().map_while(Result::ok);
            for line in lines.filter_map(|line| serde_json::from_str(&line).ok()) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut server = ToolServer { child, stdin, lines, last_id: 0 };
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "acpd-demo", "version": "0"}});
        let id = server.request("initialize", &hello)?;
        while server.lines.recv().map_err(|_| gone())?["id"] != id {}
        server.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(server)
    }

    /// Calls a tool; returns the id of the call.
    pub(crate) fn call(&mut self, call: &Value) -> std::io::Result<u64> {
        self.request("tools/call", call)
    }

    /// The answer to a call; `None` if it has not come.
    pub(crate) fn answer(&self, id: u64) -> Option<Result<Value, TryRecvError>> {
        match self.lines.try_recv() {
            Ok(line) if line["id"] == id => Some(Ok(line)),
            Ok(_) | Err(TryRecvError::Empty) => None,
            Err(gone) => Some(Err(gone)),
        }
    }

    fn request(&mut self, method: &str, params: &Value) -> std::io::Result<u64> {
        self.last_id += 1;
        let id = self.last_id;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        Ok(id)
    }

    fn say(&mut self, line: &Value) -> std::io::Result<()> {
        writeln!(self.stdin, "{line}")
    }
}

impl Drop for ToolServer {
    fn drop(&mut self) {
        // The server may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
