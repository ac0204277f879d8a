//! A blocking client of an agent over pipes, or of acpd over its socket. It does next to nothing,
//! so that benchmarks measure the other side.

use std::io::{BufRead as _, BufReader, Error, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::home::Result;
use crate::process::ChildGuard;

/// Longer lines are part of a stream and not parsed.
const SHORT: usize = 250;

/// Bytes that contain the member `method` of a message that has one: behind `{"jsonrpc":"2.0",`.
const HEAD: usize = 32;

pub fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

pub struct Peer {
    child: Option<ChildGuard>,
    reader: BufReader<Box<dyn Read + Send>>,
    writer: Box<dyn Write + Send>,
    last_id: u64,
    /// The method of the last request.
    last: String,
    line: Vec<u8>,
}

impl Peer {
    /// A client of a daemon; `patience` limits the wait for a line.
    pub fn connect(socket: &Path, patience: Option<Duration>) -> Result<Peer> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(patience)?;
        Ok(Peer::new(Box::new(stream.try_clone()?), Box::new(stream), None))
    }

    /// A client of a program that is started for it and ends with it.
    pub fn start(mut command: Command) -> Result<Peer> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let stdin = child.stdin.take().ok_or("a pipe is missing")?;
        let stdout = child.stdout.take().ok_or("a pipe is missing")?;
        Ok(Peer::new(Box::new(stdout), Box::new(stdin), Some(ChildGuard(child))))
    }

    fn new(
        reader: Box<dyn Read + Send>,
        writer: Box<dyn Write + Send>,
        child: Option<ChildGuard>,
    ) -> Peer {
        let reader = BufReader::with_capacity(256 << 10, reader);
        Peer { child, reader, writer, last_id: 0, last: String::new(), line: Vec::new() }
    }

    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(|child| child.0.id())
    }

    pub fn send(&mut self, method: &str, params: &Value) -> Result<u64> {
        self.last_id += 1;
        let id = self.last_id;
        method.clone_into(&mut self.last);
        self.writer.write_all(format!("{}\n", request(id, method, params)).as_bytes())?;
        Ok(id)
    }

    /// The next line with its newline.
    pub fn line(&mut self) -> Result<&[u8]> {
        self.line.clear();
        // The buffer of a giant line would distort the next measurement.
        self.line.shrink_to(64 << 10);
        let read = self.reader.read_until(b'\n', &mut self.line).map_err(|error| {
            Error::new(error.kind(), format!("nothing comes after `{}`: {error}", self.last))
        });
        match read? {
            0 => Err("the other side has gone away".into()),
            _ => Ok(&self.line),
        }
    }

    /// Passes lines to `each` until the response to this request; returns the result.
    pub fn until(&mut self, id: u64, mut each: impl FnMut(&[u8])) -> Result<Value> {
        loop {
            let line = self.line()?;
            // The stream's lines are longer than any expected response; longer responses are parsed
            // because they have an id and no method.
            if line.len() > SHORT && line.windows(8).take(HEAD).any(|w| w == b"\"method\"") {
                each(line);
                continue;
            }
            let message: Value = serde_json::from_slice(line)?;
            if message.get("method").is_none() && message["id"] == json!(id) {
                return match message.get("error") {
                    Some(error) => Err(error.to_string().into()),
                    None => Ok(message["result"].clone()),
                };
            }
            each(line);
        }
    }

    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value> {
        let id = self.send(method, params)?;
        self.until(id, |_| ())
    }

    pub fn notice(&mut self, method: &str, mut each: impl FnMut(&[u8])) -> Result {
        let wanted = format!("\"method\":\"{method}\"");
        loop {
            let line = self.line()?;
            if line.windows(wanted.len()).take(HEAD).any(|w| w == wanted.as_bytes()) {
                return Ok(());
            }
            each(line);
        }
    }

    /// `initialize` with acpd's extensions.
    pub fn initialize(&mut self, acpd: &Value) -> Result {
        let params = json!({"protocolVersion": 1, "clientCapabilities": {},
            "clientInfo": {"name": "bench", "version": "0"}, "_meta": {"_acpd": acpd}});
        self.call("initialize", &params).map(drop)
    }

    pub fn session(&mut self, cwd: &Path) -> Result<String> {
        let result = self.call("session/new", &json!({"cwd": cwd, "mcpServers": []}))?;
        Ok(result["sessionId"].as_str().ok_or("no session id")?.to_owned())
    }

    /// A turn; all other lines go to `each`.
    pub fn prompt(&mut self, session: &str, text: &str, each: impl FnMut(&[u8])) -> Result {
        let prompt = json!([{"type": "text", "text": text}]);
        let id = self.send("session/prompt", &json!({"sessionId": session, "prompt": prompt}))?;
        self.until(id, each).map(drop)
    }
}
