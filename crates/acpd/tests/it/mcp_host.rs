//! A host of `acpctl mcp`: an MCP client that has started the server.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;

use acpd_test::harness::{Client, Running, TestEnv};
use serde_json::{Value, json};

/// An MCP client that has started the server: a host. Dropping it closes the server's input.
pub(crate) struct Host {
    server: Option<(Running, Client)>,
}

impl Host {
    pub(crate) fn start(env: &TestEnv, args: &[&str]) -> Host {
        let mut command = env.acpctl_command(&["mcp"]);
        command.args(args);
        Host::run(command)
    }

    pub(crate) fn run(mut command: Command) -> Host {
        command.stdin(Stdio::piped());
        let mut host = Host { server: Some(Running::start_editor(command)) };
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "host", "version": "1"}});
        let hello = host.client().ok("initialize", hello);
        assert_eq!(hello["serverInfo"]["name"], "acpd", "{hello}");
        host.client().notify("notifications/initialized", json!({}));
        host
    }

    pub(crate) fn client(&mut self) -> &mut Client {
        &mut self.server.as_mut().expect("it is there until it is dropped").1
    }

    /// Messages of progress that came so far.
    pub(crate) fn told(&mut self) -> Vec<String> {
        let lines = self.client().seen().iter();
        let told = lines.filter(|line| line["method"] == "notifications/progress");
        told.map(|line| line["params"]["message"].as_str().unwrap().to_owned()).collect()
    }

    /// Begins a call of a tool, with the wish to hear of its progress.
    pub(crate) fn begin(&mut self, tool: &str, arguments: Value) -> u64 {
        let client = self.client();
        let meta = json!({"progressToken": client.seen().len()});
        client.request("tools/call", json!({"name": tool, "arguments": arguments, "_meta": meta}))
    }

    /// Cancels a call.
    pub(crate) fn cancel(&mut self, call: u64) {
        let params = json!({"requestId": call, "reason": "enough"});
        self.client().notify("notifications/cancelled", params);
    }

    /// The text of a call, which must have failed or not.
    fn text_of(&mut self, call: u64, is_error: bool) -> (String, Value) {
        let result = self.client().answer(call).expect("a result");
        assert_eq!(result["isError"], is_error, "{result}");
        let text = result["content"][0]["text"].as_str().unwrap().to_owned();
        (text, result["structuredContent"].clone())
    }

    /// Returns a tool's result as text.
    pub(crate) fn text(&mut self, tool: &str, arguments: Value) -> String {
        let call = self.begin(tool, arguments);
        self.text_of(call, false).0
    }

    /// The text of a tool that failed.
    pub(crate) fn refused(&mut self, tool: &str, arguments: Value) -> String {
        let call = self.begin(tool, arguments);
        self.text_of(call, true).0
    }

    /// The names of its tools.
    pub(crate) fn tools(&mut self) -> Vec<String> {
        let tools = self.client().ok("tools/list", json!({}));
        let tools = tools["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Returns a tool's result as JSON.
    pub(crate) fn result(&mut self, call: u64) -> Value {
        let (text, value) = self.text_of(call, false);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value, "both say the same");
        value
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let call = self.begin(tool, arguments);
        self.result(call)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let Some((server, mut client)) = self.server.take() else { return };
        client.close();
        if !thread::panicking() {
            server.finish().success();
        }
    }
}

/// A prompt with which the scripted agent calls a tool.
pub(crate) fn calls(env: &TestEnv, file: &str, tool: &str, arguments: Value) -> String {
    let path = env.path(file);
    fs::write(&path, json!({"name": tool, "arguments": arguments}).to_string()).unwrap();
    format!("[mcp-tool acpd {}]", path.display())
}
