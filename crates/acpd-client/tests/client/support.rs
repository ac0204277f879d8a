//! A daemon that a thread of the test plays.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use acpd_client::{Options, Place};
use acpd_sys::paths::Paths;
use acpd_sys::socket::{self, Listener};
use serde_json::{Value, json};

/// Longer than any machine takes; a passing test never waits for it.
const LONG: Duration = Duration::from_mins(1);

/// The daemon's side of a connection.
pub(crate) type Stream = BufReader<socket::Stream>;

pub(crate) fn paths(home: &Path) -> Paths {
    Paths { runtime: home.join("run"), state: home.join("state"), config: home.join("config") }
}

pub(crate) fn options(home: &Path) -> Options {
    Options { spawn: false, place: Place::Here(paths(home)) }
}

pub(crate) fn listen(home: &Path) -> Listener {
    Listener::bind(&paths(home).socket()).unwrap()
}

pub(crate) fn accept(listener: &Listener) -> Stream {
    BufReader::new(listener.accept_until(Instant::now() + LONG).unwrap())
}

pub(crate) fn read(stream: &mut Stream) -> Value {
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

pub(crate) fn write(stream: &mut Stream, line: &Value) {
    // At once: who waits for any word may be gone after the first piece of it.
    stream.get_mut().write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// Reads `initialize` and resumes the client; returns what the client says that it has.
pub(crate) fn welcome(stream: &mut Stream, received: u64) -> Value {
    let initialize = read(stream);
    let meta = json!({"generation": "g", "received": received});
    let result = json!({"agentCapabilities": {"_meta": {"_acpd": meta}}});
    write(stream, &json!({"id": initialize["id"], "result": result}));
    initialize["params"]["_meta"]["_acpd"]["client"]["resume"].clone()
}
