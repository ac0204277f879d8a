//! A client for one scripted agent. It blocks until the agent says something; nothing here waits for time.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use acpd_demo::{RecordLine, read_record};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A state directory and everything else that outlives an agent.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path().join("state")
    }

    pub(crate) fn record(&self) -> Vec<RecordLine> {
        read_record(self.path().join("record"))
    }

    /// The agent's program, set up for this place, not started.
    pub(crate) fn command(&self, flags: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_acpd-scripted-agent"));
        command
            .arg("--state")
            .arg(self.state())
            .arg("--record")
            .arg(self.path().join("record"))
            .args(flags.split(',').filter(|flag| !flag.is_empty()).map(|flag| format!("--{flag}")))
            .env("ACPD_TEST_POINTS", self.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Starts an agent, without a word to it.
    pub(crate) fn start(&self, flags: &str) -> Agent {
        Agent::spawn(&mut self.command(flags))
    }

    /// Starts an agent and initializes it.
    pub(crate) fn agent(&self, flags: &str) -> Agent {
        let mut agent = self.start(flags);
        agent.call("initialize", initialize()).ok();
        agent
    }
}

pub(crate) fn initialize() -> Value {
    json!({"protocolVersion": 1, "clientCapabilities": {"session": {"configOptions": {"boolean": {}}}}})
}

/// A running agent; killed when dropped.
pub(crate) struct Agent {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    next_id: u64,
}

/// A response, and the lines before it.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) before: Vec<Value>,
    pub(crate) response: Value,
}

impl Agent {
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command.spawn().expect("the agent starts");
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
        Self { child, stdin, stdout, next_id: 100 }
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.send_text(&message.to_string());
    }

    pub(crate) fn send_text(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        writeln!(stdin, "{line}").expect("the agent reads");
    }

    /// Sends a request and returns its id.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let id = json!(self.next_id);
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// The next line without its line feed, None at the end of stdout.
    pub(crate) fn raw(&mut self) -> Option<Vec<u8>> {
        let mut line = Vec::new();
        let length = self.stdout.read_until(b'\n', &mut line).expect("stdout can be read");
        (length > 0).then(|| line.strip_suffix(b"\n").unwrap_or(&line).to_vec())
    }

    pub(crate) fn next(&mut self) -> Value {
        let line = self.raw().expect("the agent says something");
        serde_json::from_slice(&line).expect("a line is JSON")
    }

    /// Reads up to the response with this id.
    pub(crate) fn wait(&mut self, id: &Value) -> Reply {
        let mut before = Vec::new();
        loop {
            let message = self.next();
            if message.get("method").is_none() && message["id"] == *id {
                return Reply { before, response: message };
            }
            before.push(message);
        }
    }

    /// Reads up to a message chunk with this text, or a message of this method.
    pub(crate) fn until(&mut self, wanted: &str) -> Value {
        loop {
            let message = self.next();
            if message["method"] == wanted
                || message["params"]["update"]["content"]["text"] == wanted
            {
                return message;
            }
        }
    }

    pub(crate) fn call(&mut self, method: &str, params: Value) -> Reply {
        let id = self.request(method, params);
        self.wait(&id)
    }

    /// A new session in `/`, and its id.
    pub(crate) fn session(&mut self) -> String {
        let reply = self.call("session/new", json!({"cwd": "/", "mcpServers": []}));
        reply.ok()["sessionId"].as_str().expect("a session id").to_owned()
    }

    pub(crate) fn send_prompt(&mut self, session: &str, text: &str) -> Value {
        let prompt = json!([{"type": "text", "text": text}]);
        self.request("session/prompt", json!({"sessionId": session, "prompt": prompt}))
    }

    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> Reply {
        let id = self.send_prompt(session, text);
        self.wait(&id)
    }

    pub(crate) fn load(&mut self, session: &str) -> Reply {
        self.call("session/load", json!({"sessionId": session, "cwd": "/", "mcpServers": []}))
    }

    pub(crate) fn cancel(&mut self, session: &str) {
        self.notify("session/cancel", json!({"sessionId": session}));
    }

    pub(crate) fn answer(&mut self, request: &Value, result: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Waits for the end of the process, which must come by itself.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        self.child.wait().expect("the agent ends")
    }

    pub(crate) fn stderr(&mut self) -> String {
        let mut text = String::new();
        let mut stderr = self.child.stderr.take().expect("stderr is a pipe");
        stderr.read_to_string(&mut text).expect("stderr is text");
        text
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Reply {
    pub(crate) fn ok(&self) -> &Value {
        assert!(self.response.get("error").is_none(), "{}", self.response);
        &self.response["result"]
    }

    /// The code of the error response.
    pub(crate) fn code(&self) -> i64 {
        self.response["error"]["code"]
            .as_i64()
            .unwrap_or_else(|| panic!("an error: {}", self.response))
    }

    pub(crate) fn stop_reason(&self) -> &str {
        self.ok()["stopReason"].as_str().expect("a stop reason")
    }

    /// The update of each `session/update` of this kind.
    pub(crate) fn updates(&self, kind: &str) -> Vec<&Value> {
        let updates = self.before.iter().map(|message| &message["params"]["update"]);
        updates.filter(|update| update["sessionUpdate"] == kind).collect()
    }

    /// The texts of all chunks of this kind.
    pub(crate) fn chunks(&self, kind: &str) -> Vec<&str> {
        self.updates(kind).iter().filter_map(|update| update["content"]["text"].as_str()).collect()
    }

    pub(crate) fn text(&self) -> String {
        self.chunks("agent_message_chunk").concat()
    }
}
