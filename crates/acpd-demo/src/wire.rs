//! JSON-RPC lines on stdout, shared by all turns.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::record::{Direction, RecordLine};

pub(crate) const CRASH: u8 = 3;

#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

impl Failure {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(-32602, message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(-32603, message)
    }

    pub(crate) fn auth_required() -> Self {
        Self::new(-32000, "authentication required")
    }

    pub(crate) fn unknown_session(id: &str) -> Self {
        Self {
            data: Some(json!({"sessionId": id})),
            ..Self::new(-32002, format!("session not found: {id}"))
        }
    }

    pub(crate) fn from_error(error: &Value) -> Self {
        let message = error["message"].as_str().unwrap_or_default();
        Self::new(error["code"].as_i64().unwrap_or_default(), message)
    }
}

pub(crate) fn response(id: &Value, outcome: Result<Value, Failure>) -> Value {
    match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(failure) => {
            let mut error = json!({"code": failure.code, "message": failure.message});
            if let Some(data) = failure.data {
                error["data"] = data;
            }
            json!({"jsonrpc": "2.0", "id": id, "error": error})
        }
    }
}

pub(crate) fn request(id: &Value, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

pub(crate) fn update(session: &str, update: Value) -> Value {
    let params = json!({"sessionId": session, "update": update});
    json!({"jsonrpc": "2.0", "method": "session/update", "params": params})
}

pub(crate) struct Wire {
    out: Mutex<Box<dyn Write + Send>>,
    /// The record, and the number of its lines. Each line is one write before the agent acts on it, so that it is there
    /// even if the process dies.
    record: Option<Mutex<(File, u64)>>,
}

impl Wire {
    pub(crate) fn new(out: Box<dyn Write + Send>, record: Option<&Path>) -> io::Result<Self> {
        let open = |path: &Path| {
            let path = path.to_string_lossy().replace("%p", &std::process::id().to_string());
            OpenOptions::new().create(true).append(true).open(path)
        };
        let record = record.map(open).transpose()?.map(|file| Mutex::new((file, 0)));
        Ok(Self { out: Mutex::new(out), record })
    }

    pub(crate) fn send(&self, message: &Value) {
        self.send_raw(format!("{message}\n").as_bytes());
    }

    /// Writes raw bytes. A reader that is gone is ignored: stdin ends with it.
    pub(crate) fn send_raw(&self, bytes: &[u8]) {
        let mut out = lock(&self.out);
        self.note(Direction::Out, bytes);
        let _ = out.write_all(bytes).and_then(|()| out.flush());
    }

    pub(crate) fn received(&self, line: &[u8]) {
        self.note(Direction::In, line);
    }

    pub(crate) fn event(&self, event: &str) {
        self.note(Direction::Event, event.as_bytes());
    }

    pub(crate) fn exit_code(&self, code: u8) -> ExitCode {
        self.event(&format!("exit {code}"));
        ExitCode::from(code)
    }

    pub(crate) fn crash(&self) -> ! {
        // Locked so that no other turn leaves half a line, but not waited for: stdout may be
        // blocked for good.
        let _guard = self.out.try_lock();
        self.event(&format!("exit {CRASH}"));
        std::process::exit(CRASH.into())
    }

    fn note(&self, dir: Direction, line: &[u8]) {
        let Some(record) = &self.record else { return };
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = String::from_utf8_lossy(line).into_owned();
        let mut record = lock(record);
        let (file, n) = &mut *record;
        let entry = RecordLine { pid: std::process::id(), dir, n: *n, line };
        // The last line of a process that was killed may have no end.
        let mut bytes = if *n == 0 { vec![b'\n'] } else { Vec::new() };
        if serde_json::to_writer(&mut bytes, &entry).is_ok() {
            bytes.push(b'\n');
            // A full disk must not change what the agent does.
            let _ = file.write_all(&bytes);
        }
        *n += 1;
    }
}

/// Locks, also after a panic in another thread.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
