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
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::time::{Duration, Instant};
use std::{env, fs, io, process, thread};

use acpd_client::Paths;
use acpd_services::fs::Kind;
use acpd_shim::frame::{Inbox, Stage, Status, Step, ToDaemon, ToShim, VERSION};
use acpd_shim::launch::{self, How, LadderTimes, Launch, Program, Started};
use acpd_shim::orphans::Orphans;
use acpd_shim::shim_dir::ShimDir;
use acpd_sys::files::private_dir;
use acpd_sys::process::{ProcessId, StopSignal, reap, signal_one};
use acpd_sys::socket::connect;
use acpd_sys::wait::{End, Interest};
use serde::Serialize;
use serde_json::{Value, json};
use which::which;

use super::DiagnosticsArgs;
use super::findings::{Finding, findings};
use super::folders::Folders;
use crate::failure::Failure;
use crate::options::DETECT;
use crate::report::line;

/// Longest run of a command.
const TIME: Duration = Duration::from_mins(5);
/// Time from SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
/// Longest time until a cancelled call is noticed.
const LOOK: Duration = Duration::from_millis(50);
/// Time for a shim to start its command, and to be connected to.
const START: Duration = Duration::from_secs(10);
/// Bytes of output that are read for findings.
const OUTPUT: usize = 16 << 20;
/// Findings in an answer.
const FINDINGS: usize = 200;
/// Characters of the output of a command that failed without a finding.
const TAIL: usize = 4000;

/// Last findings of the commands.
#[derive(Debug)]
pub(super) struct Checks {
    /// The program of the shim of each command.
    exe: PathBuf,
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
pub(crate) struct Stop(#[expect(dead_code, reason = "dropped")] Sender<()>);

impl Stop {
    pub(crate) fn new() -> (Stop, Stopped) {
        let (sender, receiver) = mpsc::channel();
        (Stop(sender), Stopped(receiver))
    }
}

/// Notices the drop of [`Stop`].
#[derive(Debug)]
pub(crate) struct Stopped(Receiver<()>);

impl Stopped {
    fn is_stopped(&self) -> bool {
        self.0.try_recv() == Err(TryRecvError::Disconnected)
    }
}

impl Checks {
    pub(super) fn new(exe: PathBuf) -> Checks {
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
                    let check = check(&command, folders, &self.exe, stopped)?;
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
    exe: &Path,
    stopped: &Stopped,
) -> Result<Check, Failure> {
    let begun = Instant::now();
    let cannot = |error: io::Error| Failure::new(format!("cannot run `{command}`: {error}"));
    let (ended, output) = run(command, folders.cwd(), exe, stopped).map_err(cannot)?;
    let text = String::from_utf8_lossy(&output);
    let findings = findings(&text, folders.cwd());
    let is_whole = ended.is_some();
    if stopped.is_stopped() {
        return Err(Failure::new("the call was cancelled"));
    }
    let ended = match ended {
        Some(Status::Code(code)) => format!("exit code {code}"),
        Some(Status::Signal(signal)) => format!("signal {signal}"),
        Some(Status::Closed | Status::Unknown) => "exit code -1".to_owned(),
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

/// Runs a command line, and ends all processes that it started. Returns its end, or `None` if it
/// was stopped before, and its output.
fn run(
    command: &str,
    cwd: &Path,
    exe: &Path,
    stopped: &Stopped,
) -> io::Result<(Option<Status>, Vec<u8>)> {
    let paths = Paths::discover().map_err(io::Error::other)?;
    private_dir(&paths.shim_sockets()).map_err(io::Error::other)?;
    // One command runs at a time.
    let name = format!("mcp-{}", process::id());
    let dir = paths.runtime.join(&name);
    let shim_dir = ShimDir::create(&dir, &name).map_err(io::Error::other)?;
    // The mark of this process: the tree of its agent has the command and its shim.
    let mark = env::var("ACPD_HOST").unwrap_or_default();
    let env = env::vars_os().collect();
    let program = Program { program: command.into(), args: Vec::new(), env, cwd: cwd.to_owned() };
    let launch = Launch {
        how: How::Command { program, is_line: true },
        marker: mark.clone(),
        socket: paths.shim_socket(&name),
        memory: 1 << 20,
        spool: 0,
        ladder: LadderTimes { eof: Duration::ZERO, term: GRACE, leftovers: GRACE },
        lease: Some(START),
    };
    let mut shim = process::Command::new(exe);
    shim.arg("shim").arg(shim_dir.path());
    let started = launch::start(shim, &launch, &mark, START).map_err(io::Error::other);
    let done = started.and_then(|Started { shim, .. }| {
        let done = talk(&launch, shim, stopped).inspect_err(|_| signal_one(shim, StopSignal::Kill));
        reap(shim.pid).ok();
        done
    });
    // Nothing is left, unless the command has killed its shim.
    let mut orphans = Orphans::of(&shim_dir);
    while !orphans.is_gone() {
        orphans.signal(StopSignal::Kill);
        thread::sleep(LOOK);
    }
    shim_dir.remove().ok();
    fs::remove_dir_all(&dir).ok();
    done
}

/// Reads what a shim sends, until nothing of its command is left. A command that has ended is
/// stopped with what it has left.
fn talk(
    launch: &Launch,
    shim: ProcessId,
    stopped: &Stopped,
) -> io::Result<(Option<Status>, Vec<u8>)> {
    let until = Instant::now() + TIME;
    let mut link = End::new(connect(&launch.socket, START)?)?;
    let (mut inbox, mut piece, mut text) = (Inbox::default(), vec![0; 64 << 10], Vec::new());
    say(&mut link, &ToShim::Hello { version: VERSION, from: 0 });
    // The command ends with this process.
    say(&mut link, &ToShim::Lease { ms: 1 });
    // Steps of the stop, and when the next one is due.
    let (mut steps, mut step_at) = ([Step::Term, Step::Kill].into_iter(), until);
    let (mut ended, mut is_stopping, mut is_gone) = (None, false, false);
    while !is_gone {
        if !is_stopping && (ended.is_some() || stopped.is_stopped()) {
            step_at = Instant::now();
        }
        if Instant::now() >= step_at {
            (is_stopping, step_at) = (true, Instant::now() + GRACE);
            match steps.next() {
                Some(step) => say(&mut link, &ToShim::Signal(step)),
                // The command may have stopped its shim, which then ends nothing.
                None => signal_one(shim, StopSignal::Kill),
            }
        }
        if !link.until(Interest::Read, Instant::now() + LOOK)? {
            continue;
        }
        match link.read(&mut piece) {
            // The shim was killed.
            Ok(0) => break,
            Ok(count) => inbox.push(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        while let Some(frame) = inbox.next_frame::<ToDaemon<'_>>().map_err(io::Error::other)? {
            match frame {
                ToDaemon::Out { offset, bytes } => {
                    let room = OUTPUT.saturating_sub(text.len());
                    text.extend_from_slice(&bytes[..bytes.len().min(room)]);
                    say(&mut link, &ToShim::Ack { offset: offset + bytes.len() as u64 });
                }
                ToDaemon::Exit { stage: Stage::Gone, .. } => {
                    is_gone = true;
                    say(&mut link, &ToShim::Exit);
                }
                ToDaemon::Exit { status, .. } if !is_stopping => ended = Some(status),
                _ => {}
            }
        }
    }
    Ok((ended, text))
}

/// A lost connection is noticed when it is read.
fn say(link: &mut End, frame: &ToShim<'_>) {
    let mut bytes = Vec::new();
    frame.encode(&mut bytes);
    link.write_until(Instant::now() + START, &bytes).ok();
}
