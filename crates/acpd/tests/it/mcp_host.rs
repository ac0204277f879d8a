//! A host of `acpctl mcp`: an MCP client that has started the server.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use acpd_test::harness::TestEnv;
use serde_json::{Value, json};

/// Only a failing test waits that long.
const DEADLINE: Duration = Duration::from_mins(1);

/// An MCP client that has started the server: a host.
pub(crate) struct Host {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    last_id: u64,
    /// Notifications of progress that came so far: their messages.
    pub(crate) told: Vec<String>,
}

impl Host {
    pub(crate) fn start(env: &TestEnv, args: &[&str]) -> Host {
        let mut command = env.acpctl_command(&["mcp"]);
        command.args(args);
        Host::run(command)
    }

    pub(crate) fn run(mut command: Command) -> Host {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let line = serde_json::from_str(&line).expect("stdout is the protocol's");
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        let mut host = Host { child, stdin, lines, last_id: 0, told: Vec::new() };
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "host", "version": "1"}});
        let hello = host.request("initialize", &hello);
        let answer = host.answer(hello);
        assert_eq!(answer["result"]["serverInfo"]["name"], "acpd", "{answer}");
        host.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        host
    }

    pub(crate) fn say(&mut self, line: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    pub(crate) fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Begins a call of a tool, with the wish to hear of its progress.
    pub(crate) fn begin(&mut self, tool: &str, arguments: Value) -> u64 {
        let token = self.last_id + 1;
        let params =
            json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": token}});
        self.request("tools/call", &params)
    }

    fn hear(&mut self) -> Value {
        let line = self.lines.recv_timeout(DEADLINE).expect("the server says something");
        if line["method"] == "notifications/progress" {
            self.told.push(line["params"]["message"].as_str().unwrap().to_owned());
        }
        line
    }

    pub(crate) fn answer(&mut self, id: u64) -> Value {
        loop {
            let line = self.hear();
            if line["id"] == id {
                return line;
            }
        }
    }

    /// Returns a tool's result as text.
    pub(crate) fn text(&mut self, tool: &str, arguments: Value) -> String {
        let id = self.begin(tool, arguments);
        let answer = self.answer(id);
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// The names of its tools.
    pub(crate) fn tools(&mut self) -> Vec<String> {
        let id = self.request("tools/list", &json!({}));
        let tools = self.answer(id);
        let tools = tools["result"]["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Returns a tool's result as JSON.
    pub(crate) fn result(&mut self, id: u64) -> Value {
        let answer = self.answer(id);
        assert_eq!(answer.get("error"), None, "{answer}");
        let result = &answer["result"];
        let value = result["structuredContent"].clone();
        assert!(value.is_object(), "{answer}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), value, "both say the same");
        value
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.begin(tool, arguments);
        self.result(id)
    }

    /// The text of a tool that failed.
    pub(crate) fn refused(&mut self, tool: &str, arguments: Value) -> String {
        let id = self.begin(tool, arguments);
        let answer = self.answer(id);
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let status = self.child.wait().unwrap();
        assert!(thread::panicking() || status.success(), "{status}");
    }
}

/// A prompt with which the scripted agent calls a tool.
pub(crate) fn calls(env: &TestEnv, file: &str, tool: &str, arguments: Value) -> String {
    let path = env.path(file);
    fs::write(&path, json!({"name": tool, "arguments": arguments}).to_string()).unwrap();
    format!("[mcp-tool acpd {}]", path.display())
}
