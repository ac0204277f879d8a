//! Real names of working directories: a directory that is reached by a link is the same one.
//!
//! The directories of clients are looked up when their lines arrive, so that the hub, agents and
//! other clients see one name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use acp_wire::{Message, locate, parse, set_member};
use acpd_core::record::Snapshot;
use bytes::Bytes;
use memchr::memmem;
use serde_json::json;

/// Longest wait for a disk; then the given name stays.
const PATIENCE: Duration = Duration::from_secs(1);
/// Methods whose `cwd` is the directory of a session, in addition to those of acpd.
const METHODS: [&str; 5] =
    ["session/new", "session/load", "session/resume", "session/fork", "session/list"];

/// Replaces the directory in a client's line with its real name.
pub(crate) async fn with_real_cwd(line: Bytes) -> Bytes {
    let Some((path, cwd)) = cwd_of(&line) else { return line };
    let given = cwd.clone();
    let found = tokio::task::spawn_blocking(move || real(Path::new(&given)));
    let found = tokio::time::timeout(PATIENCE, found).await;
    match found.ok().and_then(Result::ok).flatten() {
        Some(real) if real != cwd => set_member(&line, path, json!(real).to_string().as_bytes()),
        _ => line,
    }
}

/// Returns the place of a directory in the line, and the directory.
fn cwd_of(line: &Bytes) -> Option<(&'static [&'static str], String)> {
    // Other lines are parsed once only, by the hub.
    memmem::find(line, b"\"cwd\"")?;
    let Ok(Message::Request { method, params: Some(_), .. }) = parse(line) else { return None };
    let path: &'static [&'static str] = match &*method {
        "initialize" => &["params", "_meta", "_acpd", "cwd"],
        method if METHODS.contains(&method) || method.starts_with("_acpd/") => &["params", "cwd"],
        _ => return None,
    };
    let cwd: String = serde_json::from_slice(&line[locate(line, path)?]).ok()?;
    Path::new(&cwd).is_absolute().then_some((path, cwd))
}

fn real(path: &Path) -> Option<String> {
    dunce::canonicalize(path).ok()?.into_os_string().into_string().ok()
}

/// Gives sessions the real names of their directories, which an earlier acpd stored as given. The
/// names that agents get stay.
pub(crate) fn name_sessions(snapshot: &mut Snapshot) {
    let sessions = snapshot.sessions.values();
    let wanted: BTreeSet<String> = sessions.map(|session| session.row.cwd.clone()).collect();
    let (found, names_found) = mpsc::channel();
    // A disk that does not answer blocks only this thread. If the thread cannot be started, no
    // name is found.
    let looks = move || {
        for cwd in wanted {
            let real = real(Path::new(&cwd));
            if found.send((cwd, real)).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("directories".to_owned()).spawn(looks).ok();
    let mut names = BTreeMap::new();
    while let Ok((cwd, real)) = names_found.recv_timeout(PATIENCE) {
        names.insert(cwd, real);
    }
    for session in snapshot.sessions.values_mut() {
        if let Some(Some(real)) = names.get(&session.row.cwd) {
            session.row.cwd.clone_from(real);
        }
    }
}
