//! `diagnostics`: runs commands that find mistakes, and keeps their findings.
//!
//! ```text
//!  files ─▶ the same as last time? ── yes ─▶ the last findings
//!                 │ no
//!                 ▼
//!      sh -c COMMAND ── ends ─────────────────────▶ output ─▶ findings
//!                 └── time is up, or stopped ─▶ SIGTERM, SIGKILL to its tree
//! ```
//!
//! Architecture invariant: only the starter of the server chooses the commands: the daemon by the
//! user's configuration, or the user. Files of the workspace choose only among them, if the user
//! has allowed it ([`DETECT`]).

use std::collections::hash_map::{DefaultHasher, HashMap};
use std::hash::{Hash as _, Hasher as _};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use acpd_services::fs::Kind;
use acpd_sys::keeper::{dismiss, wrap};
use acpd_sys::process::{self, ExitKind, ProcessId, detach_child, discard, reap, wait_leader};
use acpd_sys::tree::Tree;
use serde::Serialize;
use serde_json::{Value, json};
use which::which;

use super::DiagnosticsArgs;
use super::findings::{Finding, findings};
use super::folders::Folders;
use crate::failure::Failure;
use crate::options::DETECT;
use crate::report::line;
use crate::turns::locked;

/// Longest run of a command.
const TIME: Duration = Duration::from_mins(5);
/// Time from SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
/// Time between two looks at a running tree.
const WALK: Duration = Duration::from_secs(2);
/// Bytes of output that are read for findings.
const OUTPUT: usize = 16 << 20;
/// Findings in an answer.
const FINDINGS: usize = 200;
/// Characters of the output of a command that failed without a finding.
const TAIL: usize = 4000;

/// Last findings of the commands.
#[derive(Debug)]
pub(super) struct Checks {
    /// The program of the keeper of each command.
    exe: Option<PathBuf>,
    done: HashMap<String, (u64, Check)>,
}

#[derive(Debug, Clone)]
struct Check {
    run: Run,
    findings: Vec<Finding>,
    /// The command ran to its end.
    is_whole: bool,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    command: String,
    ended: String,
    seconds: u64,
    /// The command was not repeated, because nothing has changed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cached: bool,
    /// The end of the output, if the command failed without a finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
}

/// Stops running commands when it is dropped.
#[derive(Debug)]
pub(crate) struct Stop(Sender<Event>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Ended(ExitKind),
    Stopped,
}

impl Stop {
    pub(crate) fn new() -> (Stop, Stopped) {
        let (sender, receiver) = mpsc::channel();
        (Stop(sender.clone()), Stopped { sender, receiver })
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        // Without a receiver no command runs.
        self.0.send(Event::Stopped).ok();
    }
}

/// Receives the end of a command, and [`Stop`].
#[derive(Debug)]
pub(crate) struct Stopped {
    sender: Sender<Event>,
    receiver: Receiver<Event>,
}

impl Checks {
    pub(super) fn new(exe: Option<PathBuf>) -> Checks {
        Checks { exe, done: HashMap::new() }
    }

    pub(super) fn run(
        &mut self,
        folders: &Folders,
        commands: &[String],
        args: &DiagnosticsArgs,
        only: Option<&Path>,
        stopped: &Stopped,
    ) -> Result<Value, Failure> {
        let commands = commands_for(folders, commands)?;
        self.done.retain(|command, _| commands.contains(command));
        let state = state_of(folders)?;
        let mut found: Vec<Finding> = Vec::new();
        let mut runs = Vec::new();
        for command in commands {
            let before =
                self.done.get(&command).filter(|(then, _)| !args.refresh && Some(*then) == state);
            let check = match before {
                Some((_, check)) => {
                    Check { run: Run { cached: true, ..check.run.clone() }, ..check.clone() }
                }
                None => {
                    let check = check(&command, folders, self.exe.as_deref(), stopped)?;
                    if let Some(state) = state.filter(|_| check.is_whole) {
                        self.done.insert(command, (state, check.clone()));
                    }
                    check
                }
            };
            runs.push(check.run);
            found.extend(check.findings);
        }
        let mut answer = show(folders, only, found);
        answer["commands"] = json!(runs);
        Ok(answer)
    }
}

/// The worst findings, as an agent gets them; only those in `only`, a file or folder.
pub(super) fn show(folders: &Folders, only: Option<&Path>, mut found: Vec<Finding>) -> Value {
    found.sort();
    found.dedup();
    found.retain(|one| only.is_none_or(|only| one.path.starts_with(only)));
    let left_out = found.len().saturating_sub(FINDINGS);
    let shown = found.iter().take(FINDINGS).map(|one| one.shown(folders));
    json!({"diagnostics": shown.collect::<Vec<_>>(), "leftOut": left_out})
}

fn commands_for(folders: &Folders, commands: &[String]) -> Result<Vec<String>, Failure> {
    if commands.is_empty() {
        return Err(Failure::new("no command that finds mistakes is configured for this directory")
            .hint(
                "a person can say which: `diagnostics = [\"cargo check --message-format short\"]`, or \
                 `[\"detect\"]`, in a `[[workspace]]` of acpd's configuration; or `acpctl mcp --diagnostics COMMAND` \
                 for a host that acpd does not run",
            ));
    }
    let mut all = Vec::new();
    for command in commands {
        match command.as_str() {
            DETECT => all.extend(detected(folders.cwd())),
            command => all.push(command.to_owned()),
        }
    }
    if all.is_empty() {
        return Err(Failure::new("nothing here says which command would find mistakes")
            .hint("known are `Cargo.toml`, `tsconfig.json`, `ruff.toml` and `pyproject.toml`, if the program is installed"));
    }
    Ok(all)
}

/// The installed commands that the files in a directory call for.
fn detected(cwd: &Path) -> Vec<String> {
    let has = |name: &str| cwd.join(name).is_file();
    let is_installed = |name: &str| which(name).is_ok();
    let mut all = Vec::new();
    if has("Cargo.toml") && is_installed("cargo") {
        all.push("cargo check --quiet --workspace --all-targets --message-format json".to_owned());
    }
    if has("tsconfig.json") {
        // A project has its own version.
        let own = "node_modules/.bin/tsc";
        let program = if has(own) { Some(own) } else { is_installed("tsc").then_some("tsc") };
        all.extend(program.map(|tsc| format!("{tsc} --noEmit --pretty false")));
    }
    let is_python = ["pyproject.toml", "ruff.toml", ".ruff.toml"].into_iter().any(has);
    if is_python && is_installed("ruff") {
        all.push("ruff check --no-fix --output-format concise".to_owned());
    }
    all
}

/// A hash of names, sizes and modification times of all files that git does not ignore. `None` if
/// there are too many.
fn state_of(folders: &Folders) -> Result<Option<u64>, Failure> {
    let mut hash = DefaultHasher::new();
    let more = folders.walk(None, false, |path, kind| {
        if kind == Kind::File {
            let meta = path.metadata().ok();
            let changed = meta.as_ref().and_then(|meta| meta.modified().ok());
            (path, meta.map(|meta| meta.len()), changed).hash(&mut hash);
        }
        true
    })?;
    Ok(more.is_none().then(|| hash.finish()))
}

fn check(
    command: &str,
    folders: &Folders,
    exe: Option<&Path>,
    stopped: &Stopped,
) -> Result<Check, Failure> {
    let begun = Instant::now();
    let cannot = |error: io::Error| Failure::new(format!("cannot run `{command}`: {error}"));
    let (ended, output) = run(command, folders.cwd(), exe, stopped).map_err(cannot)?;
    let text = String::from_utf8_lossy(&output);
    let findings = findings(&text, folders.cwd());
    let is_whole = ended.is_some();
    let ended = match ended {
        Some(Event::Ended(ExitKind::Code(code))) => format!("exit code {code}"),
        Some(Event::Ended(ExitKind::Signal(signal))) => format!("signal {signal}"),
        Some(Event::Stopped) => return Err(Failure::new("the call was cancelled")),
        None => format!("stopped after {} seconds", TIME.as_secs()),
    };
    let says_nothing = findings.is_empty() && ended != "exit code 0";
    let run = Run {
        command: line(&command.into()),
        output: says_nothing.then(|| tail(&text)),
        seconds: begun.elapsed().as_secs(),
        cached: false,
        ended,
    };
    Ok(Check { run, findings, is_whole })
}

/// The end of a text, safe to show.
pub(super) fn tail(text: &str) -> String {
    let text = acpd_api::escape::prose(text.trim()).to_string();
    let from = text.char_indices().rev().nth(TAIL).map_or(0, |(at, _)| at);
    text[from..].to_owned()
}

/// Runs a command line, and ends all processes that it started. Returns its end, or `None` if its
/// time was up, and its output.
fn run(
    command: &str,
    cwd: &Path,
    exe: Option<&Path>,
    stopped: &Stopped,
) -> io::Result<(Option<Event>, Vec<u8>)> {
    let (output, input) = io::pipe()?;
    let mut plain = process::shell(command);
    plain.stdin(Stdio::null());
    let (mut shell, mut control) = wrap(exe, plain)?;
    shell.current_dir(cwd).stdout(input.try_clone()?).stderr(input);
    detach_child(&mut shell);
    let child = process::start(&mut shell)?;
    // The command holds the other ends of the pipe and of the connection, which would never end.
    drop(shell);
    let pid = child.id();
    // A child that was not waited for keeps its pid.
    let started = ProcessId::of_child(&child).and_then(|child| {
        let Some(control) = &mut control else { return Ok((child, None, child)) };
        let (leader, lease) = control.begin()?;
        Ok((leader, Some(lease), child))
    });
    let (leader, lease, keeper) = match started {
        Ok(started) => started,
        Err(error) => {
            discard(child);
            return Err(error);
        }
    };
    let mut tree = Tree::below(leader).with_keeper(lease.as_ref().map(|_| pid));
    let text = Arc::new(Mutex::new(Vec::new()));
    let (all_read, is_read) = mpsc::channel::<()>();
    let kept = Arc::clone(&text);
    thread::spawn(move || {
        read(output, &kept);
        drop(all_read);
    });
    let sender = stopped.sender.clone();
    let waiter = thread::spawn(move || {
        let ended = match control {
            Some(mut control) => control.wait(),
            None => wait_leader(pid).ok(),
        };
        let ended = ended.unwrap_or(ExitKind::Code(-1));
        sender.send(Event::Ended(ended)).ok();
    });
    let ended = until_over(&mut tree, stopped);
    let leader_ended = matches!(ended, Some(Event::Ended(_)));
    tree.end(GRACE, leader_ended);
    // The command may have stopped its keeper, which then reports nothing.
    if lease.is_some() {
        dismiss(keeper);
    }
    waiter.join().ok();
    reap(pid).ok();
    // A process that has left the tree unseen may hold the pipe open.
    is_read.recv_timeout(GRACE).ok();
    let ended = match ended {
        // An end that came too late must not count for the next command.
        None => stopped.receiver.try_iter().find(|event| *event == Event::Stopped),
        ended => ended,
    };
    let text = std::mem::take(&mut *locked(&text));
    Ok((ended, text))
}

/// Waits for the end of a command, and walks its tree meanwhile, before processes hide. Returns
/// `None` if its time is up.
fn until_over(tree: &mut Tree, stopped: &Stopped) -> Option<Event> {
    let until = Instant::now() + TIME;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match stopped.receiver.recv_timeout(left.min(WALK)) {
            Ok(event) => return Some(event),
            Err(_) if left.is_zero() => return None,
            Err(_) => drop(tree.refresh()),
        }
    }
}

/// Reads all output, so that the command is never blocked, and keeps its beginning.
fn read(mut output: impl Read, text: &Mutex<Vec<u8>>) {
    let mut piece = vec![0; 64 << 10];
    loop {
        let count = match output.read(&mut piece) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(0) | Err(_) => return,
            Ok(count) => count,
        };
        let mut text = locked(text);
        let room = OUTPUT.saturating_sub(text.len());
        text.extend_from_slice(&piece[..count.min(room)]);
    }
}
