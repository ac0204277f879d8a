//! A client of the socket or of a bridge that sees every line as it is.

use std::fs::File;
use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::{Value, json};

use super::DEADLINE;

/// A connection that speaks lines of JSON, and keeps all of them in order.
#[derive(Debug)]
pub struct Client {
    out: File,
    lines: BufReader<UnixStream>,
    next_id: u64,
    seen: Vec<Value>,
    /// Position at which [`Client::next`] continues.
    from: usize,
}

impl Client {
    /// A client that writes to a socket or a pipe.
    pub(super) fn over(out: impl Into<OwnedFd>, lines: UnixStream) -> Client {
        lines.set_read_timeout(Some(DEADLINE)).expect("a socket");
        let lines = BufReader::with_capacity(64 << 10, lines);
        Client { out: File::from(out.into()), lines, next_id: 0, seen: Vec::new(), from: 0 }
    }

    /// Sends `initialize` with these members in `_meta._acpd`; returns the result.
    pub fn initialize(&mut self, meta: Value) -> Value {
        let info = json!({"name": "test", "version": "0"});
        let params = json!({"protocolVersion": 1, "clientCapabilities": {}, "clientInfo": info,
            "_meta": {"_acpd": meta}});
        self.ok("initialize", params)
    }

    pub fn send(&mut self, message: &Value) {
        writeln!(self.out, "{message}").expect("the peer reads");
    }

    /// Returns the id.
    pub fn request(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    pub fn respond(&mut self, request: &Value, result: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
    }

    pub fn permit(&mut self, request: &Value, option: &str) {
        let outcome = json!({"outcome": "selected", "optionId": option});
        self.respond(request, json!({"outcome": outcome}));
    }

    /// The result or the error of a request; earlier lines are kept.
    pub fn answer(&mut self, id: u64) -> Result<Value, Value> {
        let is_it = |m: &Value| m["id"] == id && m.get("method").is_none();
        let at = self.find(&format!("the answer to request {id}"), 0, is_it);
        let message = &self.seen[at];
        match message.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(message["error"].clone()),
        }
    }

    pub fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.request(method, params);
        self.answer(id)
    }

    pub fn ok(&mut self, method: &str, params: Value) -> Value {
        self.call(method, params).unwrap_or_else(|error| panic!("{method} failed: {error}"))
    }

    /// The next matching message after the one returned last.
    pub fn next(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let at = self.find(what, self.from, fits);
        self.from = at + 1;
        self.seen[at].clone()
    }

    pub fn next_of(&mut self, method: &str) -> Value {
        self.next(method, |message| message["method"] == method)
    }

    /// Waits for an agent's chunk with this text.
    pub fn hear(&mut self, text: &str) -> Value {
        self.next(text, |message| chunk_text(message).is_some_and(|said| said.contains(text)))
    }

    /// Waits until everything that the daemon had for this client by now has come: an answer does
    /// not overtake lines, unless it is one from memory (a status, a list).
    pub fn sync(&mut self) {
        self.call("_acpd/sync", json!({})).expect_err("there is no such method");
    }

    /// Ends what the peer reads; what it says still comes.
    pub fn close(&mut self) {
        self.out = File::create("/dev/null").expect("a file");
    }

    pub fn wait_closed(&mut self) {
        while let Some(line) = self.read_line("the end of the connection") {
            self.keep(&line);
        }
    }

    pub fn seen(&self) -> &[Value] {
        &self.seen
    }

    /// Positions and messages of this session's journal.
    pub fn view(&self, session: &str) -> Vec<(u64, Value)> {
        let of = |message: &&Value| message["params"]["sessionId"] == session;
        let lines = self.seen.iter().filter(of);
        lines.filter_map(|message| Some((seq_of(message)?, message.clone()))).collect()
    }

    /// The agent's text in this session, as this client got it.
    pub fn said(&self, session: &str) -> String {
        let of = |message: &&Value| message["params"]["sessionId"] == session;
        self.seen.iter().filter(of).filter_map(chunk_text).collect()
    }

    /// Returns the id.
    pub fn new_session(&mut self, cwd: &Path, name: Option<&str>) -> String {
        let mut params = json!({"cwd": cwd, "mcpServers": []});
        if let Some(name) = name {
            params["_meta"] = json!({"_acpd": {"name": name}});
        }
        let result = self.ok("session/new", params);
        result["sessionId"].as_str().expect("a session id").to_owned()
    }

    /// Returns the id of the request.
    pub fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": text}]);
        self.request("session/prompt", json!({"sessionId": session, "prompt": prompt}))
    }

    pub fn say(&mut self, session: &str, text: &str) -> Result<Value, Value> {
        let id = self.prompt(session, text);
        self.answer(id)
    }

    pub fn cancel(&mut self, session: &str) {
        self.notify("session/cancel", json!({"sessionId": session}));
    }

    /// Attaches behind this position, or at the end.
    pub fn attach(&mut self, session: &str, after: Option<u64>) -> Value {
        let reference = json!({"session": session});
        self.ok("_acpd/session/attach", json!({"ref": reference, "after": after}))
    }

    /// The next line, without keeping it; `None` at the end. For floods.
    pub fn read_line(&mut self, what: &str) -> Option<Vec<u8>> {
        let mut line = Vec::new();
        let read = self.lines.read_until(b'\n', &mut line).map_err(|error| error.kind());
        if let Err(ErrorKind::WouldBlock | ErrorKind::TimedOut) = read {
            let last = &self.seen[self.seen.len().saturating_sub(12)..];
            panic!("waited {DEADLINE:?} in vain for {what}; last messages: {last:#?}");
        }
        // A killed daemon may leave a part of a line.
        line.ends_with(b"\n").then_some(line)
    }

    fn find(&mut self, what: &str, from: usize, fits: impl Fn(&Value) -> bool) -> usize {
        if let Some(at) = self.seen[from..].iter().position(&fits) {
            return from + at;
        }
        loop {
            match self.read_line(what) {
                Some(line) => self.keep(&line),
                None => panic!("the connection ended before {what}: {:#?}", self.seen),
            }
            if self.seen.last().is_some_and(&fits) {
                return self.seen.len() - 1;
            }
        }
    }

    fn keep(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let message = serde_json::from_slice(line)
            .unwrap_or_else(|error| panic!("not JSON ({error}): {text}"));
        self.seen.push(message);
    }
}

pub fn chunk_text(message: &Value) -> Option<&str> {
    let update = &message["params"]["update"];
    let is_chunk = update["sessionUpdate"] == "agent_message_chunk";
    update["content"]["text"].as_str().filter(|_| is_chunk)
}

pub fn seq_of(message: &Value) -> Option<u64> {
    message["params"]["_meta"]["_acpd"]["seq"].as_u64()
}

/// acpd's reason for an error.
pub fn reason(error: &Value) -> &str {
    error["data"]["_acpd"]["reason"].as_str().unwrap_or_default()
}
