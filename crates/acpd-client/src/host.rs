//! The way to the daemon of another machine: the system's ssh, which runs `acpctl relay` there.
//!
//! ```text
//!  near                                                    far
//!  connect ─▶ ssh box 'acpctl relay' ─────────────────────▶ acpctl relay ─▶ socket of acpd
//!          ◀─ {"acpdRelay":1,"api":1,…} ◀──────────────────
//!          ◀─────────────────── bytes ────────────────────▶
//! ```
//!
//! | what comes before the connection | error |
//! | --- | --- |
//! | lines of the far shell, at most 64 KiB | none, they are dropped |
//! | the first line of the relay, with another version of the API | [`ConnectError::OtherApi`] |
//! | the same, and no daemon runs | [`ConnectError::NotRunningOn`] |
//! | the end of ssh, or nothing for too long | [`ConnectError::Unreachable`] |
//!
//! A program under an agent says so to the relay, which then is under an agent there.
//!
//! The user's ssh decides about addresses, keys and known hosts; nothing here loosens that. A
//! connection that breaks is resumed like one to a local daemon.

use std::io::{self, IsTerminal as _, Read as _};
use std::process::{Child, ChildStderr, ExitStatus};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use acpd_api::{API_VERSION, RelayHello, escape};
use acpd_sys::socket::{self, Stream};
use acpd_sys::tree::is_marked;
use serde::{Deserialize, Serialize};

use crate::error::ConnectError;
use crate::stream::is_timeout;

/// Longest wait for the first line of the relay.
const HELLO: Duration = Duration::from_secs(20);
/// The same while a person may type a password.
const PASSWORD: Duration = Duration::from_mins(2);
/// Most bytes before that line.
const BANNER: u64 = 64 << 10;
/// Longest wait for the end of ssh after its output has ended, and then for its errors.
const END: Duration = Duration::from_secs(1);
/// Most bytes of an error that ssh or the relay prints.
const WORDS: u64 = 16 << 10;

/// Exit code of a shell that does not find a program.
const NOT_FOUND: i32 = 127;
/// Exit code of ssh for its own failures.
const SSH_FAILED: i32 = 255;

/// Options for every host: no forwarding, and an end within 20 s if the other side is gone.
const OPTIONS: &str = "-T -a -x -o ClearAllForwardings=yes -o ServerAliveInterval=5 -o ServerAliveCountMax=3 -o ConnectTimeout=10";

/// Finds `acpctl` in `PATH` and where its installers put it: a command over ssh gets no login
/// shell. Shells of every kind pass the quoted text on.
const FIND: &str = "exec sh -c 'PATH=$PATH:$HOME/.cargo/bin:$HOME/.local/bin:$HOME/bin:/usr/local/bin:/opt/homebrew/bin; exec acpctl relay";

/// Another machine on which this user has an acpd.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    pub name: String,
    /// Destination for ssh.
    pub ssh: String,
    /// More options for ssh, before the destination.
    pub ssh_options: Vec<String>,
    /// The command that runs the relay there, in place of the usual search.
    pub relay: Option<String>,
    /// Starts a daemon there if none runs.
    pub start: bool,
    /// The machine is one of many: ssh asks nothing, and the connection is there within this time.
    pub within: Option<Duration>,
}

impl Host {
    /// Connects to the daemon there.
    pub(crate) fn open(&self, spawn: bool) -> Result<Stream, ConnectError> {
        let has_user = io::stdin().is_terminal() && io::stderr().is_terminal();
        let is_asked = has_user && self.within.is_none();
        let (stream, mut child) = socket::start("ssh", &self.way(spawn && self.start, is_asked))
            .map_err(|error| self.unreachable(format!("cannot run ssh: {error}"), None))?;
        let usual = if is_asked { PASSWORD } else { HELLO };
        let deadline = Instant::now() + self.within.unwrap_or(usual);
        let host = self.name.clone();
        let error = match read_hello(&stream, deadline) {
            Ok(Some(hello)) if hello.api != API_VERSION => {
                let version = escape::one_line(hello.version.raw()).to_string();
                ConnectError::OtherApi { host, version }
            }
            Ok(Some(hello)) if !hello.running => ConnectError::NotRunningOn { host },
            Ok(Some(_)) => {
                // Waits for ssh, so that no dead process stays.
                let waiting = thread::Builder::new().name("ssh".to_owned());
                waiting.spawn(move || child.wait()).map_err(ConnectError::System)?;
                return Ok(stream);
            }
            Ok(None) => self.ended(&mut child),
            Err(error) if is_timeout(&error) => {
                self.unreachable("it does not answer".to_owned(), None)
            }
            Err(error) => self.unreachable(error.to_string(), None),
        };
        end(&mut child);
        Err(error)
    }

    /// Arguments of ssh, which takes the first of several values: the user's options come first.
    fn way(&self, start: bool, is_asked: bool) -> Vec<String> {
        let mut far = self.relay.clone().unwrap_or_else(|| FIND.to_owned());
        far.push_str(if start { " --start" } else { "" });
        far.push_str(if is_marked() { " --under-agent" } else { "" });
        far.push_str(if self.relay.is_none() { "'" } else { "" });
        let quiet: &[&str] = if is_asked { &[] } else { &["-o", "BatchMode=yes"] };
        let own = OPTIONS.split(' ').chain(quiet.iter().copied()).chain(["--", &self.ssh, &far]);
        self.ssh_options.iter().cloned().chain(own.map(str::to_owned)).collect()
    }

    /// Returns why ssh has ended before the relay said anything.
    fn ended(&self, child: &mut Child) -> ConnectError {
        let status = wait(child);
        let stderr = child.stderr.take().filter(|_| status.is_some());
        let words = stderr.map(read_words).unwrap_or_default();
        let words = String::from_utf8_lossy(&words);
        let code = status.and_then(|status| status.code());
        let last = || words.lines().rev().map(str::trim).find(|line| !line.is_empty());
        let reason = match (crate::program_error(&words), last(), code) {
            (Some((reason, _)), ..) => reason.to_owned(),
            (None, Some(line), _) => line.to_owned(),
            (None, None, Some(code)) => format!("the connection ended (exit code {code})"),
            (None, None, None) => "the connection ended".to_owned(),
        };
        self.unreachable(reason, code)
    }

    fn unreachable(&self, reason: String, code: Option<i32>) -> ConnectError {
        let name = &self.name;
        let words = self.ssh_options.iter().chain([&self.ssh]).map(|word| {
            // Keeps the dash of an option outside of the quotes.
            let (dash, rest) = word.strip_prefix('-').map_or(("", &**word), |rest| ("-", rest));
            format!("{dash}{}", escape::shell_word(rest))
        });
        let ssh = words.collect::<Vec<_>>().join(" ");
        let hint = match code {
            Some(NOT_FOUND) if reason.contains("exec: ssh:") => "install ssh".to_owned(),
            Some(NOT_FOUND) => format!(
                "install acpd there, or name its acpctl: `relay = \"/path/to/acpctl relay\"` in `[hosts.{name}]`"
            ),
            Some(SSH_FAILED) | None => format!("try the connection alone: `ssh {ssh}`"),
            Some(_) => format!("look there: `ssh {ssh} acpctl doctor`"),
        };
        let reason = escape::one_line(&reason).to_string();
        ConnectError::Unreachable { host: name.clone(), reason, hint }
    }
}

/// Waits a moment for the end of a program.
fn wait(child: &mut Child) -> Option<ExitStatus> {
    let end = Instant::now() + END;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < end => thread::sleep(Duration::from_millis(5)),
            _ => break,
        }
    }
    None
}

/// Reads what ssh has printed. A process that it has left behind may keep the pipe open.
fn read_words(stderr: ChildStderr) -> Vec<u8> {
    let (sender, blocks) = mpsc::channel();
    let mut stderr = stderr.take(WORDS);
    let read = move || {
        let mut block = [0; 4 << 10];
        while let Ok(count @ 1..) = stderr.read(&mut block) {
            if sender.send(block[..count].to_vec()).is_err() {
                return;
            }
        }
    };
    let (mut words, end) = (Vec::new(), Instant::now() + END);
    if thread::Builder::new().name("ssh errors".to_owned()).spawn(read).is_ok() {
        let left = || end.saturating_duration_since(Instant::now());
        while let Ok(block) = blocks.recv_timeout(left()) {
            words.extend(block);
        }
    }
    words
}

fn end(child: &mut Child) {
    child.kill().ok();
    child.wait().ok();
}

/// Reads the first line of the relay, and drops what comes before it. `None`: the stream ended.
fn read_hello(mut stream: &Stream, deadline: Instant) -> io::Result<Option<RelayHello>> {
    let (mut line, mut byte) = (Vec::new(), [0]);
    for _ in 0..BANNER {
        let left = deadline.saturating_duration_since(Instant::now());
        stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        // One by one: what follows the line belongs to the connection.
        if stream.read(&mut byte)? == 0 {
            return Ok(None);
        }
        if byte != *b"\n" {
            line.push(byte[0]);
            continue;
        }
        if let Ok(hello) = serde_json::from_slice(&line) {
            stream.set_read_timeout(None)?;
            return Ok(Some(hello));
        }
        line.clear();
    }
    Err(io::Error::other("it prints something else than the relay of acpd"))
}
