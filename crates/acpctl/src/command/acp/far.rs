//! The lines of an editor whose agent runs on another machine.
//!
//! | line of the editor | member | what happens |
//! | --- | --- | --- |
//! | `initialize` | `fs`, `terminal`, logins in a terminal | left out, unless the editor works in a `shared` directory |
//! | `session/{new,load,resume,fork,list}` | `cwd`, `additionalDirectories` | by `map`, else the same path |
//! | all of these but `list` | programs in `mcpServers` | left out, unless `cwd` is `shared` |
//! | | addresses of this machine in `mcpServers` | left out |
//! | `session/prompt` | a link to a file in a `map`ped or `shared` directory | by `map`, else the same path |
//! | | a link to another file that is here | the file itself, if the agent takes it |
//!
//! | line of the daemon | member | what happens |
//! | --- | --- | --- |
//! | an answer to `initialize` | the capability for embedded files | read |
//! | an answer to `session/list` | `cwd`, `additionalDirectories` | back by `map` |
//! | an error | that a directory is missing | names the host and the way out |
//! | `fs/*`, `terminal/create` | `path`, `cwd` | back by `map`, refused outside of `shared` directories |
//!
//! Every other line passes unchanged, in both versions of the protocol. What is left out is printed
//! to stderr, each once.

#[cfg(all(test, unix))]
mod tests;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::net::IpAddr;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use acp_wire::acp::{file_uri, file_uri_path, uri_part};
use acp_wire::build::error;
use acp_wire::{
    ErrorObject, Id, Message, Outcome, code, locate, parse, remove_member, set_member, splice,
    str_at,
};
use acpd_api::{NAMESPACE, Untrusted};
use acpd_client::attachment;
use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;

use crate::machine::OtherMachine;
use crate::text::text;
use crate::ui::complain;

/// Most bytes of all files of a prompt, as JSON: a line has a limit of 64 MiB.
const MOST_EMBEDDED: usize = 32 << 20;

/// Capabilities of an editor that are about its machine.
const CAPABILITIES: [(&[&str], &str); 4] = [
    (&["fs"], "files"),
    (&["terminal"], "terminals"),
    (&["auth", "terminal"], "logins in a terminal"),
    (&["_meta", "terminal-auth"], "logins in a terminal"),
];

/// Requests of the editor whose answers are read.
#[derive(Debug, Clone, Copy)]
enum AwaitedAnswer {
    Capabilities,
    Sessions,
}

#[derive(Debug, Default)]
struct FarState {
    open: HashMap<Id, AwaitedAnswer>,
    /// The agent takes embedded files.
    takes_files: bool,
    /// Notices that were printed.
    printed: HashSet<String>,
}

/// The other machine, and what both directions of the editor's connection know of it.
#[derive(Debug)]
pub(super) struct FarRewriter {
    machine: OtherMachine,
    /// The editor works in a directory that is the same there.
    is_shared: bool,
    state: Mutex<FarState>,
}

impl FarRewriter {
    /// Creates the state of a connection. The editor works in `dir`.
    pub(super) fn new(machine: OtherMachine, dir: &Path) -> FarRewriter {
        let far = FarRewriter { machine, is_shared: false, state: Mutex::default() };
        FarRewriter { is_shared: far.is_same_there(dir), ..far }
    }

    /// Rewrites a line of the editor.
    pub(super) fn rewrite_for_daemon(&self, line: Bytes) -> Bytes {
        let Ok(Message::Request { id, method, .. }) = parse(&line) else { return line };
        match &*method {
            "initialize" => {
                self.state().open.insert(id, AwaitedAnswer::Capabilities);
                if self.is_shared { line.clone() } else { self.remove_capabilities(&line) }
            }
            "session/list" => {
                self.state().open.insert(id, AwaitedAnswer::Sessions);
                edit_directories(&line, &["params"], |dir| self.far_path(dir))
            }
            "session/new" | "session/load" | "session/resume" | "session/fork" => {
                let line = self.remove_servers(&line);
                edit_directories(&line, &["params"], |dir| self.far_path(dir))
            }
            "session/prompt" => {
                let mut left = MOST_EMBEDDED;
                edit_items(&line, &["params", "prompt"], |block| {
                    Some(self.rewrite_link(block, &mut left).unwrap_or_else(|| block.clone()))
                })
            }
            _ => line.clone(),
        }
    }

    /// Rewrites a line of the daemon. `Err`: the answer to it, instead of the editor's.
    pub(super) fn rewrite_for_editor(&self, line: Bytes) -> Result<Bytes, Bytes> {
        match parse(&line) {
            Ok(Message::Request { id, method, .. }) => match &*method {
                "fs/read_text_file" | "fs/write_text_file" => self.rewrite_path(&line, &id, "path"),
                "terminal/create" => self.rewrite_path(&line, &id, "cwd"),
                _ => Ok(line.clone()),
            },
            Ok(Message::Notification { .. }) => Ok(line.clone()),
            Ok(Message::Response { .. }) => Ok(self.rewrite_answer(&line)),
            // The editor may find such a request in it.
            Err(why) => Err(error(&Id::null(), &ErrorObject::new(why.code(), why.to_string()))),
        }
    }

    fn rewrite_answer(&self, line: &Bytes) -> Bytes {
        let Ok(Message::Response { id, outcome }) = parse(line) else { return line.clone() };
        let awaited = self.state().open.remove(&id);
        match (outcome, awaited) {
            (Outcome::Error(_), _) => return self.explain_missing(line),
            (Outcome::Result(result), Some(AwaitedAnswer::Capabilities)) => {
                self.state().takes_files = takes_files(result);
            }
            (Outcome::Result(_), Some(AwaitedAnswer::Sessions)) => {
                return edit_items(line, &["result", "sessions"], |session| {
                    Some(edit_directories(session, &[], |dir| self.near_path(dir)))
                });
            }
            (Outcome::Result(_), None) => {}
        }
        line.clone()
    }

    fn remove_capabilities(&self, line: &Bytes) -> Bytes {
        let (mut line, mut left_out) = (line.clone(), Vec::new());
        // The daemon reads both names.
        for name in ["clientCapabilities", "capabilities"] {
            for (path, what) in CAPABILITIES {
                let path = [&["params", name], path].concat();
                let Some(at) = locate(&line, &path) else { continue };
                if is_set(&line[at]) && !left_out.contains(&what) {
                    left_out.push(what);
                }
                line = remove_member(&line, &path);
            }
        }
        if !left_out.is_empty() {
            self.warn_left_out(&left_out.join(", "));
        }
        line
    }

    fn remove_servers(&self, line: &Bytes) -> Bytes {
        let shares = str_at(line, &["params", "cwd"])
            .is_some_and(|cwd| self.is_same_there(Path::new(&*cwd)));
        let mut left_out = Vec::new();
        let line = edit_items(line, &["params", "mcpServers"], |server| {
            let is_here = match str_at(server, &["url"]) {
                Some(url) => is_local(&url),
                None => !shares && locate(server, &["command"]).is_some(),
            };
            if is_here {
                let name = str_at(server, &["name"]).unwrap_or_default();
                left_out.push(format!("`{name}`"));
            }
            (!is_here).then(|| server.clone())
        });
        if !left_out.is_empty() {
            self.warn_left_out(&format!("MCP servers {}", left_out.join(", ")));
        }
        line
    }

    fn warn_left_out(&self, what: &str) {
        let host = &self.machine.name;
        let way_out = format!("`shared` in `[hosts.{host}]` names common directories");
        self.warn_once(format!(
            "the agent on `{host}` cannot use {what} of this machine: {way_out}"
        ));
    }

    /// Rewrites a link to a file. `None`: the block stays.
    fn rewrite_link(&self, block: &Bytes, left: &mut usize) -> Option<Bytes> {
        if str_at(block, &["type"])? != "resource_link" {
            return None;
        }
        let uri = str_at(block, &["uri"])?;
        let (path, behind) = file_uri_path(&uri)?;
        if let Some(there) = self.far_path(&path) {
            let uri = json!(format!("{}{behind}", file_uri(&there))).to_string();
            return Some(set_member(block, &["uri"], uri.as_bytes()));
        }
        if !fs::metadata(&path).is_ok_and(|file| file.is_file()) {
            return None;
        }
        let mut embedded = match self.embed(&path, behind, left) {
            Ok(embedded) => embedded,
            Err(why) => {
                let host = &self.machine.name;
                self.warn_once(format!("the agent on `{host}` gets only a link to a file: {why}"));
                return None;
            }
        };
        for name in ["annotations", "_meta"] {
            if let Some(at) = locate(block, &[name]) {
                embedded = set_member(&embedded, &[name], &block[at]);
            }
        }
        Some(embedded)
    }

    /// Returns a block with a file of this machine. `Err`: the reason why there is none.
    fn embed(&self, path: &str, behind: &str, left: &mut usize) -> Result<Bytes, String> {
        if !self.state().takes_files {
            return Err(format!("the agent takes no files: `{path}`"));
        }
        let host = acpd_sys::machine::host_name().unwrap_or_default();
        let place = file_uri(path).replacen("file://", "", 1);
        let uri = format!("acpd-near://{}{place}{behind}", uri_part(&host));
        let block = attachment::embed_file(Path::new(path), &uri);
        let block = Bytes::from(block.map_err(|error| error.to_string())?.to_string());
        let rest = left.checked_sub(block.len());
        *left = rest.ok_or_else(|| format!("the files of the prompt are too big: `{path}`"))?;
        Ok(block)
    }

    /// Rewrites a request of the agent about a file of the editor's machine.
    fn rewrite_path(&self, line: &Bytes, id: &Id, name: &str) -> Result<Bytes, Bytes> {
        let refuse = |code, text| Err(error(id, &ErrorObject::new(code, text)));
        if !self.is_shared {
            // An editor may serve what it does not offer.
            let text = "the editor's directory is not shared with the agent's machine";
            return refuse(code::METHOD_NOT_FOUND, text.to_owned());
        }
        let path = ["params", name];
        // Of duplicate members only the one that is checked is left.
        let rest = remove_member(line, &path);
        let Some(far) = str_at(line, &path) else { return Ok(rest) };
        let near = self.near_path(&far).unwrap_or_else(|| far.clone().into_owned());
        if !self.is_same_there(Path::new(&near)) {
            let text = format!("`{far}` is not in a directory that the editor's machine shares");
            return refuse(code::INVALID_PARAMS, text);
        }
        Ok(set_member(&rest, &path, json!(near).to_string().as_bytes()))
    }

    /// Adds the host and the way out to the error that a directory is missing.
    fn explain_missing(&self, line: &Bytes) -> Bytes {
        let reason = str_at(line, &["error", "data", NAMESPACE, "reason"]);
        let message = str_at(line, &["error", "message"]);
        let (Some("cwd_missing"), Some(message)) = (reason.as_deref(), message) else {
            return line.clone();
        };
        let name = &self.machine.name;
        let hint = format!("make it there, or set where it is: `map` in `[hosts.{name}]`");
        let message = json!(format!("{message} on `{name}`: {hint}")).to_string();
        let line = set_member(line, &["error", "message"], message.as_bytes());
        let path = ["error", "data", NAMESPACE, "hint"];
        set_member(&line, &path, json!(hint).to_string().as_bytes())
    }

    /// Returns where a path of a `map`ped or `shared` directory is there: as it is written, or else
    /// without symbolic links.
    fn far_path(&self, path: &str) -> Option<String> {
        let is_known = |path: &Path| {
            let mut dirs = self.machine.map.keys().chain(&self.machine.shared);
            dirs.any(|dir| path.starts_with(dir))
        };
        let path = written_and_real(Path::new(path)).find(|path| is_known(path))?;
        path_text(&self.machine.place_of(&path))
    }

    /// Returns where a directory of the other machine is here, by the longest entry of `map` that
    /// leads to it.
    fn near_path(&self, dir: &str) -> Option<String> {
        let far = Path::new(dir);
        let inside = |(here, there): (&PathBuf, &String)| {
            let near = here.join(far.strip_prefix(there).ok()?);
            let length = Path::new(there).components().count();
            (self.machine.place_of(&near) == far).then_some((length, near))
        };
        let longest = self.machine.map.iter().filter_map(inside).max_by_key(|(length, _)| *length);
        path_text(&longest?.1)
    }

    /// Returns whether a path, which may be new, has the same files there. Links count as what they
    /// lead to.
    fn is_same_there(&self, path: &Path) -> bool {
        let has_parent = path.components().any(|part| part == Component::ParentDir);
        // A link to a file that is missing leads there, too.
        let mut there = path.ancestors().filter(|path| fs::symlink_metadata(path).is_ok());
        let real = there.next().and_then(|path| dunce::canonicalize(path).ok());
        let Some(real) = real.filter(|_| path.is_absolute() && !has_parent) else { return false };
        let mut dirs = self.machine.shared.iter().filter_map(|dir| dunce::canonicalize(dir).ok());
        dirs.any(|dir| real.starts_with(dir))
    }

    /// Prints a notice, once.
    fn warn_once(&self, notice: String) {
        let mut state = self.state();
        if !state.printed.contains(&notice) {
            complain(text!("warning: {}", Untrusted::from(notice.clone())));
            state.printed.insert(notice);
        }
    }

    fn state(&self) -> MutexGuard<'_, FarState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns an absolute path as it is written, and without symbolic links.
fn written_and_real(path: &Path) -> impl Iterator<Item = PathBuf> {
    let written = path.is_absolute().then(|| path.to_owned());
    let real = written.as_deref().and_then(|path| dunce::canonicalize(path).ok());
    written.into_iter().chain(real)
}

/// Returns a path without a separator at its end. `None` if JSON cannot hold it.
fn path_text(path: &Path) -> Option<String> {
    path.components().as_path().to_str().map(str::to_owned)
}

/// Returns whether an agent takes embedded files, by its answer to `initialize`.
fn takes_files(result: &RawValue) -> bool {
    let result = result.get().as_bytes();
    let in_v1 = ["agentCapabilities", "promptCapabilities", "embeddedContext"];
    let in_v2 = ["capabilities", "session", "prompt", "embeddedContext"];
    [&in_v1[..], &in_v2]
        .iter()
        .filter_map(|path| locate(result, path))
        .any(|at| is_set(&result[at]))
}

fn is_set(capability: &[u8]) -> bool {
    capability == b"true" || capability.starts_with(b"{")
}

/// Returns whether an address is of the machine that uses it.
fn is_local(url: &str) -> bool {
    let (_, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, _)) => host,
        None => host.split(':').next().unwrap_or_default(),
    };
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let address = host.parse::<IpAddr>().map(|address| address.to_canonical());
    address.is_ok_and(|address| address.is_loopback() || address.is_unspecified())
        || host == "localhost"
        || host.ends_with(".localhost")
}

/// Replaces `cwd` and `additionalDirectories` of an object. `None` keeps a directory.
fn edit_directories(
    line: &Bytes,
    object: &[&str],
    place: impl Fn(&str) -> Option<String>,
) -> Bytes {
    let edit = |text: &Bytes| {
        let dir = place(&str_at(text, &[])?)?;
        Some(Bytes::from(json!(dir).to_string()))
    };
    let more = [object, &["additionalDirectories"]].concat();
    let line = edit_items(line, &more, |dir| Some(edit(dir).unwrap_or_else(|| dir.clone())));
    let cwd = [object, &["cwd"]].concat();
    let text = locate(&line, &cwd).and_then(|at| edit(&line.slice(at)));
    text.map_or_else(|| line.clone(), |text| set_member(&line, &cwd, &text))
}

/// Replaces items of the list at `path`; `None` removes one. A list in which nothing changes stays
/// as it is written.
fn edit_items(line: &Bytes, path: &[&str], mut edit: impl FnMut(&Bytes) -> Option<Bytes>) -> Bytes {
    let Some(at) = locate(line, path) else { return line.clone() };
    let Ok(items) = serde_json::from_slice::<Vec<&RawValue>>(&line[at.clone()]) else {
        return line.clone();
    };
    let items = items.into_iter().map(|item| line.slice_ref(item.get().as_bytes()));
    let items: Vec<Bytes> = items.collect();
    let edited: Vec<Bytes> = items.iter().filter_map(&mut edit).collect();
    if edited == items {
        return line.clone();
    }
    let list = [b"[", &edited.join(&b","[..])[..], b"]"].concat();
    splice(line, &[(at, &list)])
}
